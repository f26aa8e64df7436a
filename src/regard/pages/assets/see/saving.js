// A chart as a drawing that needs no page around it: what the style sheet says becomes part of it.
export function standalone(svg, title) {
  const copy = svg.cloneNode(true);
  const [width, height] = [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height];
  const drawn = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((one, n) => {
    const look = getComputedStyle(drawn[n]);
    for (const name of ["fill", "stroke", "stroke-width", "color", "font-size", "font-family", "paint-order"]) one.setAttribute(name, look.getPropertyValue(name));
    for (const name of ["class", "tabindex", "data-series"]) one.removeAttribute(name);
  });
  copy.querySelectorAll("[stroke='rgba(0, 0, 0, 0)']").forEach((one) => one.remove());
  const make = (tag) => document.createElementNS(svg.namespaceURI, tag);
  const [ground, name] = [make("rect"), make("title")];
  for (const [key, value] of Object.entries({ width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor })) ground.setAttribute(key, value);
  name.textContent = title;
  copy.prepend(name, ground);
  for (const [key, value] of Object.entries({ width, height })) copy.setAttribute(key, value);
  return new XMLSerializer().serializeToString(copy);
}

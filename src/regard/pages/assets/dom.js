// Elements of the page and of its pictures.

export const SVG = "http://www.w3.org/2000/svg"; // a name, not an address: nothing is loaded from it

export function add(parent, tag, attributes = {}, text = null) {
  const svg = parent.namespaceURI === SVG || tag === "svg";
  const child = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) child.setAttribute(name, value);
  if (text !== null) child.textContent = text;
  parent.append(child);
  return child;
}

// Small makers of page elements. Text goes in as text, never as markup.

export const byId = (id) => document.getElementById(id);

// Attributes: a function is a listener, true an attribute without value, false or null none.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if ((value ?? false) !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => (child ?? null) !== null));
  return made;
}

export function button(label, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, label);
}

// A row's first cell is its heading.
export function table(caption, head, rows) {
  const heading = (scope) => (text) => el("th", { scope, dir: "auto" }, text);
  return el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, head.map(heading("col")))),
    el("tbody", {}, rows.map(([first, ...rest]) => el("tr", {}, heading("row")(first), rest.map((value) => el("td", {}, value))))));
}

// One of several, as a row of buttons that are real inputs underneath. choices: [[value, text, title]]
export function choices(legend, name, list, onpick) {
  const inputs = new Map();
  const labels = list.map(([value, text, title]) => {
    const input = el("input", { type: "radio", name, onchange: () => onpick(value) });
    inputs.set(value, input);
    return el("label", { class: "choice", title }, input, el("span", {}, text));
  });
  return { root: el("fieldset", {}, el("legend", {}, legend), labels), inputs };
}

export function toggle(text, onpick, attributes = {}) {
  const input = el("input", { type: "checkbox", onchange: () => onpick(input.checked) });
  return { root: el("label", { class: "choice", ...attributes }, input, el("span", {}, text)), input };
}

// The nearest place that there is.
export function held(n, size) {
  return Math.max(0, Math.min(size - 1, n));
}

export function download(name, content, type) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  el("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

// Asked for while it draws, it draws once more afterwards. Also when the window or the colours change.
export function oneAtATime(draw) {
  let asks = 0;
  const update = async () => {
    if (asks++) return;
    for (let seen = 0; seen < asks;) {
      seen = asks;
      await draw();
    }
    asks = 0;
  };
  addEventListener("resize", update);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  return update;
}

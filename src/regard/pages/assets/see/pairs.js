// Two items of a page: which words of theirs belong together, and which differ.
import { el } from "./ui.js";

// Which item stands second: the one chosen, else the next.
export function secondItem(app) {
  const { item, other } = app.state.get();
  return other !== null && other !== item ? other : (item + 1) % app.data.items.length;
}

export function compared(app) {
  return [app.item(), app.data.items[secondItem(app)]];
}

export function onlyOne(app) {
  return app.data.items.length > 1 ? null : "There is only one text here. Trace two that differ in a word.";
}

// Where the second item has the same layer, and how many heads; null if nowhere.
export function secondLayer(app, kind, number) {
  const map = compared(app)[1].maps.find((one) => one.kind === kind);
  const layer = map?.layers.findIndex((one) => one.number === number) ?? -1;
  return layer < 0 ? null : { over: { item: secondItem(app), layer }, heads: map.heads };
}

// For each word of both rows whether it is missing in the other: all but their longest common subsequence.
export function differing(a, b) {
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const only = [a.map(() => true), b.map(() => true)];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) only[0][i++] = only[1][j++] = false;
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return only;
}

export function differingWords(...both) {
  return differing(...both.map((labels) => labels.map((label) => label.title)));
}

// Where each word of the first has its partner in the second: by position if both are equally long, else only words they
// have in common.
export function paired(a, b) {
  const common = a.length === b.length ? [a, b].map((labels) => [...labels.keys()])
    : differingWords(a, b).map((only) => [...only.keys()].filter((n) => !only[n]));
  return new Map(common[0].map((n, place) => [n, common[1][place]]));
}

export function bothWords(one, other) {
  return one.title === other.title ? one.title : `${one.title} / ${other.title}`;
}

// A text as nodes, the words that another text does not have marked.
export function changed(text, other) {
  const words = text.split(/(\s+)/), [only] = differing(words, other.split(/(\s+)/));
  return words.map((word, n) => (only[n] && word.trim() ? el("mark", {}, word) : word));
}

// Both texts, and what was written for them, with the words marked that only one has; the second can be chosen.
export function makePair(app) {
  const select = el("select", { onchange: () => app.go({ other: Number(select.value) }) }, app.data.items.map(({ title }, n) => el("option", { value: n }, title)));
  const texts = [0, 1].map(() => el("p", { class: "sentence", dir: "auto" }));
  const root = el("div", { class: "pair" }, el("div", {}, el("div", { class: "line" }, "First"), texts[0]), el("div", {}, el("label", { class: "line" }, "Second", select), texts[1]));
  function update() {
    const [first, second] = compared(app), rows = ["source", "text", "predicted"].filter((name) => first.rows[name] && second.rows[name]);
    const marked = (one, other) => rows.map((name) => el("span", { class: name }, changed(one.rows[name].text, other.rows[name].text)));
    select.value = secondItem(app);
    texts[0].replaceChildren(...marked(first, second));
    texts[1].replaceChildren(...marked(second, first));
  }
  return { root, update };
}

// 0.42 as +0.42, and a true minus sign.
export function signed(x, digits = 2) {
  const size = Math.abs(x).toFixed(digits);
  return Number(size) === 0 ? size : (x < 0 ? "−" : "+") + size;
}

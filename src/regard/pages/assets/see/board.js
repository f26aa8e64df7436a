// Two columns of words and lines between them: the wider a line, the larger the weight.
import { number, queryRow } from "./shown.js";
import { edges, headsLayout } from "./geometry.js";
import { blank, hues, paintLines } from "./paint.js";
import { choosing, stepping, wordColumn } from "./a11y.js";
import { el } from "./ui.js";

export const SIDES = ["queries", "keys"];
const NAMES = ["words that look", "words looked at"];

// words, and tokenOf(side, n): see `choosing`. Draws pictures as `edges` has them, and again when there is more or less room.
export function makeBoard(app, words, name = "", tokenOf = (side, n) => n) {
  const canvas = el("canvas", { "aria-hidden": "true" }), middle = el("div", { class: "lines" }, canvas), asks = el("p", { class: "side" });
  const columns = SIDES.map((side, n) => wordColumn(name + NAMES[n], choosing(app, side, words, (word) => tokenOf(side, word))));
  let picture = null, lines = [], width = 0;
  new ResizeObserver(([entry]) => {
    width = Math.round(entry.contentRect.width);
    if (width && picture) draw(picture);
  }).observe(middle);

  function draw(wanted) {
    picture = wanted;
    const { selected, approximate } = picture, state = app.state.get(), layout = headsLayout(picture, { x1: 0, x2: width, top: 0 });
    asks.textContent = queryRow(app.item(), app.map(), state) === "predicted" ? "when writing" : "each word";
    lines = edges(layout, picture, state.root);
    paintLines(blank(canvas, width, layout.height), lines, hues());
    columns.forEach((column, n) => {
      const own = selected?.side === SIDES[n];
      column.update(picture[SIDES[n]], own ? selected.index ?? null : null);
      column.light(selected && !own ? widest(lines, n ? "k" : "q", approximate) : new Map());
      column.root.classList.toggle("dim", selected !== null);
    });
  }
  const root = el("div", { class: "heads" }, asks, el("span"), el("p", { class: "side" }, "looks at"), columns[0].root, middle, columns[1].root);
  return { root, columns, draw, edges: () => lines, keys: stepping(app, words) };
}

// The three words with the widest lines stand out, with their weights.
function widest(lines, end, approximate) {
  const lit = new Map();
  for (const line of lines) if (lit.size < 3 && !lit.has(line[end])) lit.set(line[end], number(line.w, approximate));
  return lit;
}

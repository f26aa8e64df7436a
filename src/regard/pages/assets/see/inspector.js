// At the right: the chosen word and what it looks at, in numbers; below, the head.
import { exact, headHue, number } from "./shown.js";
import { byId, el, table } from "./ui.js";
import { headStatistics } from "./grid.js";

// Views that stand alone: without the inspector, and with only this of the toolbar. Weights that cannot be shown are no
// concern of theirs.
export const BARE = { beam: [], knockout: [], contrast: ["show"], steps: ["kind", "layer", "heads"] };
const LISTED = 8;
const WHOLE = 64; // words up to which a table has all weights
const LOOKS = { queries: "looks at", keys: "is looked at by" };

export function makeInspector(app) {
  const place = byId("inspector"), word = el("div"), head = el("div");
  place.append(word, head);
  let last = null, timer = 0, soon = 0;
  return (now) => {
    const state = app.state.get();
    place.hidden = state.view in BARE || state.view === "compare";
    if (last !== now) head.replaceChildren(...aboutHead(app, now));
    last = now;
    clearTimeout(soon); // the lines are drawn first: for the numbers, the next frame is soon enough
    soon = setTimeout(() => word.replaceChildren(...(state.token === null ? [el("h2", {}, "Point at a word"), quiet("It shows what it looks at, or by whom it is looked at. A click keeps it.")] : chosenWord(app, state, now))));
    clearTimeout(timer);
    if (state.token !== null) timer = setTimeout(() => app.say(sentenceOf(state, now)), 120);
  };
}

function quiet(text) {
  return el("p", { class: "small quiet", dir: "auto" }, text);
}

// The weights of the chosen word: of its row if it looks, of its column if it is looked at.
function weightsOfWord(now, { side, token }, w = now.w) {
  const K = now.keys.length, asks = side === "queries";
  return (asks ? now.keys : now.queries).map((label, n) => ({ label, w: asks ? w[token * K + n] : w[n * K + token] }));
}

function largest(now, state, count, w = now.w) {
  return weightsOfWord(now, state, w).sort((a, b) => b.w - a.w).slice(0, count);
}

// The numbers behind a picture: of the chosen word, or of all if there are not too many.
export function weightsTable(app, now) {
  const { side, token } = app.state.get(), said = ({ w }) => exact(w, now.approximate);
  if (token === null && Math.max(now.queries.length, now.keys.length) <= WHOLE) {
    return table(now.name, ["word", ...now.keys.map((key) => key.text)], now.queries.map(({ text }, q) => [text, ...weightsOfWord(now, { side: "queries", token: q }).map(said)]));
  }
  const word = token === null ? { side: "queries", token: 0 } : { side, token }, lists = now.drawn.map(({ w }) => weightsOfWord(now, word, w));
  return table(`${now.name}: “${now[word.side][word.token].text}” ${LOOKS[word.side]}`, ["word", ...now.drawn.map(({ head }) => (head < 0 ? "weight" : `head ${head + 1}`))],
    lists[0].map(({ label }, n) => [label.text, ...lists.map((list) => said(list[n]))]));
}

// "it, encoder self-attention, layer 5 → 6 (encoder layer 6 of 6), head 3: animal 0.61, street 0.12, it 0.08."
function sentenceOf(state, now) {
  const parts = largest(now, state, 3).map((one) => `${one.label.text} ${number(one.w, now.approximate)}`);
  return `${now[state.side][state.token].text}${state.side === "keys" ? " is looked at by" : ""}, ${now.name}: ${parts.join(", ")}.`;
}

function chosenWord(app, state, now) {
  const label = now[state.side][state.token], count = now.drawn.length > 1 ? LISTED / 2 : LISTED;
  const lists = now.drawn.slice(0, 3).flatMap(({ head, w }) => [
    el("h3", {}, hued(head, { class: "dot" }), head < 0 ? now.headName : `head ${head + 1}`),
    el("ol", { class: "bars" }, largest(now, state, count, w).map((one) => bar(one, head, now))),
  ]);
  const said = LOOKS[state.side] + (state.pinned ? " · kept; Esc lets go" : "");
  return [el("h2", { dir: "auto", class: "word" }, label.title), quiet(said), ...lists, ...facts(app.item(), app.map()[state.side], label).map(quiet)];
}

// A mark in the head's colour.
export function hued(head, attributes = {}) {
  const made = el("i", attributes);
  made.style.background = `var(${headHue(head)})`;
  return made;
}

function bar({ label, w }, head, now) {
  const fill = hued(head);
  fill.style.width = `${100 * Math.min(1, w)}%`;
  return el("li", {}, el("span", { dir: "auto", class: "of", title: label.title }, label.text), el("b", {}, exact(w, now.approximate)), el("span", { class: "track" }, fill));
}

function facts({ rows, predictions }, row, { tokens: own }) {
  const { text, tokens } = rows[row], [, first, last, , flags] = tokens[own[0]], guesses = row === "target" && predictions?.[own.at(-1)];
  return [
    flags & 2 && `“${Array.from(text).slice(first, last).join("")}” is not in the vocabulary`,
    guesses && "writes next: " + guesses.slice(0, 3).map(([word, p]) => `${word} ${number(p)}`).join(", "),
  ].filter(Boolean);
}

function aboutHead(app, now) {
  const map = app.map(), { entropy, distance, special } = headStatistics(now.w, now.queries.length, now.keys.length, now.keys.map((key) => key.special), map.queries === map.keys);
  const rows = [["looks at", `≈ ${(2 ** entropy).toFixed(1)} words`], ["distance", distance === null ? "–" : `${distance.toFixed(1)} words`], ["to special tokens", `${Math.round(100 * special)} %`]];
  return [el("h3", { class: "ruled" }, now.headName), el("dl", {}, rows.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))];
}

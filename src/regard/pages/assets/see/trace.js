// Attention through the layers: out of which words that go in is a word made that comes out? Rollout (Abnar and Zuidema 2020):
// in each layer a word stays half what it was, the other half is what it looked at. Where one text looks at another nothing is
// passed on, and each layer stands alone.
import { el, table, toggle } from "./ui.js";
import { exact, number, queryRow, rowLabels, shown } from "./shown.js";
import { FIGURE, LEAST, THICKEST } from "./geometry.js";
import { blank, colour } from "./paint.js";
import { choosing, stepping, wordColumn } from "./a11y.js";
import { fewLargest, track } from "./find.js";

const HEADING = 24, MARGIN = 12; // CSS pixels
const PLAIN = 0.03; // with no word chosen, only lines from here on

export const traceView = { id: "trace", title: "Trace", key: "y", available: () => null, mount: mountTrace };

function mountTrace(root, app) {
  const only = toggle("only the chosen heads", (on) => app.go({ traceHeads: on ? "chosen" : "all" }));
  const said = el("p", { class: "said" }), note = el("p", { class: "small quiet" }), canvas = el("canvas", { "aria-hidden": "true" });
  const left = el("ol", { class: "trace-in" });
  const right = wordColumn("words that come out", choosing(app, "queries", () => now));
  const board = el("div", { class: "trace" }, left, el("div", {}, canvas), right.root);
  root.append(only.root, said, board, note);
  let now = null;

  async function update() {
    const state = app.state.get(), q = state.side === "queries" ? state.token : null;
    only.input.checked = state.traceHeads === "chosen";
    now = await loadTrace(app, only.input.checked ? state.heads : [...Array(app.map().heads).keys()]);
    Object.assign(now, follow(now, q));
    board.hidden = Boolean(now.problem);
    said.textContent = now.problem ?? now.said;
    note.textContent = now.note;
    right.update(now.queries, q);
    if (now.halted) right.light(new Map(now.queries.map((label, n) => [n, now.tookOf(label)])));
    left.replaceChildren(...now.keys.map((label, n) => el("li", {},
      el("b", {}, number(now.shares[n], now.approximate)), track(now.shares[n] / Math.max(...now.shares)), el("span", { dir: "auto", title: label.title }, label.text))));
    paintTrace(canvas, now);
  }
  return { update, keys: stepping(app, () => now, "queries"), tableFor: async () => traceTable(now) };
}

// Everything is followed token by token; only then are the tokens of a word added up. `place`: the word of each token, -1 if
// hidden; `tookOf`: the repetitions of a word until it halted; `names`: of the columns.
async function loadTrace(app, heads) {
  const item = app.item(), map = app.map(), state = app.state.get(), self = map.queries === map.keys;
  const over = { heads, combine: "mean", value: false, pieces: true, special: true, label: "input" };
  const layers = await Promise.all(map.layers.map((_, layer) => shown(app, { ...over, layer })));
  const halted = self && item.halted?.[map.queries], tookOf = ({ tokens }) => Math.max(...tokens.map((token) => halted?.[token] ?? Infinity));
  const queries = rowLabels(item, queryRow(item, map, state), state), keys = rowLabels(item, map.keys, state);
  const place = new Int32Array(layers[0].keys.length).fill(-1), names = map.layers.map((layer) => layer.number + 1);
  keys.forEach((label, n) => label.tokens.forEach((token) => (place[token] = n)));
  return {
    self, layers, halted, queries, keys, place, tookOf, names: self ? ["in", ...names] : names, title: map.title, note: aboutTrace(item, self, names),
    approximate: layers[0].approximate, problem: layers.find((one) => one.problem)?.problem,
  };
}

function aboutTrace(item, self, names) {
  const what = item.halted ? "repetition" : "layer", passed = [...Array(names.at(-1)).keys()].filter((n) => n && !names.includes(n));
  return [
    names.length === 1 && `There is only one ${what} of this kind: nothing is passed on.`,
    self ? `Each column is what a ${what} passes on: wide lines are what attention brings, thin grey ones what a word keeps.` : `Each column is a ${what}.`,
    self && item.halted && "A word that has halted is faded; beside it, after how many repetitions.",
    self && passed.length > 0 && `Passed over, for words look elsewhere there: layer ${passed.join(", ")}.`,
  ].filter(Boolean).join(" ");
}

// The chosen word, or all of them together, as amounts in tokens: before each layer and after the last where words look at
// their own row, else in each layer.
function follow(now, q) {
  const { self, layers, queries, keys, approximate } = now, words = q === null ? queries : [queries[q]];
  const start = new Float64Array(layers[0].queries.length);
  for (const { tokens } of words) for (const token of tokens) start[token] += 1 / tokens.length;
  const { columns, lines } = self ? flowBack(now, start) : { columns: layers.map(({ w }) => looked(w, start)), lines: [] };
  const amounts = columns.map((column) => keys.map(({ tokens }) => tokens.reduce((sum, token) => sum + column[token] / words.length, 0)));
  const shares = self ? amounts[0] : keys.map((_, k) => amounts.reduce((sum, column) => sum + column[k] / amounts.length, 0));
  const hidden = 1 - shares.reduce((sum, share) => sum + share, 0);
  const rest = hidden > 0.005 ? ` ${number(hidden, approximate)} is from special tokens that are hidden.` : "";
  const who = q === null ? "On average, a word" : `“${queries[q].title}”`, does = self ? "at the end is made of" : "looks, over all layers, at";
  return { amounts, lines, shares, least: q === null ? PLAIN : LEAST, said: `${who} ${does} ${fewLargest(keys, shares, 4, approximate)}.${rest}` };
}

function looked(w, start) {
  const K = w.length / start.length, found = new Float64Array(K);
  w.forEach((weight, n) => (found[n % K] += start[Math.floor(n / K)] * weight));
  return found;
}

// How much of what is in `start` at the end was in each token before each layer, and what attention brought from word to word.
// A token that has halted is carried over as it is.
function flowBack({ layers, halted, place, keys }, start) {
  const columns = [start], lines = [], n = start.length;
  for (let l = layers.length - 1; l >= 0; l--) {
    const below = new Float64Array(n), brought = new Float64Array(keys.length ** 2);
    columns[0].forEach((amount, q) => {
      const row = amount && !(halted?.[q] <= l) ? layers[l].w.subarray(q * n, (q + 1) * n) : [];
      const part = amount / row.reduce((sum, one) => sum + one, 1);
      below[q] += part;
      row.forEach((weight, k) => {
        below[k] += part * weight;
        if (place[q] >= 0 && place[k] >= 0) brought[place[q] * keys.length + place[k]] += part * weight;
      });
    });
    columns.unshift(below);
    lines.unshift(brought);
  }
  return { columns, lines };
}

function paintTrace(canvas, { self, layers, keys, tookOf, names, amounts, lines, least }) {
  const width = canvas.parentNode.clientWidth, pen = blank(canvas, width, HEADING + FIGURE.row * keys.length), took = keys.map(tookOf);
  const wide = (width - 2 * MARGIN) / layers.length, x = (column) => MARGIN + column * wide, y = (n) => HEADING + (n + 0.5) * FIGURE.row;
  const draw = (l, from, to, thick, alpha) => {
    Object.assign(pen, { lineWidth: thick, globalAlpha: alpha });
    pen.beginPath();
    pen.moveTo(x(l), y(from));
    pen.lineTo(x(l + 1), y(to));
    pen.stroke();
  };
  lines.forEach((brought, l) => {
    pen.strokeStyle = colour("--quiet");
    keys.forEach((_, n) => amounts[l + 1][n] > 0.001 && draw(l, n, n, 1, took[n] <= l ? 0.2 : 0.6));
    pen.strokeStyle = colour("--accent");
    brought.forEach((amount, at) => amount >= least && draw(l, at % keys.length, Math.floor(at / keys.length), THICKEST * Math.min(1, 2 * amount), least === LEAST ? 0.8 : 0.35));
  });
  Object.assign(pen, { globalAlpha: 1, fillStyle: colour("--quiet"), font: `12px ${colour("--sans")}`, textAlign: "center" });
  names.forEach((name, l) => pen.fillText(name, x(l), HEADING / 2));
  pen.fillStyle = colour(self ? "--ink" : "--accent");
  amounts.forEach((column, l) => column.forEach((amount, n) => {
    pen.globalAlpha = took[n] < l ? 0.25 : 1;
    pen.beginPath();
    if (self) pen.arc(x(l), y(n), 1.5 + 6 * Math.sqrt(amount), 0, 2 * Math.PI);
    else pen.rect(x(l), y(n) - 5, amount * (wide - MARGIN), 10);
    pen.fill();
  }));
}

function traceTable({ keys, names, title, approximate, said, amounts }) {
  return table(`${title}. ${said}`, ["word", ...names], keys.map((label, k) => [label.title, ...amounts.map((column) => exact(column[k], approximate))]));
}

// Every layer and head of one kind, each as a small matrix. All are one canvas; hovering draws only on the canvas above it, and
// the cells are buttons without a face, for keyboard and screen reader.
import { button, el, table } from "./ui.js";
import { allHeads, number } from "./shown.js";
import { blank, colour, ramp } from "./paint.js";
import { badge } from "./knockout.js";
import { fewLargest } from "./find.js";

const STATISTICS = { entropy: "entropy, bits", distance: "mean distance", previous: "previous", next: "next", self: "itself", first: "first", special: "special" };
const MARKS = { entropy: "few words", previous: "the previous word", next: "the next word", self: "itself", first: "the first word", special: "special tokens" };
const MUCH = 0.4, FEW = 1; // of the weight; bits, as of two words looked at equally
const CELL = { gap: 6, above: 22, left: 58, least: 24, most: 220 }; // CSS pixels
const HELP = "Each square is a head: its rows look, its columns are looked at, the stronger the colour the more. A click opens it.";

export const gridView = { id: "grid", title: "Grid", key: "g", available: () => null, mount: mountGrid };

// One head in numbers: means over its queries. Only where words look at their own row do they have neighbours, and the mean
// is over those that have one. Null: has no meaning here.
export function headStatistics(w, Q, K, special, same) {
  const sums = { entropy: 0, distance: 0, previous: 0, next: 0, self: 0, first: 0, special: 0 };
  let rows = 0;
  for (let q = 0; q < Q; q++) {
    const row = w.subarray(q * K, (q + 1) * K), mass = row.reduce((sum, one) => sum + one, 0);
    if (!mass) continue;
    rows += 1;
    row.forEach((weight, k) => {
      const p = weight / mass;
      if (p) sums.entropy -= p * Math.log2(p);
      sums.distance += p * Math.abs(q - k);
      if (special[k]) sums.special += p;
    });
    for (const [name, k] of [["previous", q - 1], ["next", q + 1], ["self", q], ["first", 0]]) sums[name] += (row[k] ?? 0) / mass;
  }
  const means = Object.entries(sums).map(([name, sum]) => {
    const among = name === "previous" || name === "next" ? rows - 1 : rows;
    const known = among > 0 && (same || ["entropy", "first", "special"].includes(name));
    return [name, known ? sum / among : null];
  });
  return Object.fromEntries(means);
}

function looksThere(mark, numbers) {
  return mark === "entropy" ? numbers.entropy <= FEW : !mark || numbers[mark] >= MUCH;
}

function mountGrid(root, app) {
  const marks = el("select", { onchange: () => app.go({ gridMark: marks.value }) },
    el("option", { value: "" }, "anything"), Object.entries(MARKS).map(([name, text]) => el("option", { value: name }, text)));
  const [base, over] = [0, 1].map(() => el("canvas", { "aria-hidden": "true" }));
  const cells = el("div", { role: "group", "aria-label": "Heads: arrow keys move, Enter opens", onkeydown: walk });
  const said = el("p", { class: "said grid-said small" }), note = el("p", { class: "quiet small" });
  root.append(el("label", { class: "legend" }, "mark heads that look at ", marks), said, el("div", { class: "wide" }, el("div", { class: "grid-stack" }, base, over, cells)), note);
  let now = null, pointed = {};

  async function update() {
    const { gridMark } = app.state.get(), first = await allHeads(app, { layer: 0 });
    if (now?.first !== first) now = { first, ...(await loadGrid(app)) };
    placeCells(now, root.clientWidth);
    marks.value = gridMark in MARKS ? gridMark : "";
    paintGrid(blank(base, now.width, now.height), now, marks.value);
    if (cells.children.length !== now.cells.length) cells.replaceChildren(...now.cells.map((_, n) => makeCell(n)));
    now.cells.forEach((cell, n) => dress(cells.children[n], cell));
    note.textContent = aboutGrid(now, marks.value);
    trace();
  }
  function makeCell(n) {
    const open = () => app.go({ view: "heads", layer: Math.floor(n / now.heads), heads: [n % now.heads], combine: "heads" });
    const reach = ({ offsetY }) => point({ n, q: Math.floor((offsetY / now.h) * now.queries.length) }), leave = () => point({});
    return button("", open, { tabindex: n ? -1 : 0, onpointermove: reach, onpointerleave: leave, onfocus: () => point({ n }), onblur: leave });
  }
  function dress(shape, { x, y, name, numbers, lost }) {
    Object.assign(shape.style, { left: `${x}px`, top: `${y}px`, width: `${now.w}px`, height: `${now.h}px` });
    shape.title = lost?.title ?? "";
    shape.ariaLabel = `${name}: ${inWords(numbers, now.approximate)}. ${shape.title}`;
    shape.replaceChildren(...(lost && now.w >= 48 ? [el("small", {}, lost.text)] : []));
  }
  function point(where) {
    if (where.n === pointed.n && where.q === pointed.q) return;
    pointed = where;
    trace();
  }
  // The word pointed at, else the one chosen, in every head.
  function trace() {
    const { n, q } = pointed, head = now.cells[n], { side, token } = q === undefined ? app.state.get() : { side: "queries", token: q };
    paintTraced(blank(over, now.width, now.height), now, side, token, head);
    said.replaceChildren(...(head ? describeHead(now, head, side === "queries" ? token : null) : [HELP]));
  }
  function walk(event) {
    const by = { ArrowUp: -now.heads, ArrowDown: now.heads, ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const all = [...cells.children], next = all[all.indexOf(event.target) + by];
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
  return { update, tableFor: async () => gridTable(now) };
}

async function loadGrid(app) {
  const map = app.map();
  const every = (over) => Promise.all(map.layers.map((_, layer) => allHeads(app, { layer, ...over })));
  const [seen, whole] = await Promise.all([every({}), every({ special: true, value: false, label: "input" })]);
  const cells = seen.flatMap(({ heads, layer, layerLabel, problem }, l) => heads.map(({ head, w }) => {
    // a head's numbers are those of the whole head, whatever the picture hides
    const { queries, keys, heads: all } = whole[l];
    const numbers = headStatistics(all[head].w, queries.length, keys.length, keys.map((key) => key.special), map.queries === map.keys);
    return { head, layer, numbers, w: problem ? null : w, name: `${layerLabel}, head ${head + 1}`, lost: badge(app.item(), map.kind, layer, head) };
  }));
  return { ...seen[0], cells, heads: map.heads, title: map.title, problem: seen.find((one) => one.problem)?.problem ?? "" };
}

function placeCells(now, room) {
  const { heads, cells, queries, keys } = now;
  const w = Math.round(Math.min(CELL.most, Math.max(CELL.least, (room - CELL.left - 4) / heads - CELL.gap)));
  const h = Math.round(Math.max(CELL.least, w * Math.min(1.6, queries.length / keys.length)));
  cells.forEach((cell, n) => Object.assign(cell, { x: CELL.left + cell.head * (w + CELL.gap), y: CELL.above + Math.floor(n / heads) * (h + CELL.gap) }));
  Object.assign(now, { w, h, width: CELL.left + heads * (w + CELL.gap), height: CELL.above + (cells.length / heads) * (h + CELL.gap) });
}

function paintGrid(pen, now, mark) {
  const shades = new Uint32Array(ramp().buffer), sheet = el("canvas");
  Object.assign(pen, { imageSmoothingEnabled: false, font: `12px ${colour("--sans")}`, textAlign: "center", textBaseline: "middle" });
  pen.fillStyle = pen.strokeStyle = colour("--quiet");
  now.cells.forEach(({ x, y, head, layer, numbers, w }, n) => {
    if (n < now.heads) pen.fillText(head + 1, x + now.w / 2, CELL.above / 2);
    if (!head) pen.fillText(`${layer} → ${layer + 1}`, CELL.left / 2, y + now.h / 2);
    pen.globalAlpha = looksThere(mark, numbers) ? 1 : 0.15;
    if (w) pen.drawImage(thumbnail(sheet, w, now, shades), x, y, now.w, now.h);
    pen.strokeRect(x - 0.5, y - 0.5, now.w + 1, now.h + 1);
    pen.globalAlpha = 1;
  });
}

// A pixel for each weight. Where the cell has fewer pixels than words, a pixel shows the largest of its weights: leaving some
// out would break diagonals.
function thumbnail(sheet, weights, { queries, keys, w, h }, shades) {
  const Q = queries.length, K = keys.length, ratio = Math.min(devicePixelRatio, 2);
  sheet.width = Math.min(K, Math.round(w * ratio));
  sheet.height = Math.min(Q, Math.round(h * ratio));
  const image = new ImageData(sheet.width, sheet.height), pixels = new Uint32Array(image.data.buffer), largest = new Float32Array(pixels.length);
  weights.forEach((weight, n) => {
    const row = Math.floor((Math.floor(n / K) * sheet.height) / Q), at = row * sheet.width + Math.floor(((n % K) * sheet.width) / K);
    if (weight > largest[at]) largest[at] = weight;
  });
  largest.forEach((weight, at) => (pixels[at] = shades[Math.round(255 * Math.sqrt(Math.min(1, weight)))]));
  sheet.getContext("2d").putImageData(image, 0, 0);
  return sheet;
}

// A word as a row (among the keys: a column) of every head, and a frame round the head pointed at.
function paintTraced(pen, { cells, queries, keys, w, h }, side, token, pointed) {
  const high = h / queries.length, wide = w / keys.length;
  pen.strokeStyle = colour("--hue-2");
  for (const { x, y } of token === null ? [] : cells) {
    if (side === "queries") pen.strokeRect(x - 1, y + token * high - 1.5, w + 2, high + 3);
    else pen.strokeRect(x + token * wide - 1.5, y - 1, wide + 3, h + 2);
  }
  Object.assign(pen, { strokeStyle: colour("--ink"), lineWidth: 2 });
  if (pointed) pen.strokeRect(pointed.x - 2, pointed.y - 2, w + 4, h + 4);
}

function inWords(numbers, approximate) {
  const known = Object.entries(STATISTICS).filter(([name]) => numbers[name] !== null);
  return known.map(([name, text]) => `${text} ${number(numbers[name], approximate)}`).join(" · ");
}

function describeHead({ queries, keys, approximate }, { name, numbers, w }, token) {
  const told = [el("b", {}, name), el("br"), inWords(numbers, approximate)];
  if (!w || !queries[token]) return told;
  const most = fewLargest(keys, w.subarray(token * keys.length), 3, approximate);
  return [...told, el("br"), el("span", { dir: "auto" }, `“${queries[token].text}” looks at ${most}`)];
}

function aboutGrid({ cells, problem }, mark) {
  const count = cells.filter(({ numbers }) => looksThere(mark, numbers)).length;
  const rule = mark === "entropy" ? `an entropy of at most ${FEW} bit` : `on average at least ${MUCH} of the weight`;
  return mark ? `${count} of ${cells.length} heads look at ${MARKS[mark]} (${rule}). ${problem}` : problem;
}

function gridTable({ cells, title, approximate }) {
  const rows = cells.map(({ name, numbers, lost }) =>
    [name, ...Object.keys(STATISTICS).map((one) => (numbers[one] === null ? "–" : number(numbers[one], approximate))), lost?.text ?? "–"]);
  return table(`${title}: where each head looks, on average`, ["head", ...Object.values(STATISTICS), "switched off"], rows);
}

// One head, or several combined, as a heat map: the same drawing on the screen and in a file.
import { exact, shown } from "./shown.js";
import { blank, colour, ramp } from "./paint.js";
import { svgAddress, svgFile, svgTag } from "./svg.js";
import { weightsTable } from "./inspector.js";
import { el, held } from "./ui.js";

const PRINTED = 28; // pixels of a cell from which its number is printed in it
const WIDEST = 40, NARROWEST = 2, READABLE = 11, LONGEST_LABEL = 24; // pixels of a cell; below READABLE, not every word has a label; characters
const DARK = 0.44; // a weight from which numbers are printed in the colour of the paper

export const matrixView = { id: "matrix", title: "Matrix", key: "v", available: () => null, mount: mountMatrix };

function mountMatrix(root, app) {
  let now = null, layout = null, drawn = {};
  const free = () => !app.state.get().pinned, picture = el("img", { alt: "" }), told = el("p", { class: "told", id: "cell", dir: "auto" });
  const above = el("canvas", {
    tabindex: 0, role: "img", class: "above", onkeydown: walk, onpointermove: (event) => free() && app.go(cellAt(event)), onpointerleave: () => free() && app.go({ token: null }),
    onclick: (event) => app.go({ ...cellAt(event), pinned: free() }),
  });
  root.append(el("div", { class: "matrix wide" }, picture, above), told, el("div", { class: "colour-bar" }, "0", el("i"), "1"));

  function cellAt(event) {
    const { q, k } = cellUnder(event, layout);
    return now.queries[q] && now.keys[k] ? { side: "queries", token: q, matrixKey: k } : { token: null };
  }
  function walk(event) {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key], { q, k } = cellOf(app.state.get(), now) ?? { q: 0, k: 0 };
    if (event.key === "Enter") app.go({ pinned: free() });
    else if (by && !event.shiftKey) app.go({ side: "queries", token: held(q + by[0], now.queries.length), matrixKey: held(k + by[1], now.keys.length) });
    else return;
    event.preventDefault();
  }
  async function update() {
    now = await shown(app);
    layout = matrixLayout(now, root.clientWidth);
    const look = layout.width + colour("--paper"), cell = cellOf(app.state.get(), now);
    if (drawn.now !== now || drawn.look !== look) picture.src = svgAddress(matrixSvg(now, layout));
    drawn = { now, look };
    above.setAttribute("aria-label", `${now.name}: ${now.queries.length} by ${now.keys.length} weights; arrow keys move`);
    paintCross(blank(above, layout.width, layout.height), layout, cell);
    told.textContent = cell ? `${now.queries[cell.q].title} → ${now.keys[cell.k].title}: ${exact(now.w[cell.q * now.keys.length + cell.k], now.approximate)}` : "Rows look, columns are looked at.";
  }
  const titled = () => matrixSvg(now, { ...layout, top: layout.top + 40, height: layout.height + 70 }, now.name, app.item().model.name);
  return { update, tableFor: () => weightsTable(app, now), figure: titled };
}

function cellOf({ side, token, matrixKey = 0 }, now) {
  return token === null ? null : side === "keys" ? { q: 0, k: token } : { q: token, k: held(matrixKey, now.keys.length) };
}

export function cellUnder({ offsetX, offsetY }, { left, top, cell }) {
  return { q: Math.floor((offsetY - top) / cell), k: Math.floor((offsetX - left) / cell) };
}

export function matrixLayout({ queries, keys }, room) {
  const longest = (labels) => 14 + 7.5 * Math.min(LONGEST_LABEL, Math.max(...labels.map((label) => label.text.length)));
  const left = longest(queries), top = longest(keys);
  const cell = Math.max(NARROWEST, Math.min(WIDEST, Math.floor((room - left - 30) / keys.length)));
  const wide = keys.length * cell, high = queries.length * cell;
  return { left, top, cell, wide, high, width: Math.max(room, left + wide + 30), height: top + high + 6 };
}

function matrixSvg({ queries, keys, w, causal }, { left, top, cell, wide, high, width, height }, title = "", caption = "") {
  const K = keys.length, across = (k) => left + k * cell, down = (q) => top + q * cell, some = (_, n) => n % Math.ceil(READABLE / cell) === 0;
  const write = (text, x, y, anchor, turn = 0, size = 13, fill = "--ink") =>
    svgTag("text", { transform: `translate(${x} ${y}) rotate(${turn})`, dy: "0.35em", "text-anchor": anchor, "font-size": size, fill: colour(fill) }, text);
  const whole = { x: left, y: top, width: wide, height: high };
  const parts = [svgTag("image", { ...whole, href: pixels(w, K, queries.length), preserveAspectRatio: "none", "image-rendering": "pixelated" }), svgTag("rect", { ...whole, fill: "none", stroke: colour("--line") })];
  const unseen = (query, q) => {
    const seen = keys.filter((key) => key.tokens[0] <= query.tokens.at(-1)).length;
    return svgTag("rect", { x: across(seen), y: down(q), width: (K - seen) * cell, height: cell, fill: "url(#unseen)" });
  };
  if (causal) parts.push(`<pattern id="unseen" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V5" stroke="${colour("--line")}"/></pattern>`, ...queries.map(unseen));
  if (cell >= PRINTED) w.forEach((x, n) => x >= 0.005 && parts.push(write(x.toFixed(2).replace(/^0/, ""), across((n % K) + 0.5), down(Math.floor(n / K) + 0.5), "middle", 0, 11, x < DARK ? "--ink" : "--paper")));
  parts.push(...queries.map(({ text }, q) => write(text, left - 8, down(q + 0.5), "end")).filter(some), ...keys.map(({ text }, k) => write(text, across(k + 0.5), top - 8, "start", -60)).filter(some));
  return svgFile({ width, height, title, caption, parts });
}

// A pixel for each weight.
function pixels(w, K, Q) {
  const canvas = el("canvas", { width: K, height: Q }), image = new ImageData(K, Q), shades = new Uint32Array(ramp().buffer);
  new Uint32Array(image.data.buffer).set(Array.from(w, (x) => shades[Math.min(255, Math.round(255 * x))]));
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas.toDataURL();
}

function paintCross(pen, { left, top, cell, wide, high }, at) {
  if (!at) return;
  const x = left + at.k * cell, y = top + at.q * cell;
  Object.assign(pen, { strokeStyle: colour("--ink"), globalAlpha: 0.45 });
  pen.strokeRect(left, y, wide, cell);
  pen.strokeRect(x, top, cell, high);
  Object.assign(pen, { globalAlpha: 1, lineWidth: 2 });
  pen.strokeRect(x, y, cell, cell);
}

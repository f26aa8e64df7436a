// Charts as plain SVG, drawn at the size at which they are seen, so that their text is never scaled.
import { add, SVG } from "./dom.js";

export const DASHES = ["", "7 4", "2 3"];

// Round numbers that divide a range into about `count` parts.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-6; n++) found.push(n * step);
  return found;
}

// 1, 2, 5, 10, 20 ... while they are few; else only some powers of ten.
function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const inside = (n) => n >= low * 0.999 && n <= high * 1.001;
  const all = [];
  for (let p = first; p <= last; p++) all.push(...[1, 2, 5].map((n) => n * 10 ** p));
  const fine = all.filter(inside);
  if (fine.length <= count + 2) return fine;
  const every = Math.max(1, Math.ceil((last - first) / count));
  return Array.from({ length: last - first + 1 }, (_, n) => 10 ** (first + n)).filter((n, i) => inside(n) && (last - first - i) % every === 0);
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e4) return `${trim(value / 1e3)}k`;
  if (size >= 1e3) return value.toLocaleString("en");
  if (size === 0 || size >= 0.01) return trim(value);
  const [front, power] = value.toExponential(2).split("e");
  const raised = `10${power.replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])}`;
  return Number(front) === 1 ? raised : `${Number(front)}·${raised}`;
}

function trim(value) {
  return String(Number(value.toPrecision(3)));
}

function scale(axis, from, to) {
  const f = axis.log ? Math.log10 : (x) => x;
  const [low, high] = [f(axis.low), f(axis.high)];
  return (x) => from + ((f(x) - low) / (high - low || 1)) * (to - from);
}

// A mark tells series apart where colour cannot: filled, hollow, square.
function mark(parent, style, x, y, size = 3.2) {
  const look = { fill: style.number === 1 ? "var(--paper)" : "currentColor", stroke: "currentColor", "stroke-width": 1.5 };
  if (style.number === 2) add(parent, "rect", { ...look, x: x - size, y: y - size, width: 2 * size, height: 2 * size });
  else add(parent, "circle", { ...look, cx: x, cy: y, r: size });
}

export function swatch(parent, style) {
  const drawn = add(parent, "svg", { width: 22, height: 10, class: style.hue, "aria-hidden": "true" });
  add(drawn, "line", { x1: 0, x2: 22, y1: 5, y2: 5, stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": DASHES[style.number] });
  mark(drawn, style, 11, 5);
  return drawn;
}

// Names must not lie on each other. A line that ends early has its name at its end, the others at the right: there each is
// pushed below the one before, from the top, and then back up, from the bottom.
function spread(ends, gap, box) {
  const labels = ends.map(([x, y], n) => ({ x: x < box.right - 40 ? x + 10 : box.right + 18, y, n }));
  for (const early of [true, false]) {
    const order = labels.filter((label) => label.x < box.right === early).sort((a, b) => a.y - b.y);
    const apart = (a, b) => early && Math.abs(a.x - b.x) > 90;
    order.forEach((label, n) => {
      label.y = Math.max(label.y, box.top);
      for (const above of order.slice(0, n)) if (!apart(label, above)) label.y = Math.max(label.y, above.y + gap);
    });
    order.reverse().forEach((label, n) => {
      label.y = Math.min(label.y, box.bottom - 2);
      for (const below of order.slice(0, n)) if (!apart(label, below)) label.y = Math.min(label.y, below.y - gap);
    });
  }
  return labels;
}

function frame(figure, height, label) {
  figure.querySelector("svg.chart")?.remove();
  const width = Math.max(240, figure.clientWidth);
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ class: "chart", height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }))
    svg.setAttribute(name, value);
  figure.prepend(svg);
  return [svg, width];
}

// Lines with their names at the right end. series: [{name, style, points: [[x, y] ...], faint}]; a y of null breaks the line, a
// faint line has no name. What is returned places more marks in the picture; null if there is none.
export function lineChart(figure, { series, x, y, label, height = 340 }) {
  const [svg, width] = frame(figure, height, label);
  const shown = series.filter((one) => one.points.some((point) => point[1] !== null));
  if (!shown.length) {
    add(svg, "text", { x: 0, y: 24 }, "Nothing to show.");
    return null;
  }
  const named = shown.filter((one) => !one.faint);
  const margin = Math.max(...named.map((one) => one.name.length)) * 7 + 26;
  const box = { left: 46, right: width - margin, top: 22, bottom: height - 42 };
  const values = shown.flatMap((one) => one.points.map((point) => point[1])).filter((value) => value !== null);
  const places = shown.flatMap((one) => one.points.map((point) => point[0]));
  const xs = { low: x.low ?? Math.min(...places), high: Math.max(...places), log: x.log };
  const ys = { low: y.low ?? Math.min(...values), high: y.high ?? Math.max(...values), log: y.log };
  if (xs.low === xs.high) xs.high += 1;
  if (ys.low === ys.high) ys.high += ys.log ? ys.high : 1;
  const toX = scale(xs, box.left, box.right), toY = scale(ys, box.bottom, box.top);

  for (const value of (y.log ? logTicks : ticks)(ys.low, ys.high, 6)) {
    add(svg, "line", { class: "grid", x1: box.left, x2: box.right, y1: toY(value), y2: toY(value) });
    add(svg, "text", { x: box.left - 8, y: toY(value) + 4, "text-anchor": "end" }, short(value));
  }
  const across = x.ticks ?? ticks(xs.low, xs.high, Math.max(4, Math.round((box.right - box.left) / 90))).map((value) => [value, short(value)]);
  for (const [value, text] of across) {
    add(svg, "line", { class: "axis", x1: toX(value), x2: toX(value), y1: box.bottom, y2: box.bottom + 5 });
    add(svg, "text", { x: toX(value), y: box.bottom + 19, "text-anchor": "middle" }, text);
  }
  add(svg, "line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom });
  add(svg, "text", { x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, x.label);
  add(svg, "text", { x: 0, y: 10 }, y.label);

  const ends = named.map((one) => one.points.filter((point) => point[1] !== null).at(-1)).map(([px, py]) => [toX(px), toY(py)]);
  const labels = spread(ends, 15, box);
  const lines = add(svg, "g"), names = add(svg, "g"); // names lie above all lines
  shown.forEach((one, n) => {
    const group = add(lines, "g", { class: `series ${one.style.hue}`, "data-series": n, ...(one.faint ? { "stroke-opacity": 0.3 } : {}) });
    let path = "", pen = "M";
    for (const [px, py] of one.points) {
      if (py === null) pen = "M";
      else {
        path += `${pen}${toX(px).toFixed(1)} ${toY(py).toFixed(1)}`;
        pen = "L";
      }
    }
    add(group, "path", { d: path, fill: "none", stroke: "transparent", "stroke-width": 12 });
    add(group, "path", { d: path, fill: "none", stroke: "currentColor", "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": DASHES[one.style.number] });
    if (one.points.length <= 16) for (const [px, py] of one.points) if (py !== null) mark(group, one.style, toX(px), toY(py), 2.6);
  });
  named.forEach((one, n) => {
    const name = add(names, "g", { class: `series ${one.style.hue}`, "data-series": shown.indexOf(one) });
    const leader = `M${ends[n][0] + 4} ${ends[n][1]}L${labels[n].x - 4} ${labels[n].y}`;
    add(name, "path", { d: leader, fill: "none", stroke: "currentColor", "stroke-width": 1, opacity: 0.7 });
    add(name, "text", { class: "name", x: labels[n].x, y: labels[n].y + 4 }, one.name);
  });
  emphasise(svg);
  return { svg, box, toX, toY };
}

// Whatever the pointer is on stands out; the rest steps back.
function emphasise(svg) {
  const all = [...svg.querySelectorAll(".series")];
  for (const one of all) {
    one.addEventListener("pointerenter", () => all.forEach((other) => other.setAttribute("opacity", other.dataset.series === one.dataset.series ? 1 : 0.18)));
    one.addEventListener("pointerleave", () => all.forEach((other) => other.removeAttribute("opacity")));
  }
}

// One row for each value, with its interval. rows: [{name, style, value, low, high}]
export function dotChart(figure, { rows, label, unit }) {
  const height = rows.length * 30 + 46;
  const [svg, width] = frame(figure, height, label);
  if (!rows.length) return;
  const box = { left: Math.max(...rows.map((row) => row.name.length)) * 7 + 16, right: width - 56, top: 8, bottom: height - 38 };
  const low = Math.min(...rows.map((row) => row.low)), high = Math.max(...rows.map((row) => row.high));
  const room = Math.max(1, (high - low) * 0.06);
  const axis = { low: Math.max(0, low - room), high: Math.min(100, high + room) };
  const toX = scale(axis, box.left, box.right);
  for (const value of ticks(axis.low, axis.high, Math.max(3, Math.round((box.right - box.left) / 100)))) {
    add(svg, "line", { class: "grid", x1: toX(value), x2: toX(value), y1: box.top, y2: box.bottom });
    add(svg, "text", { x: toX(value), y: box.bottom + 17, "text-anchor": "middle" }, short(value));
  }
  add(svg, "text", { x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, unit);
  rows.forEach((row, n) => {
    const middle = box.top + 15 + n * 30;
    const group = add(svg, "g", { class: row.style.hue });
    add(group, "text", { class: "name", x: 0, y: middle + 4 }, row.name);
    // An interval is symmetric, a score is not below 0: what would lie there is not drawn.
    const [from, to] = [Math.max(axis.low, row.low), Math.min(axis.high, row.high)];
    add(group, "line", { x1: toX(from), x2: toX(to), y1: middle, y2: middle, stroke: "currentColor", "stroke-width": 2 });
    for (const end of [from, to]) add(group, "line", { x1: toX(end), x2: toX(end), y1: middle - 5, y2: middle + 5, stroke: "currentColor", "stroke-width": 2 });
    mark(group, row.style, toX(row.value), middle, 4);
    add(group, "text", { class: "value", x: width, y: middle + 4, "text-anchor": "end" }, row.value.toFixed(1));
  });
}

// The numbers behind a picture, for those who cannot see it and those who want to know.
export function numbers(figure, heads, rows) {
  const open = figure.querySelector("details")?.open;
  figure.querySelector("details")?.remove();
  const details = add(figure, "details");
  details.open = Boolean(open);
  add(details, "summary", {}, "The numbers");
  const table = add(add(details, "div", { class: "wide", tabindex: 0, role: "region", "aria-label": "The numbers" }), "table");
  const head = add(add(table, "thead"), "tr");
  for (const name of heads) add(head, "th", { scope: "col" }, name);
  const body = add(table, "tbody");
  for (const row of rows) {
    const line = add(body, "tr");
    row.forEach((cell, n) => add(line, n ? "td" : "th", n ? {} : { scope: "row" }, cell));
  }
}

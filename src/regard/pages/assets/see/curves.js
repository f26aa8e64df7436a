// The curves of a training: smoothed if asked, thinned out to what the screen can show, and read by pointing at them.
import { add } from "../dom.js";
import { lineChart } from "../charts.js";
import { button, choices, download, el, table, toggle } from "./ui.js";
import { standalone } from "./saving.js";

const AXES = { step: "steps", tokens: "tokens learned from", seconds: "time" };
const UNITS = [[3600, "hours"], [60, "minutes"], [1, "seconds"]];
const ROWS = 1000; // of a table on the page; a file has all of them
const TRAINED = { hue: "hue-1", number: 0 }, VALIDATED = { hue: "hue-5", number: 0 };

// An average that forgets: each value counts `alpha` times as much as the one after it. It begins at the first value, not at
// zero, and what comes later changes nothing; null stays null.
export function smoothed(values, alpha) {
  let sum = 0, weight = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = alpha * sum + (1 - alpha) * value;
    weight = alpha * weight + (1 - alpha);
    return sum / weight;
  });
}

// Of the points that fall on the same pixels, the lowest and the highest, in their order: no spike is lost.
export function envelope(points, buckets) {
  if (points.length <= 2 * buckets) return points;
  const low = points[0][0], wide = (points.at(-1)[0] - low) / buckets || 1;
  const kept = new Map();
  points.forEach(([x, y], n) => {
    const key = Math.min(buckets - 1, Math.floor((x - low) / wide));
    const own = kept.get(key) ?? kept.set(key, { low: n, high: n, gap: null }).get(key);
    if (y === null) own.gap = n;
    else {
      if (points[own.low][1] === null || y < points[own.low][1]) own.low = n;
      if (points[own.high][1] === null || y > points[own.high][1]) own.high = n;
    }
  });
  const chosen = [...kept.values()].flatMap(({ low, high, gap }) => [low, high, ...(gap === null ? [] : [gap])]);
  return [...new Set([0, ...chosen, points.length - 1])].sort((a, b) => a - b).map((n) => points[n]);
}

export function said(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return size >= 10 ? value.toFixed(1) : size >= 0.01 || size === 0 ? value.toFixed(3) : value.toPrecision(3);
}

// All charts that the run has numbers for. A series: {name, style, steps, places, values, smooth}.
export function panelsOf({ training, evaluations, names }) {
  const learned = (name, column, smooth) => ({ name, style: TRAINED, smooth, of: training, values: training[column] });
  const of = Object.fromEntries(Object.keys(AXES).map((axis) => [axis, evaluations.map((one) => one[axis])]));
  const found = (name, key) => ({ name, style: VALIDATED, of, validated: true, values: evaluations.map((one) => one[key] ?? null) });
  const scores = Object.keys(names).filter((key) => evaluations.some((one) => key in one));
  const panels = [
    { id: "loss", title: "Loss per token", series: [learned("training", "loss", true), found("validation", "loss")] },
    { id: "perplexity", title: "Validation perplexity", series: [found("", "perplexity")] },
    ...scores.map((key) => ({ id: key, title: `Validation ${names[key]}`, series: [found("", key)], low: key === "bits_per_byte" ? undefined : 0 })),
    { id: "rate", title: "Learning rate", series: [learned("", "rate", false)], low: 0 },
    { id: "gradient", title: "Length of the gradient", series: [learned("", "gradient", true)], low: 0 },
    { id: "tokens_per_second", title: "Tokens per second", series: [learned("", "tokens_per_second", true)], low: 0 },
  ];
  const some = panels.map((panel) => ({ ...panel, series: panel.series.filter((one) => one.values.some((value) => value !== null)) }));
  return some.filter((panel) => panel.series.length);
}

export function makeCurves(history, app) {
  const panels = panelsOf(history), cursor = { step: null };
  const controls = makeControls(app);
  const place = document.getElementById("curves");
  const best = history.evaluations.findLast((one) => one.best);
  for (const panel of panels) place.append(makeFigure(panel, history, app, pointAt));
  place.firstChild?.classList.add("first");

  function pointAt(step) {
    cursor.step = step;
    for (const panel of panels) readAt(panel, step, app.state.get());
  }
  return {
    panels,
    update() {
      const state = app.state.get();
      controls(state);
      for (const panel of panels) draw(panel, state, best);
      pointAt(cursor.step);
    },
  };
}

function makeControls(app) {
  const form = document.getElementById("curve-controls");
  form.addEventListener("submit", (event) => event.preventDefault());
  const axis = choices("Against", "axis", [["step", "steps"], ["tokens", "tokens"], ["seconds", "time"]], (value) => app.go({ axis: value }));
  const log = toggle("logarithmic", (on) => app.go({ log: on }), { title: "where all values are above zero" });
  const slider = el("input", { type: "range", min: 0, max: 0.99, step: 0.01, id: "smoothing", oninput: () => app.go({ smoothing: Number(slider.value) }) });
  const shown = el("output", { for: "smoothing" });
  const why = "an exponential average of what is measured at every line of the log; validations are never smoothed";
  form.append(axis.root, log.root, el("label", { class: "legend", title: why }, "Smoothing", slider, shown));
  return (state) => {
    for (const [value, input] of axis.inputs) input.checked = value === state.axis;
    log.input.checked = state.log;
    slider.value = state.smoothing;
    shown.value = state.smoothing.toFixed(2);
  };
}

function makeFigure(panel, history, app, pointAt) {
  panel.told = el("p", { class: "told" });
  const save = (name, type, content) => download(`${history.title}-${panel.id}.${name}`, content, type);
  const keep = el("div", { class: "keep line" },
    button("SVG", () => save("svg", "image/svg+xml", standalone(panel.chart.svg, panel.title)), { "aria-label": `${panel.title} as SVG` }),
    button("CSV", () => save("csv", "text/csv", csvOf(panel)), { "aria-label": `${panel.title} as CSV` }));
  panel.figure = el("figure", { id: `curve-${panel.id}` }, el("div", { class: "head" }, el("h3", {}, panel.title), keep), panel.told);
  panel.plot = el("div", {
    onpointermove: (event) => pointAt(stepAt(panel, event, app.state.get())), onpointerleave: () => pointAt(null),
    onkeydown: (event) => walk(panel, event, pointAt, app),
  });
  panel.figure.append(panel.plot, behind(panel));
  return panel.figure;
}

// The numbers behind the picture, made when they are first asked for.
function behind(panel) {
  const details = el("details", { ontoggle: () => details.open && details.children.length === 1 && details.append(el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `${panel.title}: the numbers` }, numbersOf(panel))) }, el("summary", {}, "The numbers"));
  return details;
}

function numbersOf(panel) {
  const rows = rowsOf(panel), every = Math.ceil(rows.length / ROWS);
  const part = every > 1 ? `; one of ${every} lines, the CSV file has all` : "";
  const caption = panel.title + part;
  return table(caption, HEADS, rows.filter((_, n) => n % every === 0 || n === rows.length - 1).map(([name, step, tokens, seconds, value]) => [step, name, said(tokens), said(seconds), said(value)]));
}

const HEADS = ["step", "measured in", "tokens", "seconds", "value"];

function rowsOf(panel) {
  return panel.series.flatMap(({ of, values, validated }) => values.map((value, n) => [validated ? "validation" : "training", of.step[n], of.tokens[n], of.seconds[n], value]));
}

function csvOf(panel) {
  return ["measured in,step,tokens,seconds,value", ...rowsOf(panel).map((row) => row.map((cell) => cell ?? "").join(","))].join("\n") + "\n";
}

function unitOf(panel, axis) {
  if (axis !== "seconds") return [1, AXES[axis]];
  const longest = Math.max(...panel.series.map((one) => one.of.seconds.at(-1) ?? 0));
  return UNITS.find(([size]) => longest >= 3 * size) ?? [1, "seconds"];
}

function draw(panel, state, best) {
  const [unit, label] = unitOf(panel, state.axis);
  const buckets = Math.max(100, panel.plot.clientWidth);
  const pointsOf = (one, values) => envelope(one.of[state.axis].map((x, n) => [x / unit, values[n]]), buckets);
  const series = panel.series.flatMap((one) => {
    const smooth = one.smooth && state.smoothing > 0;
    const values = smooth ? smoothed(one.values, state.smoothing) : one.values;
    const last = values.findLast((value) => value !== null);
    const line = { name: one.name || said(last), style: one.style, points: pointsOf(one, values) };
    return smooth ? [{ ...line, faint: true, points: pointsOf(one, one.values) }, line] : [line];
  });
  const positive = panel.series.every((one) => one.values.every((value) => value === null || value > 0));
  const log = state.log && positive;
  panel.chart = lineChart(panel.plot, {
    series, x: { label, low: 0 }, y: { label: log ? "logarithmic" : "", log, low: log ? undefined : panel.low },
    label: `${panel.title} against ${label}; arrow keys read it, and the numbers are below`, height: panel.id === "loss" ? 340 : 220,
  });
  panel.drawn = series;
  panel.place = (of, n) => panel.chart.toX(of[state.axis][n] / unit);
  panel.chart.svg.setAttribute("tabindex", 0);
  if (best) markBest(panel, best);
}

function markBest(panel, best) {
  const { svg, toY, box } = panel.chart;
  for (const one of panel.series.filter((one) => one.validated)) {
    const n = one.of.step.indexOf(best.step), value = one.values[n];
    if (value === null) continue;
    const x = panel.place(one.of, n), left = x > (box.left + box.right) / 2;
    add(svg, "line", { class: "best", x1: x, x2: x, y1: box.top - 18, y2: toY(value) - 6.5 });
    add(svg, "circle", { class: "best", cx: x, cy: toY(value), r: 6.5 });
    add(svg, "text", { class: "name", x: left ? x - 6 : x + 6, y: box.top - 10, "text-anchor": left ? "end" : "start" }, `best weights: ${said(value)}`);
  }
}

function nearest(list, value) {
  let [low, high] = [0, list.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value - list[low - 1] < list[low] - value ? low - 1 : low;
}

// The step whose point lies nearest to the pointer, across.
function stepAt(panel, event, state) {
  const x = event.clientX - panel.chart.svg.getBoundingClientRect().left;
  const found = panel.series.map(({ of }) => {
    const places = of[state.axis].map((_, n) => panel.place(of, n)), n = nearest(places, x);
    return { step: of.step[n], far: Math.abs(places[n] - x) };
  });
  return found.sort((a, b) => a.far - b.far)[0].step;
}

function walk(panel, event, pointAt, app) {
  const steps = [...new Set(panel.series.flatMap((one) => one.of.step))].sort((a, b) => a - b);
  const at = panel.step === null ? steps.length - 1 : nearest(steps, panel.step);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: steps.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  pointAt(steps[Math.max(0, Math.min(steps.length - 1, to))]);
  app.say(`${panel.title}, ${panel.told.textContent}`);
}

// What the chart says at a step, or at its end if none is pointed at.
function readAt(panel, step, state) {
  const { svg, box } = panel.chart;
  svg.querySelector(".cursor")?.remove();
  panel.step = step;
  const parts = panel.series.map((one) => {
    const n = step === null ? one.values.length - 1 : nearest(one.of.step, step);
    const average = one.smooth && state.smoothing > 0 ? `, smoothed ${said(smoothed(one.values.slice(0, n + 1), state.smoothing)[n])}` : "";
    const name = one.name ? `${one.name} ` : "";
    return { n, one, step: one.of.step[n], text: `${name}${said(one.values[n])}${average}` };
  });
  panel.told.textContent = parts.map((part) => `step ${part.step.toLocaleString("en")}: ${part.text}`).join(" · ");
  if (step === null) return;
  const { one, n } = parts.sort((a, b) => Math.abs(a.step - step) - Math.abs(b.step - step))[0];
  const x = panel.place(one.of, n);
  add(svg, "line", { class: "cursor", x1: x, x2: x, y1: box.top, y2: box.bottom });
}

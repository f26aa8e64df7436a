// The page of a comparison.
import { add } from "./dom.js";
import { DASHES, dotChart, lineChart, numbers, swatch } from "./charts.js";

const { table, paths } = JSON.parse(document.getElementById("data").textContent);
const METRIC = { bleu: "BLEU", chrf: "chrF2" }[table.metric];
const FAMILIES = [
  "recurrent",
  "recurrent encoder and decoder",
  "recurrent with attention",
  "convolution with attention",
  "attention",
  "attention, decoder alone",
];
const $ = (id) => document.getElementById(id);
const good = table.rows.filter((row) => !row.failed);
const hidden = new Set();
const shown = () => good.filter((row) => !hidden.has(row.model));

// A model's look: its family's colour, and within the family a mark and a dash of its own. It does not depend on the order
// of the results.
const styles = {};
{
  const members = {};
  const families = Object.fromEntries(table.rows.map((row) => [row.model, row.family]));
  for (const [name, path] of Object.entries(paths ?? {})) families[name] ??= path.family;
  for (const [name, family] of Object.entries(families).sort()) {
    const number = (members[family] = (members[family] ?? -1) + 1);
    styles[name] = { hue: `hue-${Math.max(0, FAMILIES.indexOf(family)) + 1}`, number: number % DASHES.length };
  }
}

const whole = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en"));
const fixed = (value, digits) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));

const COLUMNS = [
  { head: METRIC, value: (row) => row[table.metric].value, text: (v) => fixed(v, 1), better: "descending" },
  { head: "95% interval", value: (row) => row[table.metric].low, text: (v, row) => `${fixed(v, 1)} – ${fixed(row[table.metric].high, 1)}`, better: "descending" },
  { head: "exact", unit: "%", value: (row) => row.exact_match, text: (v) => fixed(v, 1), better: "descending" },
  { head: "perplexity", unit: "per token", value: (row) => row.perplexity, text: (v) => fixed(v, 2), better: "ascending" },
  { head: "parameters", unit: "millions", value: (row) => row.parameters, text: (v) => fixed(v / 1e6, 2), better: "descending" },
  { head: "training", unit: "tokens/s", value: (row) => row.tokens_per_second, text: whole, better: "descending" },
  { head: "writing", unit: "sentences/s", value: (row) => row.sentences_per_second, text: (v) => fixed(v, v < 10 ? 1 : 0), better: "descending" },
  { head: "memory", unit: "MB, peak", value: (row) => row.peak_memory, text: (v) => whole(v === null ? null : v / 1e6), better: "ascending" },
  { head: "path", unit: "longest", value: (row) => ["O(1)", "O(n/k)", "O(n)"].indexOf(row.path_across) * 3 + ["O(1)", "O(n/k)", "O(n)"].indexOf(row.path_within),
    text: (_, row) => (row.path_within === row.path_across ? row.path_within : `${row.path_within}, ${row.path_across}`), better: "ascending" },
];
const sorting = { column: -1, order: "ascending" };

function drawTable() {
  const focused = document.activeElement?.dataset?.column;
  const { column, order } = sorting;
  const rows = [...good];
  if (column === -2) rows.sort((a, b) => (a.model < b.model ? -1 : 1) * (order === "ascending" ? 1 : -1));
  if (column >= 0) {
    const key = (row) => COLUMNS[column].value(row) ?? NaN;
    rows.sort((a, b) => (Number.isNaN(key(a)) ? 1 : Number.isNaN(key(b)) ? -1 : (key(a) - key(b)) * (order === "ascending" ? 1 : -1)));
  }
  const place = $("table");
  place.replaceChildren();
  add(place, "caption", { hidden: "" }, "What was measured of each model; the headings sort.");
  const head = add(add(place, "thead"), "tr");
  [{ head: "model", better: "ascending" }, ...COLUMNS].forEach((one, n) => {
    const number = n === 0 ? -2 : n - 1;
    const cell = add(head, "th", { scope: "col", ...(column === number ? { "aria-sort": order } : {}) });
    const button = add(cell, "button", { type: "button", "data-column": number }, one.head);
    if (one.unit) add(button, "small", {}, one.unit);
    button.addEventListener("click", () => {
      sorting.order = column === number ? { ascending: "descending", descending: "ascending" }[order] : one.better;
      sorting.column = number;
      drawTable();
    });
  });
  const body = add(place, "tbody");
  for (const row of rows) {
    const line = add(body, "tr", row === good[0] ? { class: "best" } : {});
    const name = add(line, "th", { scope: "row" });
    swatch(name, styles[row.model]);
    name.append(`${row.model} `);
    if (row === good[0] && good.length > 1) add(name, "span", { class: "tag" }, "best");
    for (const one of COLUMNS) add(line, "td", {}, one.text(one.value(row), row));
  }
  for (const row of table.rows.filter((row) => row.failed)) {
    const line = add(body, "tr");
    add(line, "th", { scope: "row" }, row.model);
    add(line, "td", { class: "text", colspan: COLUMNS.length }, `failed: ${row.failed}`);
  }
  if (focused !== undefined) place.querySelector(`[data-column="${focused}"]`)?.focus();
}

function drawScores() {
  const rows = shown().map((row) => ({ ...row[table.metric], name: row.model, style: styles[row.model] }));
  dotChart($("scores"), { rows, unit: METRIC, label: `${METRIC} of each model with its 95% interval; the numbers are below` });
  numbers($("scores"), ["model", METRIC, "low", "high"], rows.map((row) => [row.name, ...[row.value, row.low, row.high].map((v) => fixed(v, 2))]));
}

function drawCurves() {
  const { x, y } = Object.fromEntries(new FormData($("curve-controls")));
  const series = shown().map((row) => ({ name: row.model, style: styles[row.model], points: row.curve.valid.map((point) => [point[x], point[y]]) }));
  const values = series.flatMap((one) => one.points.map((point) => point[1])).filter((value) => value !== null);
  const log = y === "loss" && Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) > 4;
  const labels = { seconds: "seconds of training", tokens: "target tokens learned from", step: "steps" };
  lineChart($("curves"), {
    series,
    x: { label: labels[x], low: 0 },
    y: { label: y === "loss" ? `validation loss${log ? ", on a logarithmic scale" : ""}` : "validation BLEU", log, ...(log ? {} : { low: y === "loss" ? undefined : 0 }) },
    label: `Validation ${y} of each model against ${labels[x]}; the numbers are below`,
  });
  numbers($("curves"), ["model", "step", "seconds", "tokens", "loss", "BLEU"],
    shown().flatMap((row) => row.curve.valid.map((p) => [row.model, whole(p.step), fixed(p.seconds, 1), whole(p.tokens), fixed(p.loss, 3), fixed(p.bleu, 1)])));
}

function drawLengths() {
  const buckets = good[0].quantiles;
  const span = (bucket) => (bucket.shortest === bucket.longest ? `${bucket.shortest}` : `${bucket.shortest}–${bucket.longest}`);
  const series = shown().map((row) => ({ name: row.model, style: styles[row.model], points: row.quantiles.map((bucket, n) => [n, bucket[table.metric].value]) }));
  lineChart($("lengths"), {
    series,
    x: { label: `source length in tokens; the median is ${table.test.median}`, low: -0.15, ticks: buckets.map((bucket, n) => [n, span(bucket)]) },
    y: { label: METRIC, low: 0 },
    label: `${METRIC} of each model for shorter and longer sentences; the numbers are below`,
  });
  numbers($("lengths"), ["model", ...buckets.map((bucket) => `${span(bucket)} (${bucket.sentences})`), ...good[0].halves.map((half, n) => (n ? `above ${table.test.median}` : `up to ${table.test.median}`))],
    shown().map((row) => [row.model, ...[...row.quantiles, ...row.halves].map((bucket) => fixed(bucket[table.metric].value, 1))]));
}

function drawPath() {
  const { state } = Object.fromEntries(new FormData($("path-controls")));
  const found = Object.entries(paths).filter(([name, path]) => path[state] && !hidden.has(name));
  const panels = {
    target: ["Back through the text being written", "words back", (path) => path.target.slice(1).map((value, n) => [n + 1, value])],
    source: ["Back to the source", "words on the way from the source", (path) => path.source.map((value, n) => [path.first + n, value])],
  };
  for (const [side, [title, label, points]] of Object.entries(panels)) {
    const figure = $(`path-${side}`);
    if (!figure.querySelector("h3")) add(figure, "h3", {}, title);
    const series = found.map(([name, path]) => {
      const own = points(path[state]);
      return { name, style: styles[name], points: own.map(([x, y]) => [x, y > 0 && own[0][1] > 0 ? y / own[0][1] : null]) };
    });
    const values = series.flatMap((one) => one.points.map((point) => point[1])).filter((value) => value !== null);
    lineChart(figure, {
      series,
      height: 320,
      x: { label },
      y: { label: "gradient, nearest word = 1", log: true, low: Math.max(1e-8, Math.min(0.1, ...values)), high: Math.max(2, ...values) },
      label: `${title}: the gradient's length against distance; the numbers are below`,
    });
    figure.prepend(figure.querySelector("h3"));
    const places = series[0]?.points.map((point) => point[0]) ?? [];
    numbers(figure, ["model", ...places], series.map((one) => [one.name, ...one.points.map((point) => (point[1] === null ? "0" : point[1].toPrecision(2)))]));
  }
}

function drawModels() {
  const place = $("models").querySelector("fieldset");
  const names = [...new Set([...good.map((row) => row.model), ...Object.keys(paths ?? {})])];
  for (const name of names) {
    const label = add(place, "label", { class: "choice" });
    const box = add(label, "input", { type: "checkbox", checked: "" });
    const face = add(label, "span");
    swatch(face, styles[name]);
    face.append(name);
    box.addEventListener("change", () => {
      box.checked ? hidden.delete(name) : hidden.add(name);
      drawAll();
    });
  }
}

function drawAll() {
  if (good.length) {
    drawScores();
    drawCurves();
    drawLengths();
  }
  if (paths) drawPath();
}

function tell() {
  const { test, machine, tokenizer, match } = table;
  $("title").textContent = good.length === 1 ? `One model on ${table.data}` : `${good.length || Object.keys(paths ?? {}).length} models on ${table.data}`;
  const sizes = match ? `; about ${fixed(match.parameters / 1e6, 2)} million parameters each` : "; each at a size of its own";
  $("lede").textContent = `${table.budget} of training for each, on the same text, tokenizer and batches${sizes}.`;
  if (test.held_out) {
    $("held-out").hidden = false;
    $("held-out").textContent = "No test set was given. The scores are of the validation pairs, by which the best weights of each model were chosen, and so are somewhat too good.";
  }
  for (const sentence of table.said) add($("said"), "li", {}, sentence);
  const signature = good[0]?.[table.metric].signature;
  const signed = signature ? ` (${signature})` : "";
  $("notes").textContent = `${METRIC} of ${test.sentences.toLocaleString("en")} sentences, beam ${table.beam}${signed}; the interval is over the choice of sentences, not of seeds: each model was trained once. Exact: sentences translated just as the reference. Training speed in target tokens, validations aside; writing speed by greedy search; memory of the training process.`;
  const facts = [
    ["text", `${table.data}, ${table.pairs.toLocaleString("en")} pairs`],
    ["validated on", table.valid],
    ["tested on", `${test.name}, ${test.sentences.toLocaleString("en")} sentences`],
    ["tokenizer", `${tokenizer.kind}, ${tokenizer.size.toLocaleString("en")} entries, hash ${tokenizer.hash}: found identical in the folder of each model`],
    ["batches", `${table.batch_tokens.toLocaleString("en")} tokens, in the same order for all (seed ${table.seed})`],
    ["budget", `${table.budget} each`],
    ["parameters", match ? `within 10% of the ${fixed(match.parameters, 0)} of ${match.reference}, by the choice of width` : "as each model's size has them"],
    ["widths", good.map((row) => `${row.model} ${row.width}`).join(", ")],
    ["learning rates", good.map((row) => `${row.model} ${row.rate || "as in the paper"}`).join(", ")],
    ["steps made", good.map((row) => `${row.model} ${whole(row.step)}`).join(", ")],
    ["machine", `${machine.cores} cores, ${machine.threads} ${machine.threads === 1 ? "thread" : "threads"}, ${machine.device}, ${machine.precision}; torch ${machine.torch}, Python ${machine.python}`],
  ];
  for (const [name, value] of facts) {
    if (!value) continue;
    add($("how"), "dt", {}, name);
    add($("how"), "dd", {}, value);
  }
  $("command").textContent = table.command || "regard compare";
  const best = good[0]?.model ?? Object.keys(paths ?? {})[0] ?? "NAME";
  $("try").textContent = `regard translate ${table.folder}/${best} "your text"`;
}

tell();
drawModels();
if (good.length) {
  $("results").hidden = false;
  drawTable();
  $("curve-controls").addEventListener("change", drawCurves);
}
if (paths) {
  $("path").hidden = false;
  if (!good.length) $("path").prepend($("models"));
  if (Object.values(paths).some((path) => path.trained)) $("path-controls").elements.state.value = "trained";
  else $("path-controls").querySelector("[value=trained]").disabled = true;
  $("path-note").textContent = "Measured on random words: the length of the gradient of the last layer, along random directions, with respect to a word's vector; the root of its mean square over texts, directions and positions. The source has nine tokens; a reader of both directions is as far from its middle one way as the other.";
  $("path-controls").addEventListener("change", drawPath);
}
drawAll();
let drawnAt = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== drawnAt) drawAll();
  drawnAt = innerWidth;
});

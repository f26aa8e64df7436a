// How one word's attention is computed, in eight steps, each with the numbers of this text and computed anew here.
import { headHue, queryRow, rowLabels } from "./shown.js";
import { colour } from "./paint.js";
import { button, choices, el, held, table } from "./ui.js";
import { apartFrom, asNumpy, mostOf, recomputed, rowAt, softmaxOf, unpackAll } from "./recompute.js";

const BRIEF = ["vectors", "input", "q k v", "scores", "scale", "mask", "softmax", "sum"];
const EACH_STEP = 4000; // milliseconds, when played
const TOLERATED = 1e-3; // a larger difference from what PyTorch computed is a fault
const IN_FIGURES = 8; // vectors up to this length are printed, longer ones drawn

export const stepsView = {
  id: "steps", title: "Steps", key: "s",
  available: (app) => (app.data.lecture || app.item().details.length ? null : "This page has no numbers that attention was computed from."),
  mount: mountSteps,
};

function mountSteps(root, app) {
  let subject = null, spoken = null, playing = 0;
  const step = () => held(Math.trunc(app.state.get().step) || 0, BRIEF.length);
  const go = (to) => app.go({ step: held(to, BRIEF.length) }), forth = () => go(step() + 1), back = () => go(step() - 1);
  const stop = () => {
    playing = clearInterval(playing);
    play.textContent = "play";
  };
  const start = () => {
    playing = setInterval(() => go((step() + 1) % BRIEF.length), EACH_STEP);
    play.textContent = "stop";
  };
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const play = button("play", () => (playing ? stop() : start()), { disabled: still, title: still && "off: the system asks for less motion" });
  const script = el("textarea", { readonly: true, rows: 10, spellcheck: "false", hidden: true, "aria-label": "The script" });
  const copy = button("", async () => {
    script.hidden = false;
    script.value = asNumpy(subject);
    try {
      await navigator.clipboard.writeText(script.value);
      copy.textContent = "✓ copied";
    } catch {
      script.select();
    }
  }, { "aria-live": "polite" });
  const from = choices("Show", "steps-from", [["text", "this text"], ["lecture", "the lecture's example"], ["divided", "the same ÷ √3"]], (stepsFrom) => app.go({ stepsFrom }));
  const select = el("select", { onchange: () => app.go(subject.choose(Number(select.value))) }), word = el("label", { class: "field" }, "Word ", select);
  const next = button("next ›", forth, { "aria-keyshortcuts": "Space ArrowRight" });
  const tabs = BRIEF.map((name, n) => button([el("b", {}, `${n + 1} `), name], () => go(n), { class: "step-tab" }));
  const controls = el("div", {},
    el("div", { class: "step-tabs", role: "group", "aria-label": "Steps" }, tabs),
    el("div", { class: "line" }, button("‹ back", back), next, play, copy), script);
  const panel = el("article", { class: "step-panel" }), check = el("p");
  root.append(el("div", { class: "line" }, from.root, word), controls, panel, check);
  from.root.hidden = !app.data.lecture;

  async function update() {
    const n = step();
    subject = await subjectOf(app, app.state.get());
    const { why, asking, chosen, apart, panels } = subject;
    from.inputs.get(subject.from).checked = true;
    for (const part of [word, controls, check]) part.hidden = Boolean(why);
    panel.replaceChildren(...(why ? [el("p", { class: "quiet" }, why)] : panelOf(subject, n)));
    if (why) return;
    tabs.forEach((tab, i) => tab.setAttribute("aria-current", i === n ? "step" : "false"));
    copy.textContent = "copy as NumPy";
    script.hidden = true;
    select.replaceChildren(...asking.map((text, i) => el("option", { value: i }, text)));
    select.value = chosen;
    tellApart(check, apart);
    if (spoken !== n) app.say(`Step ${n + 1} of 8: ${panels[n].title}. ${panels[n].said}`);
    spoken = n;
  }
  // A button in focus is pressed by Space, as everywhere.
  const onward = (event) => (event.target.closest?.("button, input, summary") ?? next).click();
  return { update, destroy: stop, tableFor: () => (subject.why ? null : numbersBehind(subject)), keys: { " ": onward, ArrowRight: forth, ArrowLeft: back } };
}

function tellApart(place, apart) {
  const worst = mostOf(apart.map(([, x]) => x)), right = worst <= TOLERATED, each = apart.map(([name, x]) => `${name} ${x.toExponential(0)}`);
  place.className = `check small ${right ? "right" : "wrong"}`;
  place.textContent = `${right ? "✓" : "✗ Something is wrong."} Computed anew here. Largest difference from what PyTorch computed: ${worst.toExponential(0)} (${each.join(", ")}).`;
}

// ---------------------------------------------------------------------------------------------------- what is computed

function subjectOf(app, state) {
  const { lecture } = app.data, lesson = ["lecture", "divided"].indexOf(state.stepsFrom);
  return lecture && lesson >= 0 ? lectureSubject(lecture, lesson, state) : textSubject(app.item(), app.map(), state);
}

// The word chosen in all views, its first piece if it has several; else one that looks at two others at once.
async function textSubject(item, map, state) {
  const { weights, number } = map.layers[state.layer], detail = item.details.find((one) => one.kind === map.kind && one.layer === number);
  if (detail.why) return { from: "text", why: detail.why };
  const [read, words] = [map.queries, map.keys].map((row) => item.rows[row].tokens.map((token) => token[0]));
  const row = queryRow(item, map, state), labels = rowLabels(item, row, state), head = state.heads[0];
  const label = state.side === "queries" ? labels[state.token] : null, q = label?.tokens[0] ?? detail.telling[head];
  const [{ panels, script }, { embedding }] = detail.told.map((n) => item.details[n]);
  const vectors = Object.entries(await unpackAll(embedding)).map(([name, all]) => [name, rowAt(all, q)]);
  return finished({
    ...detail, norm: await unpackAll(detail.norm), from: "text", head, q, word: read[q], words, vectors, panels, script,
    weights: weights.e === "u16" ? weights : null, // others are too coarse to tell whether what is computed here is right
    choose: (token) => ({ side: "queries", token, pinned: true }),
    asking: labels.map(({ title, tokens }) => (row === map.queries ? title : `${read[tokens[0]]} → ${title}`)), chosen: labels.findIndex(({ tokens }) => tokens.includes(q)),
  });
}

function lectureSubject(lecture, lesson, { stepsFrom, stepsInput }) {
  const { words, inputs, details } = lecture, q = words[stepsInput] ? stepsInput : 0, vectors = words.map((text, n) => [text, inputs[n]]);
  return finished({ ...lecture, ...details[lesson], from: stepsFrom, head: 0, q, word: words[q], vectors, came: inputs[q], asking: words, chosen: q, choose: (n) => ({ stepsInput: n }) });
}

// With all that is computed in place of what is stored.
async function finished(subject) {
  const { head, q } = subject, layer = await unpackAll(subject), found = recomputed(layer, head, q);
  return { ...subject, ...found, apart: apartFrom(layer, found, head, q) };
}

// ---------------------------------------------------------------------------------------------------- the eight panels

// What they show of a subject, [name, which of its numbers], is part of the data where it depends on the model.
const PAINTERS = [
  ({ vectors }) => vectorTable(["vector"], vectors), (subject, shown) => vectorTable(["vector"], named(subject, shown)),
  paintProjected, paintScores, wordTable, paintMask, paintSoftmax, paintSum,
];

function panelOf(subject, n) {
  const { title, formula, said, shapes, code, shown } = subject.panels[n];
  return [
    el("h2", {}, `${n + 1} · ${title}`), el("p", {}, said),
    el("p", { class: "formula" }, el("span", {}, subscripted(formula)), el("small", {}, shapes)),
    el("div", {}, PAINTERS[n](subject, shown)),
    ...code.map(([where, line]) => el("p", { class: "source small" }, el("span", { class: "quiet" }, `${where} · `), el("code", {}, line))),
  ];
}

// "k_j" with the j set low, as in print.
function subscripted(formula) {
  return formula.split(/_(\([^)]+\)|\w)/).map((part, n) => (n % 2 ? el("sub", {}, part) : part));
}

function named(subject, shown) {
  return shown.map(([name, which]) => [name, subject[which]]);
}

function paintProjected({ word, words, query, keys, values, matrices = [] }) {
  return [
    vectorTable(["W_q", "W_k", "W_v"], matrices), vectorTable(["query"], [[word, query]]),
    vectorTable(["key", "value"], words.map((text, k) => [text, keys[k], values[k]])),
  ];
}

// Point at a score, or walk to it: the terms it is the sum of.
function paintScores(subject, shown) {
  const { word, words, query, keys, terms, weights } = subject, told = el("div", { class: "terms", "aria-live": "polite" });
  const tell = (k) => told.replaceChildren(
    vectorTable([`score of “${words[k]}”`], [[`q  ${word}`, query], [`k  ${words[k]}`, keys[k]], ["terms", terms[k]]], true),
    el("p", { class: "small" }, spelledOut(subject, k)));
  tell(weights.indexOf(Math.max(...weights)));
  return [wordTable(subject, shown, tell), told];
}

function spelledOut({ query, keys, fit, bias, raw }, k) {
  const [asked, answer] = [query, keys[k]].map((list) => list.slice(0, IN_FIGURES).map((x) => figure(x, 2))), more = query.length - asked.length;
  const parts = asked.map((x, n) => (fit ? `${figure(fit[n], 2)}·tanh(${x} + ${answer[n]})` : `${x}×${answer[n]}`));
  if (more) parts.push(`${more} more`);
  if (bias) parts.push(`${figure(bias[k], 2)} for the distance`);
  return `${parts.join(" + ")} = ${raw[k].toFixed(3)}`;
}

function paintMask({ words, seen, masked }) {
  return el("div", { class: "mask" }, words.map((text, k) => el("span", { class: seen[k] ? null : "hidden-key", dir: "auto" }, text, el("small", {}, figure(masked[k], 2)))));
}

function paintSoftmax(subject, shown) {
  const { masked, sum } = subject, place = el("div");
  const draw = () => {
    const heat = 10 ** slider.value, whatIf = softmaxOf(masked.map((s) => s / heat)).weights;
    place.replaceChildren(wordTable({ ...subject, whatIf }, heat === 1 ? shown : [...shown, [`what if T = ${heat.toFixed(2)}`, "whatIf"]]));
  };
  const slider = el("input", { type: "range", min: -1, max: 1, step: 0.05, value: 0, "aria-label": "What if: temperature", oninput: draw });
  draw();
  return [
    place, el("p", { class: "small" }, `sum of exp ${sum.toFixed(4)}`),
    el("p", { class: "small" }, el("mark", {}, "what if"), " the scores were divided by a temperature T? ", slider),
  ];
}

function paintSum(subject, shown) {
  const { words, weights, values } = subject;
  const parts = words.map((text, k) => [`${weights[k].toFixed(3)} × ${text}`, values[k], values[k].map((x) => x * weights[k])]);
  return [vectorTable(["value", "weight × value"], parts), vectorTable(["each on its own scale"], named(subject, shown), true)];
}

function numbersBehind({ word, words, raw, scores, exps, weights }) {
  const rows = words.map((text, k) => [text, ...[raw, scores, exps, weights].map((list) => list[k].toFixed(4))]);
  return table(`How “${word}” looks`, ["", "score", "scaled", "exp", "weight"], rows);
}

// ---------------------------------------------------------------------------------------------------- parts of panels

function figure(x, digits) {
  if (!Number.isFinite(x)) return x < 0 ? "−∞" : "hidden in step 6";
  return (Number.isInteger(x) ? String(x) : x.toFixed(digits)).replace("-", "−");
}

function signHue(x) {
  return x < 0 ? "--hue-5" : "--hue-1";
}

// Rows of a name and its vectors, all on one scale, unless each row has its own.
function vectorTable(head, rows, alone = false) {
  const most = (some) => mostOf(some.flatMap(([, ...vectors]) => vectors.flat())), all = most(rows);
  return panelTable("strips", head, rows.map((row) => row.map((part, n) => (n ? strip(part, alone ? most([row]) : all) : part))));
}

// A vector as a row of coloured cells: a short one with its numbers in them, a long one as a picture.
function strip(vector, most) {
  const strength = (x) => Math.abs(x) / (most || 1);
  if (vector.length <= IN_FIGURES) return el("span", { class: "figures" }, vector.map((x) => {
    const cell = el("i", {}, figure(x, 2));
    cell.style.background = `color-mix(in srgb, var(${signHue(x)}) ${55 * strength(x)}%, transparent)`;
    return cell;
  }));
  const canvas = el("canvas", { class: "strip", role: "img", "aria-label": `${vector.length} numbers`, width: vector.length, height: 1 });
  const pen = canvas.getContext("2d");
  vector.forEach((x, n) => {
    pen.globalAlpha = strength(x);
    pen.fillStyle = colour(signHue(x));
    pen.fillRect(n, 0, 1, 1);
  });
  return canvas;
}

// A row for each word, with numbers and bars; with `onpoint`, rows can be pointed at, and walked through with the arrow keys.
function wordTable(subject, shown, onpoint) {
  const columns = shown.map(([, which]) => bars(subject[which], subject.head));
  const made = panelTable("step-rows", shown.map(([name]) => name), subject.words.map((text, k) => [text, ...columns.map((cells) => cells[k])]));
  if (onpoint) made.querySelectorAll("tbody tr").forEach((row, k) => {
    row.tabIndex = k ? -1 : 0;
    row.onpointerenter = row.onfocus = () => onpoint(k);
    row.onkeydown = (event) => {
      const sides = { ArrowUp: row.previousSibling, ArrowDown: row.nextSibling };
      if (event.key in sides) event.preventDefault();
      sides[event.key]?.focus();
    };
  });
  return made;
}

// Numbers, each with a bar on a scale of 1, or of the largest.
function bars(list, head) {
  const most = Math.max(1, mostOf(list.filter(Number.isFinite))), signed = list.some((x) => x < 0);
  return list.map((x) => {
    const fill = el("i"), text = figure(x, most > 1 ? 3 : 4);
    fill.style.width = `${(100 * Math.abs(x)) / most}%`;
    fill.style.background = `var(${signed ? signHue(x) : headHue(head)})`;
    return Number.isFinite(x) ? el("span", { class: "step-measure" }, el("b", {}, text), el("span", {}, fill)) : text;
  });
}

// Without columns, or rows, there is nothing to show.
function panelTable(kind, head, rows) {
  return head.length && rows.length ? el("div", { class: `wide ${kind}` }, table("", ["", ...head], rows)) : null;
}

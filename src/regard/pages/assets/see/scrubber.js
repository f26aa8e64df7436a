// A slider over the validations: how one text's attention came about.
import { exact, mapOf, queryRow, shown } from "./shown.js";
import { colour, ramp } from "./paint.js";
import { makeBoard } from "./board.js";
import { figureSvg } from "./svg.js";
import { button, choices, download, el, table, toggle } from "./ui.js";
import { said } from "./curves.js";

const PACE = 800; // milliseconds a validation is shown while playing
const THUMBS = 24; // pictures side by side, at most
const MEAN = -1;

// Every validation as the attention page knows an item; null where nothing was seen.
export function itemsOf({ evaluations, sentences }) {
  return evaluations.map(({ sentence, weights }) => {
    if (!weights) return null;
    const { rows, maps } = sentences[sentence];
    const layersOf = (map, m) => map.layers.map((layer, l) => ({ ...layer, weights: weights[m][l] }));
    return { rows, maps: maps.map((map, m) => ({ ...map, layers: layersOf(map, m) })) };
  });
}

export function scoreOf(history, evaluation) {
  const value = evaluation[history.metric] ?? evaluation.loss;
  return `${history.names[history.metric] ?? "loss"} ${said(value)}`;
}

export function makeSlider(history, app) {
  const place = document.getElementById("scrubber"), { evaluations } = history;
  const slider = el("input", { type: "range", min: 0, max: evaluations.length - 1, step: 1, id: "evaluation", "aria-label": "validation", oninput: () => (stop(), app.go({ item: Number(slider.value) })) });
  const play = button("Play", () => (timer ? stop() : start()));
  const now = el("p", { class: "now small" });
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  still.addEventListener("change", () => (stop(), (play.hidden = still.matches)));
  play.hidden = still.matches;
  place.append(el("div", { class: "line" }, play, slider), now);
  let timer = 0;

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }
  function start() {
    const last = evaluations.length - 1;
    if (app.state.get().item >= last) app.go({ item: 0 });
    timer = setInterval(() => {
      const next = app.state.get().item + 1;
      if (next > last) stop();
      else app.go({ item: next });
    }, PACE);
    play.textContent = "Stop";
  }
  return {
    update() {
      const { item } = app.state.get(), one = evaluations[item];
      slider.value = item;
      const scores = Object.keys(history.names).filter((name) => name in one).map((name) => `${history.names[name]} ${said(one[name])}`);
      const text = [`validation ${item + 1} of ${evaluations.length}`, `loss ${said(one.loss)}`, ...scores, ...(one.best ? ["best so far"] : [])];
      slider.setAttribute("aria-valuetext", `step ${one.step}, ${text.join(", ")}`);
      now.replaceChildren(el("b", {}, `Step ${one.step.toLocaleString("en")}`), ` · ${text.join(" · ")}`);
    },
  };
}

export function makeProbe(history, app) {
  const place = document.getElementById("attention");
  if (!app.data.items.some(Boolean)) {
    place.append(el("p", { class: "quiet samples-note" }, whyNothing(history)));
    return { update() {}, edges: () => [] };
  }
  const text = el("p", { class: "small quiet", dir: "auto" }), problem = el("p", { class: "warning", hidden: true });
  const controls = makeChoice(app), board = makePicture(app), thumbs = makeThumbs(history, app);
  const right = el("div", {}, el("h3", {}, "From validation to validation"), thumbs.root);
  const left = el("div", {}, board.root);
  place.append(controls.root, text, problem, el("div", { class: "probe" }, left, right));
  return {
    edges: board.edges,
    async update() {
      const { item } = app.state.get(), found = app.data.items[item];
      controls.root.hidden = left.hidden = !found;
      problem.hidden = Boolean(found);
      problem.textContent = history.evaluations[item].problem ?? "What the model looked at was not kept at this validation.";
      if (found) {
        controls.update();
        text.textContent = `“${(found.rows.source ?? found.rows.text).text}” The wider a line, the more a word looks at the other.`;
        const now = await shown(app);
        left.hidden = now.problem !== null;
        problem.hidden = now.problem === null;
        problem.textContent = now.problem ?? "";
        if (!now.problem) board.update(now);
      }
      await thumbs.update();
    },
  };
}

function whyNothing({ evaluations, model }) {
  const problem = evaluations.findLast((one) => one.problem)?.problem;
  if (problem) return `Attention could not be kept: ${problem}`;
  return evaluations.some((one) => one.samples) ? `The ${model.name} model has no attention that could be shown.` : "This run was trained before samples and attention were kept with it.";
}

function makeChoice(app) {
  const root = el("form", { class: "controls", "aria-label": "Which attention", autocomplete: "off", onsubmit: (event) => event.preventDefault() });
  let built = "", parts = {};
  function build(item, map) {
    const heads = Array.from({ length: map.heads }, (_, head) => [head, String(head + 1)]);
    parts = {
      kind: choices("Kind", "kind", item.maps.map((one) => [one.kind, one.title]), (kind) => app.go({ kind, token: null })),
      layer: choices("Layer", "layer", map.layers.map((layer, n) => [n, String(layer.number + 1), layer.label]), (layer) => app.go({ layer })),
      head: choices("Head", "head", [...heads, ...(map.heads > 1 ? [[MEAN, "mean"]] : [])], (head) => app.go(chosenHead(head, map.heads))),
    };
    root.replaceChildren(...Object.values(parts).map((part) => part.root), written.root);
  }
  const written = toggle("rows by word written", (on) => app.go({ label: on ? "predicted" : "input", token: null }), { title: "label each row by the word the model writes there, not by the one it reads" });
  return {
    root,
    update() {
      const state = app.state.get(), item = app.item(), map = mapOf(item, state.kind);
      const key = JSON.stringify([map.kind, item.maps.map((one) => one.kind), map.heads, map.layers.map((layer) => layer.label)]);
      const focused = document.activeElement?.name;
      if (key !== built) build(item, map);
      built = key;
      written.root.hidden = !(item.rows.predicted && map.queries === "target");
      written.input.checked = queryRow(item, map, state) === "predicted";
      const now = { kind: map.kind, layer: state.layer, head: state.combine === "mean" ? MEAN : state.heads[0] };
      for (const [name, { inputs }] of Object.entries(parts)) for (const [value, input] of inputs) input.checked = value === now[name];
      if (parts[focused] && !root.contains(document.activeElement)) parts[focused].inputs.get(now[focused])?.focus();
    },
  };
}

function chosenHead(head, heads) {
  return head === MEAN ? { combine: "mean", heads: Array.from({ length: heads }, (_, n) => n) } : { combine: "heads", heads: [head] };
}

// The lines, a button that keeps them, and the numbers behind them.
function makePicture(app) {
  let picture = null;
  const board = makeBoard(app, () => picture), numbers = el("details", { ontoggle: () => fill() }, el("summary", {}, "The numbers"));
  const keep = el("div", { class: "line keep" }, button("SVG", () => download("attention.svg", probeFigure(app, picture), "image/svg+xml"), { "aria-label": "this picture as SVG" }));

  function fill() {
    while (numbers.children.length > 1) numbers.lastChild.remove();
    if (numbers.open) numbers.append(el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "The numbers" }, largestOf(picture)));
  }
  function update(now) {
    const { side, token } = app.state.get();
    picture = { ...now, selected: token === null ? null : { side, index: token } };
    board.draw(picture);
    fill();
  }
  return { root: el("div", {}, board.root, keep, numbers), update, edges: board.edges };
}

function largestOf(now) {
  const K = now.keys.length;
  const rows = now.queries.map((query, q) => {
    const order = Array.from(now.keys.keys()).sort((a, b) => now.w[q * K + b] - now.w[q * K + a]).slice(0, 3);
    return [query.text, ...order.flatMap((k) => [now.keys[k].text, exact(now.w[q * K + k], now.approximate)])];
  });
  const heads = ["first", "second", "third"].slice(0, K).flatMap((name) => [name, "weight"]);
  return table("The words each looks at most", ["word", ...heads], rows);
}

function probeFigure(app, picture) {
  const { combine, heads, item, root } = app.state.get(), shownHeads = combine === "mean" ? "mean of all heads" : `head ${heads[0] + 1}`;
  return figureSvg(picture, root, `${app.map().title}, ${shownHeads}`, `${picture.layerLabel}, at step ${app.steps[item]}`);
}

// The same head at each validation, or at some of them, evenly: one pixel for each weight.
function makeThumbs(history, app) {
  const seen = app.data.items.map((item, n) => (item ? n : -1)).filter((n) => n >= 0);
  const count = Math.min(THUMBS, seen.length);
  const chosen = [...new Set(Array.from({ length: count }, (_, n) => seen[Math.round((n * (seen.length - 1)) / Math.max(1, count - 1))]))];
  const pictures = chosen.map((n) => {
    const one = history.evaluations[n], canvas = el("canvas", { "aria-hidden": "true" });
    const face = [canvas, el("small", {}, `step ${one.step.toLocaleString("en")}`), el("small", {}, scoreOf(history, one))];
    return { n, canvas, root: button("", () => app.go({ item: n }), { "aria-label": `step ${one.step}, validation ${scoreOf(history, one)}` }), face };
  });
  for (const { root, face } of pictures) root.append(...face);
  let drawn = "";
  return {
    root: el("div", { class: "thumbs" }, pictures.map((one) => one.root)),
    async update() {
      const state = app.state.get(), shades = ramp();
      for (const { n, root } of pictures) root.setAttribute("aria-current", n === state.item);
      const look = JSON.stringify([state.kind, state.layer, state.heads, state.combine, state.label, colour("--paper")]);
      if (look === drawn) return;
      drawn = look;
      for (const { n, canvas } of pictures) {
        const now = await shown(app, app.repair({ ...state, item: n }));
        if (!now.problem) paintThumb(canvas, now, shades);
      }
    },
  };
}

function paintThumb(canvas, now, shades) {
  canvas.width = now.keys.length;
  canvas.height = now.queries.length;
  const pixels = new ImageData(canvas.width, canvas.height);
  now.w.forEach((w, n) => {
    const shade = 4 * Math.round(255 * Math.min(1, w));
    pixels.data.set(shades.subarray(shade, shade + 4), 4 * n);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

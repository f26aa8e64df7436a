// The training page: curves, samples, and one text's attention from validation to validation.
// For tests and the console: window.regardTraining = { curves(), evaluation(), edges(), smoothed, envelope }.
import { readData } from "./data.js";
import { makeState } from "./state.js";
import { mapOf, queryRow, rowLabels } from "./shown.js";
import { envelope, makeCurves, said, smoothed } from "./curves.js";
import { itemsOf, makeProbe, makeSlider } from "./scrubber.js";
import { common, makeSamples } from "./samples.js";
import { oneAtATime } from "./ui.js";

const AGAINST = ["step", "tokens", "seconds"];

function labelsOf(item, map, side, state) {
  return rowLabels(item, side === "keys" ? map.keys : queryRow(item, map, state), state);
}

// A state that can be shown: a link may be older than the run.
function repairing(history, items) {
  const within = (n, size) => (Number.isInteger(n) && n >= 0 && n < size ? n : null);
  return (wanted) => {
    wanted.item = within(wanted.item, history.evaluations.length) ?? Math.max(0, history.evaluations.length - 1);
    if (!AGAINST.includes(wanted.axis)) wanted.axis = "step";
    wanted.smoothing = Math.min(0.99, Math.max(0, Number(wanted.smoothing) || 0));
    const item = items[wanted.item];
    if (!item) return wanted;
    const map = mapOf(item, wanted.kind);
    wanted.kind = map.kind;
    wanted.layer = within(wanted.layer, map.layers.length) ?? map.layers.length - 1;
    if (wanted.combine === "mean") wanted.heads = Array.from({ length: map.heads }, (_, head) => head);
    else [wanted.combine, wanted.heads] = ["heads", [within(wanted.heads?.[0], map.heads) ?? 0]];
    wanted.token = within(wanted.token, labelsOf(item, map, wanted.side, wanted).length);
    wanted.pinned = Boolean(wanted.pinned) && wanted.token !== null;
    return wanted;
  };
}

function tell(history) {
  const $ = (id) => document.getElementById(id), { model, data, evaluations, standing } = history;
  const size = model.parameters ? ` of ${model.parameters.toLocaleString("en")} parameters` : "";
  const best = evaluations.findLast((one) => one.best);
  $("title").textContent = history.title;
  $("lede").textContent = `${model.name}${size}, learning from ${data.data}; validated on ${data.valid}. ${progress(history, best)}`;
  const step = history.step.toLocaleString("en");
  const words = {
    running: `Training was running when this page was made, at step ${step}. Make the page again to see more.`,
    stopped: `Training stopped at step ${step} and can go on: run the same command again.`,
  };
  $("standing").textContent = words[standing] ?? "";
  $("standing").hidden = !words[standing];
}

function progress(history, best) {
  const over = history.standing === "finished", parts = over ? [`It ended: ${history.ended}.`] : [];
  if (best) parts.push(`Its best weights${over ? "" : " so far"} are those of step ${best.step.toLocaleString("en")}, with validation loss ${said(best.loss)}.`);
  if (history.averaged) parts.push(`The average of its last ${history.averaged.steps.length} checkpoints has validation loss ${said(history.averaged.loss)}.`);
  return parts.join(" ");
}

function begin() {
  const history = readData();
  const items = itemsOf(history), repair = repairing(history, items);
  const state = makeState({ axis: "step", log: false, smoothing: 0, item: history.evaluations.length - 1, kind: items.at(-1)?.maps.at(-1).kind ?? "" }, repair);
  const live = document.getElementById("live");
  const item = () => items[state.get().item];
  const map = () => mapOf(item(), state.get().kind);
  const app = { data: { items }, steps: history.evaluations.map((one) => one.step), state, item, map, go: state.set, repair, say: (text) => (live.textContent = text) };
  tell(history);
  const curves = makeCurves(history, app);
  if (!curves.panels.length) document.getElementById("curves").textContent = "Nothing is logged yet: the first line comes after train.log_steps steps.";
  const parts = history.evaluations.length ? [makeSlider(history, app), makeSamples(history, app)] : [];
  const probe = history.evaluations.length ? makeProbe(history, app) : { update() {}, edges: () => [] };
  if (!history.evaluations.length) document.getElementById("scrubber").textContent = "There was no validation yet. Samples and attention are kept at each, and the first comes after train.validate_steps steps.";
  redrawing(app, curves, parts, probe);
  window.regardTraining = Object.freeze({ curves: () => curves.panels.map(({ id, drawn }) => ({ id, drawn })), evaluation: () => state.get().item, edges: probe.edges, smoothed, envelope, common });
}

// Curves are drawn again only if they changed: playing does not touch them.
function redrawing(app, curves, parts, probe) {
  let drawn = "";
  const update = oneAtATime(async () => {
    const { axis, log, smoothing } = app.state.get();
    const look = JSON.stringify([axis, log, smoothing, innerWidth]);
    if (look !== drawn) curves.update();
    drawn = look;
    for (const part of parts) part.update();
    await probe.update();
  });
  app.state.subscribe(update);
  update();
}

begin();

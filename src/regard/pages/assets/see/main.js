// The attention page: reads its data, keeps one state, and hands both to the view being looked at.
// For tests and the console: window.regardSee = { edges(), state, shown } - the lines now drawn, the state, what is shown.
import { readData } from "./data.js";
import { makeState } from "./state.js";
import { allHeads, mapOf, shown } from "./shown.js";
import { byId, el, oneAtATime } from "./ui.js";
import { fitting } from "./fitting.js";
import { makeHeader } from "./header.js";
import { makeToolbar } from "./toolbar.js";
import { BARE, makeInspector } from "./inspector.js";
import { makeExports } from "./exports.js";
import { makeTabs } from "./tabs.js";
import { followKeys } from "./keys.js";
import { headsView } from "./heads.js";
import { matrixView } from "./matrix.js";
import { gridView } from "./grid.js";
import { findView } from "./find.js";
import { traceView } from "./trace.js";
import { compareView } from "./compare.js";
import { contrastView } from "./contrast.js";
import { knockoutView } from "./knockout.js";
import { beamView } from "./beam.js";
import { stepsView } from "./steps.js";

const VIEWS = [headsView, matrixView, gridView, findView, traceView, compareView, contrastView, knockoutView, beamView, stepsView];

function makeApp(data) {
  const state = makeState(data.start, fitting(data, VIEWS)), item = () => data.items[state.get().item];
  return { data, state, item, map: () => mapOf(item(), state.get().kind), say: (text) => (byId("live").textContent = text), go: state.set, views: VIEWS };
}

// The present view, mounted when first needed; `update` draws the state, one drawing at a time.
function makeStage(app, parts) {
  let view = null, item = null, mounted = {};

  function change() {
    mounted.destroy?.();
    byId("view").replaceChildren();
    const why = view.available(app);
    mounted = why === null ? view.mount(byId("view"), app) : {};
    if (why !== null) byId("view").append(el("p", { class: "quiet" }, why));
  }
  function tell(problem) {
    byId("problem").hidden = problem === null;
    byId("problem").textContent = problem ?? "";
    byId("view").hidden = problem !== null;
  }
  async function draw() {
    const state = app.state.get(), wanted = VIEWS.find((one) => one.id === state.view), now = await shown(app);
    if (app.state.get() !== state) return; // and it will be drawn again
    if (wanted !== view || app.item() !== item) {
      [view, item] = [wanted, app.item()];
      change();
    }
    const problem = view.id in BARE ? null : now.problem;
    tell(problem);
    for (const part of parts) part(now);
    if (problem === null) await mounted.update?.();
    const behind = state.table && problem === null && app.state.get() === state && (await mounted.tableFor?.());
    byId("numbers").hidden = !behind;
    byId("numbers").replaceChildren(behind || "");
  }
  const update = oneAtATime(() => draw().catch((error) => tell(`This cannot be shown: ${error.message}`)));
  return { update, mounted: () => mounted };
}

// The head that looks most decidedly, at the chosen word if there is one: all heads at once are a thicket.
async function mostPeaked(app) {
  const { token, side } = app.state.get(), { heads, queries, keys } = await allHeads(app), K = keys.length;
  const rows = token !== null && side === "queries" ? [token] : [...queries.keys()];
  const peaks = heads.map(({ w }) => rows.reduce((sum, q) => sum + Math.max(...w.subarray(q * K, (q + 1) * K)), 0));
  return peaks.indexOf(Math.max(...peaks));
}

async function start() {
  const data = readData();
  byId("problem").hidden = data.items.every((item) => item.maps.length);
  byId("problem").textContent = "This model has no attention to draw.";
  if (!byId("problem").hidden) return;
  const app = makeApp(data), parts = [], stage = makeStage(app, parts);
  if (!data.start.heads && !location.hash.includes("heads=")) app.go({ heads: [await mostPeaked(app).catch(() => 0)] });
  parts.push(makeHeader(app), makeTabs(app), makeToolbar(app), makeInspector(app), makeExports(app, stage.mounted));
  followKeys(app, stage.mounted);
  app.state.subscribe(stage.update);
  window.regardSee = Object.freeze({ edges: () => stage.mounted().edges?.() ?? [], state: app.state.get, shown: () => shown(app) });
  stage.update();
}

start();

// Single keys for everything, and a page that lists them.
import { noRollout, shown } from "./shown.js";
import { button, byId, el, held } from "./ui.js";

const TOLD = [
  ["← →", "word"], ["↑ ↓", "layer; in a column the word, and layer with Shift"], ["Tab", "next column or control"], ["Enter", "keep the word"], ["Esc", "let it go"], ["[ ]", "head"],
  ["1 – 9, 0", "one head, all"], ["m x r", "mean, max, rollout"], ["k", "kind of attention"], ["w", "words or pieces"], ["i", "special tokens"], ["/", "search a word"],
  ["t", "table"], ["e", "save"], ["d", "light or dark"], ["?", "these keys"],
];

// Never while something is being typed, and not with Ctrl, Alt or Meta held.
export function followKeys(app, mounted) {
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    if (target.closest?.("input:not([type=checkbox], [type=radio]), select, textarea, dialog[open]")) return;
    if (target.type === "radio" && key.startsWith("Arrow")) return;
    const act = mounted().keys?.[key] ?? commands(app)[key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });
}

// By the key that gives them.
export function commands(app) {
  const state = app.state.get(), item = app.item(), map = app.map(), { go } = app;
  const next = (list, now) => list[(list.indexOf(now) + 1) % list.length];
  const layer = (by) => () => go({ layer: held(state.layer + by, map.layers.length) });
  const alone = (head) => () => go({ heads: [(head + map.heads) % map.heads], combine: "heads" });
  const every = [...Array(map.heads).keys()];
  const combine = (how) => () => go({ combine: state.combine === how ? "heads" : how, heads: state.heads.length > 1 ? state.heads : every });
  return {
    ...Object.fromEntries(app.views.map((view) => [view.key, () => go({ view: view.id })])),
    ...Object.fromEntries(every.slice(0, 9).map((head) => [head + 1, alone(head)])),
    0: () => go({ heads: every }), "[": alone(state.heads[0] - 1), "]": alone(state.heads[0] + 1), ArrowUp: layer(1), ArrowDown: layer(-1),
    m: combine("mean"), x: combine("max"), r: () => noRollout(item, map, state.layer) ?? combine("rollout")(),
    k: () => go({ kind: next(item.maps.map((one) => one.kind), state.kind) }), w: () => go({ pieces: !state.pieces }), i: () => go({ special: !state.special }),
    t: () => go({ table: !state.table }), d: () => go({ theme: next(["auto", "light", "dark"], state.theme) }),
    e: () => document.querySelector("#exports button").focus(), Escape: () => go({ token: null, pinned: false }), "?": () => openHelp(app), "/": () => openSearch(app),
  };
}

function openDialog(title, ...parts) {
  const dialog = byId("help");
  dialog.replaceChildren(el("h2", { id: "help-title", tabindex: -1 }, title), ...parts, button("close", () => dialog.close()));
  dialog.showModal();
  return dialog;
}

function openHelp(app) {
  const rows = [...TOLD, ...app.views.map((view) => [view.key, view.title])];
  openDialog("Keys",
    el("dl", {}, rows.map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)])),
    el("p", { class: "small quiet" }, "“Layer 5 → 6”: attention inside layer 6, which reads the output of layer 5."));
}

// The first word, of either column, that contains what is typed.
function openSearch(app) {
  const told = el("p", { role: "status" });
  const find = async (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const now = await shown(app);
    for (const side of ["queries", "keys"]) {
      const token = now[side].findIndex((label) => label.title.toLowerCase().includes(input.value.toLowerCase()));
      if (token >= 0) return dialog.close(), app.go({ side, token, pinned: true });
    }
    told.textContent = `No word contains “${input.value}”.`;
  };
  const input = el("input", { type: "search", "aria-label": "A word, then Enter", dir: "auto", autofocus: true, onkeydown: find });
  const dialog = openDialog("Find a word", input, told);
}

// Which attention is shown, and how.
import { noRollout, queryRow } from "./shown.js";
import { byId, choices, el, toggle } from "./ui.js";
import { badge } from "./knockout.js";
import { BARE, hued } from "./inspector.js";

// Built anew for every layer; what was in focus stays so.
export function makeToolbar(app) {
  const form = byId("toolbar");
  form.addEventListener("submit", (event) => event.preventDefault());
  let built = null, update = null;
  return (now) => {
    const state = app.state.get(), layer = app.map().layers[state.layer];
    if (built !== layer) {
      const focused = [...form.elements].indexOf(document.activeElement);
      update = fill(form, app, app.item(), app.map(), state);
      form.elements[focused]?.focus();
    }
    built = layer;
    update(state, now);
  };
}

function fill(form, app, item, map, { layer }) {
  const kind = choices("Kind", "kind", item.maps.map((one) => [one.kind, one.kind === "cross" ? "decoder → encoder" : one.kind, one.title]), (value) => app.go({ kind: value }));
  const combine = choices("Combine", "combine", [["heads", "each head"], ["mean", "mean"], ["max", "max"], ["rollout", "rollout", noRollout(item, map, layer)]], (value) => app.go({ combine: value }));
  const chips = [...Array(map.heads).keys()].map((head) => headChip(app, head, badge(item, map.kind, map.layers[layer].number, head)));
  const select = el("select", { "aria-keyshortcuts": "ArrowUp ArrowDown", onchange: () => app.go({ layer: Number(select.value) }) }, map.layers.map(({ label }, n) => el("option", { value: n, selected: n === layer }, label)));
  const heads = el("fieldset", {}, el("legend", {}, "Heads"), chips.map((chip) => chip.root));
  const show = switches(app, item, map), mass = el("span", { class: "small quiet", id: "mass" });
  const tools = { kind: kind.root, layer: el("label", { class: "legend" }, "Layer ", select), heads, combine: combine.root, show: show.root, mass };
  form.replaceChildren(el("div", { class: "tool" }, Object.values(tools)));
  kind.inputs.get(map.kind).checked = true;
  combine.inputs.get("rollout").disabled = noRollout(item, map, layer);
  return (state, now) => {
    for (const [name, tool] of Object.entries(tools)) tool.hidden = BARE[state.view]?.includes(name) === false || (name === "kind" && item.maps.length === 1);
    combine.inputs.get(state.combine).checked = true;
    chips.forEach(({ input }, head) => Object.assign(input, { checked: state.heads.includes(head), disabled: state.combine === "rollout" }));
    show.update(state);
    mass.textContent = hiddenMass(state, now);
  };
}

// Each head in colour and number. A click adds or removes it, a double click shows it alone.
function headChip(app, head, mark) {
  const flip = (on) => {
    const others = app.state.get().heads.filter((one) => one !== head);
    app.go({ heads: on || !others.length ? [...others, head] : others });
  };
  const face = [hued(head, { class: "dot" }), head + 1, mark && el("small", { title: mark.title }, mark.text)];
  const chip = toggle(face, flip, { title: "double click for this one alone", ondblclick: () => app.go({ heads: [head], combine: "heads" }) });
  chip.input.setAttribute("aria-label", `head ${head + 1}`);
  return chip;
}

function switches(app, item, map) {
  const flag = (name, text, title) => [name, toggle(text, (on) => app.go({ [name]: on }), { title })];
  const flags = [
    flag("pieces", "pieces", "key w"), flag("special", "special tokens", "key i"),
    flag("value", "× |value|", "weight times length of the value, as a share of its row"), flag("root", "√ width", "to see small weights"),
  ];
  const written = toggle("rows by word written", (on) => app.go({ label: on ? "predicted" : "input" }), { title: "not by the word read" });
  const update = (state) => {
    for (const [name, { root, input }] of flags) {
      input.checked = state[name];
      root.hidden = (name === "value" && !map.layers[0].norms) || (name === "root" && !["heads", "compare"].includes(state.view));
    }
    written.input.checked = queryRow(item, map, state) === "predicted";
    written.root.hidden = map.queries !== "target" || !item.rows.predicted;
  };
  return { root: el("fieldset", {}, el("legend", {}, "Show"), flags.map(([, one]) => one.root), written.root), update };
}

function hiddenMass({ special, side, token }, { hidden }) {
  if (special) return "";
  const rows = token !== null && side === "queries" ? [hidden[token]] : hidden;
  return `${Math.round((100 * rows.reduce((sum, one) => sum + one, 0)) / rows.length)} % of the weight goes to hidden tokens`;
}

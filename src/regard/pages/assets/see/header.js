// The text being looked at, the model that looked at it, and light or dark.
import { button, byId, el } from "./ui.js";
import { commands } from "./keys.js";

export function makeHeader(app) {
  const press = (label, key) => button(label, () => commands(app)[key](), { class: "quiet-button", "aria-keyshortcuts": key });
  const theme = press("", "d");
  const chooser = el("select", { "aria-label": "Text", hidden: app.data.items.length === 1, onchange: () => app.go({ item: Number(chooser.value) }) }, app.data.items.map(({ title }, n) => el("option", { value: n }, title)));
  byId("corner").append(chooser, theme, press("keys ?", "?"));
  // Dark is written once, under the reader's own setting; to choose otherwise, these rules are made to hold always or never.
  const dark = [...document.styleSheets[0].cssRules].filter((rule) => rule.media?.mediaText.includes("color-scheme: dark"));
  return () => {
    const state = app.state.get(), { title, model } = app.item();
    chooser.value = state.item;
    byId("title").textContent = title;
    byId("card").textContent = cardLine(model);
    theme.textContent = `${state.theme} ◐`;
    const media = { dark: "all", light: "not all" }[state.theme] ?? "(prefers-color-scheme: dark)";
    for (const rule of dark) rule.media.mediaText = media;
    document.documentElement.style.colorScheme = state.theme === "auto" ? "" : state.theme;
  };
}

function cardLine({ name, about, parameters, folder, difference }) {
  const checked = difference !== null && `weights checked against the fused kernel: largest difference ${difference.toExponential(0)}`;
  return [name, ...about, parameters && `${parameters.toLocaleString("en")} parameters`, folder, checked].filter(Boolean).join(" · ");
}

// One tab for each view; arrow keys move between them.
import { button, byId } from "./ui.js";

export function makeTabs(app) {
  const walk = (event, n) => {
    const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    const next = (to + tabs.length) % tabs.length;
    tabs[next].focus();
    tabs[next].click();
    event.preventDefault();
  };
  const tabs = app.views.map(({ id, key, title }, n) =>
    button(title, () => app.go({ view: id }), { role: "tab", id: `tab-${id}`, "aria-controls": "view", "aria-keyshortcuts": key, onkeydown: (event) => walk(event, n) }));
  byId("tabs").append(...tabs);
  return () => {
    const chosen = app.state.get().view;
    app.views.forEach((view, n) => {
      const own = view.id === chosen, why = view.available(app);
      tabs[n].setAttribute("aria-selected", own);
      tabs[n].tabIndex = own ? 0 : -1;
      tabs[n].classList.toggle("empty", why !== null);
      tabs[n].title = why ?? `key ${view.key}`;
    });
    byId("view").setAttribute("aria-labelledby", `tab-${chosen}`);
  };
}

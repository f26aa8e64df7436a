// Columns of words that keyboard and screen reader can walk through: one stop for Tab, arrows within.
import { el } from "./ui.js";

// What the words of one side do when pointed at, reached by keyboard or chosen to stay. words(): { queries, keys }, all that
// can be chosen; tokenOf(n): which of them the nth of the column stands for.
export function choosing(app, side, words, tokenOf = (n) => n) {
  const onreach = (n, more) => tokenOf(n) in words()[side] && app.go({ side, token: tokenOf(n), ...more });
  function onkeep(n) {
    const now = app.state.get();
    onreach(n, { pinned: !(now.pinned && tokenOf(n) === now.token && side === now.side) });
  }
  return { onreach, onkeep, onpoint: (n) => app.state.get().pinned || (n === null ? app.go({ token: null }) : onreach(n)) };
}

// The arrow keys go from word to word.
export function stepping(app, words, only = null) {
  const step = (by) => () => {
    const now = app.state.get(), side = only ?? now.side;
    choosing(app, side, words).onreach((side === now.side ? now.token ?? -1 : -1) + by);
  };
  return { ArrowRight: step(1), ArrowLeft: step(-1) };
}

// A listbox of labels. onpoint(n | null): the pointer came or left; onreach(n): the keyboard came; onkeep(n): chosen to stay.
export function wordColumn(name, { onpoint, onkeep, onreach = onpoint }) {
  const placeOf = (event) => options.indexOf(event.target), on = (act) => (event) => placeOf(event) >= 0 && act(placeOf(event));
  const focused = () => root.querySelector(":focus-visible"); // by keyboard: a click chooses by itself
  const root = el("ul", {
    role: "listbox", "aria-label": name, class: "words", onpointerover: on(onpoint), onfocusin: on((n) => focused() && onreach(n)), onclick: on(onkeep), onkeydown: walk,
    onpointerleave: () => focused() ?? onpoint(null),
  });
  let labels = null, options = [], at = 0;

  function walk(event) {
    const n = placeOf(event), to = { ArrowDown: n + 1, ArrowRight: n + 1, ArrowUp: n - 1, ArrowLeft: n - 1, Home: 0, End: options.length - 1 }[event.key];
    if (to !== undefined && !event.shiftKey) options[to] ? options[to].focus() : onreach(to);
    else if (event.key === "Enter" || event.key === " ") onkeep(n);
    else return;
    event.preventDefault();
  }
  function update(wanted, selected) {
    if (wanted !== labels) {
      const inside = root.contains(document.activeElement);
      options = wanted.map(({ text, title, special }) => el("li", { role: "option", tabindex: -1, "aria-selected": "false", dir: "auto", title: title !== text && title, class: special && "special" }, text));
      root.replaceChildren(...options);
      [labels, at] = [wanted, 0];
      if (inside) options[selected ?? 0]?.focus();
    }
    const mark = (place, own) => {
      options[place]?.setAttribute("aria-selected", own && selected !== null);
      if (options[place]) options[place].tabIndex = own ? 0 : -1;
    };
    mark(at, false);
    mark((at = selected ?? at), true);
  }
  // lit: index -> the number printed beside the word.
  function light(lit) {
    options.forEach((option, n) => {
      option.classList.toggle("lit", lit.has(n));
      if (lit.has(n)) option.dataset.weight = lit.get(n);
      else delete option.dataset.weight;
    });
  }
  return { root, update, light };
}

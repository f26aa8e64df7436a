// What is being looked at: one flat object, kept in the address after the # so that a link shows the same.

const DEFAULTS = {
  view: "heads", item: 0, other: null, kind: "", layer: 0, heads: [0], combine: "heads",
  pieces: false, special: true, value: false, label: "auto", side: "queries", token: null, pinned: false, root: false,
  table: false, theme: "auto", step: 0,
};
const PAUSE = 400; // milliseconds without a change before the address is written

// `repair` gets the state wanted and the state before, and gives one that can be shown.
export function makeState(start, repair) {
  const first = { ...DEFAULTS, ...start }, listeners = [];
  let now = repair({ ...first, ...asked(location.href) }, null), frame = 0, timer = 0;

  function tell() {
    frame = 0;
    for (const listener of listeners) listener(now);
  }
  function set(patch) {
    if (Object.entries(patch).every(([name, value]) => now[name] === value)) return;
    now = repair({ ...now, ...patch }, now);
    frame ||= requestAnimationFrame(tell);
    clearTimeout(timer);
    timer = setTimeout(writeAddress, PAUSE);
  }
  // Only what differs from the beginning; what merely lies under the pointer does not count.
  function fragment() {
    const kept = Object.entries(now.pinned ? now : { ...now, token: null }).map(([name, value]) => [name, written(value)]);
    return new URLSearchParams(kept.filter(([name, text]) => text !== written(first[name]))).toString();
  }
  function writeAddress() {
    try {
      history.replaceState(null, "", `#${fragment()}`);
    } catch {
      // a page inside a notebook has no address of its own
    }
  }
  // As it was when it changed: by now writeAddress may have put the old state there again.
  addEventListener("hashchange", ({ newURL }) => set({ ...first, ...asked(newURL) }));
  return { get: () => now, set, fragment, subscribe: (listener) => listeners.push(listener) };
}

function asked(address) {
  return Object.fromEntries([...new URLSearchParams(address.split("#")[1])].map(([name, text]) => [name, parsed(text)]));
}

function written(value) {
  return typeof value === "string" && parsed(value) === value ? value : JSON.stringify(value ?? null);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

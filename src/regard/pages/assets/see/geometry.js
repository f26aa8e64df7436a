// Where the lines of the Heads picture run, and how wide they are. No page needed: the canvas, the saved figure and the tests
// all draw from here.

export const THICKEST = 12; // CSS pixels of a line of weight 1
export const LEAST = 0.01; // a weight below this is not drawn
const COVERED = 0.9, MOST = 4000; // with no word chosen: the largest weights, up to this share of a row, and so many in all

// The saved figure, whatever the size of the window.
export const FIGURE = { row: 28, top: 64, x1: 208, x2: 432, queries: 200, keys: 440, width: 640 };

export function headsLayout({ queries, keys }, { x1, x2, top } = FIGURE) {
  return { x1, x2, top, height: top + FIGURE.row * Math.max(queries.length, keys.length) };
}

export function rowCentre(layout, n) {
  return layout.top + (n + 0.5) * FIGURE.row;
}

export function lineWidth(w, root) {
  return THICKEST * (root ? Math.sqrt(w) : w);
}

// The lines of a picture, widest first, so that a narrow one is never hidden below a wide one. A picture is what `shown` gives,
// perhaps with fewer words, and the word selected: {side, index} | null.
export function edges(layout, { queries, keys, drawn, selected }, root) {
  const Q = queries.length, K = keys.length;
  const found = drawn.flatMap(({ head, w }) => (selected ? oneWord(w, Q, K, selected) : mostMass(w, Q, K)).map((n) => ({ head, q: Math.floor(n / K), k: n % K, w: w[n] })));
  return found.sort((a, b) => b.w - a.w).slice(0, MOST).map((edge) => ({
    x1: layout.x1, y1: rowCentre(layout, edge.q), x2: layout.x2, y2: rowCentre(layout, edge.k), width: lineWidth(edge.w, root), ...edge,
  }));
}

function oneWord(w, Q, K, { side, index }) {
  const cells = side === "queries" ? Array.from({ length: K }, (_, k) => index * K + k) : Array.from({ length: Q }, (_, q) => q * K + index);
  return cells.filter((n) => w[n] >= LEAST);
}

function mostMass(w, Q, K) {
  const cells = [];
  for (let q = 0; q < Q; q++) {
    const row = w.subarray(q * K, (q + 1) * K);
    let left = COVERED * row.reduce((sum, one) => sum + one, 0);
    for (const k of [...row.keys()].filter((n) => row[n] >= LEAST).sort((a, b) => row[b] - row[a])) {
      if (left <= 0) break;
      left -= row[k];
      cells.push(q * K + k);
    }
  }
  return cells;
}

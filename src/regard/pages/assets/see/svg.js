// Pictures as files: real text, no font from elsewhere, the same lines as on the screen.
import { edges, FIGURE, headsLayout, rowCentre } from "./geometry.js";
import { colour, hues } from "./paint.js";

const FACE = "system-ui, Arial, sans-serif";

export function svgAddress(svg) {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

// One element; what XML cannot hold is replaced.
export function svgTag(name, attributes, text = "") {
  const safe = (value) => String(value).replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "�").replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const parts = Object.entries(attributes).map(([key, value]) => ` ${key}="${safe(value)}"`);
  return `<${name}${parts.join("")}>${safe(text)}</${name}>`;
}

// parts: elements as texts, without title and caption.
export function svgFile({ width, height, title, caption, parts }) {
  const written = (text, y, size, fill) => svgTag("text", { x: width / 2, y, "text-anchor": "middle", "font-size": size, fill: colour(fill) }, text);
  const inside = [svgTag("title", {}, title), svgTag("desc", {}, caption), svgTag("rect", { width, height, fill: colour("--paper") }), written(title, 28, 14, "--ink"), ...parts, written(caption, height - 10, 11, "--quiet")];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="${FACE}">\n${inside.join("\n")}\n</svg>`;
}

// A picture as `edges` has it.
export function figureSvg(picture, root, title, caption) {
  const { queries, keys, selected } = picture, layout = headsLayout(picture), hueOf = hues(), fill = colour("--ink");
  const words = (labels, side, anchor) => labels.map(({ text }, n) =>
    svgTag("text", { x: FIGURE[side], y: rowCentre(layout, n), dy: "0.35em", "text-anchor": anchor, "font-size": 15, "font-weight": selected?.side === side && selected.index === n ? 700 : 400, fill }, text));
  const lines = edges(layout, picture, root).map(({ x1, y1, x2, y2, width, head }) =>
    svgTag("line", { x1, y1, x2, y2, stroke: hueOf(head), "stroke-width": width.toFixed(3), "stroke-opacity": 0.8, "stroke-dasharray": head >= 8 ? "10 3" : "none" }));
  return svgFile({ width: FIGURE.width, height: layout.height + 32, title, caption: `${caption}. Width of a line: its weight.`, parts: [...lines, ...words(queries, "queries", "end"), ...words(keys, "keys", "start")] });
}

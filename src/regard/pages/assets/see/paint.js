// Drawing on a canvas as sharp as the screen, in the colours of the page.
import { headHue } from "./shown.js";
import { el } from "./ui.js";

const colours = {};

// To look a colour up, the browser computes all styles anew; so it is done once in light and once in dark.
export function colour(name) {
  const page = document.documentElement, key = [name, page.style.colorScheme, matchMedia("(prefers-color-scheme: dark)").matches].join();
  return (colours[key] ??= getComputedStyle(page).getPropertyValue(name).trim());
}

// head -> its colour
export function hues() {
  return (head) => colour(headHue(head));
}

// The canvas emptied, at this size in CSS pixels; what is drawn counts in these too.
export function blank(canvas, width, height) {
  const ratio = Math.min(devicePixelRatio, 2), size = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  if (canvas.width !== size.width || canvas.height !== size.height) {
    Object.assign(canvas, size);
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

// Lines from `edges`. Heads beyond the eighth share a hue, and are dashed.
export function paintLines(pen, lines, hueOf) {
  pen.globalAlpha = 0.8;
  for (const line of lines) {
    pen.strokeStyle = hueOf(line.head);
    pen.lineWidth = line.width;
    pen.setLineDash(line.head >= 8 ? [10, 3] : []);
    pen.beginPath();
    pen.moveTo(line.x1, line.y1);
    pen.lineTo(line.x2, line.y2);
    pen.stroke();
  }
}

// 256 colours from nothing to all: from paper over the accent to ink, ever darker on light paper and ever lighter on dark.
export function ramp() {
  const pen = el("canvas", { width: 256 }).getContext("2d", { willReadFrequently: true }), shade = pen.createLinearGradient(0, 0, 256, 0);
  [[0, "--paper"], [0.65, "--accent"], [1, "--ink"]].forEach(([at, name]) => shade.addColorStop(at, colour(name)));
  pen.fillStyle = shade;
  pen.fillRect(0, 0, 256, 1);
  return pen.getImageData(0, 0, 256, 1).data;
}

// Lines over a scale from 0, as SVG: as much of a chart as the cost curve needs.

import {el, svg} from "./dom.js";

const kWidth = 320;
const kHeight = 190;
const kLeft = 38;
const kRight = 10;
const kTop = 10;
const kBottom = 30;

/** Round steps that cut [0, max] into 3 to 6. */
function ticks(max) {
  const rough = max / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const list = [];
  for (let value = 0; value <= max * 1.001; value += step) list.push(value);
  return list;
}

function text(x, y, anchor, content) {
  return svg("text", {x, y, "text-anchor": anchor}, content);
}

// Where a line over width has its ticks: powers of two, as curves are measured there.
function xTicks(low, high) {
  const list = [];
  for (let value = 1; value <= high; value *= 2) if (value >= low) list.push(value);
  return list;
}

/**
 * `lines`: [{name, kind: "solid" | "dashed", points: [{x, y}]}], x ascending and at least 1, drawn on
 * a logarithmic scale. `describe(x)` gives the lines of text for the point that is pointed at.
 */
export function lineChart({label, lines, xLabel, yLabel, describe}) {
  const points = lines.flatMap((line) => line.points);
  const low = Math.min(...points.map(({x}) => x));
  const high = Math.max(...points.map(({x}) => x), low * 2);
  const top = Math.max(...points.map(({y}) => y)) * 1.08 || 1;
  const atX = (x) => kLeft + (kWidth - kLeft - kRight) * Math.log(x / low) / Math.log(high / low);
  const atY = (y) => kHeight - kBottom - (kHeight - kTop - kBottom) * y / top;

  const grid = ticks(top).map((value) => svg("g", {class: "grid"},
    svg("line", {x1: kLeft, x2: kWidth - kRight, y1: atY(value), y2: atY(value)}),
    text(kLeft - 6, atY(value) + 3.5, "end", String(Number(value.toPrecision(3))))));
  const axis = xTicks(low, high).map((value) => text(atX(value), kHeight - kBottom + 14, "middle", value));
  const drawn = lines.map(({kind, points: list}, i) => svg("g", {class: `line line-${i + 1} ${kind}`},
    svg("polyline", {points: list.map(({x, y}) => `${atX(x)},${atY(y)}`).join(" ")}),
    kind === "solid" ? list.map(({x, y}) => svg("circle", {cx: atX(x), cy: atY(y), r: 2})) : null));
  const mark = svg("line", {class: "mark", y1: kTop, y2: kHeight - kBottom, visibility: "hidden"});
  const picture = svg("svg", {viewBox: `0 0 ${kWidth} ${kHeight}`, role: "img", "aria-label": label},
    grid, axis, drawn, mark, text(kWidth - kRight, kHeight - 3, "end", xLabel),
    text(2, kHeight - 3, "start", yLabel));
  const note = el("p", {class: "chart-note", "aria-hidden": "true"}, describe(null));

  const xs = [...new Set(points.map(({x}) => x))];
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const at = (event.clientX - box.left) * kWidth / box.width;
    const nearest = xs.reduce((best, x) =>
      Math.abs(atX(x) - at) < Math.abs(atX(best) - at) ? x : best);
    mark.setAttribute("x1", atX(nearest));
    mark.setAttribute("x2", atX(nearest));
    mark.setAttribute("visibility", "visible");
    note.textContent = describe(nearest);
  });
  picture.addEventListener("pointerleave", () => {
    mark.setAttribute("visibility", "hidden");
    note.textContent = describe(null);
  });
  return el("figure", {class: "chart"}, picture,
    el("figcaption", {}, lines.map(({name, kind}, i) =>
      el("span", {class: `key line-${i + 1} ${kind}`}, name))), note);
}

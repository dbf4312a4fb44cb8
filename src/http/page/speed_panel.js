// The panel of what steps cost and what guessing gave: the cost curve with its floor, acceptance by
// depth, and what each drafter did.

import {lineChart} from "./chart.js";
import {byId, el} from "./dom.js";
import {count, figure, milliseconds, rate, times} from "./format.js";
import {colourClass} from "./painter.js";
import {server} from "./server.js";

const toPoints = (curve) => curve.filter(({width, ms}) => width >= 1 && ms > 0)
  .map(({width, ms}) => ({x: width, y: ms})).sort((a, b) => a.x - b.x);

function costSection({curve, floor}) {
  const measured = toPoints(curve ?? []);
  if (measured.length === 0) {
    return el("section", {}, el("h3", {}, "What a step costs"),
      el("p", {class: "muted"}, "Not measured yet: it is when the model has worked a little."));
  }
  const least = toPoints(floor ?? []);
  const one = measured.find(({x}) => x === 1)?.y;
  const at = (list, x) => list.find((point) => point.x === x)?.y;
  const describe = (x) => {
    if (x === null) return "Point at the curve to read it.";
    const parts = [`${x} token${x === 1 ? "" : "s"} a step: ${milliseconds(at(measured, x))}`];
    if (one && x > 1 && at(measured, x)) parts.push(`${times(at(measured, x) / one)} a step of one`);
    if (at(least, x)) parts.push(`floor ${milliseconds(at(least, x))}`);
    return parts.join(", ");
  };
  const lines = [{name: "measured", kind: "solid", points: measured}];
  if (least.length > 0) lines.push({name: "floor of this machine", kind: "dashed", points: least});
  const wide = measured.filter(({x}) => x <= 8).at(-1);
  return el("section", {}, el("h3", {}, "What a step costs"),
    lineChart({label: "Time of a step by the tokens in it", lines, describe,
      xLabel: "tokens in a step", yLabel: "ms"}),
    one && wide.x > 1 ? el("p", {class: "muted small"}, `A step of ${wide.x} tokens takes ` +
      `${times(wide.y / one)} the time of a step of one: that is what makes guessing pay.`) : null,
    least.length > 0 ? el("p", {class: "muted small"},
      "The floor is the longer of reading all weights once and of making their products.") : null);
}

function depthSection(depths) {
  const used = (depths ?? []).filter(({drafted}) => drafted > 0);
  if (used.length === 0) return null;
  return el("section", {}, el("h3", {}, "Accepted, by depth"),
    el("table", {class: "bars"},
      el("thead", {class: "hidden"}, el("tr", {}, ["Depth", "Share", "Accepted", "Drafted"]
        .map((name) => el("th", {}, name)))),
      el("tbody", {}, used.map(({depth, drafted, accepted}) => {
        const bar = el("span", {class: "bar-fill"});
        bar.style.width = `${100 * accepted / drafted}%`;
        return el("tr", {title: `${count(accepted)} of ${count(drafted)}`},
          el("th", {scope: "row"}, depth), el("td", {class: "bar-cell"}, bar),
          el("td", {}, rate(accepted / drafted)), el("td", {class: "muted"}, count(drafted)));
      }))),
    el("p", {class: "muted small"}, "Depth 1 is the first guessed token of a step. At the right: " +
      "how many were drafted."));
}

function totalsSection(data) {
  const rows = [["Tokens a step", figure(data.tokens_per_step)],
    ["Accepted of drafted", rate(data.acceptance_rate)], ["Steps", count(data.steps)],
    ["Drafted", count(data.drafted)], ["Accepted", count(data.accepted)],
    ["Tokens said", count(data.emitted)]];
  return el("section", {}, el("h3", {}, "Since the start"),
    el("dl", {class: "facts"}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
}

function draftersSection(drafters) {
  const used = Object.entries(drafters ?? {}).filter(([, {calls}]) => calls > 0);
  if (used.length === 0) return null;
  return el("section", {}, el("h3", {}, "Drafters"),
    el("table", {class: "numbers"},
      el("thead", {}, el("tr", {}, ["drafter", "drafted", "accepted", "rate"].map((name) =>
        el("th", {scope: "col"}, name)))),
      el("tbody", {}, used.map(([name, {drafted, accepted, acceptance_rate: share}]) =>
        el("tr", {}, el("th", {scope: "row"}, el("span", {class: `swatch ${colourClass(name)}`}), name),
          el("td", {}, count(drafted)), el("td", {}, count(accepted)), el("td", {}, rate(share)))))));
}

export class SpeedPanel {
  #shown = "";

  constructor() {
    this.node = byId("panel-speed");
    server.addEventListener("change", () => this.show());
  }

  show() {
    if (this.node.hidden) return;
    const {speculation, speculationProblem} = server;
    const shown = JSON.stringify([speculation, speculationProblem]);
    if (shown === this.#shown && this.node.firstChild) return;  // who points at the curve goes on
    this.#shown = shown;
    if (!speculation) {
      this.node.replaceChildren(el("p", {class: speculationProblem ? "problem" : "muted"},
        speculationProblem ?? "The cost curve is known when the model is open."));
      return;
    }
    this.node.replaceChildren(...[costSection(speculation), depthSection(speculation.depths),
      totalsSection(speculation), draftersSection(speculation.drafters)].filter(Boolean));
  }
}

// The figures of an answer as one line: tokens a second, a step, accepted, against plain.

import {el} from "./dom.js";
import {figure, many, rate, times} from "./format.js";

function item(value, unit, title, {extra = "", about = ""} = {}) {
  return el("span", {class: `figure ${extra}`, title}, about, el("b", {}, value), ` ${unit}`);
}

/** `figures` as `figuresOf` (answer.js) gives them; what is not known is left out. */
export function figureItems(figures, {tokens = true} = {}) {
  if (!figures || figures.tokens === 0) return [];
  const list = [];
  if (tokens) list.push(el("span", {class: "figure"}, many(figures.tokens, "token")));
  if (figures.perSecond !== null) {
    list.push(item(figure(figures.perSecond), "tokens/s", "Tokens a second, the prompt not counted"));
  }
  if (figures.perStep !== null) {
    list.push(item(figure(figures.perStep), "a step",
      "Tokens that one evaluation of the target gave, on average; plain decoding has 1"));
  }
  if (figures.acceptance !== null) {
    list.push(item(rate(figures.acceptance), "accepted",
      "Of the tokens that were drafted, those that the target would have said itself"));
  }
  const speedup = figures.speedup ?? figures.speedupSoFar;
  if (speedup !== null) {
    const title = figures.speedup === null ? "So far, against the plain speed that the last answer told"
      : "Estimated: against what plain decoding would have taken at the same time, by this answer's " +
        "own passes and by how much longer wide ones take. Side by side measures it";
    list.push(item(times(speedup), "plain", title,
      {extra: speedup >= 1.05 ? "gain" : "", about: "about "}));
  }
  return list;
}

// What the server says where the request wanted none (src/serve/job.cc): no cause to warn of.
const kAskedFor = ["the request asked for plain decoding", "width=1 is plain decoding"];

/** Why there was no speculation, when it was wanted; else null. */
export function whyOff(speculation) {
  if (!speculation || speculation.enabled || !speculation.reason) return null;
  if (kAskedFor.includes(speculation.reason)) return null;
  return `No speculation: ${speculation.reason}`;
}

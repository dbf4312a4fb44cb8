// Which colour a drafter has, and text in these colours.

import {el} from "./dom.js";
import {kDrafterPlaces} from "./drafters.js";
import {count} from "./format.js";

const kColours = 7;  // of theme.css

// Those that the program has get the same colour on every page, whatever a draft is called the
// first (a target has one); others take the free ones in the order in which they appear.
const kPlaces = new Map(kDrafterPlaces);
const kKnown = kPlaces.size;
const kFirstFree = Math.max(...kPlaces.values()) + 1;
const kFree = Math.max(kColours - kFirstFree, 1);

/** The class that colours what `by` guessed; none for the target's own tokens. */
export function colourClass(by) {
  if (by === "target") return "by-target";
  if (!kPlaces.has(by)) kPlaces.set(by, kFirstFree + (kPlaces.size - kKnown) % kFree);
  return `by-${kPlaces.get(by) % kColours + 1}`;
}

export const plainPainter = (text) => document.createTextNode(text);

const kEnds = new WeakMap();  // of lists of spans: where each ends

// Spans only grow: the last one, which may have, and new ones are looked at.
function endsOf(spans) {
  if (!kEnds.has(spans)) kEnds.set(spans, []);
  const ends = kEnds.get(spans);
  ends.length = Math.max(Math.min(ends.length, spans.length) - 1, 0);
  let end = ends.at(-1) ?? 0;
  for (let i = ends.length; i < spans.length; ++i) ends.push(end += spans[i][1]);
  return ends;
}

/** A painter (see markdown_text.js) of a text of which `spans`, [[by, length], ...], say whose it is. */
export function colouredPainter(spans) {
  const ends = endsOf(spans);

  const spanAt = (index) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] > index) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  return (text, place) => {
    const nodes = document.createDocumentFragment();
    let from = 0;
    while (from < text.length) {
      const span = spanAt(place(from));
      let to = from + 1;
      while (to < text.length && spanAt(place(to)) === span) ++to;
      const by = spans[span]?.[0] ?? "target";
      const part = text.slice(from, to);
      nodes.append(by === "target" ? document.createTextNode(part)
        : el("span", {class: `guess ${colourClass(by)}`, title: `guessed by ${by}`}, part));
      from = to;
    }
    return nodes;
  };
}

/** A bar of who guessed how much, and the legend that it is; `counts` is {name: tokens}. */
export function sharesBar(counts) {
  const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
  if (total === 0) return null;
  const drafters = Object.entries(counts).filter(([by]) => by !== "target")
    .sort((a, b) => b[1] - a[1]);
  const shares = [...drafters, ["target", counts.target ?? 0]].filter(([, n]) => n > 0);
  const bar = el("div", {class: "shares-bar", "aria-hidden": "true"});
  const legend = el("ul", {class: "legend", "aria-label": "Who guessed the tokens"});
  for (const [by, n] of shares) {
    const part = el("span", {class: colourClass(by)});
    part.style.flexGrow = n;
    bar.append(part);
    const title = by === "target" ? `${count(n)} tokens are the target's own, one a step`
      : `${count(n)} tokens were guessed by ${by} and accepted`;
    legend.append(el("li", {title}, el("span", {class: `swatch ${colourClass(by)}`}),
      `${by} `, el("b", {}, `${Math.round(100 * n / total)} %`)));
  }
  return el("div", {class: "shares"}, bar, legend);
}

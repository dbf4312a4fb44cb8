// Text of a paragraph, a cell, a line of code as nodes that grow with it: what was shown before keeps
// its nodes, so that what a reader has selected in it stays selected while more is written.
//
// A painter makes the nodes of a piece of text: paint(text, place) where place(i) is the index in
// the source of the i-th character. painter.js has one that colours tokens.

import {el} from "./dom.js";
import {parseInline} from "./markdown_inline.js";
import {segmentEnd} from "./markdown_segments.js";

// Characters of one node: a browser shapes all of a node's text anew where some is added.
const kNodeLength = 1000;

/** Lines put together, and where each of their characters is in the source. */
export function joined(lines) {
  const text = lines.map((line) => line.text).join("\n");
  const starts = [];
  let at = 0;
  for (const line of lines) {
    starts.push([at, line.at]);
    at += line.text.length + 1;
  }
  const place = (i) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {  // the last that begins at i or before
      const middle = (low + high + 1) >> 1;
      if (starts[middle][0] <= i) low = middle;
      else high = middle - 1;
    }
    return starts[low][1] + i - starts[low][0];
  };
  return {text, place};
}

/** How many characters two texts have in common at their beginning. */
function commonLength(a, b) {
  if (b.startsWith(a)) return a.length;
  const length = Math.min(a.length, b.length);
  let n = 0;
  while (n < length && a[n] === b[n]) ++n;
  return n;
}

/** Text among other nodes of `parent`, in front of what `before()` gives (null: at its end). */
export class TextRun {
  #nodes = [];
  #text = "";

  constructor(parent, before = () => null) {
    this.parent = parent;
    this.before = before;
  }

  get text() {
    return this.#text;
  }

  /** Makes it `text`, of which place(i) is where the i-th character is in the source. */
  update(text, place, paint) {
    this.replace(0, text, place, paint);
  }

  /** `text` and `place` are of what follows the first `from` characters, which stay. */
  replace(from, text, place, paint) {
    const same = commonLength(this.#text.slice(from), text);
    this.#cut(this.#text.length - from - same);
    if (same < text.length) {
      this.#append(paint(text.slice(same), (i) => place(same + i)));
    }
    this.#text = this.#text.slice(0, from) + text;
  }

  #cut(length) {
    while (length > 0) {
      const node = this.#nodes.at(-1);
      const all = node.textContent.length;
      if (all <= length) {
        node.remove();
        this.#nodes.pop();
      } else {
        (node.firstChild ?? node).deleteData(all - length, length);
      }
      length -= all;
    }
  }

  #append(painted) {
    const nodes = painted.nodeType === Node.DOCUMENT_FRAGMENT_NODE ? [...painted.childNodes]
      : [painted];
    const last = this.#nodes.at(-1);
    const [first] = nodes;
    if (last && last.className === first.className && last.title === first.title &&
        last.textContent.length < kNodeLength) {
      (last.firstChild ?? last).appendData(first.textContent);  // one piece, in two updates
      nodes.shift();
    }
    const behind = last ? last.nextSibling : this.before();
    for (const node of nodes) this.parent.insertBefore(node, behind);
    this.#nodes.push(...nodes);
  }

  remove() {
    for (const node of this.#nodes) node.remove();
  }
}

function elementOf({kind, url}) {
  switch (kind) {
    case "break": return el("br");
    case "math": return el("code", {class: "math"});
    case "link":
      return el("a", {href: url, target: "_blank", rel: "noopener noreferrer", title: url});
    default: return el(kind);
  }
}

/** What parseInline gives one node for. */
class Piece {
  #node;
  #run = null;        // of text
  #element = null;    // of what else there is
  #children = [];

  constructor(node, parent, before) {
    this.#node = node;
    if (node.kind === "text" || node.kind === "entity") {
      this.#run = new TextRun(parent, before);
      return;
    }
    this.#element = elementOf(node);
    parent.insertBefore(this.#element, before());
    if (node.from !== undefined && !node.nodes) this.#run = new TextRun(this.#element);
  }

  /** Whether it can become `node` by an update. */
  fits(node) {
    const {kind, from, url, text} = this.#node;
    return kind === node.kind && from === node.from && url === node.url && text === node.text;
  }

  update(node, all) {
    if (node.nodes) {
      updatePieces(this.#children, node.nodes, all, this.#element, () => null);
    } else if (this.#run) {
      const {from, to} = node;
      const shown = this.#run.text !== "" && this.#node.to === to && to <= all.same;
      if (!shown) {
        this.#run.update(node.text ?? all.text.slice(from, to),
          (i) => all.place(node.text ? from : from + i), all.paint);
      }
    }
    this.#node = node;
  }

  remove() {
    this.#run?.remove();
    this.#element?.remove();
  }
}

function updatePieces(pieces, nodes, all, parent, before) {
  let same = 0;
  while (same < nodes.length && pieces[same]?.fits(nodes[same])) {
    pieces[same].update(nodes[same], all);
    ++same;
  }
  for (const piece of pieces.splice(same)) piece.remove();
  for (const node of nodes.slice(same)) {
    const piece = new Piece(node, parent, before);
    piece.update(node, all);
    pieces.push(piece);
  }
}

class Segment {
  end = 0;
  #pieces = [];

  /** `node`: its own, of `parent`; null for what stands in `parent` itself. */
  constructor(parent, before, node) {
    this.node = node;
    this.parent = node ?? parent;
    this.before = node ? () => null : before;
    if (node) parent.insertBefore(node, before());
  }

  update(text, all) {
    updatePieces(this.#pieces, parseInline(text), {...all, text}, this.parent, this.before);
  }

  remove() {
    this.node?.remove();
    for (const piece of this.#pieces) piece.remove();
  }
}

/** Lines of markdown without blocks, in `parent` in front of what `before()` gives. */
export class InlineView {
  #segments = [];
  #text = "";
  #at = null;

  constructor(parent, before = () => null) {
    this.parent = parent;
    this.before = before;
  }

  update(lines, paint) {
    const {text, place} = joined(lines);
    const at = lines[0]?.at ?? null;
    if (text === this.#text && at === this.#at) return;
    const same = at === this.#at ? commonLength(this.#text, text) : 0;
    // A segment's end was found by the character behind it, too.
    let first = 0;
    while (this.#segments[first]?.end < same) ++first;
    for (const gone of this.#segments.splice(first + 1)) gone.remove();
    let from = this.#segments[first - 1]?.end ?? 0;
    for (let i = first; i === 0 || from < text.length; ++i) {
      const begin = from;
      from = segmentEnd(text, begin);
      this.#segments[i] ??= new Segment(this.parent, this.before, i > 0 ? el("span", {class: "part"}) : null);
      this.#segments[i].update(text.slice(begin, from),
        {place: (k) => place(begin + k), same: same - begin, paint});
      this.#segments[i].end = from;
    }
    this.#text = text;
    this.#at = at;
  }
}

// Markdown -> DOM. Elements come from a fixed list, text becomes text nodes; HTML in the source is
// shown as it was written. Links lead to http and https only, and pictures are not fetched.
//
// A text grows by a few tokens a frame, for thousands of frames. So a block that goes on keeps its
// nodes and gets what is new of it (a selection in it stays, so does how far its code is scrolled),
// and the source is read from its last blocks on only. Each view below has
//   fits(block): whether an update can make it one of `block`, of the same kind and place
//   update(block, paint)
// tests/page/growing_test.py compares every step with the whole text shown anew.

import {copyFrom, el, iconButton} from "./dom.js";
import {growFence, isOpenFence, parseBlocks, settled} from "./markdown_blocks.js";
import {InlineView, TextRun, joined} from "./markdown_text.js";

// One level down: h1 is the page's own.
const tagOf = (block) => block.kind === "heading" ? `h${Math.min(6, block.level + 1)}` : "p";

class TextBlock {
  constructor(block) {
    this.tag = tagOf(block);
    this.node = el(this.tag);
    this.inline = new InlineView(this.node);
  }

  fits(block) {
    return tagOf(block) === this.tag;
  }

  update(block, paint) {
    this.inline.update(block.lines, paint);
  }
}

// Lines of one node. A browser lays a node's text out anew where some is added: at 10,000 tokens in
// one node that took 39 ms, which is more than two frames.
const kPartLines = 50;

/** Lines that are shown as they are. */
class LinesView {
  #parts = [];   // TextRuns
  #lines = null;
  #last = 0;     // index of the last line
  #from = 0;     // where it begins in its part

  constructor(parent) {
    this.parent = parent;
  }

  get text() {
    return this.#parts.map((part) => part.text).join("");
  }

  /** Where `lines` is the list of the last update, only its last line and new ones are looked at. */
  update(lines, paint) {
    if (lines !== this.#lines || lines.length <= this.#last) this.#last = this.#from = 0;
    const first = Math.floor(this.#last / kPartLines);
    const end = Math.max(Math.ceil(lines.length / kPartLines), 1);
    for (const gone of this.#parts.splice(end)) gone.parent.remove();
    for (let i = first; i < end; ++i) {
      const {text, place} = joined(lines.slice(Math.max(i * kPartLines, this.#last), (i + 1) * kPartLines));
      const from = i === first ? this.#from : 0;
      this.#part(i).replace(from, i + 1 < end ? `${text}\n` : text, place, paint);
      if (i + 1 === end) this.#from = from + text.lastIndexOf("\n") + 1;
    }
    this.#lines = lines;
    this.#last = Math.max(lines.length - 1, 0);
  }

  #part(i) {
    if (i === this.#parts.length) {
      this.#parts.push(new TextRun(el("span", {class: "part"})));
      this.parent.append(this.#parts[i].parent);
    }
    return this.#parts[i];
  }
}

class CodeBlock {
  constructor() {
    this.language = el("span");
    this.code = el("code");
    this.lines = new LinesView(this.code);
    const copy = iconButton("copy", "Copy code", () => copyFrom(copy, this.lines.text));
    this.node = el("figure", {class: "code", dir: "ltr"},
      el("figcaption", {}, this.language, copy), el("pre", {tabindex: "0"}, this.code));
  }

  fits() {
    return true;
  }

  update(block, paint) {
    const language = block.language || "text";
    if (this.language.textContent !== language) this.language.textContent = language;
    this.lines.update(block.lines, paint);
  }
}

class MathBlock {
  constructor() {
    this.node = el("pre", {class: "math", dir: "ltr"});
    this.lines = new LinesView(this.node);
  }

  fits() {
    return true;
  }

  update(block, paint) {
    this.lines.update(block.lines, paint);
  }
}

class QuoteBlock {
  constructor() {
    this.node = el("blockquote");
    this.blocks = new BlockList(this.node);
  }

  fits() {
    return true;
  }

  update(block, paint) {
    this.blocks.update(block.blocks, paint);
  }
}

// A list whose items are one paragraph each, and lists, is shown without gaps.
const isTight = ([first, ...others]) => first?.kind === "paragraph" &&
  others.every(({kind}) => kind === "list");

class ListItem {
  constructor({blocks, done}) {
    this.tight = isTight(blocks);
    this.done = done;
    this.node = el("li", done === null ? {} : {class: "task"}, done === null ? null
      : el("input", {type: "checkbox", disabled: true, checked: done,
        "aria-label": done ? "Done" : "Not done"}));
    this.others = new BlockList(this.node);
    this.inline = this.tight ? new InlineView(this.node, () => this.others.first) : null;
  }

  fits({blocks, done}) {
    return isTight(blocks) === this.tight && done === this.done;
  }

  update({blocks, start, end}, paint) {
    if (start === this.start && end === this.end) return;
    this.inline?.update(blocks[0].lines, paint);
    this.others.update(this.tight ? blocks.slice(1) : blocks, paint);
    Object.assign(this, {start, end});
  }
}

class ListBlock {
  constructor({ordered, first}) {
    Object.assign(this, {ordered, first});
    this.node = el(ordered ? "ol" : "ul", {start: ordered && first !== 1 ? first : null});
    this.items = [];
  }

  fits({ordered, first}) {
    return ordered === this.ordered && first === this.first;
  }

  update({items}, paint) {
    const same = items.findIndex((item, i) => !this.items[i]?.fits(item));
    for (const gone of this.items.splice(same < 0 ? items.length : same)) gone.node.remove();
    items.forEach((item, i) => {
      if (i === this.items.length) {
        this.items.push(new ListItem(item));
        this.node.append(this.items[i].node);
      }
      this.items[i].update(item, paint);
    });
  }
}

class TableRow {
  constructor(tag, aligns) {
    const nodes = aligns.map((align) => el(tag, {class: `align-${align}`}));
    this.node = el("tr", {}, nodes);
    this.cells = nodes.map((node) => new InlineView(node));
  }

  update(cells, paint) {
    this.cells.forEach((view, i) => view.update(cells[i] ? [cells[i]] : [], paint));
  }
}

class TableBlock {
  constructor({header, aligns}) {
    this.aligns = header.map((_, i) => aligns[i]);
    this.header = new TableRow("th", this.aligns);
    this.body = el("tbody");
    this.rows = [];
    this.node = el("div", {class: "table", tabindex: "0"}, el("table", {},
      el("thead", {}, this.header.node), this.body));
  }

  fits({header, aligns}) {
    return header.length === this.aligns.length && this.aligns.every((one, i) => one === aligns[i]);
  }

  update({header, rows}, paint) {
    this.header.update(header, paint);
    for (const gone of this.rows.splice(rows.length)) gone.node.remove();
    rows.forEach((cells, i) => {
      if (i === this.rows.length) {
        this.rows.push(new TableRow("td", this.aligns));
        this.body.append(this.rows[i].node);
      }
      this.rows[i].update(cells, paint);
    });
  }
}

class RuleBlock {
  node = el("hr");

  fits() {
    return true;
  }

  update() {}
}

const kViews = {heading: TextBlock, paragraph: TextBlock, code: CodeBlock, math: MathBlock,
  quote: QuoteBlock, list: ListBlock, table: TableBlock, rule: RuleBlock};

/** Blocks at the end of `container`. */
class BlockList {
  #shown = [];  // {block, start, end, view}

  /** `props`: what each block's node gets. */
  constructor(container, props = {}) {
    this.container = container;
    this.props = props;
  }

  /** The first block's node; null where there is none. */
  get first() {
    return this.#shown[0]?.view.node ?? null;
  }

  /** What it shows of a source that only grows becomes `blocks`, from the `from`-th on. */
  update(blocks, paint, from = 0) {
    let at = from;
    for (const block of blocks) {
      const {kind, start, end} = block;
      let shown = this.#shown[at];
      if (shown?.kind !== kind || shown.start !== start || !shown.view.fits(block)) {
        this.cut(at);
        shown = {kind, start, end: -1, view: new kViews[kind](block)};
        this.#shown.push(shown);
        const {node} = shown.view;
        for (const [name, value] of Object.entries(this.props)) {
          if (!node.hasAttribute(name)) node.setAttribute(name, value);
        }
        this.container.append(node);
      }
      if (shown.end !== end) shown.view.update(block, paint);
      shown.end = end;
      ++at;
    }
    this.cut(at);
  }

  /** Takes away all from the `from`-th on. */
  cut(from) {
    for (const {view} of this.#shown.splice(from)) view.node.remove();
  }
}

/** Shows a text that grows. */
export class MarkdownView {
  #source = "";
  #blocks = [];
  #settled = 0;  // so many of them stay as they are, whatever follows
  #list;

  constructor(container) {
    this.#list = new BlockList(container, {dir: "auto"});
  }

  /** `all`: paint everything anew, as the painter is another. */
  update(source, paint, {all = false} = {}) {
    if (all || !source.startsWith(this.#source)) {
      this.#list.cut(0);
      this.#blocks = [];
      this.#settled = 0;
    } else if (source === this.#source) {
      return;
    }
    const blocks = this.#blocksOf(source);
    this.#list.update(blocks, paint, this.#settled);
    this.#blocks.splice(this.#settled, Infinity, ...blocks);
    this.#source = source;
    while (this.#settled + 1 < this.#blocks.length &&
        settled(this.#blocks[this.#settled], this.#blocks[this.#settled + 1], source)) {
      ++this.#settled;
    }
  }

  // Those behind the settled ones.
  #blocksOf(source) {
    const first = this.#blocks[this.#settled];
    if (first && this.#settled + 1 === this.#blocks.length && isOpenFence(first)) {
      return [first, ...growFence(first, source)];
    }
    return parseBlocks(source, first?.start ?? 0);
  }
}

// Markdown -> DOM. Elements come from a fixed list, text becomes text nodes; HTML in the source is
// shown as it was written. Links lead to http and https only, and pictures are not fetched.
//
// A painter makes the nodes of a piece of text: paint(text, place) where place(i) is the index in
// the source of the i-th character. painter.js has one that colours tokens.

import {copyFrom, el, iconButton} from "./dom.js";
import {parseBlocks} from "./markdown_blocks.js";
import {parseInline} from "./markdown_inline.js";

/** Lines put together, and where each of their characters is in the source. */
function joined(lines) {
  const text = lines.map((line) => line.text).join("\n");
  const starts = [];
  let at = 0;
  for (const line of lines) {
    starts.push([at, line.at]);
    at += line.text.length + 1;
  }
  const place = (i) => {
    let k = starts.length - 1;
    while (k > 0 && starts[k][0] > i) --k;
    return starts[k][1] + i - starts[k][0];
  };
  return {text, place};
}

function inlineNodes(nodes, text, place, paint) {
  return nodes.map((node) => {
    switch (node.kind) {
      case "text": return paint(text.slice(node.from, node.to), (i) => place(node.from + i));
      case "code":
        return el("code", {}, paint(text.slice(node.from, node.to), (i) => place(node.from + i)));
      case "break": return el("br");
      case "link":
        return el("a", {href: node.url, target: "_blank", rel: "noopener noreferrer",
          title: node.url}, inlineNodes(node.nodes, text, place, paint));
      default: return el(node.kind, {}, inlineNodes(node.nodes, text, place, paint));
    }
  });
}

function inline(lines, paint) {
  const {text, place} = joined(lines);
  return inlineNodes(parseInline(text), text, place, paint);
}

function codeBlock(block, paint) {
  const {text, place} = joined(block.lines);
  const copy = iconButton("copy", "Copy code", () => copyFrom(copy, text));
  return el("figure", {class: "code"},
    el("figcaption", {}, el("span", {}, block.language || "text"), copy),
    el("pre", {tabindex: "0"}, el("code", {}, paint(text, place))));
}

// A list whose items are one paragraph each is shown without gaps.
function itemNodes(blocks, paint) {
  const [first, ...others] = blocks;
  if (first?.kind !== "paragraph") return blocks.map((block) => blockNode(block, paint));
  const tight = others.every((block) => block.kind === "list");
  const head = tight ? inline(first.lines, paint) : [blockNode(first, paint)];
  return [...head, ...others.map((block) => blockNode(block, paint))];
}

function tableNode({header, aligns, rows}, paint) {
  const row = (cells, tag) => el("tr", {}, header.map((_, i) =>
    el(tag, {class: `align-${aligns[i]}`}, cells[i] ? inline([cells[i]], paint) : null)));
  return el("div", {class: "table", tabindex: "0"}, el("table", {},
    el("thead", {}, row(header, "th")),
    el("tbody", {}, rows.map((cells) => row(cells, "td")))));
}

function blockNode(block, paint) {
  switch (block.kind) {
    case "heading":  // one level down: h1 is the page's own
      return el(`h${Math.min(6, block.level + 1)}`, {}, inline(block.lines, paint));
    case "paragraph": return el("p", {}, inline(block.lines, paint));
    case "code": return codeBlock(block, paint);
    case "quote":
      return el("blockquote", {}, block.blocks.map((inner) => blockNode(inner, paint)));
    case "list":
      return el(block.ordered ? "ol" : "ul",
        {start: block.ordered && block.first !== 1 ? block.first : null},
        block.items.map((item) => el("li", {}, itemNodes(item, paint))));
    case "table": return tableNode(block, paint);
    default: return el("hr");
  }
}

/**
 * Shows a text that grows. Blocks whose source did not change keep their nodes, so what a reader
 * has selected or scrolled stays while the end is written.
 */
export class MarkdownView {
  #shown = [];  // {source, kind, node}

  constructor(container) {
    this.container = container;
  }

  /** `all`: paint everything anew, as the painter is another. */
  update(source, paint, {all = false} = {}) {
    const blocks = parseBlocks(source);
    let same = 0;
    while (!all && same < blocks.length && same < this.#shown.length) {
      const {start, end, kind} = blocks[same];
      const shown = this.#shown[same];
      if (shown.kind !== kind || shown.start !== start || shown.source !== source.slice(start, end)) {
        break;
      }
      ++same;
    }
    for (const {node} of this.#shown.splice(same)) node.remove();
    for (const block of blocks.slice(same)) {
      const node = blockNode(block, paint);
      const {start, end, kind} = block;
      this.#shown.push({kind, start, source: source.slice(start, end), node});
      this.container.append(node);
    }
  }
}

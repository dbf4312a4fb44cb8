// Markdown's blocks, as far as language models write them: paragraphs, headings, lists, quotes,
// code, tables, rules. Out comes a tree; nothing here touches the document, and HTML is text.
//
// A line is {text, at}: at is where text begins in the source. So every character that is shown can
// be traced to its place there, which is how tokens keep their colours in formatted text.

const kFence = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const kHeading = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const kRule = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const kDelimiterCell = /^[ \t]*:?-+:?[ \t]*$/;
const kMaxDepth = 8;  // lists in quotes in lists: deeper ones are paragraphs

function linesOf(source) {
  const lines = [];
  let at = 0;
  for (const text of source.split("\n")) {
    lines.push({text, at});
    at += text.length + 1;
  }
  return lines;
}

const isBlank = (line) => /^\s*$/.test(line.text);
const indentOf = (line) => line.text.match(/^ */)[0].length;
const cut = (line, n) => ({text: line.text.slice(n), at: line.at + n});

function cells(line) {
  const list = [];
  let from = 0;
  const text = line.text;
  for (let i = 0; i <= text.length; ++i) {
    if (text[i] === "\\") ++i;
    else if (i === text.length || text[i] === "|") {
      list.push({text: text.slice(from, i), at: line.at + from});
      from = i + 1;
    }
  }
  if (from <= text.length) list.push({text: text.slice(from), at: line.at + from});
  if (list.length > 0 && isBlank(list[0])) list.shift();
  while (list.length > 0 && isBlank(list.at(-1))) list.pop();
  return list.map((cell) => {
    const skipped = cell.text.length - cell.text.trimStart().length;
    return {text: cell.text.trim(), at: cell.at + skipped};
  });
}

function isTableStart(line, next) {
  if (!next || !line.text.includes("|") || !next.text.includes("-")) return false;
  const delimiters = cells(next);
  return delimiters.length === cells(line).length && delimiters.length > 1 &&
    delimiters.every((cell) => kDelimiterCell.test(cell.text));
}

function startsBlock(line) {
  const item = kItem.exec(line.text);
  return kFence.test(line.text) || kHeading.test(line.text) || kRule.test(line.text) ||
    kQuote.test(line.text) || (item && item[1].length < 4 && item[3] !== "");
}

class Parser {
  constructor(lines, depth) {
    this.lines = lines;
    this.depth = depth;
    this.i = 0;
  }

  blocks() {
    const list = [];
    while (this.i < this.lines.length) {
      if (isBlank(this.lines[this.i])) {
        ++this.i;
        continue;
      }
      const first = this.i;
      const block = this.#block();
      // What the block was made of: the same slice gives the same block again.
      const last = this.lines[this.i - 1];
      block.start = this.lines[first].at;
      block.end = last.at + last.text.length;
      list.push(block);
    }
    return list;
  }

  #block() {
    const line = this.lines[this.i];
    const {text} = line;
    if (kFence.test(text)) return this.#fence();
    const heading = kHeading.exec(text);
    if (heading) {
      ++this.i;
      const inside = cut(line, heading[0].length);
      inside.text = inside.text.replace(/(^|[ \t]+)#*[ \t]*$/, "");
      return {kind: "heading", level: heading[1].length, lines: [inside]};
    }
    if (kRule.test(text)) {
      ++this.i;
      return {kind: "rule"};
    }
    if (this.depth < kMaxDepth) {
      if (kQuote.test(text)) return this.#quote();
      const item = kItem.exec(text);
      if (item && item[1].length < 4) return this.#list();
    }
    if (isTableStart(line, this.lines[this.i + 1])) return this.#table();
    if (/^(?: {4}|\t)/.test(text)) return this.#indentedCode();
    return this.#paragraph();
  }

  #fence() {
    const [, indent, mark, info] = kFence.exec(this.lines[this.i++].text);
    const lines = [];
    let closed = false;
    while (this.i < this.lines.length && !closed) {
      const line = this.lines[this.i++];
      const end = line.text.trim();
      closed = end.length >= mark.length && end === mark[0].repeat(end.length) &&
        indentOf(line) < 4;
      if (!closed) lines.push(cut(line, Math.min(indentOf(line), indent.length)));
    }
    return {kind: "code", language: info.trim().split(/\s+/)[0], lines, closed};
  }

  #indentedCode() {
    const lines = [];
    for (; this.i < this.lines.length; ++this.i) {
      const line = this.lines[this.i];
      const indent = /^(?: {4}|\t)/.exec(line.text);
      if (!indent && !isBlank(line)) break;
      lines.push(cut(line, indent ? indent[0].length : line.text.length));
    }
    for (; isBlank(lines.at(-1)); --this.i) lines.pop();
    return {kind: "code", language: "", lines, closed: true};
  }

  #quote() {
    const lines = [];
    for (; this.i < this.lines.length; ++this.i) {
      const mark = kQuote.exec(this.lines[this.i].text);
      if (!mark) break;
      lines.push(cut(this.lines[this.i], mark[0].length));
    }
    return {kind: "quote", blocks: new Parser(lines, this.depth + 1).blocks()};
  }

  #list() {
    const [, base, firstMark] = kItem.exec(this.lines[this.i].text);
    const ordered = firstMark.length > 1;
    const items = [];
    for (let more = true; more;) {
      const line = this.lines[this.i];
      const mark = kItem.exec(line.text);
      // Four spaces and more behind the mark are code in the item.
      const content = mark[1].length + mark[2].length + (mark[3].length > 4 ? 1 : mark[3].length);
      items.push(new Parser(this.#item(line, content, base.length), this.depth + 1).blocks());
      const next = this.lines[this.i] && kItem.exec(this.lines[this.i].text);
      more = next && next[1].length < base.length + 2 && (next[2].length > 1) === ordered &&
        !kRule.test(this.lines[this.i].text);
    }
    return {kind: "list", ordered, first: ordered ? parseInt(firstMark, 10) : 1, items};
  }

  // The lines of one item. Models indent what is inside by two spaces, whatever the mark's width.
  #item(first, content, base) {
    const lines = [cut(first, Math.min(content, first.text.length))];
    ++this.i;
    for (; this.i < this.lines.length; ++this.i) {
      const line = this.lines[this.i];
      if (isBlank(line)) {
        const next = this.lines.slice(this.i + 1).find((later) => !isBlank(later));
        if (!next || (indentOf(next) < base + 2)) {
          // The item ends; the blank lines between it and a next item belong to neither.
          if (next && kItem.test(next.text)) {
            while (isBlank(this.lines[this.i])) ++this.i;
          }
          break;
        }
        lines.push(cut(line, line.text.length));
      } else if (indentOf(line) >= base + 2) {
        lines.push(cut(line, Math.min(indentOf(line), content)));
      } else if (startsBlock(line) || isBlank(lines.at(-1))) {
        break;
      } else {
        lines.push(line);  // a paragraph that goes on without its indent
      }
    }
    return lines;
  }

  #table() {
    const header = cells(this.lines[this.i]);
    const aligns = cells(this.lines[this.i + 1]).map(({text}) => {
      if (text.endsWith(":")) return text.startsWith(":") ? "center" : "right";
      return "left";
    });
    const rows = [];
    for (this.i += 2; this.i < this.lines.length; ++this.i) {
      const line = this.lines[this.i];
      if (isBlank(line) || !line.text.includes("|")) break;
      rows.push(cells(line).slice(0, header.length));
    }
    return {kind: "table", header, aligns, rows};
  }

  #paragraph() {
    const lines = [this.lines[this.i++]];
    for (; this.i < this.lines.length; ++this.i) {
      const line = this.lines[this.i];
      if (isBlank(line) || startsBlock(line)) break;
      if (isTableStart(line, this.lines[this.i + 1])) break;
      lines.push(cut(line, indentOf(line)));
    }
    return {kind: "paragraph", lines: lines.map((line, i) => i === 0 ? cut(line, indentOf(line))
      : line)};
  }
}

/** The blocks of `source`, each with the range [start, end) that it was made of. */
export function parseBlocks(source) {
  return new Parser(linesOf(source), 0).blocks();
}

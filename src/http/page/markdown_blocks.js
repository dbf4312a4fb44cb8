// Markdown's blocks, as far as language models write them: paragraphs, headings, lists, quotes,
// code, maths, tables, rules. Out comes a tree; nothing here touches the document, and HTML is text.
//
// A block depends on its own lines and the two behind them at most, so a text that grows needs to be
// read anew from its last blocks on only (`settled`). That is why maths is begun by its first line
// alone, whether it ends or not.
//
// A line is {text, at}: at is where text begins in the source. So every character that is shown can
// be traced to its place there, which is how tokens keep their colours in formatted text.

const kFence = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;
const kHeading = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const kUnderline = /^ {0,3}(=+|-{2,})[ \t]*$/;  // of the paragraph above it, which is a heading then
const kMath = /^ {0,3}(\\\[|\$\$)(.*)$/;
const kMathEnds = {"\\[": "\\]", "$$": "$$"};
const kTask = /^\[([ xX])\] +/;
const kRule = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const kDelimiterCell = /^[ \t]*:?-+:?[ \t]*$/;
const kMaxDepth = 8;  // lists in quotes in lists: deeper ones are paragraphs

function linesOf(source, from = 0) {
  const lines = [];
  let at = from;
  for (const text of source.slice(from).split("\n")) {
    lines.push({text, at});
    at += text.length + 1;
  }
  return lines;
}

const isBlank = (line) => /^\s*$/.test(line.text);
const indentOf = (line) => line.text.match(/^ */)[0].length;
const cut = (line, n) => ({text: line.text.slice(n), at: line.at + n});

// Of a heading: ## at its end, and blanks. No regular expression, as one takes the cube of a thousand
// blanks in the middle.
function withoutEndMarks(text) {
  const before = (end, signs) => {
    while (end > 0 && signs.includes(text[end - 1])) --end;
    return end;
  };
  const end = before(text.length, " \t");
  const marks = before(end, "#");
  return text.slice(0, marks === 0 || " \t".includes(text[marks - 1]) ? before(marks, " \t") : end);
}

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

// Of a line that begins a formula: what ends it, and whether it is on this line. Null for others,
// and where more follows: then it is a part of a paragraph.
function mathOf(line) {
  const [, mark, rest] = kMath.exec(line.text) ?? [];
  if (!mark) return null;
  const end = kMathEnds[mark];
  const at = rest.indexOf(end);
  if (at >= 0 && !/^[\s.,;:]*$/.test(rest.slice(at + end.length))) return null;
  return {end, whole: at >= 0};
}

function startsBlock(line) {
  const item = kItem.exec(line.text);
  return kFence.test(line.text) || kHeading.test(line.text) || kRule.test(line.text) ||
    kQuote.test(line.text) || mathOf(line) || (item && item[1].length < 4 && item[3] !== "");
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
      inside.text = withoutEndMarks(inside.text);
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
    const math = mathOf(line);
    if (math) return this.#math(math);
    if (isTableStart(line, this.lines[this.i + 1])) return this.#table();
    if (/^(?: {4}|\t)/.test(text)) return this.#indentedCode();
    return this.#paragraph();
  }

  #fence() {
    const [, indent, mark, info] = kFence.exec(this.lines[this.i++].text);
    const block = {kind: "code", language: info.trim().split(/\s+/)[0], lines: [], closed: false,
      mark, indent: indent.length};
    this.fenceOn(block);
    return block;
  }

  /** The lines of `block`, whose end has not come. */
  fenceOn(block) {
    const {mark} = block;
    while (this.i < this.lines.length && !block.closed) {
      const line = this.lines[this.i++];
      const end = line.text.trim();
      block.closed = end.length >= mark.length && end === mark[0].repeat(end.length) &&
        indentOf(line) < 4;
      if (!block.closed) block.lines.push(cut(line, Math.min(indentOf(line), block.indent)));
    }
  }

  // Up to its end or a blank line, which no formula has.
  #math({end, whole}) {
    const lines = [this.lines[this.i++]];
    while (!whole && this.i < this.lines.length && !isBlank(this.lines[this.i])) {
      const line = this.lines[this.i++];
      whole = line.text.includes(end);
      lines.push(line);
    }
    return {kind: "math", lines: lines.map((line) => cut(line, Math.min(indentOf(line), 3)))};
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
    return {kind: "code", language: "", lines};
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
      const lines = this.#item(line, content, base.length);
      const end = lines.at(-1).at + lines.at(-1).text.length;
      const task = kTask.exec(lines[0].text);
      if (task) lines[0] = cut(lines[0], task[0].length);
      items.push({done: task && task[1] !== " ", start: line.at, end,
        blocks: new Parser(lines, this.depth + 1).blocks()});
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
        let later = this.i + 1;
        while (later < this.lines.length && isBlank(this.lines[later])) ++later;
        const next = this.lines[later];
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
    let underline = null;
    for (; this.i < this.lines.length && !underline; ++this.i) {
      const line = this.lines[this.i];
      underline = kUnderline.exec(line.text);
      if (underline) continue;
      if (isBlank(line) || startsBlock(line)) break;
      if (isTableStart(line, this.lines[this.i + 1])) break;
      lines.push(cut(line, indentOf(line)));
    }
    lines[0] = cut(lines[0], indentOf(lines[0]));
    return underline ? {kind: "heading", level: underline[1][0] === "=" ? 1 : 2, lines}
      : {kind: "paragraph", lines};
  }
}

/**
 * The blocks of `source`, each with the range [start, end) that it was made of. `from`: where a block
 * begins, to have those from there on.
 */
export function parseBlocks(source, from = 0) {
  return new Parser(linesOf(source, from), 0).blocks();
}

/** Whether `block`, the last one of a text, is code whose end has not come. */
export function isOpenFence(block) {
  return block.closed === false && block.lines.length > 0;
}

/**
 * To an open fence, which was the last block of a text, the lines that `source` has more are added. It
 * takes time by what is new only. Returns what comes behind it.
 */
export function growFence(block, source) {
  const last = block.lines.pop();  // it may have gone on
  const parser = new Parser(linesOf(source, source.lastIndexOf("\n", last.at - 1) + 1), 0);
  parser.fenceOn(block);
  const end = parser.lines[parser.i - 1];
  block.end = end.at + end.text.length;
  return parser.blocks();
}

/** Whether nothing that may follow `source` can change `block` any more; `next` is the one behind it. */
export function settled(block, next, source) {
  if (["heading", "rule"].includes(block.kind) || block.closed) return true;
  // A blank line, and behind it one that is neither indented nor an item: lists end there, too.
  if (/^\s*?\n[ \t]*\n[^\s\-*+\d]/.test(source.slice(block.end, next.start + 1))) return true;
  const line = source.indexOf("\n", next.start);
  return line >= 0 && source.includes("\n", line + 1);
}

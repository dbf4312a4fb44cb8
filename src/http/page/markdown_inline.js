// Markdown inside a paragraph: code, maths, emphasis, links, escapes. A piece of text comes in with
// the place of each of its characters in the source; a tree of nodes comes out that refers to it:
//   {kind: "text" | "code" | "math", from, to} | {kind: "entity", from, to, text} | {kind: "break"}
//   {kind: "strong" | "em" | "del", from, nodes} | {kind: "link", from, url, nodes}
// Of HTML there are entities and <br>, which models write into cells of tables; the rest is text.
// Maths stays as it was written, marks and all: what \ and _ mean in it is not markdown's.
// Linear in the text but for what the limits below bound, so no answer can make the page hang.

const kMaxOpen = 16;     // emphases in each other
const kMaxNested = 4;    // links' texts in each other
const kLink = /!?\[((?:[^[\]\\]|\\.|\[[^[\]]{0,200}\]){0,600})\]\([ \t]*<?([^\s()<>]{0,2000}(?:\([^\s()]{0,200}\)[^\s()<>]{0,200}){0,4})>?(?:[ \t]+"[^"]{0,200}")?[ \t]*\)/y;
const kBareUrl = /https?:\/\/[^\s<>"`]{1,2000}/y;
const kSpecial = /[\\`!\[\n*_~$&<]|https?:/g;  // where something other than text may begin
const kBreak = /<br[ \t]*\/?>/iy;
const kEntity = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z]{2,8}));/y;
const kEntities = {amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00A0", copy: "©", reg: "®",
  trade: "™", hellip: "…", mdash: "—", ndash: "–", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”",
  laquo: "«", raquo: "»", bull: "•", middot: "·", times: "×", divide: "÷", plusmn: "±", deg: "°",
  euro: "€", pound: "£", sect: "§", larr: "←", uarr: "↑", rarr: "→", darr: "↓", le: "≤", ge: "≥",
  ne: "≠", infin: "∞", frac12: "½", sup2: "²", micro: "µ"};
// $x$, but no sum of money: nothing blank inside of the marks, no digit or letter behind them.
const kDollars = /\$(?![\s$])(?:[^$\\\n]|\\.){0,300}?(?<!\s)\$(?![\p{L}\p{N}$])/uy;
const kPunctuation = /[!-/:-@[-`{-~]/;
const kWord = /[\p{L}\p{N}]/u;

/** The address if it may be followed, else null: http and https only. */
export function safeUrl(text) {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;  // relative, or none at all
  }
}

class Inline {
  constructor(text, from, to, depth) {
    Object.assign(this, {text, from, to, depth});
    this.frames = [{nodes: []}];   // what is open, outermost first
    this.literal = from;           // where the text not yet taken begins
    this.noCode = new Set();       // lengths of ` runs that have no end from here on
    this.noMath = new Set();       // ends of formulas that do not come any more
    this.at = from;
  }

  parse() {
    while (this.at < this.to) {
      kSpecial.lastIndex = this.at;
      const found = kSpecial.exec(this.text);
      if (!found || found.index >= this.to) break;
      this.at = found.index;
      if (this.#special() === 0) ++this.at;
    }
    this.#flush(this.to);
    while (this.frames.length > 1) this.#giveUp();
    return this.frames[0].nodes;
  }

  // What begins at `at`, taken; 0 if it is a character like others.
  #special() {
    const char = this.text[this.at];
    switch (char) {
      case "\\": return this.#escape();
      case "$": return this.#dollars();
      case "&": return this.#entity();
      case "<": return this.#htmlBreak();
      case "`": return this.#code();
      case "!":
      case "[": return this.#link();
      case "h": return this.#bareUrl();
      case "\n": return this.#lineEnd();
      case "*":
      case "_":
      case "~": return this.#emphasis(char);
      default: return 0;
    }
  }

  #flush(end) {
    if (end > this.literal) {
      this.frames.at(-1).nodes.push({kind: "text", from: this.literal, to: end});
    }
  }

  // `node` stands for the text from `at` to `end`.
  #take(node, end) {
    this.#flush(this.at);
    if (node) this.frames.at(-1).nodes.push(node);
    this.at = end;
    this.literal = end;
    return 1;
  }

  #escape() {
    if (this.at + 1 >= this.to || !kPunctuation.test(this.text[this.at + 1])) return 0;
    const next = this.at + 1;
    const end = {"(": "\\)", "[": "\\]"}[this.text[next]];
    if (end && this.#math(end)) return 1;
    this.#take(null, next);
    this.at = next + 1;  // the character itself is text
    return 1;
  }

  // A formula whose marks have two characters; false where it does not end.
  #math(mark) {
    if (this.noMath.has(mark)) return false;
    const inside = this.at + 2;
    const end = this.text.indexOf(mark, inside);
    if (end < 0 || end + 2 > this.to) {
      this.noMath.add(mark);
      return false;
    }
    if (this.text.slice(inside, end).trim() === "") return false;
    this.#take({kind: "math", from: this.at, to: end + 2}, end + 2);
    return true;
  }

  #dollars() {
    if (this.text[this.at + 1] === "$" && this.#math("$$")) return 1;
    if (this.at > this.from && /[\p{L}\p{N}$]/u.test(this.text[this.at - 1])) return 0;
    kDollars.lastIndex = this.at;
    const match = kDollars.exec(this.text);
    if (!match || kDollars.lastIndex > this.to) return 0;
    if (/^\$\d/.test(match[0]) && !/[\\^_={}]/.test(match[0])) return 0;  // $5, US$
    const end = this.at + match[0].length;
    return this.#take({kind: "math", from: this.at, to: end}, end);
  }

  #entity() {
    kEntity.lastIndex = this.at;
    const match = kEntity.exec(this.text);
    if (!match || kEntity.lastIndex > this.to) return 0;
    const [written, decimal, hex, name] = match;
    const code = decimal ? parseInt(decimal, 10) : hex ? parseInt(hex, 16) : 0;
    const known = code >= 32 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    const text = name ? kEntities[name] : known ? String.fromCodePoint(code) : undefined;
    if (text === undefined || (name && !Object.hasOwn(kEntities, name))) return 0;
    const end = this.at + written.length;
    return this.#take({kind: "entity", from: this.at, to: end, text}, end);
  }

  #htmlBreak() {
    kBreak.lastIndex = this.at;
    if (!kBreak.test(this.text) || kBreak.lastIndex > this.to) return 0;
    return this.#take({kind: "break"}, kBreak.lastIndex);
  }

  #code() {
    let end = this.at;
    while (end < this.to && this.text[end] === "`") ++end;
    const length = end - this.at;
    if (!this.noCode.has(length)) {
      for (let i = end; i < this.to;) {
        const tick = this.text.indexOf("`", i);
        if (tick < 0 || tick >= this.to) break;
        let after = tick;
        while (after < this.to && this.text[after] === "`") ++after;
        if (after - tick === length) {
          const spaced = this.text[end] === " " && this.text[tick - 1] === " " && tick - end > 2;
          return this.#take({kind: "code", from: end + spaced, to: tick - spaced}, after);
        }
        i = after;
      }
      this.noCode.add(length);
    }
    this.at = end;
    return 1;
  }

  #link() {
    if (this.depth >= kMaxNested) return 0;
    kLink.lastIndex = this.at;
    const match = kLink.exec(this.text);
    if (!match || kLink.lastIndex > this.to) return 0;
    const url = safeUrl(match[2]);
    if (!url) return 0;  // shown as it was written
    const inside = this.at + match[0].indexOf("[") + 1;
    const end = this.at + match[0].length;
    const nodes = new Inline(this.text, inside, inside + match[1].length, kMaxNested).parse();
    return this.#take({kind: "link", from: this.at, url, nodes}, end);
  }

  #bareUrl() {
    if (this.depth > 0 || (this.at > this.from && kWord.test(this.text[this.at - 1]))) return 0;
    kBareUrl.lastIndex = this.at;
    const match = kBareUrl.exec(this.text);
    if (!match) return 0;
    // Punctuation behind an address belongs to the sentence, and so does a bracket around it.
    let written = match[0].slice(0, this.to - this.at).replace(/[.,;:!?'*_~]+$/, "");
    if (written.endsWith(")") && !written.includes("(")) written = written.slice(0, -1);
    const url = safeUrl(written);
    if (!url) return 0;
    const end = this.at + written.length;
    return this.#take({kind: "link", from: this.at, url,
      nodes: [{kind: "text", from: this.at, to: end}]}, end);
  }

  #lineEnd() {
    let end = this.at;
    while (end > this.literal && this.text[end - 1] === " ") --end;
    const hard = this.at - end >= 2 || this.text[this.at - 1] === "\\";
    if (!hard) return 0;
    const after = this.at + 1;
    this.at = this.text[this.at - 1] === "\\" ? Math.max(this.literal, this.at - 1) : end;
    return this.#take({kind: "break"}, after);
  }

  #emphasis(char) {
    let end = this.at;
    while (end < this.to && this.text[end] === char) ++end;
    let left = end - this.at;
    const before = this.at > this.from ? this.text[this.at - 1] : " ";
    const after = end < this.to ? this.text[end] : " ";
    let canOpen = !/\s/.test(after);
    let canClose = !/\s/.test(before);
    if (char === "_") {  // snake_case is no emphasis
      canOpen &&= !kWord.test(before);
      canClose &&= !kWord.test(after);
    }
    if ((char === "~" && left !== 2) || left > 3) left = 0;
    this.#flush(this.at);
    this.literal = this.at;
    while (left > 0) {
      const open = canClose ? this.#openFrame(char, left) : -1;
      if (open > 0) {
        while (this.frames.length - 1 > open) this.#giveUp();
        const {kind, from, length, nodes} = this.frames.pop();
        this.frames.at(-1).nodes.push({kind, from, nodes});
        left -= length;
        this.literal += length;
      } else if (canOpen && this.frames.length <= kMaxOpen) {
        const length = left >= 2 ? 2 : 1;
        const kind = char === "~" ? "del" : length === 2 ? "strong" : "em";
        this.frames.push({char, length, kind, from: this.literal, nodes: []});
        left -= length;
        this.literal += length;
      } else {
        break;  // the rest is text
      }
    }
    this.at = end;
    return 1;
  }

  // The innermost open emphasis that up to `left` of `char` can close; -1 if there is none.
  #openFrame(char, left) {
    for (let i = this.frames.length - 1; i > 0; --i) {
      if (this.frames[i].char === char && this.frames[i].length <= left) return i;
    }
    return -1;
  }

  // The innermost open emphasis was none: its marks are text.
  #giveUp() {
    const {from, length, nodes} = this.frames.pop();
    this.frames.at(-1).nodes.push({kind: "text", from, to: from + length}, ...nodes);
  }
}

/** The nodes of `text`; they refer to it by indices. */
export function parseInline(text) {
  return new Inline(text, 0, text.length, 0).parse();
}

// A long paragraph in segments, each of which is parsed and laid out by itself. A paragraph grows, and
// segments before its last one are neither read nor drawn again: what a frame takes is bounded, however
// long it is. 100 KB of coloured tokens in one took 32 to 230 ms a frame, most of it the layout of lines.
//
// Where a segment ends depends on the text up to there and one character behind it, so it stays as the
// text grows, and a text that grew is shown as the whole is. The next one begins a line. So it ends with
// a sentence, where no mark is open; where there is no such place up to kMost, between words; and where
// these are none, anywhere. A mark that is open there is shown as it was written.

const kLeast = 4000;  // characters; few paragraphs have more
const kMost = 8000;

// Escapes; marks; brackets; and where a segment may end: behind white space, or behind what ends a part
// of a sentence in languages that are written without.
const kToken = /\\([^\n])|(`+|\*+|~~|\$+|(?<![\p{L}\p{N}])_+|_+(?![\p{L}\p{N}]))|([[\]()])|[\s。！？，、](?=\S)/gu;
const kFormulas = {"(": "\\(", ")": "\\(", "[": "\\[", "]": "\\["};  // mark by what is escaped

const kSentenceEnd = /[.!?…:;。！？\n]["'”’»)\]]?$/;

/** How far the segment of `text` that begins at `from` goes: `text.length` for what may go on. */
export function segmentEnd(text, from) {
  if (text.length - from <= kLeast) return text.length;
  const part = text.slice(from, from + kMost + 1);
  const open = new Set();  // marks that were seen an odd number of times
  let brackets = 0;
  let words = kMost;   // the last place between words
  let closed = null;   // the last of these where no mark is open
  for (const {index, 0: {length}, 1: escaped, 2: mark, 3: bracket} of part.matchAll(kToken)) {
    const sign = mark ?? kFormulas[escaped];
    if (sign) {
      if (!open.delete(sign)) open.add(sign);
    } else if (bracket) {
      brackets = Math.max(0, brackets + ("[(".includes(bracket) ? 1 : -1));
    } else if (escaped === undefined && index >= kLeast) {
      words = index + length;
      if (open.size + brackets > 0) continue;
      closed = words;
      if (kSentenceEnd.test(part.slice(words - 3, words).replace(/[ \t]$/, ""))) return from + words;
    }
  }
  if (text.length - from <= kMost) return text.length;
  const end = from + (closed ?? words);
  return /[\uDC00-\uDFFF]/.test(text[end]) ? end - 1 : end;
}

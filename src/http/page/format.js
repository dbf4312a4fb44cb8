// Numbers as people read them, and texts where they are too long. Anything that is no number gives
// the dash.

const kNone = "–";

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** Three digits that count: 412, 41.2, 4.12. */
export function figure(value) {
  if (!isNumber(value)) return kNone;
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

export function rate(value) {
  return isNumber(value) ? `${Math.round(value * 100)} %` : kNone;
}

export function times(value) {
  return isNumber(value) ? `${figure(value)}×` : kNone;
}

export function count(value) {
  return isNumber(value) ? value.toLocaleString("en-US") : kNone;
}

export function milliseconds(value) {
  if (!isNumber(value)) return kNone;
  return value >= 1000 ? `${figure(value / 1000)} s` : `${figure(value)} ms`;
}

export function bytes(value) {
  if (!isNumber(value)) return kNone;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; value >= 1024 && i + 1 < units.length; ++i) value /= 1024;
  return i === 0 ? `${value} B` : `${figure(value)} ${units[i]}`;
}

/** 1,710,000,000 parameters -> 1.71 B. */
export function parameters(value) {
  if (!isNumber(value) || value <= 0) return kNone;
  if (value >= 1e9) return `${figure(value / 1e9)} B`;
  return `${figure(value / 1e6)} M`;
}

/** "1 token", "2 tokens". */
export function many(value, word) {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

/** The first `length` UTF-16 units of a text, at most: of a character, both or none. */
export function beginning(text, length) {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
}

/** The last part of a path. */
export function fileName(path) {
  return typeof path === "string" ? path.split(/[\\/]/).pop() : "";
}

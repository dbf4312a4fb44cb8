// Files as a part of a message: their text, in a block of code with their name.

const kMostBytes = 1 << 20;  // more is more than any context has room for

/** `text` as markdown; its own fences stay within. */
export function fileBlock(name, text) {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([fence]) => fence.length));
  const fence = "`".repeat(longest + 1);
  const language = /\.(\w+)$/.exec(name)?.[1] ?? "";
  return `${name}:\n${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}\n`;
}

const kOthers = {image: "it is a picture", audio: "it is a sound", video: "it is a film"};

/** The text of `file`. Throws an Error whose message says why it has none. */
export async function textOf(file) {
  const other = file.type === "image/svg+xml" ? null : kOthers[file.type.split("/")[0]];
  if (other) throw new Error(`${other}, and messages are text`);  // whatever its size
  if (file.size > kMostBytes) throw new Error("it is larger than 1 MiB");
  let text;
  try {
    text = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer());
  } catch {
    throw new Error("it is no text in UTF-8");
  }
  if (text.includes("\0")) throw new Error("it is no text");
  return text.replace(/\r\n/g, "\n");
}

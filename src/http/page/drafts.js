// What was typed and not sent yet, of each conversation: there again when that is shown again, and
// after a reload.

const kKey = "outrider.drafts";
const kMost = 40;  // the latest

function read() {
  try {
    return new Map(JSON.parse(localStorage.getItem(kKey) ?? "[]").filter((entry) =>
      Array.isArray(entry) && entry.every((part) => typeof part === "string")));
  } catch {
    return new Map();  // no storage, or what is in it is none of ours
  }
}

const unkept = new Map();  // where the browser keeps nothing, or this is too much for it

export function draftOf(place) {
  return unkept.get(place) ?? read().get(place) ?? "";
}

export function keepDraft(place, text) {
  const drafts = read();  // another tab may have written meanwhile
  drafts.delete(place);
  unkept.delete(place);
  if (text !== "") drafts.set(place, text);
  try {
    localStorage.setItem(kKey, JSON.stringify([...drafts].slice(-kMost)));
  } catch {
    if (text !== "") unkept.set(place, text);
  }
}

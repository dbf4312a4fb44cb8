// Conversations as llama-server's page exports them. Today that is JSONL: a line {"type": "session",
// "name", "currNode", ...} and a line {"type": "message", "message": {...}} for each of its messages;
// before, JSON: {"conv": {...}, "messages": [...]} or an array of such. Messages are a tree there, by
// their `parent`; what its page showed is the way from the root to `currNode`, and that is read.

import {fileBlock} from "./text_file.js";

/** The entries of a text in JSONL's form, or null where it is none of llama-server's. */
export function llamaSessions(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const sessions = [];
  for (const [i, line] of lines.entries()) {
    let record;
    try {
      record = JSON.parse(line);
    } catch (error) {
      if (i === 0) return null;
      throw new Error(`line ${i + 1} is not JSON: ${error.message}`);
    }
    if (i === 0 && record?.type !== "session") return null;
    if (record?.type === "session") sessions.push({conv: record, messages: []});
    else if (record?.type === "message") sessions.at(-1).messages.push(record.message);
  }
  return sessions;
}

/** Whether `given`, an entry of a file, is one of llama-server's. */
export function isLlamas(given) {
  return typeof given?.conv === "object" && given.conv !== null && Array.isArray(given.messages);
}

// The messages from the root to the one that was shown last.
function shownOf({conv, messages}) {
  const byId = new Map(messages.map((message) => [message?.id, message]));
  const leaf = byId.get(conv.currNode) ?? messages.at(-1);
  if (leaf?.parent === undefined) return messages;  // no tree
  const path = new Set();
  for (let at = leaf; at && !path.has(at); at = byId.get(at.parent)) path.add(at);
  return [...path].reverse();
}

// It sends the text of attached files with a message; pictures and sounds have none.
function withFiles(content, extra) {
  const files = (Array.isArray(extra) ? extra : []).filter((one) => typeof one?.content === "string");
  return [content, ...files.map(({name, content: text}) => fileBlock(String(name ?? "file"), text))]
    .filter((part) => part !== "").join("\n\n");
}

function callsOf(calls) {
  if (typeof calls !== "string") return calls ?? null;
  return calls.trim() === "" ? null : JSON.parse(calls);
}

/** `given` as this page's own files have conversations. */
export function fromLlamas(given) {
  const shown = shownOf(given).filter((message) => message?.type !== "root" &&
    !(message?.role === "system" && message.content === ""));
  const {name, lastModified} = given.conv;
  return {name, created: shown[0]?.timestamp ?? lastModified, updated: lastModified,
    messages: shown.map((message) => typeof message?.content !== "string" ? message : {
      role: message.role, content: withFiles(message.content, message.extra),
      reasoning_content: message.reasoningContent || message.thinking || null,
      tool_calls: callsOf(message.toolCalls), tool_call_id: message.toolCallId}),
    details: shown.map((message) => ({model: message?.model}))};
}

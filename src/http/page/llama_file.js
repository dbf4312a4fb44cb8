// Conversations as llama-server's page exports them. Today that is JSONL: a line {"type": "session",
// "name", "currNode", ...} and a line {"type": "message", "message": {...}} for each of its messages;
// before, JSON: {"conv": {...}, "messages": [...]} or an array of such. Messages are a tree there, by
// their `parent`; what its page showed is the way from the root to `currNode`. That is shown here, too,
// and messages beside it, with all behind them, become versions (versions.js).

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

function isSaid({type, role, content}) {
  return type !== "root" && !(role === "system" && content === "");
}

function plainOf(message) {
  if (typeof message?.content !== "string") return message;
  return {role: message.role, content: withFiles(message.content, message.extra),
    reasoning_content: message.reasoningContent || message.thinking || null,
    tool_calls: callsOf(message.toolCalls), tool_call_id: message.toolCallId};
}

function listOf(messages, versions = []) {
  return {messages: messages.map(plainOf), details: messages.map((message) => ({model: message?.model})),
    ...(versions.some(Boolean) && {versions})};
}

class Tree {
  #children = new Map();  // by the parent's id, in the file's order, which is that of time
  #placed = new Set();    // those that have their place: ids that lead in circles end there

  constructor(messages) {
    for (const message of messages) {
      const {parent} = message ?? {};
      if (!this.#children.has(parent)) this.#children.set(parent, []);
      if (message) this.#children.get(parent).push(message);
    }
  }

  // What an answer that failed has left is none.
  #free(parent) {
    return (this.#children.get(parent) ?? []).filter((message) =>
      !this.#placed.has(message) && !this.#failed(message));
  }

  #failed({id, role, content, reasoningContent, thinking, toolCalls}) {
    return role === "assistant" && !this.#children.has(id) &&
      !(content || reasoningContent || thinking || toolCalls);
  }

  /** `path`, which goes on with the last child of each to the end, with the versions beside it. */
  list(path) {
    const way = [...path];
    for (const message of path) this.#placed.add(message);
    for (let next; (next = this.#free(way.at(-1).id).at(-1));) {
      this.#placed.add(next);
      way.push(next);
    }
    const shown = way.filter(isSaid);
    return listOf(shown, shown.map((message) => this.#versions(message)));
  }

  // Those that the page shows are of questions and answers.
  #versions(message) {
    const fits = (one) => ["user", "assistant"].includes(one.role) && isSaid(one);
    if (!fits(message)) return null;
    const others = this.#free(message.parent).filter(fits);
    if (others.length === 0) return null;
    for (const one of others) this.#placed.add(one);
    const all = this.#children.get(message.parent).filter((one) => one === message || others.includes(one));
    return {at: all.indexOf(message),
      tails: all.map((one) => one === message ? null : this.list([one]))};
  }
}

function listFrom({conv, messages}) {
  const byId = new Map(messages.map((message) => [message?.id, message]));
  const leaf = byId.get(conv.currNode) ?? messages.at(-1);
  if (leaf?.parent === undefined) return listOf(messages.filter((message) => !message || isSaid(message)));
  const path = new Set();
  for (let at = leaf; at && !path.has(at); at = byId.get(at.parent)) path.add(at);
  return new Tree(messages).list([...path].reverse());
}

/** `given` as this page's own files have conversations. */
export function fromLlamas(given) {
  const {name, lastModified} = given.conv;
  const first = given.messages.find((message) => message && isSaid(message));
  return {name, created: first?.timestamp ?? lastModified, updated: lastModified, ...listFrom(given)};
}

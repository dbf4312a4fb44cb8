// Conversations as files, written and read. The messages are in OpenAI's form, which `outrider chat`
// loads, too. What only this page knows of them stands beside them, entry by entry: `details` (figures,
// who guessed what), and `versions`, {at, tails} as in versions.js, of which each tail has "messages"
// and both of these again. So what does not know of versions reads those that are shown.

import {newMessage} from "./answer.js";
import {beginning} from "./format.js";
import {fromLlamas, isLlamas, llamaSessions} from "./llama_file.js";

const kMostBytes = 64 << 20;
const kRoles = ["system", "user", "assistant", "tool"];
const kWithVersions = ["user", "assistant"];  // those by which the page shows them

// Of an answer, what can be kept beside its text, and what each must be to be shown.
const kDetails = {
  model: (value) => typeof value === "string",
  spans: areSpans,
  reasoningSpans: areSpans,
  counts: (value) => isObject(value) && Object.values(value).every(Number.isFinite),
  finish: (value) => typeof value === "string",
  error: (value) => typeof value === "string",
  code: (value) => typeof value === "string",
  timings: isObject,
  speculation: isObject,
  usage: isObject,
  context: Number.isFinite,
};

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function areSpans(value) {
  return Array.isArray(value) && value.every((span) => Array.isArray(span) &&
    typeof span[0] === "string" && Number.isInteger(span[1]) && span[1] > 0);
}

/** A message as requests and files have it. */
export function plainMessage({role, content, reasoning, toolCalls, toolCallId, name}, {full = false} = {}) {
  return {role, content,
    ...(full && reasoning && {reasoning_content: reasoning}),
    ...(toolCalls?.length > 0 && {tool_calls: toolCalls.map((call) => ({id: call.id, type: "function",
      function: {name: call.name, arguments: call.arguments}}))}),
    ...(role === "tool" && {tool_call_id: toolCallId, ...(name && {name})})};
}

function versionsOf({versions}) {
  return versions?.tails?.length > 1
    ? {at: versions.at, tails: versions.tails.map((tail) => tail && listOf(tail))} : null;
}

function listOf(messages) {
  const versions = messages.map(versionsOf);
  return {messages: messages.map((message) => plainMessage(message, {full: true})),
    details: messages.map((message) => message.role === "assistant"
      ? Object.fromEntries(Object.keys(kDetails).map((key) => [key, message[key] ?? null])) : null),
    ...(versions.some(Boolean) && {versions})};
}

/** What is written of a conversation: all of its versions. */
export function fileOf(conversation, name) {
  const {created, updated, system} = conversation;
  const messages = system?.trim() && conversation.messages[0]?.role !== "system"
    ? [{role: "system", content: system}, ...conversation.messages] : conversation.messages;
  return {name, created, updated, ...listOf(messages)};
}

function textOf(content, what) {
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) && content.every((part) => part?.type === "text" &&
    typeof part.text === "string");
  if (!parts) throw new Error(`${what} has a content that is no text`);
  return content.map(({text}) => text).join("\n");
}

function callsOf(calls, what) {
  if (calls === null || calls === undefined) return [];
  const right = Array.isArray(calls) && calls.every((call) =>
    typeof call?.function?.name === "string" && typeof call.function.arguments === "string");
  if (!right) throw new Error(`the tool_calls of ${what} are not in OpenAI's form`);
  return calls.map((call, i) => ({id: typeof call.id === "string" ? call.id : `call_${i}`,
    name: call.function.name, arguments: call.function.arguments}));
}

function messageFrom(given, details, what) {
  if (!kRoles.includes(given?.role)) {
    throw new Error(`${what} has no role, which must be ${kRoles.join(", ")}`);
  }
  const {role} = given;
  const content = textOf(given.content, what);
  if (role === "tool") {
    return {role, content, toolCallId: String(given.tool_call_id ?? ""), name: String(given.name ?? "")};
  }
  if (role !== "assistant") return {role, content};
  const message = {...newMessage(""), content, finish: "stop",
    reasoning: textOf(given.reasoning_content ?? given.reasoning, what),
    toolCalls: callsOf(given.tool_calls, what)};
  // An export of this page before it had `details` kept them in the message.
  const known = isObject(details) ? details : given;
  for (const [key, fits] of Object.entries(kDetails)) {
    if (fits(known[key])) message[key] = known[key];
  }
  return message;
}

function versionsFrom({at, tails} = {}, role, what) {
  const right = kWithVersions.includes(role) && Array.isArray(tails) && tails.length > 1 &&
    tails.every((tail, i) => (tail === null) === (i === at)) && tails[at] === null;
  if (!right) throw new Error(`the versions of ${what} are not in the form of this page`);
  return {at, tails: tails.map((tail, i) => tail && tailFrom(tail, `version ${i + 1} of ${what}`))};
}

// One that does not begin as versions do could not be left again once it is shown.
function tailFrom(given, what) {
  const tail = messagesFrom(given, what, ` of ${what}`);
  if (!kWithVersions.includes(tail[0]?.role) || tail[0].versions) {
    throw new Error(`${what} begins with no message of its own`);
  }
  return tail;
}

function messagesFrom(given, what, where = "") {
  if (!Array.isArray(given?.messages)) {
    throw new Error(`${what} has no "messages", an array of {"role", "content"}`);
  }
  return given.messages.map((entry, i) => {
    const name = `message ${i + 1}${where}`;
    const message = messageFrom(entry, given.details?.[i], name);
    const versions = given.versions?.[i] ?? null;
    return versions === null ? message
      : {...message, versions: versionsFrom(versions, message.role, name)};
  });
}

function conversationFrom(given, what) {
  if (isLlamas(given)) return conversationFrom(fromLlamas(given), what);
  const messages = messagesFrom(given, what);
  const time = (value) => Number.isFinite(value) ? value : Date.now();
  // The instructions are the conversation's; without any it had none, whatever the settings say.
  const system = messages[0]?.role === "system" ? messages.shift().content : "";
  const named = typeof given.name === "string" && given.name.trim() !== "";
  return {name: named ? beginning(given.name, 200) : null,
    created: time(given.created), updated: time(given.updated), system, messages};
}

function entriesOf(text) {
  if (text.startsWith("PK\x03\x04")) {
    throw new Error("it is a ZIP archive: unpack it, and import the files that are in it");
  }
  const sessions = llamaSessions(text);
  if (sessions !== null) return sessions;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`it is not JSON: ${error.message}`);
  }
}

/**
 * The conversations in a file: one, {"messages": [...]}, as this page and `outrider chat` write it,
 * an array of such, or what llama-server's page exports. They have no id yet. Throws an Error whose
 * message says what is wrong.
 */
export function conversationsFrom(text) {
  if (text.length > kMostBytes) throw new Error("it is larger than 64 MiB");
  const given = entriesOf(text);
  const list = Array.isArray(given) ? given : [given];
  const read = list.map((one, i) => conversationFrom(one, Array.isArray(given) ? `entry ${i + 1}` : "it"))
    .filter(({messages}) => messages.length > 0);
  if (read.length === 0) throw new Error("it holds no message");
  return read;
}

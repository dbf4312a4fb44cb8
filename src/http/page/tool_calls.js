// Calls of tools in an answer, and the form in which a person plays the tool: the page runs none.

import {el} from "./dom.js";

/** Arguments to read: JSON with lines of its own, or as far as they have come. */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The calls of an answer, while they come and after. */
export class CallsView {
  #shown = "";

  constructor() {
    this.node = el("div", {class: "calls", hidden: true});
  }

  update(calls = []) {
    const shown = JSON.stringify(calls);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.node.hidden = calls.length === 0;
    this.node.replaceChildren(...calls.map(({name, arguments: given}) =>
      el("section", {class: "call", "aria-label": `Call of ${name}`},
        el("h3", {}, "Calls ", el("code", {}, name)),
        el("pre", {tabindex: "0"}, el("code", {}, readable(given))))));
  }
}

/** Fields for what the calls came to; `onSend([text, ...])` with one for each. */
export function resultForm(calls, onSend) {
  const fields = calls.map(({name}, i) => el("textarea", {rows: "2", class: "edit",
    "aria-label": `Result of ${name}${calls.length > 1 ? `, call ${i + 1}` : ""}`,
    placeholder: `What ${name} gives back`}));
  const form = el("form", {class: "results"}, fields,
    el("div", {class: "edit-buttons"},
      el("span", {class: "muted small"}, "No tool runs here: you say what it gives back."),
      el("button", {type: "submit", class: "button primary"},
        calls.length > 1 ? "Send the results" : "Send the result")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onSend(fields.map(({value}) => value));
  });
  return form;
}

/** What a tool gave back, or the conversation's own instructions. */
export class NoteView {
  constructor(message) {
    this.message = message;
    const title = message.role === "tool" ? `Result${message.name ? ` of ${message.name}` : ""}`
      : "System prompt";
    this.node = el("article", {class: "message note-message", "aria-label": title},
      el("h3", {class: "muted small"}, title), el("pre", {tabindex: "0"}, message.content));
  }

  update() {}
}

/**
 * The tools that `text` holds, an array in OpenAI's form; nothing for none. Throws an Error whose
 * message says what is wrong.
 */
export function toolsFrom(text) {
  if (text.trim() === "") return [];
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    throw new Error(`no JSON: ${error.message}`);
  }
  const form = '[{"type": "function", "function": {"name": …, "parameters": …}}]';
  if (!Array.isArray(tools)) throw new Error(`no array: it must be ${form}`);
  tools.forEach((tool, i) => {
    const missing = tool?.type !== "function" ? '"type": "function"'
      : typeof tool.function?.name !== "string" ? '"function" with a "name"' : null;
    if (missing) throw new Error(`tool ${i + 1} has no ${missing}: it must be ${form}`);
  });
  return tools;
}

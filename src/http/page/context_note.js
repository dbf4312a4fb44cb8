// Warns beside the prompt when a conversation has nearly used up its context: behind its end there is
// no answer.

import {byId} from "./dom.js";
import {count, rate} from "./format.js";
import {server} from "./server.js";

const kNearlyFull = 0.8;

/** {used, context} in tokens, of the last answer in `messages` that tells; null where none does. */
export function contextOf(messages) {
  const last = messages.findLast(({usage}) => usage?.total_tokens > 0);
  const context = last && (server.contextOf(last.model) ?? last.context);
  return context ? {used: last.usage.total_tokens, context} : null;
}

export class ContextNote {
  constructor() {
    this.node = byId("context");
  }

  show(messages) {
    const known = contextOf(messages);
    const full = known ? Math.min(1, known.used / known.context) : 0;
    const text = full <= kNearlyFull ? ""
      : `Context ${rate(full)} full (${count(known.used)} of ${count(known.context)} tokens)`;
    if (text === this.node.textContent) return;  // it is read out when it changes
    this.node.textContent = text;
    this.node.title = text === "" ? "" : "A new conversation has room again; the server's -c gives each more";
  }
}

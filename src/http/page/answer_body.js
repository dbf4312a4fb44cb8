// The text of an answer, while it comes and after: reasoning (folded), then the markdown, in colours
// or plain, then its calls of tools.

import {el} from "./dom.js";
import {many} from "./format.js";
import {MarkdownView} from "./markdown.js";
import {colouredPainter, plainPainter} from "./painter.js";
import {settings} from "./settings.js";
import {CallsView} from "./tool_calls.js";

export class AnswerBody {
  #coloured = null;  // how it was last shown

  constructor(message) {
    this.message = message;
    this.summary = el("summary", {});
    this.reasoning = el("div", {class: "reasoning-text"});
    this.details = el("details", {class: "reasoning", hidden: true}, this.summary, this.reasoning);
    this.waiting = el("p", {class: "waiting", hidden: true});
    this.text = el("div", {class: "markdown"});
    this.markdown = new MarkdownView(this.text);
    this.calls = new CallsView();
    this.node = el("div", {class: "answer-body"}, this.details, this.waiting, this.text,
      this.calls.node);
  }

  /** `waiting`: what is shown while there is no text; "" for nothing. `running`: more may come. */
  update({waiting = "", running = false} = {}) {
    const {content, spans, reasoning, toolCalls} = this.message;
    const coloured = settings.get("colours");
    const paint = coloured ? colouredPainter(spans) : plainPainter;
    this.markdown.update(content, paint, {all: coloured !== this.#coloured});
    this.#coloured = coloured;
    this.#showReasoning(reasoning, running);
    this.calls.update(toolCalls);
    this.waiting.hidden = waiting === "" || content !== "" || reasoning !== "" ||
      toolCalls?.length > 0;
    this.waiting.textContent = waiting;
    this.node.classList.toggle("running", running);
  }

  #showReasoning(reasoning, running) {
    this.details.hidden = reasoning === "";
    if (reasoning === "") return;
    const thinking = running && this.message.content === "";
    const words = reasoning.trim().split(/\s+/).length;
    this.summary.textContent = thinking ? "Thinking…" : `Reasoning, ${many(words, "word")}`;
    this.details.classList.toggle("thinking", thinking);
    const paint = settings.get("colours") ? colouredPainter(this.message.reasoningSpans)
      : plainPainter;
    this.reasoning.replaceChildren(paint(reasoning, (i) => i));
  }
}

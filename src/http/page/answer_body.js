// The text of an answer, while it comes and after: reasoning (folded), then the markdown, in colours
// or plain, then its calls of tools.

import {el} from "./dom.js";
import {many} from "./format.js";
import {MarkdownView} from "./markdown.js";
import {TextRun} from "./markdown_text.js";
import {colouredPainter, plainPainter} from "./painter.js";
import {settings} from "./settings.js";
import {CallsView} from "./tool_calls.js";

export class AnswerBody {
  #coloured = null;  // how it was last shown
  #title = "";       // what the reasoning's was made of
  #drawn = {text: "", coloured: null};  // of the reasoning
  #run = null;       // its text

  constructor(message) {
    this.message = message;
    this.summary = el("summary", {on: {click: () => this.#drawReasoning()}});  // about to unfold
    this.reasoning = el("div", {class: "reasoning-text", dir: "auto"});
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
    this.#showReasoning(running);
    this.calls.update(toolCalls);
    this.waiting.hidden = waiting === "" || content !== "" || reasoning !== "" ||
      toolCalls?.length > 0;
    this.waiting.textContent = waiting;
    this.node.classList.toggle("running", running);
  }

  #showReasoning(running) {
    const {content, reasoning} = this.message;
    this.details.hidden = reasoning === "";
    if (reasoning === "") return;
    const thinking = running && content === "";
    const title = thinking ? "thinking" : `${reasoning.length}`;
    if (title !== this.#title) {
      this.#title = title;
      this.summary.textContent = thinking ? "Thinking…"
        : `Reasoning, ${many(reasoning.trim().split(/\s+/).length, "word")}`;
      this.details.classList.toggle("thinking", thinking);
    }
    if (this.details.open) this.#drawReasoning();
  }

  // Only what is new of it: what was drawn before may be selected, and is long.
  #drawReasoning() {
    const {reasoning, reasoningSpans} = this.message;
    const coloured = settings.get("colours");
    const {text, coloured: before} = this.#drawn;
    const grows = coloured === before && reasoning.startsWith(text);
    if (grows && reasoning.length === text.length) return;
    if (!grows) {
      this.reasoning.replaceChildren();
      this.#run = new TextRun(this.reasoning);
    }
    const from = grows ? text.length : 0;
    const paint = coloured ? colouredPainter(reasoningSpans) : plainPainter;
    this.#run.replace(from, reasoning.slice(from), (i) => from + i, paint);
    this.#drawn = {text: reasoning, coloured};
  }
}

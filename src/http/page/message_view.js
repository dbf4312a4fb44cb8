// One message of a conversation on the page, with what can be done with it.

import {AnswerBody} from "./answer_body.js";
import {figuresOf, seenCounts} from "./answer.js";
import {copyFrom, el, iconButton} from "./dom.js";
import {figureItems, whyOff} from "./figures.js";
import {sharesBar} from "./painter.js";
import {settings} from "./settings.js";
import {resultForm} from "./tool_calls.js";

/** What a person wrote. `onEdit(text)` is called when it was changed; it may be refused. */
export class UserView {
  constructor(message, {onEdit}) {
    this.message = message;
    this.onEdit = onEdit;
    this.node = el("article", {class: "message user", "aria-label": "You"});
    this.#show();
  }

  update() {}

  #show() {
    this.node.replaceChildren(
      el("div", {class: "bubble", dir: "auto"}, this.message.content),
      el("div", {class: "actions"},
        iconButton("edit", "Edit and send again", () => this.#edit()),
        this.#copyButton()));
  }

  #copyButton() {
    const button = iconButton("copy", "Copy", () => copyFrom(button, this.message.content));
    return button;
  }

  #edit() {
    const text = el("textarea", {class: "edit", "aria-label": "Edit the message",
      rows: String(Math.min(12, this.message.content.split("\n").length + 1))});
    text.value = this.message.content;
    const cancel = () => {
      this.#show();
      this.node.querySelector("button").focus();
    };
    const send = () => {
      if (text.value.trim() !== "") this.onEdit(text.value);
    };
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      } else if (event.key === "Escape") {
        event.preventDefault();
        cancel();
      }
    });
    this.node.replaceChildren(el("div", {class: "edit-box"}, text,
      el("div", {class: "edit-buttons"},
        el("span", {class: "muted small"}, "What follows this message is replaced."),
        el("button", {type: "button", class: "button", on: {click: cancel}}, "Cancel"),
        el("button", {type: "button", class: "button primary", on: {click: send}}, "Send"))));
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  }
}

/**
 * An answer. `onAgain()` asks for another one in its place; `onResults(texts)` goes on with what its
 * calls of tools gave back (null: it has been gone on with).
 */
export class AssistantView {
  constructor(message, {onAgain, onResults}) {
    Object.assign(this, {message, onAgain, onResults});
    this.body = new AnswerBody(message);
    this.foot = el("div", {class: "answer-foot"});
    this.node = el("article", {class: "message assistant", "aria-label": message.model || "Answer"},
      this.body.node, this.foot);
    this.update();
  }

  /** `run`: {answer, waiting} while it is written. */
  update(run = null) {
    this.body.update({waiting: run?.waiting ?? "", running: run !== null});
    this.node.setAttribute("aria-busy", String(run !== null));
    if (run !== null) this.#showShares();
    else this.#showEnd();
  }

  #shares() {
    const guessed = Object.keys(this.message.counts ?? {}).some((by) => by !== "target");
    return settings.get("colours") && guessed ? sharesBar(seenCounts(this.message)) : null;
  }

  #showShares() {
    this.foot.replaceChildren(...[this.#shares()].filter(Boolean));
  }

  #showEnd() {
    const {message} = this;
    const copy = iconButton("copy", "Copy", () => copyFrom(copy, message.content));
    const notes = [this.#endNote(), whyOff(message.speculation)].filter(Boolean);
    this.foot.replaceChildren(...[
      message.error ? this.#error() : null,
      this.#shares(),
      el("div", {class: "foot-line"},
        el("div", {class: "actions"}, message.content ? copy : null,
          iconButton("again", "Answer again", () => this.onAgain())),
        el("div", {class: "figures"}, figureItems(figuresOf(message)),
          notes.map((note) => el("span", {class: "note"}, note)))),
      this.#results(),
    ].filter(Boolean));
  }

  // For calls that came whole: those of an answer that was stopped have no end.
  #results() {
    const {finish, toolCalls} = this.message;
    return this.onResults && finish === "tool_calls" && toolCalls?.length > 0
      ? resultForm(toolCalls, this.onResults) : null;
  }

  #endNote() {
    switch (this.message.finish) {
      case "length": return "Ended at the limit of tokens";
      case "stopped": return "Stopped";
      case null: return this.message.error ? null : "Cut off";
      default: return null;
    }
  }

  #error() {
    return el("div", {class: "error", role: "alert"}, el("p", {}, this.message.error),
      el("button", {type: "button", class: "button", on: {click: () => this.onAgain()}},
        "Try again"));
  }
}

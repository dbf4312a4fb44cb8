// One message of a conversation on the page, with what can be done with it.

import {AnswerBody} from "./answer_body.js";
import {figuresOf, seenCounts} from "./answer.js";
import {cancels, confirms, copyFrom, el, icon, iconButton} from "./dom.js";
import {figureItems, whyOff} from "./figures.js";
import {count} from "./format.js";
import {sharesBar} from "./painter.js";
import {settings} from "./settings.js";
import {resultForm} from "./tool_calls.js";

/** Leads to the other versions of `message` and what is behind it; null where there are none. */
function versionSwitch({versions}, onVersion) {
  if (!(versions?.tails?.length > 1)) return null;
  const {at, tails: {length}} = versions;
  const button = (sign, label, which) =>
    iconButton(sign, label, () => onVersion(which), {disabled: which < 0 || which >= length});
  return el("span", {class: "versions", role: "group", "aria-label": `Version ${at + 1} of ${length}`},
    button("left", "Earlier version", at - 1), `${at + 1}/${length}`,
    button("right", "Later version", at + 1));
}

const kRoom = "A new conversation has room again; the server's -c gives each more.";

/** How full the context of `message` is, as a text, where it is full; else "". */
function fullContext({finish, usage, context}) {
  const used = usage?.total_tokens;
  return finish === "length" && context && used >= context
    ? `Context full (${count(used)} of ${count(context)} tokens)` : "";
}

/**
 * What a person wrote. `onEdit(text)` is called when it was changed; it may be refused.
 * `onVersion(which)` shows another version.
 */
export class UserView {
  constructor(message, {onEdit, onVersion}) {
    Object.assign(this, {message, onEdit, onVersion});
    this.node = el("article", {class: "message user", "aria-label": "You"});
    this.#show();
  }

  update() {}

  #show() {
    this.node.replaceChildren(...[
      el("div", {class: "bubble", dir: "auto"}, this.message.content),
      versionSwitch(this.message, this.onVersion),
      el("div", {class: "actions"},
        iconButton("edit", "Edit and send again", () => this.#edit()),
        this.#copyButton())].filter(Boolean));
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
      this.node.querySelector(".actions button").focus();
    };
    const send = () => {
      if (text.value.trim() !== "") this.onEdit(text.value);
    };
    text.addEventListener("keydown", (event) => {
      if (confirms(event) && !event.shiftKey) {
        event.preventDefault();
        send();
      } else if (cancels(event)) {
        event.preventDefault();
        cancel();
      }
    });
    this.node.replaceChildren(el("div", {class: "edit-box"}, text,
      el("div", {class: "edit-buttons"},
        el("span", {class: "muted small"}, "What follows stays as another version."),
        el("button", {type: "button", class: "button", on: {click: cancel}}, "Cancel"),
        el("button", {type: "button", class: "button primary", on: {click: send}}, "Send"))));
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  }
}

/**
 * An answer. `onAgain()` asks for another one in its place, `onVersion(which)` shows another,
 * `onGoOn()` asks for more of it; `onResults(texts)` goes on with what its calls of tools gave back
 * (both null: it has been gone on with). `onNew()` begins another conversation.
 */
export class AssistantView {
  constructor(message, {onAgain, onGoOn, onNew, onResults, onVersion}) {
    Object.assign(this, {message, onAgain, onGoOn, onNew, onResults, onVersion});
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
          iconButton("again", "Answer again", () => this.onAgain()),
          versionSwitch(message, this.onVersion)),
        el("div", {class: "figures"},
          message.model ? el("span", {class: "figure model-name", title: message.model}, message.model) : null,
          figureItems(figuresOf(message)),
          notes.map((note) => el("span", {class: "note"}, note)))),
      this.#more(),
      this.#results(),
    ].filter(Boolean));
  }

  // For calls that came whole: those of an answer that was stopped have no end.
  #results() {
    const {finish, toolCalls} = this.message;
    if (!this.onResults || finish !== "tool_calls" || !(toolCalls?.length > 0)) return null;
    this.form ??= resultForm(toolCalls, this.onResults);  // the same: something may be typed there
    return this.form;
  }

  // What can be done about an end that came too early.
  #more() {
    const {content, error, finish, toolCalls} = this.message;
    if (fullContext(this.message)) {
      return el("div", {class: "go-on"}, el("span", {class: "muted small"}, kRoom), this.#newButton());
    }
    const early = error || finish === null || finish === "length" || finish === "stopped";
    if (!this.onGoOn || !early || content.trim() === "" || toolCalls?.length > 0) return null;
    return el("div", {class: "go-on"}, el("button", {type: "button", class: "button",
      on: {click: () => this.onGoOn()}}, icon("go"), "Continue"));
  }

  #newButton() {
    return el("button", {type: "button", class: "button", on: {click: () => this.onNew()}},
      "New conversation");
  }

  #endNote() {
    switch (this.message.finish) {
      case "length": return fullContext(this.message) || "Ended at the limit of tokens";
      case "stopped": return "Stopped";
      case null: return this.message.error ? null : "Cut off";
      default: return null;
    }
  }

  #error() {
    const {code, error} = this.message;
    const tooLong = code === "context_length_exceeded";
    return el("div", {class: "error", role: "alert"},
      el("p", {}, tooLong ? `Context full: ${error}. ${kRoom}` : error),
      tooLong ? this.#newButton() : null,
      el("button", {type: "button", class: "button", on: {click: () => this.onAgain()}},
        "Try again"));
  }
}

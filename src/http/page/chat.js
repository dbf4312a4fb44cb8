// The conversation that is shown: sends, stops, edits, answers again. Answers go on when another
// conversation is looked at; each conversation has at most one that is being written.

import {Answer, newMessage, plainSpeeds} from "./answer.js";
import {askAgain, chat} from "./api.js";
import {plainMessage} from "./conversation_file.js";
import {announce, byId, el, iconButton} from "./dom.js";
import {Follower} from "./follower.js";
import {rate} from "./format.js";
import {AssistantView, UserView} from "./message_view.js";
import {server} from "./server.js";
import {settings} from "./settings.js";
import {NoteView} from "./tool_calls.js";
import {dropVersion, hasText, replaceTail, showTail, showVersion} from "./versions.js";

const kSaveEvery = 1500;  // milliseconds, while an answer is written

const kExamples = [
  "Explain speculative decoding in three sentences.",
  "Write a Python function that merges two sorted lists.",
  "Make a table of the planets: name, diameter, moons.",
];

/**
 * What is sent of a conversation: answers that have no text go, and so do their questions. Calls
 * without a result have none to be sent with, as those of an answer that was stopped.
 */
export function historyOf(messages) {
  const list = [];
  messages.forEach((message, i) => {
    const {role, content} = message;
    const answered = messages[i + 1]?.role === "tool";
    if (role === "assistant" && content === "" && !answered) {
      if (list.at(-1)?.role === "user") list.pop();
    } else {
      list.push(plainMessage(answered ? message : {...message, toolCalls: []}));
    }
  });
  return list;
}

/** What someone who waits for an answer's first token wants to know. */
export function waitingFor(answer) {
  const {status} = server.model ?? {};
  if (status?.state === "loading") return `Opening the model, ${rate(status.progress)}`;
  const progress = answer.progress;
  if (progress && progress.processed < progress.total) {
    return `Reading the prompt, ${progress.processed} of ${progress.total} tokens`;
  }
  return "Waiting for the first token";
}

export class Chat {
  #views = [];
  #shown = null;         // the conversation that #views belong to
  #runs = new Map();     // conversation's id -> {answer, message, stop, waiting}
  #system = "";          // the instructions that are shown above them, by #note
  #note = null;
  #frame = 0;

  /**
   * `onChange()`: what `running` and `figures` say may have changed. `onNew()`: a new conversation is
   * wanted. `onFocusLost()`: what had the focus is no longer there. `toast` as in app.js.
   */
  constructor(conversations, {onChange, onNew, onFocusLost, toast}) {
    Object.assign(this, {conversations, onChange, onNew, onFocusLost, toast});
    this.list = byId("messages");
    byId("to-end").append(iconButton("down", "To the end").firstChild);
    this.follower = new Follower(byId("scroller"), byId("to-end"));
    server.addEventListener("change", () => this.#later());
    conversations.inUse = (conversation) => this.#inUse(conversation);
    conversations.isWriting = (conversation) => this.#runs.has(conversation.id);
  }

  get #run() {
    return this.#runs.get(this.conversations.current.id) ?? null;
  }

  get running() {
    return this.#run !== null;
  }

  /** Of the answer being written; null where none is. */
  get figures() {
    return this.#run?.answer.figures() ?? null;
  }

  // It is answered, or something is being written in it: a changed question, a tool's result.
  #inUse(conversation) {
    return this.#runs.has(conversation.id) || (conversation === this.#shown &&
      [...this.list.querySelectorAll("textarea")].some(({value}) => value !== ""));
  }

  /** Shows the current conversation; `at`: the message that stays in sight, else it is the end. */
  show({anew = false, at = null} = {}) {
    const conversation = this.conversations.current;
    const {messages} = conversation;
    const system = messages.length > 0 && messages[0].role !== "system" ? conversation.system?.trim() ?? "" : "";
    const another = conversation !== this.#shown || anew;
    if (another || this.#views.length !== messages.length ||
        this.#views.some(({message}, i) => message !== messages[i])) {
      const focused = this.list.contains(document.activeElement);
      this.#shown = conversation;
      this.#views = messages.map((message, i) => this.#view(message, i));
      this.list.replaceChildren(...(this.#views.length > 0
        ? this.#views.map(({node}) => node) : [this.#welcome()]));
      this.#showSystem(system);
      if (at !== null) this.follower.leave();
      else if (another) this.follower.toTheEnd();
      if (focused) this.onFocusLost();
    } else if (system !== this.#system) {
      this.#showSystem(system);
    }
    this.#update();
    if (at !== null) this.#views[at]?.node.scrollIntoView({block: "nearest"});
  }

  // The messages' own views stay: a changed question or a tool's result may be typed there.
  #showSystem(system) {
    this.#system = system;
    this.#note?.remove();
    this.#note = system === "" ? null : new NoteView({role: "system", content: system}).node;
    if (this.#note) this.list.prepend(this.#note);
  }

  /** Shows all messages again, as a setting that they follow has changed. */
  repaint() {
    for (const view of this.#views) view.update(this.#runOf(view.message));
  }

  #runOf(message) {
    return this.#run?.message === message ? this.#run : null;
  }

  #view(message, index) {
    const onVersion = (which) => this.#showVersion(index, which);
    if (message.role === "user") {
      return new UserView(message, {onVersion, onEdit: (text) => this.#ask(index, text)});
    }
    if (message.role !== "assistant") return new NoteView(message);
    const isLast = index === this.conversations.current.messages.length - 1;
    return new AssistantView(message, {onVersion, onNew: this.onNew,
      onAgain: () => this.#again(index),
      onGoOn: isLast ? () => this.#goOn(message) : null,
      onResults: isLast ? (texts) => this.#answerCalls(message, texts) : null});
  }

  #welcome() {
    const draft = server.model?.draft;
    const who = server.model
      ? `${server.model.id}${draft ? ` with ${draft} as its draft model` : ""}` : "";
    return el("div", {class: "welcome"},
      el("h2", {}, "Start a conversation"),
      el("p", {class: "muted"}, who),
      el("p", {class: "muted"}, "Coloured tokens were guessed ahead by a drafter; the target model " +
        "has checked each of them. Side by side shows what that changes: the speed, not the text."),
      el("div", {class: "examples"}, kExamples.map((text) =>
        el("button", {type: "button", class: "button", on: {click: () => this.send(text)}}, text))));
  }

  /** Whether it was sent: not while a setting is wrong. */
  send(text) {
    return this.#ask(this.conversations.current.messages.length, text);
  }

  stop() {
    this.#run?.stop.abort();
  }

  /** Ends the answers of a conversation that is removed. */
  forget(conversation) {
    this.#runs.get(conversation.id)?.stop.abort();
  }

  // `text` becomes message `index`; what was there and behind it becomes another version.
  #ask(index, text) {
    if (!settings.mayBeSent()) return false;
    this.stop();
    this.#answer(this.conversations.current, index, [{role: "user", content: text}]);
    return true;
  }

  #again(index) {
    if (!settings.mayBeSent()) return;
    this.stop();
    this.#answer(this.conversations.current, index);
  }

  // More of an answer that was stopped, cut short or broke off.
  #goOn(message) {
    const {current} = this.conversations;
    if (current.messages.at(-1) !== message || this.running || !settings.mayBeSent()) return;
    const history = historyOf(current.messages);
    // Of what is written now there are other figures.
    Object.assign(message, {finish: null, error: null, code: null, timings: null, speculation: null,
      usage: null});
    this.#write(current, message, history, {continue_final_message: true});
  }

  #showVersion(index, which) {
    const {current} = this.conversations;
    this.stop();
    if (!showVersion(current.messages, index, which)) return;
    this.conversations.save(current, {touched: false});
    this.show({anew: true, at: index});
    const buttons = [...this.#views[index].node.querySelectorAll(".versions button")];
    buttons.find(({disabled}) => !disabled)?.focus({preventScroll: true});
  }

  // What the tools that `message` calls gave back; the model goes on with it.
  #answerCalls(message, texts) {
    const {current} = this.conversations;
    if (current.messages.at(-1) !== message || this.running || !settings.mayBeSent()) return;
    this.#answer(current, current.messages.length, message.toolCalls.map(({id, name}, i) =>
      ({role: "tool", toolCallId: id, name, content: texts[i]})));
  }

  // Message `index` becomes the first of `asked` and then of the answer, which is written.
  async #answer(conversation, index, asked = []) {
    const history = historyOf([...conversation.messages.slice(0, index), ...asked]);
    const message = newMessage(server.model?.id ?? settings.get("model"));
    const before = replaceTail(conversation.messages, index, [...asked, message]);
    conversation.system = settings.systemOf(conversation);
    if (before) this.#offerBack(conversation, index, before);
    await this.#write(conversation, message, history);
    // No other answer has come: the one that was there is shown again.
    if (asked.length > 0 || hasText(message)) return;
    if (!dropVersion(conversation.messages, index, message, before)) return;
    if (message.error) this.toast(`Not answered again: ${message.error}`);
    if (this.conversations.has(conversation)) this.conversations.save(conversation);
    if (conversation === this.conversations.current) this.show({anew: true, at: index});
  }

  #offerBack(conversation, index, before) {
    const more = before.length - 1;
    const what = before[0].role === "user" ? "The earlier question" : "The earlier answer";
    this.toast(`${what} ${more > 0 ? "and what followed are" : "is"} kept`, {
      label: "Undo",
      onLeave: () => this.onFocusLost(),
      action: () => {
        this.#runs.get(conversation.id)?.stop.abort();
        if (!this.conversations.has(conversation) || !showTail(conversation.messages, index, before)) return;
        this.conversations.save(conversation);
        // Another one may be shown by now: what comes back is seen.
        this.conversations.select(conversation.id);
        this.show({anew: true, at: index});
      },
    });
  }

  // Writes on at `message`, the last one of `conversation`, until its answer has ended.
  async #write(conversation, message, history, more = {}) {
    const body = settings.body(message.model, history, {system: conversation.system, ...more});
    const said = Object.values(message.counts).reduce((sum, n) => sum + n, 0);
    const run = {message, answer: new Answer(message), stop: new AbortController(), waiting: ""};
    this.#runs.set(conversation.id, run);
    this.conversations.save(conversation, {tell: false});  // other tabs get it whole
    this.show({anew: true});
    askAgain();
    announce("The answer begins");
    await server.during(() => this.#receive(run, conversation, body));
    if (said > 0 && message.usage) message.usage.completion_tokens += said;  // it counts what is new
    message.context = server.contextOf(message.model);
    if (this.#runs.get(conversation.id) === run) this.#runs.delete(conversation.id);
    if (this.conversations.has(conversation)) this.conversations.save(conversation);
    this.#update(message);
    this.onChange();
    announce(message.error ?? (message.finish === "stopped" ? "Stopped" : "The answer is complete"));
    // Whoever cannot answer may be gone.
    if (message.error) server.refresh();
    else server.details();
  }

  async #receive(run, conversation, body) {
    const {message, answer, stop} = run;
    let saved = performance.now();
    try {
      for await (const chunk of chat(body, stop.signal)) {
        const now = performance.now();
        answer.add(chunk, now);
        this.#later();
        if (now - saved > kSaveEvery && this.conversations.has(conversation)) {
          saved = now;
          this.conversations.savePart(conversation);
        }
      }
    } catch (error) {
      if (stop.signal.aborted) message.finish = "stopped";
      else Object.assign(message, {error: error.message, code: error.code});
    }
    if (this.#runs.size === 1) plainSpeeds.note(message);
    // A stopped answer has no figures of the server's: those of its course stay.
    message.speculation ??= answer.live;
    if (message.timings === null) {
      const {perSecond} = answer.figures();
      if (perSecond) message.timings = {predicted_per_second: perSecond};
    }
  }

  // One update a frame, however many chunks come.
  #later() {
    if (this.#frame !== 0 || !this.running) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#update();
    });
  }

  #update(message = this.#run?.message) {
    const run = this.#run;
    if (run) run.waiting = waitingFor(run.answer);
    this.#views.find((view) => view.message === message)?.update(this.#runOf(message));
    this.follower.grown();
    this.onChange();
  }
}

// The conversation that is shown: sends, stops, edits, answers again. Answers go on when another
// conversation is looked at; each conversation has at most one that is being written.

import {Answer, newMessage, plainSpeeds} from "./answer.js";
import {askAgain, chat} from "./api.js";
import {plainMessage} from "./conversation_file.js";
import {announce, byId, el, iconButton} from "./dom.js";
import {rate} from "./format.js";
import {AssistantView, UserView} from "./message_view.js";
import {server} from "./server.js";
import {settings} from "./settings.js";
import {NoteView} from "./tool_calls.js";

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
  #frame = 0;
  #atEnd = true;

  /** `onChange()`: what `running` and `figures` say may have changed. */
  constructor(conversations, {onChange}) {
    this.conversations = conversations;
    this.onChange = onChange;
    this.list = byId("messages");
    this.scroller = byId("scroller");
    const toEnd = byId("to-end");
    toEnd.append(iconButton("down", "To the end").firstChild);
    toEnd.addEventListener("click", () => this.#follow(true));
    this.scroller.addEventListener("scroll", () => {
      const {scrollTop, scrollHeight, clientHeight} = this.scroller;
      this.#atEnd = scrollHeight - scrollTop - clientHeight < 40;
      toEnd.hidden = this.#atEnd;
    }, {passive: true});
    server.addEventListener("change", () => this.#later());
    conversations.inUse = (conversation) => this.#inUse(conversation);
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

  /** Shows the current conversation. */
  show({anew = false} = {}) {
    const conversation = this.conversations.current;
    const {messages} = conversation;
    const another = conversation !== this.#shown || anew;
    if (another || this.#views.length !== messages.length ||
        this.#views.some(({message}, i) => message !== messages[i])) {
      this.#shown = conversation;
      this.#views = messages.map((message, i) => this.#view(message, i));
      this.list.replaceChildren(...(this.#views.length > 0
        ? this.#views.map(({node}) => node) : [this.#welcome()]));
      this.#follow(another);
    }
    this.#update();
  }

  /** Shows all messages again, as a setting that they follow has changed. */
  repaint() {
    for (const view of this.#views) view.update(this.#runOf(view.message));
  }

  #runOf(message) {
    return this.#run?.message === message ? this.#run : null;
  }

  #view(message, index) {
    if (message.role === "user") {
      return new UserView(message, {onEdit: (text) => this.#ask(index, text)});
    }
    if (message.role !== "assistant") return new NoteView(message);
    const isLast = index === this.conversations.current.messages.length - 1;
    return new AssistantView(message, {onAgain: () => this.#again(index),
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

  // `text` becomes message `index`; what was there and behind it goes.
  #ask(index, text) {
    if (!settings.mayBeSent()) return false;
    const {current} = this.conversations;
    this.stop();
    current.messages.splice(index, Infinity, {role: "user", content: text});
    this.#answer(current);
    return true;
  }

  #again(index) {
    if (!settings.mayBeSent()) return;
    const {current} = this.conversations;
    this.stop();
    current.messages.splice(index);
    this.#answer(current);
  }

  // What the tools that `message` calls gave back; the model goes on with it.
  #answerCalls(message, texts) {
    const {current} = this.conversations;
    if (current.messages.at(-1) !== message || this.running || !settings.mayBeSent()) return;
    message.toolCalls.forEach(({id, name}, i) =>
      current.messages.push({role: "tool", toolCallId: id, name, content: texts[i]}));
    this.#answer(current);
  }

  async #answer(conversation) {
    const model = server.model?.id ?? settings.get("model");
    const body = settings.body(model, historyOf(conversation.messages));
    const message = newMessage(model);
    const run = {message, answer: new Answer(message), stop: new AbortController(), waiting: ""};
    conversation.messages.push(message);
    this.#runs.set(conversation.id, run);
    this.conversations.save(conversation, {tell: false});  // other tabs get it whole
    this.show({anew: true});
    askAgain();
    announce("The answer begins");
    await server.during(() => this.#receive(run, conversation, body));
    if (this.#runs.get(conversation.id) === run) this.#runs.delete(conversation.id);
    if (this.conversations.has(conversation)) this.conversations.save(conversation);
    this.#update(message);
    this.onChange();
    announce(message.error ?? (message.finish === "stopped" ? "Stopped" : "The answer is complete"));
    server.details();
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
      else message.error = error.message;
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
    this.#follow(false);
    this.onChange();
  }

  #follow(always) {
    if (always || this.#atEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
  }
}

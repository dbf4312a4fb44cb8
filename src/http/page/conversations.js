// The conversations: which there are, which one is shown, and that the store follows.

import {openStore} from "./store.js";

const kNameLength = 48;

/** What a conversation is called until someone names it: the first line of its first message. */
function nameFrom(messages) {
  const first = messages.find((message) => message.role === "user");
  const line = first?.content.trim().split("\n")[0] ?? "";
  if (line === "") return "New conversation";
  return line.length > kNameLength ? `${line.slice(0, kNameLength - 1).trimEnd()}…` : line;
}

// What another version of the page or a broken disk has left must not end this one.
function isConversation(value) {
  return typeof value?.id === "string" && Array.isArray(value.messages) &&
    value.messages.every((message) => typeof message?.content === "string");
}

export class Conversations extends EventTarget {
  #all = new Map();
  #current = null;

  static async open() {
    const conversations = new Conversations();
    conversations.store = await openStore();
    for (const value of await conversations.store.all().catch(() => [])) {
      if (isConversation(value)) conversations.#all.set(value.id, value);
    }
    conversations.#current = conversations.list()[0] ?? conversations.#fresh();
    return conversations;
  }

  /** Those that hold something, the newest first. */
  list() {
    return [...this.#all.values()].sort((a, b) => b.updated - a.updated);
  }

  get current() {
    return this.#current;
  }

  get persistent() {
    return this.store.persistent;
  }

  nameOf(conversation) {
    return conversation.name ?? nameFrom(conversation.messages);
  }

  // It is kept once it holds a message.
  #fresh() {
    return {id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, name: null,
      created: Date.now(), updated: Date.now(), messages: []};
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  create() {
    if (this.#current.messages.length > 0) this.#current = this.#fresh();
    this.#changed();
  }

  /** Conversations that were read from a file, each as a new one; the newest is shown. */
  add(read) {
    const added = read.map((one) => ({...this.#fresh(), ...one}));
    for (const one of added) this.save(one, {touched: false});
    this.select(added.reduce((a, b) => b.updated > a.updated ? b : a).id);
  }

  select(id) {
    this.#current = this.#all.get(id) ?? this.#current;
    this.#changed();
  }

  /** After each change of what a conversation holds. Errors of the store are an event. */
  save(conversation, {touched = true} = {}) {
    if (touched) conversation.updated = Date.now();
    this.#all.set(conversation.id, conversation);
    this.#write(this.store.put(conversation));
    this.#changed();
  }

  rename(conversation, name) {
    conversation.name = name.trim() === "" ? null : name.trim().slice(0, 200);
    this.save(conversation, {touched: false});
  }

  remove(conversation) {
    this.#all.delete(conversation.id);
    if (this.#current === conversation) this.#current = this.list()[0] ?? this.#fresh();
    this.#write(this.store.remove(conversation.id));
    this.#changed();
  }

  has(conversation) {
    return this.#all.has(conversation.id);
  }

  #write(promise) {
    promise.catch((error) => this.dispatchEvent(
      new CustomEvent("failed", {detail: `Not kept in this browser: ${error.message}`})));
  }
}

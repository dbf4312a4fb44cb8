// The conversations: which there are, which one is shown, and that the store and other tabs follow.
//
// Tabs share one store, and none may remove what another one wrote. So what is kept is never written
// over: each change makes a record with a key of its own, and removes the record that it was made
// from, in one transaction. Two tabs that go on from the same record remove the same one and leave
// two: both are kept. One that a tab deletes while another answers in it is kept by the answer's end.
// Nothing has to be read before, which a page that goes away would not live to see.
//
// Each change is told to the other tabs, with the key that it was made from; who has just that takes
// it over. Not so while it is in use there: that tab's end is another conversation, a copy.

import {beginning} from "./format.js";
import {openStore} from "./store.js";
import {allSaid, shownSaid} from "./versions.js";

const kNameLength = 48;
const kLongestName = 200;
const kChannel = "outrider.conversations";
const kCurrent = "outrider.current";

/** What a conversation is called until someone names it: the first line of its first message. */
function nameFrom(messages) {
  const first = messages.find((message) => message.role === "user");
  const line = first?.content.trim().split("\n")[0] ?? "";
  if (line === "") return "New conversation";
  return line.length > kNameLength ? `${beginning(line, kNameLength - 1).trimEnd()}…` : line;
}

// What another version of the page or a broken disk has left must not end this one.
function isConversation(value) {
  return typeof value?.id === "string" && Array.isArray(value.messages) &&
    value.messages.every((message) => typeof message?.content === "string");
}

function newKey() {
  return crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
}

// `uid` stays from record to record: what else is kept of a conversation is kept by that.
function recordOf({uid, name, created, updated, system, messages}, key) {
  return {id: key, uid, name, created, updated, system, messages};
}

// What this tab showed before it was loaded again; a new tab shows the latest conversation.
function shownBefore() {
  try {
    return sessionStorage.getItem(kCurrent);
  } catch {
    return null;
  }
}

// `key`: of its record in the store, `told`: of the last one that other tabs know, `from`: of the one
// that was told before. Null for none. The `id` is for this tab, and stays.
function conversationOf(record) {
  return {...record, uid: record.uid ?? record.id, key: record.id, told: record.id, from: null};
}

const kNew = "new";

/** Where what is typed in a conversation is kept: those that hold nothing are all one. */
export function placeOf({uid, messages}) {
  return messages.length > 0 ? uid : kNew;
}

const versionCount = ({versions}) => versions?.tails?.length ?? 1;

/** Whether `own` has all that `record` says, so that only the name can be another. */
function holds(own, record) {
  return record.messages.every((message, i) => own.messages[i]?.role === message.role &&
    versionCount(own.messages[i]) >= versionCount(message) &&
    (i + 1 < record.messages.length ? own.messages[i].content === message.content
      : own.messages[i].content.startsWith(message.content)));
}

// Whether `record` has all that `own` shows, in one of its versions.
function holdsInVersion(record, own) {
  return holds(record, own) || record.messages.some(({versions}, i) => versions?.tails?.some((tail) =>
    tail && holds({messages: [...record.messages.slice(0, i), {...tail[0], versions}, ...tail.slice(1)]}, own)));
}

export class Conversations extends EventTarget {
  #all = new Map();
  #current = null;
  #channel = new BroadcastChannel(kChannel);

  /** Why not all of the store's could be read, a sentence; else null. */
  problem = null;

  /** Whether a conversation is in use here, so that another tab's change must not replace it. */
  inUse = () => false;

  /** Whether an answer is being written in it. */
  isWriting = () => false;

  static async open() {
    const conversations = new Conversations();
    conversations.store = await openStore();
    const {records, problem} = await conversations.store.all();
    conversations.problem = problem;
    for (const value of records) {
      if (isConversation(value)) conversations.#all.set(value.id, conversationOf(value));
    }
    const before = shownBefore();
    const all = conversations.list();
    conversations.#current = before === kNew ? conversations.#fresh()
      : all.find((one) => placeOf(one) === before) ?? all[0] ?? conversations.#fresh();
    conversations.#channel.onmessage = ({data}) => conversations.#hear(data);
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
    return {id: newKey(), uid: newKey(), key: null, told: null, from: null, name: null,
      created: Date.now(), updated: Date.now(), messages: []};
  }

  #changed() {
    try {
      sessionStorage.setItem(kCurrent, placeOf(this.#current));
    } catch {
      // Then a reload shows the latest one.
    }
    this.dispatchEvent(new Event("change"));
  }

  #say(text) {
    this.dispatchEvent(new CustomEvent("said", {detail: text}));
  }

  create() {
    if (this.#current.messages.length > 0) this.#current = this.#fresh();
    this.#changed();
  }

  /**
   * Conversations that were read from a file, each as a new one unless it is here: a file without
   * versions may be an export of what is shown. The newest is shown. Returns how many are new.
   */
  add(read) {
    const known = new Map();
    const note = (one) => {
      known.set(shownSaid(one.messages), one);
      known.set(allSaid(one.messages), one);
    };
    this.list().forEach(note);
    let added = 0;
    const all = read.map((one) => {
      const said = allSaid(one.messages);
      if (!known.has(said)) {
        const conversation = {...this.#fresh(), ...one};
        this.save(conversation, {touched: false});
        note(conversation);
        ++added;
      }
      return known.get(said);
    });
    this.select(all.reduce((a, b) => b.updated > a.updated ? b : a).id);
    return added;
  }

  select(id) {
    this.#current = this.#all.get(id) ?? this.#current;
    this.#changed();
  }

  /**
   * After each change of what a conversation holds; `tell`: other tabs may go on from it. Errors of
   * the store are said.
   */
  save(conversation, {touched = true, tell = true} = {}) {
    if (touched) conversation.updated = Date.now();
    this.#all.set(conversation.id, conversation);
    this.#keep(conversation, tell);
    this.#changed();
  }

  /** More of an answer that is being written: in the record that the answer's beginning made, if it did. */
  savePart(conversation) {
    if (conversation.key === null) this.#keep(conversation, false);
    else this.#tried(this.store.put(recordOf(conversation, conversation.key)));
  }

  rename(conversation, name) {
    if (!this.has(conversation)) return;  // another tab has deleted it meanwhile
    conversation.name = name.trim() === "" ? null : beginning(name.trim(), kLongestName);
    this.save(conversation, {touched: false});
  }

  remove(conversation) {
    const {key, told} = conversation;
    this.#all.delete(conversation.id);
    if (this.#current === conversation) this.#current = this.list()[0] ?? this.#fresh();
    conversation.key = conversation.told = conversation.from = null;
    if (key !== null) this.#tried(this.store.remove(key), () => this.#tell(told, null, key));
    this.#changed();
  }

  has(conversation) {
    return this.#all.has(conversation.id);
  }

  #keep(conversation, tell) {
    const {key, told} = conversation;
    const record = recordOf(conversation, newKey());
    conversation.key = record.id;
    if (tell) Object.assign(conversation, {told: record.id, from: told});
    this.#tried(this.store.put(record, key), () => tell && this.#tell(told, record, key), () => {
      if (conversation.key === record.id) Object.assign(conversation, {key, told});
    });
  }

  // `written()` or, where the store does not take it, `failed()`: it stays as long as the page.
  #tried(promise, written = () => {}, failed = () => {}) {
    promise.then(written, (error) => {
      failed();
      this.#say(`Not kept in this browser: ${error.name === "QuotaExceededError"
        ? "it has no room left. Export what you need, and delete what you do not" : error.message}`);
    });
  }

  // `record`: what became of the one with the key `from`; null: it was deleted. `instead`: the record
  // that it took the place of. A tab that was opened while an answer was written has read that one.
  #tell(from, record, instead) {
    this.#channel.postMessage({from, record, instead});
  }

  #hear({from, record, instead}) {
    if (record !== null && !isConversation(record)) return;
    const all = this.list();
    const own = all.find(({told}) => from !== null && told === from) ??
      all.find(({key}) => key !== null && key === instead) ?? this.#earlier(from, record);
    if (own && this.inUse(own)) {
      this.#part(own, record);
    } else if (own && record !== null) {
      Object.assign(own, conversationOf(record), {id: own.id});
    } else if (record !== null) {
      this.#add(from, record);
    } else if (own) {
      this.#all.delete(own.id);
      // Not the next one: what is being typed is not for that.
      if (own === this.#current) {
        this.#say(`“${this.nameOf(own)}” was deleted in another tab`);
        this.#current = this.#fresh();
      }
    }
    this.dispatchEvent(new Event("heard"));
    this.#changed();
  }

  // A tab that is loaded again while it writes an answer goes on from a record that it never told of:
  // here is the one before. Not where both told what they made of the same one, see #add.
  #earlier(from, record) {
    return record === null ? undefined : this.list().find((one) => one.uid === record.uid &&
      (from === null || one.from !== from) && !this.inUse(one) && holdsInVersion(record, one));
  }

  // Of a conversation in use here, another tab has made `record`.
  #part(own, record) {
    if (record !== null && holds(own, record)) {
      const {key} = own;
      Object.assign(own, {name: record.name, key: record.id, told: record.id});
      this.#tried(this.store.put(recordOf(own, own.key), key));
      return;
    }
    own.told = null;
    if (record === null) return;
    this.#makeCopy(own);
    this.#all.set(record.id, conversationOf(record));
  }

  #add(from, record) {
    // Where both tabs told at once what they made of the same record, one of them is the copy.
    const twin = from === null ? undefined : this.list().find((one) => one.from === from);
    this.#all.set(record.id, conversationOf(record));
    if (!twin || twin.key < record.id) return;
    this.#makeCopy(twin);
    this.save(twin, {touched: false});
  }

  #makeCopy(own) {
    this.#say(`“${this.nameOf(own)}” went on in another tab, too: this is a copy`);
    own.name = `${beginning(this.nameOf(own), kLongestName - 10)} (copy)`;
  }
}

// The list of conversations: choose, rename, export, import, delete (and take that back).

import {conversationsFrom, fileOf} from "./conversation_file.js";
import {byId, cancels, confirms, downloadJson, el, icon, iconButton} from "./dom.js";
import {beginning, many} from "./format.js";

const kSearchFrom = 11;  // conversations: fewer are seen at once

function fileNameFor(name) {
  const plain = name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return `${beginning(plain, 40) || "chat"}.json`;
}

export class Sidebar {
  #renaming = null;
  #shown = "";  // what the list was made of
  #seen = {id: null, at: -1};  // the current one, where it was brought into sight

  /** `onChoose()` after another one was chosen; `onRemove(conversation)` before it goes. */
  constructor(conversations, {onChoose, onRemove, toast}) {
    Object.assign(this, {conversations, onChoose, onRemove, toast});
    this.list = byId("conversation-list");
    byId("new-conversation").append(icon("plus"), "New conversation");
    byId("new-conversation").addEventListener("click", () => {
      conversations.create();
      onChoose();
    });
    byId("export-all").append(icon("download"), "Export all");
    byId("export-all").addEventListener("click", () =>
      downloadJson("outrider-conversations.json", conversations.list().map((one) => this.#file(one))));
    this.search = byId("search");
    this.search.addEventListener("input", () => this.#show());
    this.#setUpImport();
    conversations.addEventListener("change", () => this.#show());
    this.#show();
  }

  #show() {
    if (this.#renaming) return;  // someone types in the list; it is shown again after that
    const list = this.#found();
    // Each piece of an answer that is kept is a change, and mostly none of the list: who moves in it
    // by keyboard stays where they are.
    const shown = JSON.stringify([this.conversations.current.id,
      list.map((one) => [one.id, this.conversations.nameOf(one), this.conversations.isWriting(one)])]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    byId("export-all").hidden = this.conversations.list().length === 0;
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(...(list.length > 0 ? list.map((one) => this.#item(one))
      : [el("li", {class: "muted small no-conversations"}, this.search.value !== "" ? "None has this text."
        : this.conversations.persistent ? "Conversations stay in this browser."
          : "This browser keeps nothing: conversations end with the page.")]));
    if (focused) this.#focus(this.conversations.current);
    this.#follow(list.indexOf(this.conversations.current));
  }

  // The current one is in sight where it is now: what is written in it moves it to the top. Whoever
  // scrolls the list is left alone.
  #follow(at) {
    const {id} = this.conversations.current;
    if (id === this.#seen.id && at === this.#seen.at) return;
    this.#seen = {id, at};
    this.list.children[at]?.scrollIntoView({block: "nearest"});
  }

  // Its name in the list, or what stands above the list.
  #focus(conversation) {
    const at = this.#found().indexOf(conversation);
    (this.list.querySelectorAll(".name")[at] ?? byId("new-conversation")).focus();
  }

  // By their names and by what was said in them.
  #found() {
    const list = this.conversations.list();
    this.search.hidden = list.length < kSearchFrom && this.search.value === "";
    const wanted = this.search.value.trim().toLowerCase();
    return wanted === "" ? list : list.filter((one) =>
      [this.conversations.nameOf(one), ...one.messages.map(({content}) => content)].some((text) =>
        text.toLowerCase().includes(wanted)));
  }

  #item(conversation) {
    const name = this.conversations.nameOf(conversation);
    const current = conversation === this.conversations.current;
    const writing = this.conversations.isWriting(conversation);
    const item = el("li", {class: current ? "current" : ""},
      el("button", {type: "button", class: writing ? "name writing" : "name",
        "aria-label": writing && `${name}, an answer is being written`, title: name,
        "aria-current": current && "true",
        on: {
          click: () => {
            this.conversations.select(conversation.id);
            this.onChoose();
          },
          dblclick: () => this.#rename(item, conversation, name),
        }}, name),
      el("span", {class: "item-actions"},
        iconButton("edit", `Rename ${name}`, () => this.#rename(item, conversation, name)),
        iconButton("download", `Export ${name}`, () =>
          downloadJson(fileNameFor(name), this.#file(conversation))),
        iconButton("trash", `Delete ${name}`, ({detail}) =>
          this.#remove(conversation, name, {byKeyboard: detail === 0}))));
    return item;
  }

  #file(conversation) {
    return fileOf(conversation, this.conversations.nameOf(conversation));
  }

  #setUpImport() {
    const input = byId("import-file");
    byId("import").append(icon("upload"), "Import");
    byId("import").addEventListener("click", () => input.click());
    input.addEventListener("change", async () => {
      const files = [...input.files];
      input.value = "";  // the same file can be chosen again
      for (const file of files) await this.#import(file);
    });
  }

  async #import(file) {
    try {
      const read = conversationsFrom(await file.text());
      const added = this.conversations.add(read);
      this.onChoose();
      const known = read.length - added;
      this.toast([added > 0 ? `Imported ${many(added, "conversation")}` : "",
        known > 0 ? `${many(known, "conversation")} of this file ${known === 1 ? "was" : "were"} here` : ""]
        .filter(Boolean).join("; "));
    } catch (error) {
      this.toast(`${file.name} cannot be imported: ${error.message}`);
    }
  }

  #rename(item, conversation, name) {
    const input = el("input", {type: "text", class: "rename", "aria-label": "Name", maxlength: "200"});
    input.value = name;
    this.#renaming = conversation;
    const end = (keep) => {
      if (this.#renaming !== conversation) return;
      this.#renaming = null;
      if (keep && input.value !== name) this.conversations.rename(conversation, input.value);
      const focused = input === document.activeElement;
      this.#shown = "";
      this.#show();
      if (focused) this.#focus(conversation);
    };
    input.addEventListener("keydown", (event) => {
      if (!cancels(event) && !confirms(event)) return;
      event.preventDefault();  // else Enter presses what has the focus behind this
      end(event.key === "Enter");
    });
    input.addEventListener("blur", () => end(true));
    item.replaceChildren(input);
    input.focus();
    input.select();
  }

  // Whoever works by keyboard is led to what takes it back, and from there to the list again.
  #remove(conversation, name, {byKeyboard}) {
    this.onRemove(conversation);
    this.conversations.remove(conversation);
    this.onChoose({stay: true});
    this.#focus(this.conversations.current);
    this.toast(`Deleted “${name}”`, {label: "Undo", focus: byKeyboard,
      onLeave: () => this.#focus(this.conversations.current),
      action: () => {
        this.conversations.save(conversation, {touched: false});
        this.conversations.select(conversation.id);
        this.onChoose({stay: true});
        this.#focus(conversation);
      }});
  }
}

// The list of conversations: choose, rename, export, delete (and take that back).

import {byId, downloadJson, el, icon, iconButton} from "./dom.js";

function fileNameFor(name) {
  return `${name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 40) || "chat"}.json`;
}

export class Sidebar {
  #renaming = null;
  #shown = "";  // what the list was made of

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
      downloadJson("outrider-conversations.json", conversations.list()));
    conversations.addEventListener("change", () => this.#show());
    this.#show();
  }

  #show() {
    if (this.#renaming) return;  // someone types in the list; it is shown again after that
    const list = this.conversations.list();
    // Each piece of an answer that is kept is a change, and mostly none of the list: who moves in it
    // by keyboard stays where they are.
    const shown = JSON.stringify([this.conversations.current.id,
      list.map((one) => [one.id, this.conversations.nameOf(one)])]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    byId("export-all").hidden = list.length === 0;
    this.list.replaceChildren(...(list.length > 0 ? list.map((one) => this.#item(one))
      : [el("li", {class: "muted small no-conversations"}, this.conversations.persistent
        ? "Conversations stay in this browser." : "This browser keeps nothing: conversations end with the page.")]));
  }

  #item(conversation) {
    const name = this.conversations.nameOf(conversation);
    const current = conversation === this.conversations.current;
    const item = el("li", {class: current ? "current" : ""},
      el("button", {type: "button", class: "name", title: name, "aria-current": current && "true",
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
          downloadJson(fileNameFor(name), conversation)),
        iconButton("trash", `Delete ${name}`, () => this.#remove(conversation, name))));
    return item;
  }

  #rename(item, conversation, name) {
    const input = el("input", {type: "text", class: "rename", "aria-label": "Name", maxlength: "200"});
    input.value = name;
    this.#renaming = conversation;
    const end = (keep) => {
      if (this.#renaming !== conversation) return;
      this.#renaming = null;
      if (keep && input.value !== name) this.conversations.rename(conversation, input.value);
      this.#shown = "";
      this.#show();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) end(true);
      if (event.key === "Escape") {
        event.preventDefault();
        end(false);
      }
    });
    input.addEventListener("blur", () => end(true));
    item.replaceChildren(input);
    input.focus();
    input.select();
  }

  #remove(conversation, name) {
    this.onRemove(conversation);
    this.conversations.remove(conversation);
    this.onChoose({stay: true});
    this.toast(`Deleted “${name}”`, {label: "Undo", action: () => {
      this.conversations.save(conversation, {touched: false});
      this.conversations.select(conversation.id);
      this.onChoose({stay: true});
    }});
  }
}

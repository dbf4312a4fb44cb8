// Where prompts are written: Enter sends, Shift+Enter begins a line, Esc stops the answer. Files that
// are dropped or pasted become a part of what is written.

import {byId, cancels, confirms, icon} from "./dom.js";
import {draftOf, keepDraft} from "./drafts.js";
import {fileBlock, textOf} from "./text_file.js";
import {toast} from "./toast.js";

const hasFiles = (transfer) => transfer?.types.includes("Files") ?? false;

export class Composer {
  #busy = false;
  #place = null;  // what is typed belongs to it

  /** `send(text)` says whether it is sent; what is not stays here. */
  constructor({send, stop}) {
    this.input = byId("prompt");
    this.button = byId("send");
    this.send = send;
    this.stop = stop;
    this.input.addEventListener("input", () => this.#typed());
    this.input.addEventListener("keydown", (event) => {
      if (!confirms(event) || event.shiftKey) return;
      event.preventDefault();
      if (!this.#busy) this.#submit();
    });
    this.button.addEventListener("click", () => this.#busy ? this.stop() : this.#submit());
    document.addEventListener("keydown", (event) => {
      // In a dialog it closes that.
      if (cancels(event) && this.#busy && !event.defaultPrevented &&
          !document.querySelector("dialog[open]")) {
        event.preventDefault();
        this.stop();
      }
    });
    this.#takeFiles();
    this.busy = false;
    this.#fit();
  }

  // The browser would open a dropped file in the page's place.
  #takeFiles() {
    document.addEventListener("dragover", (event) => {
      if (hasFiles(event.dataTransfer)) event.preventDefault();
    });
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      this.#add([...event.dataTransfer.files]);
    });
    this.input.addEventListener("paste", (event) => {
      // A spreadsheet gives a picture beside the text.
      if (!hasFiles(event.clipboardData) || event.clipboardData.types.includes("text/plain")) return;
      event.preventDefault();
      this.#add([...event.clipboardData.files]);
    });
  }

  async #add(files) {
    const place = this.#place;
    for (const file of files) {
      try {
        const block = fileBlock(file.name, await textOf(file));
        if (place !== this.#place) return;
        const {selectionStart: at, selectionEnd: end, value} = this.input;
        const before = value.slice(0, at);
        const gap = before === "" ? "" : before.endsWith("\n") ? "\n" : "\n\n";
        this.input.setRangeText(`${gap}${block}\n`, at, end, "end");
        this.#typed();
        this.input.focus();
      } catch (error) {
        toast(`${file.name} cannot be added: ${error.message}`);
      }
    }
  }

  #submit() {
    const text = this.input.value;
    const place = this.#place;
    if (text.trim() === "" || !this.send(text)) return;
    keepDraft(place, "");
    this.#show(draftOf(this.#place));
  }

  #typed() {
    keepDraft(this.#place, this.input.value);
    this.#fit();
  }

  #fit() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
    this.button.disabled = !this.#busy && this.input.value.trim() === "";
  }

  #show(text) {
    this.input.value = text;
    this.#fit();
  }

  /** What is typed from now on belongs to `place`; what was typed for it before is here again. */
  set place(place) {
    if (place === this.#place) return;
    // Over a slow connection people type before these scripts are here.
    const early = this.#place === null ? this.input.value : "";
    this.#place = place;
    const draft = draftOf(place);
    if (early === "" || early === draft) {
      this.#show(draft);
    } else {
      this.#show(draft === "" ? early : `${draft}\n${early}`);
      this.#typed();
    }
  }

  /** An answer is being written: the button stops it. What is typed meanwhile stays. */
  set busy(busy) {
    this.#busy = busy;
    const label = busy ? "Stop (Esc)" : "Send (Enter)";
    this.button.replaceChildren(icon(busy ? "stop" : "send"));
    this.button.setAttribute("aria-label", label);
    this.button.title = label;
    this.button.classList.toggle("stopping", busy);
    this.#fit();
  }

  focus() {
    // On a phone this would open the keyboard over what was just asked for.
    if (matchMedia("(hover: hover)").matches) this.input.focus();
  }
}

// Where prompts are written: Enter sends, Shift+Enter begins a line, Esc stops the answer.

import {byId, icon} from "./dom.js";

export class Composer {
  #busy = false;

  /** `send(text)` says whether it is sent; what is not stays here. */
  constructor({send, stop}) {
    this.input = byId("prompt");
    this.button = byId("send");
    this.send = send;
    this.stop = stop;
    this.input.addEventListener("input", () => this.#fit());
    this.input.addEventListener("keydown", (event) => {
      // While an input method composes, Enter is its own.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.#busy) this.#submit();
    });
    this.button.addEventListener("click", () => this.#busy ? this.stop() : this.#submit());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.#busy && !event.defaultPrevented) {
        event.preventDefault();
        this.stop();
      }
    });
    this.busy = false;
    this.#fit();
  }

  #submit() {
    const text = this.input.value;
    if (text.trim() !== "" && this.send(text)) this.text = "";
  }

  #fit() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
    this.button.disabled = !this.#busy && this.input.value.trim() === "";
  }

  set text(text) {
    this.input.value = text;
    this.#fit();
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

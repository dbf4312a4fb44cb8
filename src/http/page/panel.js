// The panel at the side: one tab at a time, opened by the buttons of the bar.

import {byId, cancels, el, icon} from "./dom.js";

const kTabs = [
  {name: "settings", label: "Settings", icon: "sliders"},
  {name: "models", label: "Models", icon: "layers"},
  {name: "speed", label: "Speed", icon: "chart"},
];

export class Panel {
  #open = null;

  /** `onShow(name)`: what is to be up to date. */
  constructor({onShow}) {
    this.onShow = onShow;
    this.node = byId("panel");
    byId("close-panel").append(icon("close"));
    byId("close-panel").addEventListener("click", () => this.#leave());
    this.tabs = kTabs.map(({name, label}) => el("button", {type: "button", role: "tab",
      id: `tab-${name}`, "aria-controls": `panel-${name}`, on: {click: () => this.open(name)}}, label));
    byId("tabs").append(...this.tabs);
    byId("tabs").addEventListener("keydown", (event) => this.#arrow(event));
    for (const {name, icon: sign} of kTabs) {
      const button = byId(`open-${name}`);
      button.append(icon(sign));
      button.title = button.getAttribute("aria-label");
      button.addEventListener("click", () => {
        if (this.#open === name) {
          this.close();
        } else {
          this.open(name);
          byId(`tab-${name}`).focus();
        }
      });
    }
    document.addEventListener("keydown", (event) => {
      if (cancels(event) && this.#open && !event.defaultPrevented &&
          !document.querySelector("dialog[open]")) {
        this.#leave();
      }
    });
    this.#update();
  }

  get shown() {
    return this.#open;
  }

  open(name) {
    this.#open = name;
    this.#update();
    this.onShow(name);
  }

  #leave() {
    const opener = byId(`open-${this.#open}`);
    this.close();
    opener.focus();
  }

  close() {
    this.#open = null;
    this.#update();
  }

  #arrow(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const at = kTabs.findIndex(({name}) => name === this.#open);
    const next = (at + step + kTabs.length) % kTabs.length;
    this.open(kTabs[next].name);
    this.tabs[next].focus();
  }

  #update() {
    this.node.hidden = this.#open === null;
    document.body.classList.toggle("with-panel", this.#open !== null);
    kTabs.forEach(({name}, i) => {
      const selected = name === this.#open;
      this.tabs[i].setAttribute("aria-selected", String(selected));
      this.tabs[i].tabIndex = selected ? 0 : -1;
      byId(`panel-${name}`).hidden = !selected;
      byId(`open-${name}`).setAttribute("aria-expanded", String(selected));
    });
  }
}

// Short notices over the page, and what can be taken back by them.

import {byId, el} from "./dom.js";

const kShown = 7000;       // milliseconds
const kOffered = 15_000;   // of one with a button
const kMost = 4;           // at once

/**
 * Says `text`, with a button `label` that calls `action()`. It goes by itself, but not while someone is
 * at it; `focus`: who came by keyboard is led to the button, and by `onLeave()` back.
 */
export function toast(text, {label, action, focus = false, onLeave = () => {}} = {}) {
  const node = el("div", {class: "toast"}, el("span", {}, text));
  let timer = null;
  const go = () => {
    const led = node.contains(document.activeElement);
    clearTimeout(timer);
    node.remove();
    if (led) onLeave();
  };
  const start = () => {
    clearTimeout(timer);
    timer = setTimeout(go, label ? kOffered : kShown);
  };
  const isUsed = () => node.matches(":hover") || node.contains(document.activeElement);
  const button = label ? el("button", {type: "button", class: "quiet-button", on: {click: () => {
    go();
    action();
  }}}, label) : null;
  if (button) node.append(button);
  for (const event of ["pointerenter", "focusin"]) node.addEventListener(event, () => clearTimeout(timer));
  for (const event of ["pointerleave", "focusout"]) {
    node.addEventListener(event, () => setTimeout(() => node.isConnected && !isUsed() && start()));
  }
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    go();
  });
  const toasts = byId("toasts");
  // What is said again takes the place of the first time.
  if (!label) [...toasts.children].find((other) => other.textContent === text)?.remove();
  toasts.append(node);
  while (toasts.childElementCount > kMost) toasts.firstElementChild.remove();
  start();
  if (focus) button?.focus();
}

// Asks for the server's key.

import {byId} from "./dom.js";

/** Resolves to the key, or to null where none is given. `again`: one was refused. */
export function askForKey(again) {
  const dialog = byId("key-dialog");
  const form = byId("key-form");
  const input = byId("key");
  byId("key-text").textContent = again
    ? "It did not accept the last one." : "It was started with --api-key.";
  input.value = "";
  return new Promise((resolve) => {
    let given = null;
    const submit = (event) => {
      event.preventDefault();
      const typed = input.value.trim();
      // A header could not carry it, and no request would reach the server any more.
      if (/[^\x21-\x7e]/.test(typed)) {
        byId("key-text").textContent =
          "It has a character that no key has, perhaps one that cannot be seen: type it, or copy it from elsewhere.";
        return;
      }
      given = typed || null;
      dialog.close();
    };
    const cancel = () => dialog.close();
    form.addEventListener("submit", submit);
    byId("key-cancel").addEventListener("click", cancel);
    dialog.addEventListener("close", () => {
      form.removeEventListener("submit", submit);
      byId("key-cancel").removeEventListener("click", cancel);
      input.value = "";
      resolve(given);
    }, {once: true});
    dialog.showModal();
    input.focus();
  });
}

// The list of conversations: beside the text where there is room, over it otherwise. There it is the
// only thing that can be reached until it is closed.

import {byId, cancels, icon} from "./dom.js";

/** Returns {closeIfOver()}: after a choice in it. */
export function setUpSidebar() {
  const {body} = document;
  const narrow = matchMedia("(max-width: 800px)");
  const toggle = byId("toggle-sidebar");
  toggle.append(icon("menu"));
  toggle.title = "Conversations";
  byId("close-sidebar").append(icon("close"));
  const isOpen = () => narrow.matches ? body.classList.contains("sidebar-open")
    : !body.classList.contains("sidebar-closed");
  const set = (open) => {
    const over = open && narrow.matches;
    const led = byId("sidebar").contains(document.activeElement);
    body.classList.toggle("sidebar-open", over);
    if (!narrow.matches) body.classList.toggle("sidebar-closed", !open);
    byId("shade").hidden = !over;
    for (const behind of [byId("main"), byId("panel")]) behind.inert = over;
    toggle.setAttribute("aria-expanded", String(open));
    if (over) byId("close-sidebar").focus();
    else if (led && !open) toggle.focus();
  };
  toggle.addEventListener("click", () => set(!isOpen()));
  byId("close-sidebar").addEventListener("click", () => set(false));
  byId("shade").addEventListener("click", () => set(false));
  narrow.addEventListener("change", () => set(!narrow.matches));
  document.addEventListener("keydown", (event) => {
    if (cancels(event) && narrow.matches && isOpen() && !event.defaultPrevented &&
        !document.querySelector("dialog[open]")) {
      event.preventDefault();
      set(false);
    }
  });
  set(!narrow.matches);
  return {closeIfOver: () => narrow.matches && set(false)};
}

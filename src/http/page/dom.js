// Makes DOM nodes. There is no way here to make one from text that holds markup: strings become
// text nodes, and attributes that could run or style something are refused.

const kSvg = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (name === "data") {
      Object.assign(node.dataset, value);
    } else if (name === "style" || /^on/i.test(name)) {
      throw new Error(`attribute ${name}: use classes and 'on'`);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (Array.isArray(child)) append(node, child);
    else node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** An HTML element: el("p", {class: "x", on: {click}}, "text", node, [more]). */
export function el(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS(kSvg, tag), props, children);
}

/** The element with this id; an error where index.html lacks it. */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`index.html has no #${id}`);
  return node;
}

// Strokes on a field of 16 by 16.
const kIcons = {
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  plus: "M8 3v10M3 8h10",
  send: "M8 13V3.5M4 7.2L8 3.2l4 4",
  stop: "M4.5 4.5h7v7h-7z",
  copy: "M5.5 5.5h7.5v8h-7.5zM10.5 5.5v-3h-7.5v8h2.5",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  edit: "M3 13l.7-2.9 7-7a1.3 1.3 0 0 1 1.9 0l.3.3a1.3 1.3 0 0 1 0 1.9l-7 7z",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9",
  download: "M8 2.5v7.5M5 7.2l3 3 3-3M3 13.2h10",
  upload: "M8 10V2.5M5 5.5l3-3 3 3M3 13.2h10",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5l3.2 3.2L13 5",
  down: "M8 3v9.5M4 8.7l4 4 4-4",
  left: "M10 3.5L5.5 8l4.5 4.5",
  right: "M6 3.5L10.5 8 6 12.5",
  go: "M5 3.5l7 4.5-7 4.5z",
  sliders: "M2.5 4.5h6M11.5 4.5h2M10 3v3M2.5 11.5h2M7.5 11.5h6M6 10v3",
  layers: "M8 2.5l6 3-6 3-6-3zM2.3 8.6L8 11.4l5.7-2.8M2.3 11.4L8 14.2l5.7-2.8",
  chart: "M2.5 2.5v11h11M5 10.5l2.7-3.2 2.3 1.6 3.2-4.4",
  light: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  dark: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z",
  auto: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 2.5v11M10.2 3.2v9.6M12.2 4.8v6.4",
};

export function icon(name) {
  return svg("svg", {class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true"},
    svg("path", {d: kIcons[name]}));
}

/** A button that shows only an icon; `label` is its name and its tooltip. */
export function iconButton(name, label, onClick, props = {}) {
  return el("button", {type: "button", class: "icon-button", "aria-label": label, title: label,
    on: {click: onClick}, ...props}, icon(name));
}

// By a selection, as navigator.clipboard is only for https and the machine's own pages. What was
// selected before is selected again. Whether it was possible.
function copySelected(text) {
  const selection = getSelection();
  const before = Array.from({length: selection.rangeCount}, (_, i) => selection.getRangeAt(i));
  const focused = document.activeElement;
  const area = el("textarea", {class: "hidden", "aria-hidden": "true", readonly: true});
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus({preventScroll: true});
  selection.removeAllRanges();
  for (const range of before) selection.addRange(range);
  return copied;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

// Whether an input method composes: the key is for that. Safari tells it by the code alone when the key
// ends the composition.
function composes(event) {
  return event.isComposing || event.keyCode === 229;
}

/** Whether it is Enter, and not that of an input method. */
export function confirms(event) {
  return event.key === "Enter" && !composes(event);
}

/** Whether it is Escape, and not that of an input method. */
export function cancels(event) {
  return event.key === "Escape" && !composes(event);
}

const told = new WeakMap();  // buttons that show what copying came to: their content, the timer

/** Copies `text`; the button shows for a moment that it did, or that it could not. */
export async function copyFrom(button, text) {
  const copied = await copy(text);
  const {before, timer} = told.get(button) ?? {before: [...button.childNodes]};
  clearTimeout(timer);
  button.replaceChildren(...copied ? [icon("check")] : ["Not possible here"]);
  told.set(button, {before, timer: setTimeout(() => {
    button.replaceChildren(...before);
    told.delete(button);
  }, 1200)});
}

/** Offers `value` as a file of JSON. */
export function downloadJson(name, value) {
  const blob = new Blob([JSON.stringify(value, null, 2)], {type: "application/json"});
  const url = URL.createObjectURL(blob);
  const link = el("a", {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Says something to who listens instead of looking (the page's one live region). */
export function announce(text) {
  byId("announcer").textContent = text;
}

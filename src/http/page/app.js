// Puts the page together. Each part has one job: server.js knows the server, chat.js the
// conversation that is shown, compare.js the side by side, panel.js what opens at the side.

import {askAgain, onKeyWanted} from "./api.js";
import {Chat} from "./chat.js";
import {Compare} from "./compare.js";
import {Composer} from "./composer.js";
import {ContextNote} from "./context_note.js";
import {Conversations, placeOf} from "./conversations.js";
import {figuresOf} from "./answer.js";
import {byId, el, icon} from "./dom.js";
import {figureItems} from "./figures.js";
import {rate} from "./format.js";
import {askForKey} from "./key_dialog.js";
import {ModelsPanel, progressBar} from "./models_panel.js";
import {setUpSidebar} from "./narrow_sidebar.js";
import {Panel} from "./panel.js";
import {server} from "./server.js";
import {settings} from "./settings.js";
import {SettingsForm, fieldId} from "./settings_form.js";
import {Sidebar} from "./sidebar.js";
import {SpeedPanel} from "./speed_panel.js";
import {toast} from "./toast.js";

function setUpTheme() {
  const button = byId("theme");
  const names = {auto: "as the system", light: "light", dark: "dark"};
  const show = () => {
    const theme = window.outriderTheme.get();
    button.replaceChildren(icon(theme));
    button.setAttribute("aria-label", `Theme: ${names[theme]}`);
    button.title = button.getAttribute("aria-label");
  };
  button.addEventListener("click", () => {
    window.outriderTheme.next();
    show();
  });
  show();
}

function setUpColours() {
  const button = byId("colours");
  const show = () => button.setAttribute("aria-checked", String(settings.get("colours")));
  button.addEventListener("click", () => settings.set("colours", !settings.get("colours")));
  settings.addEventListener("change", show);
  show();
}

/** What stands in the way: {kind: "loading" | "bad" | "none", text, progress, label of the button}. */
function hindrance() {
  const {keyWanted, loading, model, problem} = server;
  const own = model?.status;
  if (loading || own?.state === "loading") {
    const progress = loading?.progress ?? own.progress ?? 0;
    const text = `Opening ${loading?.model ?? model?.id ?? "the model"}, ${rate(progress)}`;
    return {kind: "loading", text, progress};
  }
  if (!problem && own?.state !== "failed") return {kind: "none"};
  return {kind: "bad", label: keyWanted ? "Give a key" : "Try again",
    text: problem ?? `${model.id} could not be opened: ${own.error ?? "no reason given"}`};
}

/**
 * The server is asked every few seconds. What is the same stays as it is: the button has the focus of
 * who came by keyboard, and what is put into an alert is read out.
 */
class Banner {
  #shown = {kind: "none"};

  constructor() {
    this.node = byId("banner");
  }

  show() {
    const before = this.#shown;
    const now = this.#shown = hindrance();
    if (JSON.stringify(now) === JSON.stringify(before)) return;
    if (now.kind === "loading" && before.kind === "loading") {
      this.node.firstChild.data = now.text;
      this.node.querySelector("progress").value = now.progress;
      return;
    }
    this.node.hidden = now.kind === "none";
    this.node.className = now.kind === "bad" ? "banner bad" : "banner";
    this.node.replaceChildren(...this.#parts(now));
  }

  #parts({kind, label, progress, text}) {
    if (kind === "none") return [];
    if (kind === "loading") return [text, progressBar(progress, "Opening")];
    return [text, el("button", {type: "button", class: "quiet-button", on: {click: () => {
      askAgain();
      server.refresh();
    }}}, label)];
  }
}

/** The choice of the model, its state, and what stands in the way. */
function setUpModels() {
  const select = byId("model");
  const dot = byId("model-state");
  const banner = new Banner();
  let offered = "";
  select.addEventListener("change", () => server.choose(select.value));
  const show = () => {
    const ids = server.models.map(({id}) => id);
    const none = server.keyWanted ? "key needed" : server.problem ? "no model" : "";
    if (JSON.stringify([ids, none]) !== offered) {
      offered = JSON.stringify([ids, none]);
      select.replaceChildren(...(ids.length > 0 ? ids.map((id) => el("option", {value: id}, id))
        : [el("option", {value: ""}, none)]));
    }
    select.value = server.model?.id ?? "";
    select.disabled = ids.length < 2;
    dot.className = `dot ${server.loading ? "loading" : server.state}`;
    dot.setAttribute("aria-label", server.loading ? "loading" : server.state);
    byId("version").textContent = server.status?.version ? `v${server.status.version}` : "";
    banner.show();
  };
  server.addEventListener("change", show);
}

/** Chat or side by side; the composer serves both. */
class Views {
  comparing = false;

  constructor(conversations) {
    this.conversations = conversations;
    const onChange = () => this.show();
    this.chat = new Chat(conversations, {onChange, toast,
      onFocusLost: () => this.composer?.focus(),
      onNew: () => byId("new-conversation").click()});
    this.compare = new Compare({onChange});
    this.composer = new Composer({send: (text) => this.#active.send(text),
      stop: () => this.#active.stop()});
    this.context = new ContextNote();
    for (const [id, comparing] of [["view-chat", false], ["view-compare", true]]) {
      byId(id).addEventListener("click", () => this.to(comparing));
    }
  }

  get #active() {
    return this.comparing ? this.compare : this.chat;
  }

  to(comparing) {
    this.comparing = comparing;
    byId("chat-view").hidden = comparing;
    byId("compare-view").hidden = !comparing;
    byId("view-chat").setAttribute("aria-pressed", String(!comparing));
    byId("view-compare").setAttribute("aria-pressed", String(comparing));
    byId("prompt").placeholder = comparing ? "A prompt for both" : "Ask something";
    this.show();
    this.composer.focus();
  }

  show() {
    if (!this.context) return;  // while the parts are made
    this.composer.place = this.comparing ? "side by side" : placeOf(this.conversations.current);
    this.context.show(this.comparing ? [] : this.conversations.current.messages);
    const {running} = this.#active;
    if (this.wasRunning !== running) this.composer.busy = this.wasRunning = running;
    byId("hint").textContent = running ? "Esc stops" : "Enter sends, Shift+Enter begins a line";
    this.#showLive();
  }

  // Of the answer that is written, or of the last one.
  #showLive() {
    const last = this.conversations.current.messages.at(-1);
    const figures = this.comparing ? null
      : this.chat.figures ?? (last?.role === "assistant" ? figuresOf(last) : null);
    byId("live").replaceChildren(...(this.chat.running ? figureItems(figures) : []));
  }
}

async function start() {
  onKeyWanted(askForKey);
  setUpTheme();
  setUpColours();
  setUpModels();
  const sidebarPlace = setUpSidebar();
  const conversations = await Conversations.open();
  conversations.addEventListener("said", ({detail}) => toast(detail));
  if (conversations.problem) toast(conversations.problem);
  const views = new Views(conversations);
  conversations.addEventListener("heard", () => views.chat.show());
  new Sidebar(conversations, {
    toast,
    onRemove: (conversation) => views.chat.forget(conversation),
    onChoose: ({stay = false} = {}) => {
      views.to(false);
      views.chat.show();
      if (!stay) sidebarPlace.closeIfOver();
    },
  });
  new SettingsForm(conversations);
  const panels = {models: new ModelsPanel(), speed: new SpeedPanel()};
  const panel = new Panel({onShow: (name) => {
    panels[name]?.show();
    server.details();
  }});
  settings.addEventListener("refused", ({detail: {name, problem}}) => {
    panel.open("settings");
    byId(fieldId(name)).focus();
    toast(`Not sent. ${byId(fieldId(name)).labels[0].firstChild.textContent}: ${problem}`);
  });
  settings.addEventListener("change", ({detail}) => {
    if (detail === "colours") views.chat.repaint();
    if (detail === "system" || detail === null) views.chat.show();
  });
  let model = null;
  server.addEventListener("change", () => {
    // The welcome names the model.
    const now = JSON.stringify([server.model?.id, server.model?.draft]);
    if (now !== model && conversations.current.messages.length === 0) views.chat.show({anew: true});
    model = now;
    views.show();  // how long a conversation may be is known now
  });
  views.chat.show();
  views.composer.focus();
  await server.start();
}

start();

// The panel of models and drafters: what is open, how far what loads is, and why something is off.

import {byId, el} from "./dom.js";
import {bytes, count, fileName, parameters, rate} from "./format.js";
import {colourClass} from "./painter.js";
import {server} from "./server.js";

const kStates = {absent: "not open", loading: "opening", ready: "ready", failed: "failed"};

export function stateDot(state) {
  return el("span", {class: `dot ${state}`, "aria-hidden": "true"});
}

export function progressBar(progress, label) {
  return el("progress", {max: "1", value: String(progress ?? 0), "aria-label": label});
}

function facts(rows) {
  const given = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", {class: "facts"},
    given.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function problem(text) {
  return text ? el("p", {class: "problem"}, text) : null;
}

function draftLine({draft, offered_draft: offered}) {
  if (draft) return `Draft model: ${draft}`;
  return "No draft model: guesses come from texts only." +
    (offered ? ` ${offered} beside it could guess, too (-d).` : "");
}

function modelItem(model, chosen) {
  const {state = "absent", progress = 0, error = null} = model.status ?? {};
  const label = state === "loading" ? `${kStates.loading}, ${rate(progress)}` : kStates[state] ?? state;
  return el("li", {class: `card ${chosen ? "chosen" : ""}`},
    el("button", {type: "button", class: "card-choice", "aria-pressed": String(chosen),
      on: {click: () => server.choose(model.id)}},
      stateDot(state), el("span", {class: "card-name"}, model.id),
      el("span", {class: "muted small"}, label)),
    state === "loading" ? progressBar(progress, `Opening ${model.id}`) : null,
    el("p", {class: "muted small"}, draftLine(model)),
    problem(error),
    state === "absent" ? el("p", {class: "muted small"}, "Opened by its first message.") : null);
}

function ownFacts(info) {
  if (!info) return [];
  const kernels = info.kernels === "own" ? "Outrider's own" : info.kernels && "llama.cpp's";
  return [["Model", info.name ?? info.description], ["File", fileName(info.path)],
    ["Parameters", info.n_params ? parameters(info.n_params) : null],
    ["Size", info.size_bytes ? bytes(info.size_bytes) : null],
    ["Kernels", info.kernels_reason ? `${kernels}: ${info.kernels_reason}` : kernels]];
}

function modelSection(title, status) {
  const state = status.state;
  return el("section", {},
    el("h3", {}, title, el("span", {class: "state"}, stateDot(state), kStates[state] ?? state)),
    state === "loading" ? progressBar(status.progress, `${title}: opening`) : null,
    facts(ownFacts(status.info)),
    problem(status.error?.message),
    (status.notes ?? []).map((note) => el("p", {class: "muted small"}, note)));
}

function exactnessSection(exactness) {
  if (!exactness) return null;
  return el("section", {}, el("h3", {}, "Exactness"),
    el("p", {}, exactness.verdict),
    [exactness.reason, exactness.coverage].filter(Boolean).map((text) =>
      el("p", {class: "muted small"}, text)));
}

// Why a drafter does not guess although nothing went wrong.
function whyOff(drafter) {
  if (drafter.attached || drafter.error || drafter.state === "loading") return null;
  return el("p", {class: "muted small"}, drafter.kind === "model"
    ? "No draft model was given (-d)." : "Not attached to this model.");
}

// `used`: how often each was asked since the start, where that is known.
function drafterItem(drafter, used) {
  const idle = drafter.attached && used && !(used[drafter.name]?.calls > 0);
  const state = drafter.attached ? "ready" : drafter.state === "ready" ? "absent" : drafter.state;
  const about = [drafter.kind === "model" ? fileName(drafter.path) : null,
    drafter.memory_bytes > 0 ? bytes(drafter.memory_bytes) : null,
    drafter.remembered ? `remembers ${count(drafter.remembered.tokens)} tokens` : null];
  return el("li", {class: "card"},
    el("div", {class: "card-line"}, el("span", {class: `swatch ${colourClass(drafter.name)}`}),
      el("span", {class: "card-name"}, drafter.name),
      el("span", {class: "state small"}, stateDot(state), drafter.attached ? idle ? "ready" : "guessing"
        : state === "absent" ? "off" : kStates[state] ?? state)),
    about.some(Boolean) ? el("p", {class: "muted small"}, about.filter(Boolean).join(" · ")) : null,
    problem(drafter.error?.message), whyOff(drafter),
    idle ? el("p", {class: "muted small"}, "The planner has not used it so far.") : null,
    (drafter.files ?? []).map((file) => el("p", {class: file.error ? "problem" : "muted small"},
      `${fileName(file.path)}${file.tier ? ` (${file.tier})` : ""}: ` +
      (file.error?.message ?? `${kStates[file.state] ?? file.state}, ${bytes(file.file_bytes)}`))));
}

export class ModelsPanel {
  #shown = "";

  constructor() {
    this.node = byId("panel-models");
    server.addEventListener("change", () => this.show());
  }

  show() {
    if (this.node.hidden) return;
    const {models, status, problem: why, statusProblem, model} = server;
    const used = Object.entries(server.speculation?.drafters ?? {}).map(([name, {calls}]) => [name, calls > 0]);
    const shown = JSON.stringify([models, status, why, statusProblem, model?.id, used]);
    if (shown === this.#shown && this.node.firstChild) return;  // a button in focus keeps it
    this.#shown = shown;
    this.node.replaceChildren(
      el("section", {}, el("h3", {}, "Models"), problem(why),
        el("ul", {class: "cards"}, models.map((one) => modelItem(one, one === model)))),
      ...this.#details(status, statusProblem));
  }

  #details(status, why) {
    if (!status) {
      return [el("p", {class: "muted"}, why ?? "More about the model is known when it is open.")];
    }
    const serving = [["Context", status.n_ctx ? `${count(status.n_ctx)} tokens` : null],
      ["Slots", status.slots], ["Running", status.running], ["Waiting", status.queued]];
    return [problem(why), modelSection("Target", status.target),
      modelSection("Draft model", status.draft), exactnessSection(status.exactness),
      el("section", {}, el("h3", {}, "Drafters"),
        el("ul", {class: "cards"}, (status.drafters ?? []).map((drafter) =>
          drafterItem(drafter, server.speculation?.drafters)))),
      el("section", {}, el("h3", {}, "Service"), facts(serving))].filter(Boolean);
  }
}

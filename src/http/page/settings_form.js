// The form for what requests are sent with. A value that the server would refuse is not taken: the
// field says what would be right, and nothing is sent until it is.

import {byId, el} from "./dom.js";
import {defaultsOf} from "./api.js";
import {fieldsFrom, kMoreNumbers, kNumbers, kRules, ranged, settings} from "./settings.js";
import {server} from "./server.js";
import {toolsFrom} from "./tool_calls.js";

const kWidth = ranged({name: "width", label: "Width", step: 1,
  hint: "tokens of a step at most; 1: no drafts"});

/** Of the element that shows a setting. */
export function fieldId(name) {
  return `setting-${name}`;
}

/** `input` for a setting whose text can be wrong: problemOf() says how, "" is right. */
function checked(name, input, problemOf) {
  const problem = el("span", {class: "field-problem", id: `${input.id}-problem`, role: "alert"});
  input.setAttribute("aria-describedby", problem.id);
  input.value = settings.get(name);
  const check = () => {
    problem.textContent = problemOf();
    input.setAttribute("aria-invalid", String(problem.textContent !== ""));
    settings.setProblem(name, problem.textContent);
    return problem.textContent === "";
  };
  input.addEventListener("input", () => {
    if (check()) settings.set(name, input.value.trim());
  });
  check();  // what was stored may be wrong, too
  return problem;
}

function numberField(field) {
  const {name, label, min, max, step, hint} = field;
  const id = fieldId(name);
  const input = el("input", {id, type: "number",
    ...(Number.isFinite(min) && {min}), ...(Number.isFinite(max) && {max}), step: step < 1 ? "any" : step,
    placeholder: "auto", inputmode: step < 1 ? "decimal" : "numeric"});
  const problem = checked(name, input, () => {
    const value = Number(input.value);
    const right = input.validity.valid && (input.value === "" ||
      (value >= min && value <= max && (step < 1 || Number.isInteger(value))));
    const range = Number.isFinite(max) ? `from ${min} to ${max}` : `of at least ${min}`;
    return right ? "" : `${step < 1 ? "a number" : "a whole number"} ${range}`;
  });
  return el("div", {class: "field"},
    el("label", {for: id}, label, hint ? el("small", {}, hint) : null), input, problem);
}

// That of the conversation that is shown, and of those that are begun after it was changed: each
// keeps the one that it has.
class SystemField {
  constructor(conversations) {
    this.conversations = conversations;
    this.input = el("textarea", {id: fieldId("system"), rows: "3",
      placeholder: "None: what the model's template has"});
    this.input.addEventListener("input", () => this.set(this.input.value));
    this.input.addEventListener("change", () => {
      if (this.#begun) conversations.save(conversations.current, {touched: false});
    });
    this.node = el("div", {class: "field tall"}, el("label", {for: this.input.id}, "System prompt",
      el("small", {}, "of this conversation and of new ones")), this.input);
    this.show();
  }

  get #begun() {
    return this.conversations.current.messages.length > 0;
  }

  set(system) {
    const {current} = this.conversations;
    if (this.#begun) {
      current.system = system;
      if (current.key !== null) this.conversations.savePart(current);
    }
    settings.set("system", system);
  }

  show() {
    const value = settings.systemOf(this.conversations.current);
    if (this.input.value !== value) this.input.value = value;
  }
}

// JSON; `parse` throws an Error that says what is wrong with it.
function jsonField(name, label, hint, placeholder, parse) {
  const id = fieldId(name);
  const input = el("textarea", {id, rows: "3", class: "mono", spellcheck: "false", placeholder});
  const problem = checked(name, input, () => {
    try {
      parse(input.value);
      return "";
    } catch (error) {
      return error.message;
    }
  });
  return el("div", {class: "field tall"},
    el("label", {for: id}, label, el("small", {}, hint)), input, problem);
}

function toolsField() {
  return jsonField("tools", "Tools", "what the model may call; you give the results",
    "None: a JSON array, as in OpenAI's API", toolsFrom);
}

// Folded unless something in it is set.
function moreSampling() {
  const set = settings.get("more") !== "" || kMoreNumbers.some(({name}) => settings.get(name) !== "");
  return el("details", {class: "more", open: set}, el("summary", {}, "More"),
    kMoreNumbers.map(numberField),
    jsonField("more", "Further fields", "of the request, as in the server's API",
      'None: an object, such as {"logit_bias": {"15": -1}}', fieldsFrom));
}

function speculationSwitch() {
  const button = el("button", {type: "button", class: "switch", role: "switch",
    id: fieldId("speculation"), "aria-labelledby": "speculation-label"},
    el("span", {class: "switch-track", "aria-hidden": "true"}));
  const update = () => button.setAttribute("aria-checked", String(settings.get("speculation")));
  button.addEventListener("click", () => {
    settings.set("speculation", !settings.get("speculation"));
    update();
  });
  update();
  return el("div", {class: "field"}, el("span", {id: "speculation-label", class: "label"},
    "Speculation"), button);
}

function ruleField() {
  const select = el("select", {id: fieldId("rule")},
    kRules.map(([value, label]) => el("option", {value}, label)));
  select.value = settings.get("rule");
  select.addEventListener("change", () => settings.set("rule", select.value));
  return el("div", {class: "field tall"}, el("label", {for: select.id}, "Acceptance rule"), select);
}

/** The names to choose from: what this server has, and what was chosen before. */
function drafterNames() {
  const known = (server.status?.drafters ?? []).map(({name}) => name);
  return [...new Set([...known, ...settings.get("drafters")])];
}

export class SettingsForm {
  #names = null;
  #asked = null;   // of which model the defaults are
  #defaults = {};

  constructor(conversations) {
    this.node = byId("panel-settings");
    this.system = new SystemField(conversations);
    conversations.addEventListener("change", () => this.system.show());
    settings.addEventListener("change", ({detail}) => {
      if (detail === null) this.#build();
      this.#showState();
    });
    server.addEventListener("change", () => {
      this.#showDrafters();
      this.#askDefaults();
    });
    this.#build();
  }

  #build() {
    this.drafters = el("div", {class: "checks"});
    this.more = el("div", {class: "field-group"}, numberField(kWidth), ruleField(),
      el("fieldset", {class: "field tall"}, el("legend", {}, "Drafters",
        el("small", {}, "none ticked: the planner chooses among all")), this.drafters));
    this.resetButton = el("button", {type: "button", class: "quiet-button",
      on: {click: () => this.#reset()}}, "Back to the server's defaults");
    this.node.replaceChildren(
      el("p", {class: "muted small"}, "Sent with each message from now on. What is empty, the " +
        "server decides."),
      el("section", {}, this.system.node, toolsField()),
      el("section", {}, el("h3", {}, "Sampling"), kNumbers.map(numberField),
        moreSampling()),
      el("section", {}, el("h3", {}, "Speculation"), speculationSwitch(), this.more),
      this.resetButton);
    this.system.show();
    this.#names = null;
    this.#showDrafters();
    this.#showDefaults();
    this.#showState();
  }

  #reset() {
    this.system.set("");
    settings.reset();
  }

  // What the server decides where a field is empty; asked once of each model that is open.
  async #askDefaults() {
    const id = server.status ? server.model?.id : undefined;
    if (!id || id === this.#asked) return;
    this.#asked = id;
    try {
      this.#defaults = await defaultsOf(id);
    } catch {
      this.#defaults = {};  // the fields say "auto"
    }
    this.#showDefaults();
  }

  #showDefaults() {
    for (const {name} of [...kNumbers, ...kMoreNumbers]) {
      const value = this.#defaults[name];
      const known = typeof value === "number" && name !== "seed";  // one a request
      const input = byId(fieldId(name));
      input.placeholder = known ? String(Number(value.toPrecision(4))) : "auto";
      input.title = known ? `Empty: ${input.placeholder}, the server's` : "";
    }
  }

  #showState() {
    this.more.hidden = !settings.get("speculation");
    this.resetButton.hidden = settings.changed() === 0;
    byId("open-settings").classList.toggle("marked", settings.changed() > 0);
  }

  #showDrafters() {
    const names = drafterNames();
    if (JSON.stringify(names) === this.#names) return;
    this.#names = JSON.stringify(names);
    this.drafters.replaceChildren(...names.map((name) => {
      const box = el("input", {type: "checkbox", value: name});
      box.checked = settings.get("drafters").includes(name);
      box.addEventListener("change", () => {
        const others = settings.get("drafters").filter((one) => one !== name);
        settings.set("drafters", box.checked ? [...others, name] : others);
      });
      return el("label", {class: "check"}, box, name);
    }));
    if (names.length === 0) {
      this.drafters.append(el("span", {class: "muted small"}, "Known when the model is open."));
    }
  }
}

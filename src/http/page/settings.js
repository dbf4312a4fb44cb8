// What each request is sent with. Empty means that the server decides, and the field is not sent.

import {kRanges} from "./fields.js";
import {toolsFrom} from "./tool_calls.js";

const kKey = "outrider.settings";

/** `field` with the range that the server takes; OpenAI's name for some is not the table's. */
export function ranged({field, ...number}) {
  return {min: -Infinity, max: Infinity, ...kRanges[field ?? number.name], ...number};
}

/** Numbers; each is a field of the request. */
export const kNumbers = [
  {name: "temperature", field: "temp", label: "Temperature", step: 0.1, hint: "0: always the likeliest"},
  {name: "top_k", label: "Top k", step: 1, hint: "0: all tokens"},
  {name: "top_p", label: "Top p", step: 0.05},
  {name: "min_p", label: "Min p", step: 0.01},
  {name: "seed", label: "Seed", step: 1, max: Number.MAX_SAFE_INTEGER, hint: "the same seed, the same text"},
  {name: "max_tokens", label: "Tokens at most", step: 1, hint: "-1: until the answer ends"},
].map(ranged);

/** Those that are rarely set. */
export const kMoreNumbers = [
  {name: "repeat_penalty", label: "Repeat penalty", step: 0.05, hint: "1: none"},
  {name: "presence_penalty", label: "Presence penalty", step: 0.1, hint: "0: none"},
  {name: "frequency_penalty", label: "Frequency penalty", step: 0.1, hint: "0: none"},
  {name: "typical_p", field: "typical", label: "Typical p", step: 0.05, hint: "1: off"},
  {name: "xtc_probability", label: "XTC probability", step: 0.1, hint: "0: off"},
  {name: "xtc_threshold", label: "XTC threshold", step: 0.05},
  {name: "dry_multiplier", label: "DRY multiplier", step: 0.1, hint: "0: off"},
  {name: "dry_base", label: "DRY base", step: 0.05},
  {name: "dry_allowed_length", label: "DRY allowed length", step: 1},
].map(ranged);

const kAllNumbers = [...kNumbers, ...kMoreNumbers];

// What the page itself decides: an answer could not be shown without.
const kOwnFields = ["model", "messages", "n", "stream", "stream_options", "token_sources", "return_progress"];

/** Further fields of requests, from their JSON. An Error says what is wrong with it. */
export function fieldsFrom(text) {
  if (text.trim() === "") return {};
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`No JSON: ${error.message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error('An object is wanted, such as {"logit_bias": {"15": -1}}');
  }
  const own = Object.keys(value).find((name) => kOwnFields.includes(name));
  if (own) throw new Error(`“${own}” is the page's own`);
  const {speculative = true} = value;
  if (typeof speculative !== "boolean" && (!(speculative instanceof Object) || Array.isArray(speculative))) {
    throw new Error("“speculative” is true, false or an object");
  }
  return value;
}

export const kRules = [
  ["", "the server's"],
  ["coupled", "coupled: the very text of plain decoding"],
  ["rejection", "rejection: its distribution"],
  ["block", "block: its distribution, whole drafts at once"],
];

const kDefaults = {
  system: "", tools: "", speculation: true, drafters: [], rule: "", width: "", colours: true, model: "",
  compareTogether: false, more: "",
  ...Object.fromEntries(kAllNumbers.map(({name}) => [name, ""])),
};

class Settings extends EventTarget {
  #values = {...kDefaults};
  #problems = new Map();  // of fields whose text is no value: name -> what is wrong

  constructor() {
    super();
    this.#read();
    // All of them are kept together: with what it knew before, this tab would undo another one's.
    addEventListener("storage", ({key, newValue}) => {
      if (key !== kKey || newValue === null) return;
      const {colours, model} = this.#values;
      this.#read();
      this.#values.model = model;  // two tabs may ask two models
      for (const name of [...(colours === this.get("colours") ? [] : ["colours"]), null]) {
        this.dispatchEvent(new CustomEvent("change", {detail: name}));
      }
    });
  }

  #read() {
    try {
      const stored = JSON.parse(localStorage.getItem(kKey) ?? "{}");
      for (const [name, value] of Object.entries(kDefaults)) {
        const given = stored[name];
        const fits = Array.isArray(value) ? Array.isArray(given) && given.every((entry) =>
          typeof entry === "string") : typeof given === typeof value;
        if (fits) this.#values[name] = given;
      }
    } catch {
      // No storage, or what is in it is none of ours: the defaults.
    }
  }

  get(name) {
    return this.#values[name];
  }

  set(name, value) {
    if (!(name in kDefaults)) throw new Error(`no setting ${name}`);
    this.#values[name] = value;
    this.#keep();
    this.dispatchEvent(new CustomEvent("change", {detail: name}));
  }

  /** All that the form shows, back to what the server decides. */
  reset() {
    const {colours, model, compareTogether} = this.#values;
    this.#values = {...kDefaults, colours, model, compareTogether};
    this.#problems.clear();
    this.#keep();
    this.dispatchEvent(new CustomEvent("change", {detail: null}));
  }

  /** The instructions of `conversation`: its own once it has begun, until then the form's. */
  systemOf(conversation) {
    return conversation.system ?? this.get("system");
  }

  /** How many differ from their defaults, of those that the form shows. */
  changed() {
    return Object.keys(kDefaults).filter((name) =>
      !["colours", "model", "compareTogether"].includes(name) &&
      JSON.stringify(this.#values[name]) !== JSON.stringify(kDefaults[name])).length;
  }

  /** What is wrong with the text in a field, which is not its value then; "": nothing. */
  setProblem(name, problem) {
    if (problem === "") this.#problems.delete(name);
    else this.#problems.set(name, problem);
  }

  /**
   * Whether requests are what the form shows. If not, nothing may be sent: an event "refused" has
   * the field's {name, problem}.
   */
  mayBeSent() {
    const found = [...this.#problems].find(([name]) => name !== "width" || this.get("speculation"));
    if (!found) return true;
    const [name, problem] = found;
    this.dispatchEvent(new CustomEvent("refused", {detail: {name, problem}}));
    return false;
  }

  #keep() {
    try {
      localStorage.setItem(kKey, JSON.stringify(this.#values));
    } catch {
      // They hold until the page is closed.
    }
  }

  // `given`: what the further fields say of it, which has precedence.
  #speculative(given) {
    const drafters = this.get("drafters");
    const rule = this.get("rule");
    const width = this.get("width");
    const fields = {...(drafters.length > 0 && {drafters}), ...(rule && {rule}),
      ...(width !== "" && {width: Number(width)}), ...(given instanceof Object && given)};
    return Object.keys(fields).length > 0 ? fields : true;
  }

  /**
   * The body of a request for `messages`, in OpenAI's form. `speculation` is for the side by side,
   * which needs both; otherwise the settings decide, as they do of `system`, unless the messages
   * begin with one of their own. REQUIRES: mayBeSent().
   */
  body(model, messages, {speculation, system = this.get("system"), ...more} = {}) {
    const {speculative: given, ...further} = fieldsFrom(this.get("more"));
    // Nobody who guesses is no speculation; side by side, which needs both, does not ask.
    const nobody = further.drafter === "none";
    const speculates = speculation ?? (this.get("speculation") && given !== false && !nobody);
    if (speculates && nobody) delete further.drafter;
    const own = system.trim() === "" || messages[0]?.role === "system";
    const body = {
      model,
      messages: own ? messages : [{role: "system", content: system.trim()}, ...messages],
      stream: true,
      stream_options: {include_usage: true},
      token_sources: true,
      return_progress: true,
      speculative: speculates ? this.#speculative(given) : false,
    };
    for (const {name} of kAllNumbers) {
      if (this.get(name) !== "") body[name] = Number(this.get(name));
    }
    const tools = toolsFrom(this.get("tools"));
    if (tools.length > 0) body.tools = tools;
    return {...body, ...further, ...more};
  }
}

export const settings = new Settings();

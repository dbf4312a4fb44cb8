// Side by side: one prompt, answered with speculation off and on, with both speeds and whether the
// texts are the same, token for token.

import {Answer, firstDifference, newMessage, plainSpeeds, seenCounts} from "./answer.js";
import {AnswerBody} from "./answer_body.js";
import {askAgain, chat} from "./api.js";
import {waitingFor} from "./chat.js";
import {announce, byId, el} from "./dom.js";
import {figureItems, whyOff} from "./figures.js";
import {count, figure, many, times} from "./format.js";
import {sharesBar} from "./painter.js";
import {server} from "./server.js";
import {settings} from "./settings.js";

/** One of the two answers. */
class Pane {
  constructor(title, speculation) {
    this.speculation = speculation;
    this.speed = el("span", {class: "pane-speed"}, "–");
    this.fill = el("span", {class: "race-fill"});
    this.figures = el("div", {class: "figures"});
    this.content = el("div", {class: "pane-text", tabindex: "0", "aria-label": title});
    this.foot = el("div", {class: "pane-foot"});
    this.node = el("section", {class: "pane", "aria-label": title},
      el("header", {class: "pane-head"}, el("h3", {}, title),
        el("div", {class: "pane-rate"}, this.speed, el("span", {class: "muted"}, " tokens/s"))),
      el("div", {class: "race", "aria-hidden": "true"}, this.fill),
      this.content, el("footer", {}, this.foot, this.figures));
  }

  begin(model) {
    this.message = newMessage(model);
    this.answer = new Answer(this.message);
    this.body = new AnswerBody(this.message);
    this.state = "waiting";
    this.content.replaceChildren(this.body.node);
    this.foot.replaceChildren();
  }

  async run(body, signal, onChange) {
    this.state = "running";
    try {
      for await (const chunk of chat(body, signal)) {
        this.answer.add(chunk, performance.now());
        onChange();
      }
      this.state = "done";
    } catch (error) {
      this.state = signal.aborted ? "stopped" : "failed";
      if (this.state === "failed") this.message.error = error.message;
    }
    onChange();
  }

  get perSecond() {
    return this.answer?.figures().perSecond ?? null;
  }

  /** `best`: the faster one's tokens a second, which the bar is a share of. */
  update(best) {
    if (!this.answer) return;
    const running = this.state === "running";
    const atEnd = this.content.scrollHeight - this.content.scrollTop - this.content.clientHeight < 40;
    this.body.update({running, waiting: running ? waitingFor(this.answer)
      : this.state === "waiting" ? "Waits for the other one" : ""});
    this.speed.textContent = figure(this.perSecond);
    this.fill.style.width = `${best ? 100 * (this.perSecond ?? 0) / best : 0}%`;
    const figures = {...this.answer.figures(), perSecond: null, speedup: null, speedupSoFar: null};
    this.figures.replaceChildren(...figureItems(figures));
    this.foot.replaceChildren(...[
      this.message.error ? el("p", {class: "problem", role: "alert"}, this.message.error) : null,
      this.speculation && settings.get("colours") ? sharesBar(seenCounts(this.message)) : null,
      this.speculation && whyOff(this.message.speculation)
        ? el("p", {class: "note"}, whyOff(this.message.speculation)) : null].filter(Boolean));
    // Behind the foot, which takes room from the text when it grows.
    if (atEnd) this.content.scrollTop = this.content.scrollHeight;
  }
}

const quoted = (text) => text === undefined ? "the end" : `“${text}”`;

/** What can be said of two answers: {kind: "same" | "differs" | "open", text}. */
export function verdictOf(plain, speculative) {
  const [a, b] = [plain.answer, speculative.answer];
  if (a.ids.length === 0 || b.ids.length === 0) return {kind: "open", text: "Nothing to compare."};
  const length = Math.min(a.ids.length, b.ids.length);
  const complete = plain.state === "done" && speculative.state === "done";
  let at = firstDifference(a.ids, b.ids);
  if (at < 0 && complete && a.ids.length !== b.ids.length) at = length;
  if (at < 0) {
    return complete ? {kind: "same", text: `The same text, token for token: all ${count(length)}.`}
      : {kind: "open", text: `The same, as far as both got: ${many(length, "token")}.`};
  }
  const exactness = speculative.message.speculation?.exactness;
  const why = exactness && exactness !== "exact" ? ` This model runs “${exactness}”: its ` +
    "distribution is kept, single choices at near-ties may differ." : "";
  return {kind: "differs", text: `The texts part at token ${count(at + 1)}: ${quoted(a.texts[at])} ` +
    `without speculation, ${quoted(b.texts[at])} with it.${why}`};
}

export class Compare {
  #stop = null;
  #frame = 0;

  constructor({onChange}) {
    this.onChange = onChange;
    this.plain = new Pane("Speculation off", false);
    this.speculative = new Pane("Speculation on", true);
    this.prompt = el("p", {class: "compare-prompt"});
    this.verdict = el("div", {class: "verdict", role: "status"});
    this.order = el("select", {id: "compare-order", "aria-label": "How the two run"},
      el("option", {value: "together"}, "Both at once"),
      el("option", {value: "in turn"}, "One after the other"));
    this.order.value = settings.get("compareTogether") ? "together" : "in turn";
    this.order.addEventListener("change", () => {
      settings.set("compareTogether", this.order.value === "together");
      this.#showNote();
    });
    this.note = el("span", {class: "muted small"});
    byId("compare-view").append(
      el("div", {class: "compare-head"}, this.prompt,
        el("div", {class: "compare-order"}, this.order, this.note)),
      this.verdict, el("div", {class: "panes"}, this.plain.node, this.speculative.node));
    this.#showNote();
    this.#showVerdict();
    settings.addEventListener("change", ({detail}) => {
      if (detail === "colours") this.#update();
    });
  }

  get running() {
    return this.#stop !== null;
  }

  #showNote() {
    this.note.textContent = settings.get("compareTogether")
      ? "They share the machine: each is slower than alone, and the ratio is not exact."
      : "Each has the machine to itself: this measures better.";
  }

  stop() {
    this.#stop?.abort();
  }

  /** Whether it runs: not while a setting is wrong. */
  send(prompt) {
    if (!settings.mayBeSent()) return false;
    this.#run(prompt);
    return true;
  }

  async #run(prompt) {
    const stop = this.#stop = new AbortController();
    const together = settings.get("compareTogether");
    this.together = together;
    this.prompt.textContent = prompt;
    askAgain();
    const model = server.model?.id ?? settings.get("model");
    // Where a seed decides, both need the same one; -1 is another for each.
    const {seed: set} = settings.body(model, []);
    const seed = set >= 0 ? set : Math.floor(Math.random() * 2 ** 31);
    const panes = [this.plain, this.speculative];
    for (const pane of panes) pane.begin(model);
    this.#update();
    announce("Both answers begin");
    const start = (pane) => pane.run(settings.body(model, [{role: "user", content: prompt}],
      {speculation: pane.speculation, seed}), stop.signal, () => this.#later());
    await server.during(async () => {
      if (together) return Promise.all(panes.map(start));
      for (const pane of panes) if (!stop.signal.aborted) await start(pane);
    });
    for (const pane of panes) {
      if (pane.state === "waiting") pane.state = "stopped";
      if (!together && pane.state === "done") plainSpeeds.note(pane.message);
    }
    this.#stop = null;
    this.#update();
    announce(this.verdict.textContent);
    server.details();
  }

  #later() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#update();
    });
  }

  #update() {
    const best = Math.max(this.plain.perSecond ?? 0, this.speculative.perSecond ?? 0);
    this.plain.update(best);
    this.speculative.update(best);
    this.#showVerdict();
    this.onChange();
  }

  #showVerdict() {
    const {plain, speculative} = this;
    if (!plain.answer) {
      this.verdict.className = "verdict empty";
      this.verdict.replaceChildren("One prompt, answered twice: to see what speculation changes. " +
        "The settings apply to both, and both get the same seed.");
    } else if (this.running) {
      this.verdict.className = "verdict";
      const parts = firstDifference(plain.answer.ids, speculative.answer.ids) < 0;
      this.verdict.replaceChildren(parts ? "Running. The same so far." : "Running.");
    } else {
      const {kind, text} = verdictOf(plain, speculative);
      const ratio = plain.perSecond && speculative.perSecond && plain.state === "done" &&
        speculative.state === "done" ? speculative.perSecond / plain.perSecond : null;
      this.verdict.className = `verdict ${kind}`;
      this.verdict.replaceChildren(...[
        ratio ? el("b", {class: "ratio"}, times(ratio)) : null,
        el("span", {}, ratio ? `the speed of plain decoding${this.together ? ", both running" : ""}. ` : "",
          text)].filter(Boolean));
    }
  }
}

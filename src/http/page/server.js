// What the server has: its models, and of the chosen one its drafters, its cost curve and how far
// it is loaded. Asked again and again while the page is visible, quickly while something loads.

import {health, listModels, rpc, speculationOf} from "./api.js";
import {settings} from "./settings.js";

const kQuick = 700;   // milliseconds, while something loads or a person waits
const kTroubled = 2500;  // while the server cannot be asked
const kCalm = 10_000;

class Server extends EventTarget {
  models = [];         // as /v1/models has them
  problem = null;      // why they are not known: a sentence
  keyWanted = false;   // it is that this tab has no key that the server takes
  loading = null;      // {progress, model} of a server that is not ready at all
  status = null;       // system.status of the chosen model
  speculation = null;  // its cost curve and what was accepted
  statusProblem = null;       // why either is not known, though the model is open
  speculationProblem = null;
  #timer = null;
  #asked = false;
  #waiting = 0;

  start() {
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.refresh();
    });
    return this.refresh();
  }

  /** The chosen model, or undefined while there is none. */
  get model() {
    const chosen = settings.get("model");
    return this.models.find(({id}) => id === chosen) ?? this.models[0];
  }

  get state() {
    // What was known of a model before the server could not be asked is no longer so.
    return this.problem ? "failed" : this.model?.status?.state ?? "absent";
  }

  /** How many tokens a conversation with the model `id` may have; null where that is not known. */
  contextOf(id) {
    const known = this.models.find((one) => one.id === id)?.meta?.n_ctx;
    return known ?? (id === this.model?.id ? this.status?.n_ctx ?? null : null);
  }

  choose(id) {
    settings.set("model", id);
    this.status = this.speculation = this.statusProblem = this.speculationProblem = null;
    this.#tell();
    return this.refresh();
  }

  /**
   * While `work` runs, the server is asked often until the model is open. Then no more often than
   * else: answers that are being measured share the machine with our questions.
   */
  async during(work) {
    ++this.#waiting;
    this.#again();
    try {
      return await work();
    } finally {
      --this.#waiting;
    }
  }

  async refresh() {
    if (this.#asked) return;
    this.#asked = true;
    clearTimeout(this.#timer);
    try {
      this.models = await listModels();
      this.problem = this.models.length > 0 ? null
        : "This server has no model. Start it with -m MODEL.gguf or --model-dir FOLDER.";
      this.loading = null;
      this.keyWanted = false;
    } catch (error) {
      await this.#explain(error);
    }
    this.#tell();
    await this.details();
    this.#asked = false;
    this.#again();
  }

  async #explain(error) {
    this.problem = error.message;
    this.keyWanted = error.status === 401;
    if (error.status !== 503) return;
    const answer = await health();
    if (answer.status === "loading") {
      this.loading = {progress: answer.progress ?? 0, model: answer.model ?? null};
    }
  }

  /** Asks for the chosen model's details, if it is open. */
  async details() {
    const id = this.model?.id;
    if (!id || this.state !== "ready") return;
    const ask = (promise) => promise.then((value) => ({value, problem: null}),
      (error) => ({value: null, problem: error.message}));
    const [status, speculation] = await Promise.all(
      [ask(rpc(id, "system.status")), ask(speculationOf(id))]);
    if (id !== this.model?.id) return;
    this.status = status.value ?? this.status;
    this.statusProblem = status.problem;
    this.speculation = speculation.value ?? this.speculation;
    this.speculationProblem = speculation.problem;
    this.#tell();
  }

  get #busy() {
    return (this.#waiting > 0 && this.state !== "ready") || this.loading !== null || this.status?.draft?.state === "loading" ||
      this.models.some(({status}) => status?.state === "loading");
  }

  #again() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    this.#timer = setTimeout(() => this.refresh(),
      this.#busy ? kQuick : this.problem ? kTroubled : kCalm);
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}

export const server = new Server();

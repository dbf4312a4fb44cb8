// Completions that run: one wait for all of them, and pieces of their texts as they come.
'use strict';

const { OutriderError } = require('./library.js');

// A wait in the library cannot be interrupted: close() takes up to so long.
const WAIT_MS = 100;

/** Cuts updates into pieces of one origin. A character that several tokens make up is part of the
 * piece that completes it. */
class PieceCutter {
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true });  // or a leading U+FEFF is lost

  cut(updates, finished) {
    const pieces = [];
    for (const token of updates.flatMap((update) => update.tokens)) {
      const bytes = token.bytes ? Uint8Array.from(token.bytes) : Buffer.from(token.text);
      const text = this.#decoder.decode(bytes, { stream: true });
      const last = pieces.at(-1);
      if (last?.by === token.by) {
        last.text += text;
        last.tokens.push(token.id);
      } else {
        pieces.push({ text, tokens: [token.id], by: token.by });
      }
    }
    const rest = finished ? this.#decoder.decode() : '';
    if (rest) pieces.push({ text: rest, tokens: [], by: 'target' });
    return pieces;
  }
}

/** Polls all completions of an instance. Of Node's pool, which files and names share, it takes one
 * thread, however many run: it waits for the one that had news last, and the others are asked
 * behind that, since the target computes them in the same steps. */
class Poller {
  #instance;
  #runs = new Set();
  #going = false;

  constructor(instance) {
    this.#instance = instance;
  }

  add(run) {
    this.#runs.add(run);
    if (!this.#going) this.#poll();
  }

  remove(run) {
    this.#runs.delete(run);
  }

  async #poll() {
    this.#going = true;
    let lead;
    while (this.#runs.size > 0) {
      if (!this.#runs.has(lead)) [lead] = this.#runs;
      let next = await this.#ask(lead, WAIT_MS) ? lead : undefined;
      for (const run of this.#runs) {
        if (run !== lead && await this.#ask(run, 0)) next ??= run;
      }
      lead = next;
    }
    this.#going = false;
  }

  /** Whether there was something new. */
  async #ask(run, wait_ms) {
    const params = { id: run.id, wait_ms };
    let news;
    try {
      news = wait_ms > 0 ? await this.#instance.call('completion.poll', params)
                         : this.#instance.callNow('completion.poll', params);
    } catch (error) {
      this.remove(run);
      run.fail(error);
      return false;
    }
    if (news.finished) this.remove(run);
    run.take(news);
    return news.updates.length > 0;
  }
}

/** A text as it comes: an async iterator of pieces, then `result`. Leaving it early, or a signal,
 * cancels the completion. It begins with the first piece that is asked for, and keeps its `owner`,
 * which closes the instance when nobody has it any more. */
class Stream {
  #owner;
  #instance;
  #poller;
  #params;
  #signal;
  #onEnd;
  #begun = false;
  #closed = false;  // nothing more is handed out
  #outcome;  // behind the pieces: { result } or { failure }
  #failure;
  #result;
  #cutter = new PieceCutter();
  #pieces = [];
  #waiting = [];
  #abort = () => this.#leave(this.#signal.reason);

  constructor(owner, instance, poller, params, signal, onEnd = () => {}) {
    this.#owner = owner;
    this.#instance = instance;
    this.#poller = poller;
    this.#params = params;
    this.#signal = signal;
    this.#onEnd = onEnd;
  }

  /** The whole completion. Throws before the end, or when it was left early. */
  get result() {
    if (!this.#result) {
      throw new OutriderError('there is no result: the completion has not come to its end');
    }
    return this.#result;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** Also where others wait: each gets a piece of its own, or the end. */
  async next() {
    if (!this.#begun) await this.#begin();
    while (this.#pieces.length === 0 && !this.#outcome && !this.#closed) {
      await new Promise((resolve) => { this.#waiting.push(resolve); });
    }
    if (this.#pieces.length > 0) return { value: this.#pieces.shift(), done: false };
    if (!this.#closed) this.#end();
    if (this.#failure !== undefined) throw this.#failure;
    return { value: undefined, done: true };
  }

  /** Cancels what goes on. */
  async return() {
    this.#leave();
    return { value: undefined, done: true };
  }

  async #begin() {
    this.#begun = true;
    try {
      // First: nothing may fail once there is a completion to cancel.
      this.#signal?.addEventListener('abort', this.#abort);
      if (this.#signal?.aborted) this.#abort();
      if (this.#closed) return;
      this.id = (await this.#instance.call('completion.start', this.#params)).id;
    } catch (error) {
      this.#leave(error);
      return;
    }
    if (this.#closed) this.#cancel();  // left meanwhile
    else this.#poller.add(this);
  }

  /** The poller's: what is new. */
  take(news) {
    if (this.#closed) return;
    this.#pieces.push(...this.#cutter.cut(news.updates, news.finished));
    if (news.finished) {
      const { result } = news;
      const { error } = result;
      this.#outcome = error ? { failure: new OutriderError(error.message, undefined, error.code) }
                            : { result };
    }
    this.#wake();
  }

  /** The poller's: it cannot be polled any more. */
  fail(failure) {
    this.#outcome = { failure };
    this.#wake();
  }

  /** The reader has come to the end. */
  #end() {
    this.#close(this.#outcome.failure);
    this.#result = this.#outcome.result;
    if (this.#result) this.#onEnd(this.#result);
  }

  /** The reader does not go on: pieces that have come are his no more. */
  #leave(failure) {
    if (this.#closed) return;
    this.#pieces.length = 0;
    this.#close(failure);
    this.#poller.remove(this);
    if (!this.#outcome) this.#cancel();
    this.#wake();
  }

  #close(failure) {
    this.#closed = true;
    this.#failure = failure;
    this.#signal?.removeEventListener('abort', this.#abort);
  }

  #wake() {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #cancel() {
    if (this.id === undefined) return;
    try {
      this.#instance.callNow('completion.cancel', { id: this.id });
    } catch {
      // It has ended by itself, or everything has.
    }
  }
}

module.exports = { Poller, PieceCutter, Stream };

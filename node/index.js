// Local language models that answer faster with the same text: speculative decoding of GGUF files.
//
//   const { Outrider } = require('outrider');
//   const o = await Outrider.load({ model: 'target.gguf', draft: 'draft.gguf' });
//   console.log((await o.generate('Once upon a time', { max_tokens: 64 })).text);
//   for await (const piece of o.stream('The largest city is')) process.stdout.write(piece.text);
//   await o.close();
//
// index.d.ts has the types and what they mean.
'use strict';

const { Poller, Stream } = require('./completions.js');
const { Instance, OutriderError, asOptions, shown, version } = require('./library.js');
const waits = require('./waits.js');

// One that nobody has any more, without having been closed.
const dropped = new FinalizationRegistry((instance) => { instance.close().catch(() => {}); });

class Outrider {
  #instance;
  #poller;

  static async load(config, options = {}) {
    asOptions(config, 'config');
    const { onProgress } = asOptions(options, 'options');
    const models = {};
    for (const role of ['model', 'draft']) {
      const given = config[role];
      if (given !== undefined) models[role] = typeof given === 'string' ? { path: given } : given;
    }
    if (!models.model) {
      throw new OutriderError('model is missing: the path of a GGUF file', 'model', 'invalid_argument');
    }
    const outrider = new Outrider(new Instance({ ...config, ...models }));
    try {
      await outrider.#loaded('draft' in models ? ['target', 'draft'] : ['target'], onProgress);
    } catch (error) {
      await outrider.close();
      throw error;
    }
    return outrider;
  }

  constructor(instance) {
    this.#instance = instance;
    this.#poller = new Poller(instance);
    dropped.register(this, instance, this);
  }

  async generate(prompt, options = {}) {
    return ended(this.stream(prompt, options));
  }

  stream(prompt, options = {}) {
    return this.#stream(prompt, options);
  }

  chat(system, options = {}) {
    asOptions(options, 'options');
    const start = (said, own, onEnd) =>
      this.#stream(said, merged(options, asOptions(own, 'options')), onEnd);
    return new Chat(start, system);
  }

  async tokenize(text, options = {}) {
    return (await this.call('tokenize', { ...asOptions(options, 'options'), text })).tokens;
  }

  async detokenize(tokens) {
    return (await this.call('detokenize', { tokens: [...tokens] })).text;
  }

  stats() {
    return this.call('stats');
  }

  async call(method, params = {}) {
    asOptions(params, 'params');
    if (method === 'completion.run') return waits.run(this, this.#instance, this.#poller, params);
    return waits.call((given) => this.#instance.call(method, given), params);  // it keeps this
  }

  close() {
    dropped.unregister(this);
    return this.#instance.close();
  }

  #stream(prompt, given, onEnd) {
    const { signal, ...options } = asOptions(given, 'options');
    checkSignal(signal);
    const messages = Array.isArray(prompt) && prompt.some((part) => typeof part === 'object');
    const params = { ...options, [messages ? 'messages' : 'prompt']: prompt };
    return new Stream(this, this.#instance, this.#poller, params, signal, onEnd);
  }

  async #loaded(roles, onProgress = () => {}) {
    let status;
    do {
      status = await this.call('system.status', { wait_ms: waits.WAIT_MS });
      for (const role of roles) {
        const { state, path, progress } = status[role];
        onProgress({ role, path, fraction: state === 'ready' ? 1 : progress });
      }
      // Without a target a draft waits for the next one, and here there will be none.
      if (!['loading', 'ready'].includes(status.target.state)) break;
    } while (roles.some((role) => status[role].state === 'loading'));
    for (const role of roles) {
      const { state, error } = status[role];
      if (state !== 'ready') {
        const field = role === 'target' ? 'model' : role;
        throw new OutriderError(`${field}: ${error?.message ?? state}`, field, error?.code);
      }
    }
    for (const { files } of status.drafters) {
      for (const { option, error } of files) {
        if (error) throw new OutriderError(error.message, option, error.code);
      }
    }
  }
}

/** A conversation. An answer that fails, is cancelled or is left early leaves it as it was. */
class Chat {
  #start;
  messages = [];

  constructor(start, system) {
    this.#start = start;
    if (system !== undefined) this.messages.push({ role: 'system', content: system });
  }

  async send(text, options = {}) {
    return ended(this.stream(text, options));
  }

  stream(text, options = {}) {
    const said = [...this.messages, { role: 'user', content: text }];
    return this.#start(said, options, (result) => {
      if (result.finish_reason === 'cancelled') return;
      this.messages = [...said, { role: 'assistant', ...(result.message ?? { content: result.text }) }];
    });
  }
}

/** The options of an answer in the place of the conversation's. `speculative` and `drafter` both say
 * whether there are guesses: one in the answer's takes the place of the other where that says the
 * opposite. */
function merged(defaults, options) {
  const rest = { ...defaults };
  if ('drafter' in options && !('speculative' in options)) {
    if ((options.drafter === 'none') !== (rest.speculative === false)) delete rest.speculative;
  }
  if ((options.speculative ?? false) !== false && rest.drafter === 'none') delete rest.drafter;
  return { ...rest, ...options };
}

/** Any implementation of an AbortSignal will do; its controller will not. */
function checkSignal(signal) {
  if (signal === undefined || signal === null) return;
  if (typeof signal.aborted === 'boolean' && typeof signal.addEventListener === 'function') return;
  throw new OutriderError(`signal is ${shown(signal)}, but must be an AbortSignal (of a controller, ` +
                          'its .signal)', 'signal', 'invalid_argument');
}

/** Its result, once it has ended. */
async function ended(stream) {
  for await (const _ of stream);
  return stream.result;
}

module.exports = { Outrider, OutriderError, version };

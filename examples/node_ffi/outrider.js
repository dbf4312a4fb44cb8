#!/usr/bin/env node
// Node.js by the FFI package koffi: the same text without and with speculation, and both speeds.
//
//   npm install && node outrider.js target.gguf draft.gguf [TOKENS]
//
// The library is looked for where the system looks for libraries; OUTRIDER_LIBRARY names another.
'use strict';

const { promisify } = require('node:util');
const koffi = require('koffi');

const lib = koffi.load(process.env.OUTRIDER_LIBRARY || 'liboutrider.so.0');
const free = lib.func('void outrider_free(void *string)');
const Text = koffi.disposable('OutriderText', 'str', free);  // copied, then given back
const create = lib.func('outrider_create', 'void *', ['str', koffi.out(koffi.pointer(Text))]);
const call = lib.func('outrider_call', Text, ['void *', 'str']);
const destroy = lib.func('void outrider_destroy(void *instance)');

class Outrider {
  #handle;
  #id = 0;
  #call = promisify(call.async);  // on a thread of Node's pool, so that the event loop goes on

  constructor(config) {
    const error = [null];
    this.#handle = create(JSON.stringify(config), error);
    if (!this.#handle) throw new Error(error[0]);
  }

  async call(method, params = {}) {
    const request = { jsonrpc: '2.0', id: ++this.#id, method, params };
    const answer = JSON.parse(await this.#call(this.#handle, JSON.stringify(request)));
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  }

  // Gives `write` the text as it comes; resolves to the result.
  async generate(params, write) {
    const { id } = await this.call('completion.start', params);
    for (;;) {
      const news = await this.call('completion.poll', { id, wait_ms: 1000 });
      for (const update of news.updates) write(update.text);
      if (news.finished) return news.result;
    }
  }

  close() {
    destroy(this.#handle);
  }
}

async function main(target, draft, tokens) {
  const outrider = new Outrider({ model: { path: target }, draft: { path: draft } });
  try {
    const status = await outrider.call('system.status', { wait_ms: 600000 });
    for (const role of ['target', 'draft']) {
      if (status[role].state !== 'ready') throw new Error(`${role}: ${status[role].error.message}`);
    }
    const results = [];
    for (const speculative of [false, true]) {
      const params = { prompt: 'Once upon a time', max_tokens: tokens, seed: 1, speculative };
      results.push(await outrider.generate(params, (text) => process.stdout.write(text)));
      process.stdout.write('\n');
    }
    const speeds = results.map((r) => (r.timings.predicted_per_second ?? 0).toFixed(1));
    console.log(`plain ${speeds[0]} tokens/s, speculative ${speeds[1]} tokens/s`);
    const equal = results[0].tokens.join() === results[1].tokens.join();
    console.log(equal ? 'the texts are equal' : 'the texts differ');
    return equal ? 0 : 1;
  } finally {
    outrider.close();
  }
}

if (process.argv.length < 4) {
  console.error('usage: outrider.js TARGET.gguf DRAFT.gguf [TOKENS]');
  process.exit(2);
}
main(process.argv[2], process.argv[3], Number(process.argv[4] ?? 64)).then(
  (code) => { process.exitCode = code; },
  (error) => {
    console.error(error.message);
    process.exitCode = 1;
  });

// @ts-check
// The package on a pair of tiny models (OUTRIDER_TINY: a folder with tiny-target.gguf and
// tiny-draft.gguf, as the build writes them). TypeScript reads this file, too: what it calls must be
// what index.d.ts declares.
'use strict';

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, it } = require('node:test');
const { promisify } = require('node:util');
const { Outrider, OutriderError, version } = require('outrider');

const FOLDER = process.env.OUTRIDER_TINY ?? join(__dirname, '..', '..', 'build', 'tests');
const TARGET = join(FOLDER, 'tiny-target.gguf');
const DRAFT = join(FOLDER, 'tiny-draft.gguf');
const PROMPT = 'Once upon a time';
const ENDLESS = { max_tokens: 3000, ignore_eos: true };

/** @param {import('outrider').Stream} stream */
async function read(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

/** Once nothing runs any more: how many completions have finished. @param {Outrider} o */
async function idle(o) {
  for (;;) {
    const { running, queued, finished } = await o.stats();
    if (running === 0 && queued === 0) return finished;
  }
}

/** Once the package has fetched what the library has said so far. @param {Outrider} o */
async function said(o) {
  await o.generate(PROMPT, { max_tokens: 1 });
  await o.generate(PROMPT, { max_tokens: 1 });
}

describe('outrider', () => {
  /** @type {Outrider} */
  let o;
  before(async () => {
    o = await Outrider.load({ model: { path: TARGET, threads: 1 }, draft: DRAFT });
  });
  after(() => o.close());

  /** @param {import('outrider').CompletionOptions} [options] */
  const generate = (options) => o.generate(PROMPT, { max_tokens: 24, seed: 1, ...options });

  it('has the version of its library', () => {
    assert.equal(version(), require('outrider/package.json').version);
  });

  it('gives the same text with speculation, which is counted', async () => {
    const plain = await generate({ speculative: false });
    const fast = await generate({ width: 4, speculative: { drafters: ['draft-model'] } });
    assert.deepEqual([fast.text, fast.tokens], [plain.text, plain.tokens]);
    assert.equal(plain.speculation.drafted, 0);
    assert.ok(fast.speculation.drafted > 0);
    assert.equal(fast.speculation.drafters['draft-model'].drafted, fast.speculation.drafted);
    assert.equal(fast.finish_reason, 'length');
    assert.equal(fast.usage.completion_tokens, fast.tokens.length);
    assert.ok(fast.timings.predicted_ms > 0);
  });

  it('gives another text for another seed', async () => {
    assert.notEqual((await generate({ seed: 2 })).text, (await generate()).text);
  });

  it('streams pieces that together are the text, and say who guessed', async () => {
    const stream = o.stream(PROMPT, { max_tokens: 64, seed: 1, width: 4 });
    const pieces = await read(stream);
    assert.equal(pieces.map((piece) => piece.text).join(''), stream.result.text);
    assert.deepEqual(pieces.flatMap((piece) => piece.tokens), stream.result.tokens);
    const guessed = pieces.filter((piece) => piece.by !== 'target').flatMap((piece) => piece.tokens);
    assert.ok(guessed.length > 0 && guessed.length <= stream.result.speculation.accepted);
    assert.equal((await stream.next()).done, true);
  });

  it('runs many at once, with the texts of one after the other', async () => {
    const seeds = [...Array(12).keys()];
    const alone = [];
    for (const seed of seeds) alone.push((await generate({ seed })).text);
    const together = await Promise.all(seeds.map((seed) => generate({ seed })));
    assert.deepEqual(together.map((completion) => completion.text), alone);
    assert.ok(new Set(alone).size > 1);
  });

  it('goes on with short texts while a long one runs', async () => {
    const long = o.stream(PROMPT, { ...ENDLESS, seed: 1 });
    await long.next();
    await Promise.all([generate(), generate()]);
    assert.equal((await o.stats()).running, 1);
    await long.return?.();
  });

  it('cancels a text whose loop is left, or whose signal is given', async () => {
    const finished = await idle(o);
    const tokens = (await o.stats()).generated_tokens;
    for await (const _ of o.stream(PROMPT, ENDLESS)) break;
    const controller = new AbortController();
    const stream = o.stream(PROMPT, { ...ENDLESS, signal: controller.signal });
    await stream.next();
    controller.abort();
    await assert.rejects(read(stream), { name: 'AbortError' });
    assert.throws(() => stream.result, /not come to its end/);
    await assert.rejects(o.generate(PROMPT, { signal: controller.signal }), { name: 'AbortError' });
    assert.equal(await idle(o), finished + 2);
    assert.ok((await o.stats()).generated_tokens - tokens < 6000);
  });

  it('cancels a text that is left while it begins', async () => {
    const finished = await idle(o);
    const stream = o.stream(PROMPT, ENDLESS);
    const first = stream.next();
    await stream.return?.();
    assert.equal((await first).done, true);
    assert.equal(await idle(o), finished + 1);
  });

  it('answers everyone who waits for a piece, also where it cannot begin', async () => {
    const stream = o.stream(PROMPT, { max_tokens: 8, seed: 1 });
    const pieces = await Promise.all([...Array(12)].map(() => stream.next()));
    assert.ok(pieces.some((piece) => !piece.done) && pieces.some((piece) => piece.done));
    const wrong = o.stream(PROMPT, { top_p: 7 });
    await assert.rejects(wrong.next(), OutriderError);
    await assert.rejects(wrong.next(), OutriderError);
    const aborted = o.stream(PROMPT, { signal: AbortSignal.abort() });
    await assert.rejects(aborted.next(), { name: 'AbortError' });
    await assert.rejects(aborted.next(), { name: 'AbortError' });
  });

  it('keeps a conversation, and a failure leaves it as it was', async () => {
    const chat = o.chat('Be brief.', { max_tokens: 6 });
    const answer = await chat.send('Hello');
    assert.deepEqual(chat.messages.map((message) => message.role), ['system', 'user', 'assistant']);
    assert.equal(chat.messages[2].content, answer.message?.content);
    await read(chat.stream('And now?'));
    await assert.rejects(chat.send('Again', { top_p: 7 }), OutriderError);
    for await (const _ of chat.stream('Left', ENDLESS)) break;
    assert.equal(chat.messages.length, 5);
  });

  it('takes what an answer says of speculation for what the conversation says', async () => {
    const asked = { max_tokens: 32, ignore_eos: true, seed: 1, width: 4 };
    const plain = o.chat(undefined, { ...asked, speculative: false });
    assert.equal((await plain.send('Hello')).speculation.drafted, 0);
    assert.ok((await plain.send('Hello', { drafter: 'draft-model' })).speculation.drafted > 0);
    const fast = o.chat(undefined, { ...asked, drafter: 'draft-model' });
    assert.equal((await fast.send('Hello', { speculative: false })).speculation.drafted, 0);
  });

  it('remembers no answer that is left behind its last word', async () => {
    const chat = o.chat(undefined, { max_tokens: 24 });
    const stream = chat.stream('Hello');
    await stream.next();
    await idle(o);
    await said(o);
    await stream.return?.();
    assert.equal(chat.messages.length, 0);
    assert.throws(() => stream.result, /not come to its end/);
    const answer = await chat.send('Hello');
    assert.deepEqual(chat.messages.map((message) => message.content), ['Hello', answer.text]);
  });

  it('ends the pieces of a text that is aborted before it was read', async () => {
    const controller = new AbortController();
    const stream = o.stream(PROMPT, { max_tokens: 24, signal: controller.signal });
    await stream.next();
    await idle(o);
    await said(o);
    controller.abort();
    await assert.rejects(stream.next(), { name: 'AbortError' });
    assert.throws(() => stream.result, /not come to its end/);
  });

  it('leaves no completion behind where the signal is none', async () => {
    const finished = await idle(o);
    for (const signal of [new AbortController(), {}, 5, { aborted: false }]) {
      const options = /** @type {any} */ ({ ...ENDLESS, signal });
      await assert.rejects(o.generate(PROMPT, options), { field: 'signal' });
      await assert.rejects(o.chat().send(PROMPT, options), { field: 'signal' });
    }
    const signal = { aborted: false, addEventListener() { throw new RangeError(); },
                     removeEventListener() {} };
    const stream = o.stream(PROMPT, /** @type {any} */ ({ ...ENDLESS, signal }));
    await assert.rejects(stream.next(), RangeError);
    await assert.rejects(stream.next(), RangeError);
    assert.equal(await idle(o), finished);
    await o.generate(PROMPT, /** @type {any} */ ({ max_tokens: 1, signal: null }));
  });

  it('keeps a U+FEFF in front', async () => {
    const stream = o.stream(PROMPT, { max_tokens: 12, grammar: 'root ::= "\uFEFFa"' });
    const pieces = await read(stream);
    assert.equal(pieces.map((piece) => piece.text).join(''), stream.result.text);
    assert.equal(stream.result.text[0], '\uFEFF');
  });

  it('gives by completion.run and long waits what the library gives', async () => {
    const options = { prompt: PROMPT, max_tokens: 24, seed: 1 };
    const { text } = await generate();
    assert.equal((await o.call('completion.run', options)).text, text);
    const { id } = await o.call('completion.start', options);
    let polled = '';
    for (let finished = false; !finished;) {
      const news = await o.call('completion.poll', { id, wait_ms: 3_600_000 });
      for (const update of news.updates) polled += update.text;
      ({ finished } = news);
    }
    assert.equal(polled, text);
    assert.equal((await o.call('system.status', { wait_ms: 3_600_000 })).target.state, 'ready');
    await assert.rejects(o.call('system.status', { wait_ms: 3_600_001 }), { field: 'wait_ms' });
    await assert.rejects(o.call('completion.run', { prompt: PROMPT, top_p: 7 }), { field: 'top_p' });
  });

  it('takes tokens there and back', async () => {
    const tokens = await o.tokenize('a time', { add_special: false });
    assert.equal((await o.detokenize(tokens)).trim(), 'a time');
    const { usage } = await o.generate([PROMPT, ...tokens], { max_tokens: 1 });
    assert.ok(usage.prompt_tokens > tokens.length);
  });

  /** @type {[string, () => Promise<unknown>][]} */
  const wrong = [
    ['top_p', () => o.generate(PROMPT, { top_p: 7 })],
    ['top_pp', () => o.generate(PROMPT, { top_pp: 0.5 })],
    ['temp', () => o.generate(PROMPT, { temp: NaN })],
    ['seed', () => o.generate(PROMPT, /** @type {any} */ ({ seed: 1n }))],
    ['speculative.width', () => o.generate(PROMPT, { speculative: { width: -3 } })],
    ['messages[0].role', () => o.generate([{ role: 'nobody', content: '' }])],
    ['model', () => Outrider.load({ model: 'none.gguf' })],
    ['model', () => Outrider.load({ model: 'none.gguf', draft: DRAFT })],
    ['draft', () => Outrider.load({ model: TARGET, draft: 'none.gguf' })],
    ['model.ctx', () => Outrider.load({ model: { path: TARGET, ctx: -7 } })],
    ['slots', () => Outrider.load({ model: TARGET, slots: 99 })],
    ['nonsense', () => Outrider.load({ model: TARGET, nonsense: 1 })],
    ['suffix_store', () => Outrider.load({ model: TARGET, suffix_store: 'none.store' })],
    ['method', () => o.call('no.such.method')],
    ['prompt', () => o.generate('half \ud83d')],
    ['stop[0]', () => o.generate(PROMPT, { stop: ['half \udc00'] })],
    ['model.kernels', () => Outrider.load({ model: { path: TARGET, kernels: 'half \ud83d' } })],
    ['logit_bias', () => o.generate(PROMPT, { logit_bias: new Map([[5, 1]]) })],
    ['speculative.drafters', () => o.generate(PROMPT, { speculative: { drafters: /** @type {any} */ (new Set()) } })],
    ['options', () => o.generate(PROMPT, /** @type {any} */ (new Map([['max_tokens', 1]])))],
    ['options', () => o.generate(PROMPT, /** @type {any} */ (5))],
    ['options', () => o.generate(PROMPT, /** @type {any} */ (null))],
    ['options', async () => o.chat('', /** @type {any} */ ([])).send('Hello')],
    ['options', () => Outrider.load({ model: TARGET }, /** @type {any} */ (5))],
    ['params', () => o.call('stats', /** @type {any} */ (new Map()))],
    // What TypeScript refuses is an error when it runs, too.
    // @ts-expect-error
    ['prompt', () => o.generate(5)],
    // @ts-expect-error
    ['model', () => Outrider.load({})],
    // @ts-expect-error
    ['width', () => o.generate(PROMPT, { width: 'wide' })],
  ];
  for (const [field, call] of wrong) {
    it(`names ${field} where it is wrong: ${String(call).slice(6)}`, async () => {
      await assert.rejects(call(), (error) => {
        assert.ok(error instanceof OutriderError, String(error));
        assert.equal(error.field, field, error.message);
        return true;
      });
    });
  }

  it('does what its README says', async () => {
    const text = readFileSync(join(__dirname, 'README.md'), 'utf8');
    const [, example] = /```js\n([^]*?)```/.exec(text) ?? [];
    const program = `const process = { stdout: { write: (text) => said.push(text) } };
      const console = { log: (...values) => said.push(...values) };
      ${example?.replace("'target.gguf'", 'target').replace("'draft.gguf'", 'draft')}`;
    const Program = Object.getPrototypeOf(async () => {}).constructor;
    /** @type {unknown[]} */
    const said = [];
    await new Program('require', 'said', 'target', 'draft', program)(require, said, TARGET, DRAFT);
    assert.ok(said.length > 5 && said.every((value) => value !== undefined), String(said));
  });

  it('tells how far a load is', async () => {
    /** @type {import('outrider').Loading[]} */
    const seen = [];
    const other = await Outrider.load({ model: TARGET, draft: DRAFT },
                                      { onProgress: (loading) => seen.push(loading) });
    await other.close();
    assert.deepEqual(seen.slice(-2).map(({ role, fraction }) => [role, fraction]),
                     [['target', 1], ['draft', 1]]);
    assert.ok(seen.every(({ fraction }) => fraction >= 0 && fraction <= 1));
  });

  it('ends what runs when it is closed', async () => {
    const other = await Outrider.load({ model: TARGET });
    const stream = other.stream(PROMPT, ENDLESS);
    await stream.next();
    await Promise.all([assert.rejects(read(stream), { code: 'cancelled' }), other.close()]);
    await other.close();
    await assert.rejects(other.generate(PROMPT), /closed/);
  });

  it('has freed the models wherever close() has returned', async () => {
    const other = await Outrider.load({ model: TARGET });
    let freed = false;
    other.close().then(() => { freed = true; });
    await other.close();
    assert.ok(freed);
  });

  it('ends calls that wait when it is closed', async () => {
    const other = await Outrider.load({ model: TARGET, slots: 1 });
    await other.stream(PROMPT, ENDLESS).next();
    const queued = await other.call('completion.start', { prompt: PROMPT, ...ENDLESS });
    const waiting = [other.call('completion.run', { prompt: PROMPT, ...ENDLESS }),
                     other.call('completion.poll', { id: queued.id, wait_ms: 3_600_000 })];
    await Promise.all([...waiting.map((call) => assert.rejects(call, { code: 'cancelled' })),
                       other.close()]);
  });

  it('frees the models of one that nobody has any more, and of no other', async () => {
    const program = `const { Outrider } = require(${JSON.stringify(require.resolve('outrider'))});
      const { readdirSync } = require('node:fs');
      const threads = () => readdirSync('/proc/self/task').length;
      const collected = () => new Promise((resolve) => { global.gc(); setTimeout(resolve, 5); });
      const load = () => Outrider.load({ model: ${JSON.stringify(TARGET)} });
      const drop = async () => { await load(); };
      (async () => {
        await (await load()).close();
        const before = threads();
        await drop();
        while (threads() > before) await collected();
        const stream = (await load()).stream('a', { max_tokens: 2000, ignore_eos: true, seed: 1 });
        const run = (await load()).call('completion.run', { prompt: 'a', max_tokens: 64 });
        let n = 0;
        for await (const piece of stream) if (n++ % 50 === 0) await collected();
        await collected();
        console.log(stream.result.finish_reason, (await run).finish_reason);
      })();`;
    const { stdout, stderr } = await promisify(execFile)(process.execPath,
                                                         ['--expose-gc', '-e', program]);
    assert.equal(stdout + stderr, 'length length\n');
  });

  for (const ending of [
    "for await (const _ of o.stream('a', { max_tokens: 3000, ignore_eos: true })) process.exit(0);",
    "o.generate('a', { max_tokens: 64 });",
    'await o.close();',
    'process.exit(0);',
    '',
  ]) {
    it(`leaves the process free to end: ${ending}`, async () => {
      const program = `const { Outrider } = require(${JSON.stringify(require.resolve('outrider'))});
        (async () => {
          const o = await Outrider.load({ model: ${JSON.stringify(TARGET)} });
          ${ending}
        })();`;
      const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program]);
      assert.equal(stdout + stderr, '');
    });
  }

  for (const ending of ['', 'o.close(); process.exit(0);', 'process.exit(0);']) {
    it(`frees the models of a worker thread that ends without close(): ${ending}`, async () => {
      const load = `const { Outrider } = require(${JSON.stringify(require.resolve('outrider'))});
        const load = () => Outrider.load({ model: ${JSON.stringify(TARGET)} });`;
      const program = `${load}
        const { readdirSync } = require('node:fs');
        const { Worker } = require('node:worker_threads');
        const threads = () => readdirSync('/proc/self/task').length;
        const ended = () => new Promise((resolve) => {
          const code = ${JSON.stringify(`${load} load().then((o) => { ${ending} });`)};
          new Worker(code, { eval: true }).on('exit', resolve);
        });
        (async () => {
          await (await load()).close();
          const before = threads();
          for (let i = 0; i < 3; ++i) await ended();
          console.log(threads() - before);
        })();`;
      const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', program]);
      assert.equal(stdout + stderr, '0\n');
    });
  }
});

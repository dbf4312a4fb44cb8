// Calls that wait for long, cut into short waits: a wait in the library cannot be interrupted, and
// close() comes through between two of them.
'use strict';

const WAIT_MS = 200;
const LONGEST_MS = 3_600_000;  // more is the library's to refuse

/** A method's result, also with a long wait_ms: `ask` calls it with its parameters. Not for
 * completion.run. */
async function call(ask, params) {
  const { wait_ms } = params;
  if (!Number.isInteger(wait_ms) || wait_ms <= WAIT_MS || wait_ms > LONGEST_MS) return ask(params);
  const end = performance.now() + wait_ms;
  for (;;) {
    const begun = performance.now();
    const left = Math.max(0, Math.floor(end - begun));
    const slice = Math.min(left, WAIT_MS);
    const answer = await ask({ ...params, wait_ms: slice });
    const endedItself = performance.now() - begun < slice;
    const news = answer.finished || answer.updates?.length > 0;  // a poll's text comes once
    if (endedItself || news || slice === left) return answer;
  }
}

/** completion.run: by polls, since it would keep a thread of Node's pool for as long as a text takes.
 * It keeps `owner`, which closes the instance when nobody has it any more. */
async function run(owner, instance, poller, params) {
  const { id } = await instance.call('completion.start', params);
  return new Promise((resolve, reject) => {
    const take = ({ finished, result }) => { if (finished) resolve(result); };
    poller.add({ owner, id, take, fail: reject });
  });
}

module.exports = { WAIT_MS, call, run };

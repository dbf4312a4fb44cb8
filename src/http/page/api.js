// The server, as functions. Every request carries the key, if one was given; where the server wants
// one and has none, or another, `askForKey` is asked once for all requests that wait.

import {count} from "./format.js";

const kKey = "outrider.key";

/** What went wrong, in the server's own sentence. status 0: there was no answer. */
export class ApiError extends Error {
  constructor(message, {status = 0, code = null, param = null} = {}) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

let askForKey = async () => null;
let asking = null;
let declined = false;
let lastKey = null;  // for browsers that keep nothing

/** `ask(again)` resolves to a key, or to null where the person gives none. */
export function onKeyWanted(ask) {
  askForKey = ask;
}

/** After null, nobody is asked again until this is called: by what a person does, not by polling. */
export function askAgain() {
  declined = false;
}

function key() {
  try {
    return sessionStorage.getItem(kKey) ?? lastKey;
  } catch {
    return lastKey;
  }
}

function keep(given) {
  lastKey = given;
  try {
    sessionStorage.setItem(kKey, given);
  } catch {
    // It is asked for again after a reload.
  }
}

function aborted(signal) {
  return new Promise((_, reject) => signal?.addEventListener("abort",
    () => reject(new DOMException("stopped", "AbortError")), {once: true}));
}

async function newKey(refused) {
  if (key() !== refused) return true;  // another request has asked meanwhile
  if (declined) return false;
  asking ??= askForKey(refused !== null).then((given) => {
    asking = null;
    if (given === null) declined = true;
    else keep(given);
    return given !== null;
  });
  return asking;
}

async function errorOf(response) {
  let error = null;
  try {
    error = (await response.json()).error;
  } catch {
    // Not JSON: something between us and the server answered.
  }
  const {n_prompt_tokens: tokens, n_ctx: context} = error ?? {};
  const message = typeof error === "string" ? error
    : tokens > 0 && context > 0 ? `the prompt has ${count(tokens)} tokens, and the context ${count(context)}`
      : error?.message;
  return new ApiError(message || `The server answered ${response.status} ${response.statusText}`,
    {status: response.status, code: error?.code ?? null, param: error?.param ?? null});
}

async function request(path, options) {
  for (;;) {
    const used = key();
    const headers = {...options.headers};
    if (used) headers.Authorization = `Bearer ${used}`;
    let response;
    try {
      response = await fetch(path, {...options, headers, cache: "no-store"});
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The server cannot be reached. Is it still running?");
    }
    if (response.ok) return response;
    if (response.status === 401) {
      // Who waits for a key can stop, too.
      if (await Promise.race([newKey(used), aborted(options.signal)])) continue;
      throw new ApiError("This server needs a key, and none was given that it takes", {status: 401});
    }
    throw await errorOf(response);
  }
}

async function getJson(path) {
  return (await request(path, {method: "GET"})).json();
}

function postJson(path, body, signal) {
  return request(path, {method: "POST", body: JSON.stringify(body), signal,
    headers: {"Content-Type": "application/json"}});
}

/** [{id, status: {state, progress, error}, draft}]. */
export async function listModels() {
  return (await getJson("v1/models")).data ?? [];
}

/** {status, progress, model}; never fails for a server that is loading. */
export async function health() {
  try {
    return await (await fetch("health", {cache: "no-store"})).json();
  } catch {
    return {status: "unreachable"};
  }
}

/** The cost curve and what was accepted at which depth. */
export function speculationOf(model) {
  return getJson(`outrider/speculation?model=${encodeURIComponent(model)}`);
}

/** What the model's answers are sampled with where a request does not say: {temperature, ...}. */
export async function defaultsOf(model) {
  const props = await getJson(`props?model=${encodeURIComponent(model)}`);
  return props.default_generation_settings?.params ?? {};
}

/** A method of `outrider rpc`. */
export async function rpc(model, method, params = {}) {
  const response = await postJson(`rpc?model=${encodeURIComponent(model)}`,
    {jsonrpc: "2.0", id: 1, method, params});
  const answer = await response.json();
  if (answer.error) throw new ApiError(answer.error.message, {code: answer.error.code});
  return answer.result;
}

/** The data of each server-sent event in `body`, as text. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let data = [];
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length > 0) yield data.join("\n");
        data = [];
      } else if (line.startsWith("data:")) {
        data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
  }
}

/** The chunks of a chat completion. `signal` ends it: the server stops when we close. */
export async function* chat(body, signal) {
  const response = await postJson("v1/chat/completions", body, signal);
  try {
    for await (const data of eventsOf(response.body)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) {
        throw new ApiError(chunk.error.message ?? "The server ended the answer",
          {code: chunk.error.code, param: chunk.error.param});
      }
      yield chunk;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    if (error instanceof SyntaxError) throw new ApiError("The server sent what is no JSON");
    throw new ApiError("The connection broke before the answer was complete");
  }
  throw new ApiError("The connection ended before the answer was complete");
}

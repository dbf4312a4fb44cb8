// The C interface (outrider.h) by the FFI package koffi: JSON-RPC calls on an instance.
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { inspect, promisify } = require('node:util');
const { isMainThread } = require('node:worker_threads');
const koffi = require('koffi');

/** What went wrong. `field` is the option or argument that it is about, where there is one; `code`
 * the kind, such as "invalid_argument" or "not_found". */
class OutriderError extends Error {
  constructor(message, field, code) {
    super(message);
    this.name = 'OutriderError';
    this.field = field;
    this.code = code;
  }
}

/** OUTRIDER_LIBRARY, the library that came with this package, or the system's. */
function libraryPath() {
  const packaged = join(__dirname, 'native', 'outrider', 'liboutrider.so');
  return process.env.OUTRIDER_LIBRARY || (existsSync(packaged) ? packaged : 'liboutrider.so.0.1');
}

let functions;

function library() {
  if (functions) return functions;
  let lib;
  try {
    lib = koffi.load(libraryPath());
  } catch (failure) {
    throw new OutriderError(`the library of outrider cannot be loaded: ${failure.message}`);
  }
  const Text = koffi.disposable('str', lib.func('void outrider_free(void *string)'));
  const call = lib.func('outrider_call', Text, ['void *', 'str']);
  const destroy = lib.func('void outrider_destroy(void *instance)');
  functions = {
    version: lib.func('outrider_version', 'str', []),
    create: lib.func('outrider_create', 'void *', ['str', koffi.out(koffi.pointer(Text))]),
    call,
    callOnThread: promisify(call.async),  // of Node's pool, so that the event loop goes on
    destroy: promisify(destroy.async),
    destroyNow: destroy,
  };
  if (!isMainThread) process.once('exit', destroyAll);
  return functions;
}

const alive = new Map();  // instances that this thread has not destroyed: their handles

/** The end of a worker thread: no finalizer runs there, and the process goes on. */
function destroyAll() {
  for (const [instance, handle] of alive) if (!instance.busy) functions.destroyNow(handle);
}

/** The library's version: "0.1.0". */
function version() {
  return library().version();
}

/** Why JSON has no form for `part`, of which JSON.stringify would make null, {} or nothing. */
function refusal(part) {
  if (typeof part === 'string') {
    return /\p{Surrogate}/u.test(part) ? 'holds half of a character (U+D800 to U+DFFF)' : undefined;
  }
  const noValue = typeof part === 'object' ? isOpaque(part)
                                           : ['function', 'symbol', 'bigint'].includes(typeof part);
  return noValue || (typeof part === 'number' && !Number.isFinite(part))
      ? `: ${String(part)} is no value that JSON has` : undefined;
}

/** A Map, a Set, a RegExp: what it holds is in no property. */
function isOpaque(part) {
  if (part === null || Object.keys(part).length > 0) return false;
  return !['Object', 'Array', 'Number', 'String', 'Boolean'].includes(tag(part));
}

function tag(value) {
  return Object.prototype.toString.call(value).slice('[object '.length, -1);
}

/** Any value, on one line of an error. */
function shown(value) {
  return inspect(value, { depth: 0, breakLength: Infinity });
}

/** `given`, which must be an object with options as properties. `name` is its field. */
function asOptions(given, name) {
  if (tag(given) === 'Object') return given;
  throw new OutriderError(`${name} is ${shown(given)}, but must be an object`, name,
                          'invalid_argument');
}

/** JSON. Throws OutriderError, with the path of what has no form there. */
function encode(params) {
  const paths = new WeakMap();  // of the objects in it
  return JSON.stringify(params, function check(name, part) {
    const above = paths.get(this);
    const path = !above ? name : Array.isArray(this) ? `${above}[${name}]` : `${above}.${name}`;
    const why = refusal(part) ?? refusal(name);
    if (why) throw new OutriderError(`${path}${why[0] === ':' ? '' : ' '}${why}`, path, 'invalid_argument');
    if (typeof part === 'object' && part !== null) paths.set(part, path);
    return part;
  });
}

/** An instance. */
class Instance {
  #handle;
  #ids = 0;
  #calls = new Set();  // those on threads
  #closing;  // the promise of the first close()

  constructor(config) {
    const error = [null];
    this.#handle = library().create(encode(config), error);
    if (!this.#handle) {
      const field = /^[\w.]+/.exec(error[0] ?? '')?.[0];
      const known = field !== undefined && field.split('.')[0] in config;
      throw new OutriderError(error[0] ?? 'out of memory', known ? field : undefined,
                              'invalid_argument');
    }
    alive.set(this, this.#handle);
  }

  /** Whether calls are on threads, or wait for one: it must not be destroyed now. */
  get busy() {
    return this.#calls.size > 0;
  }

  /** A method's result, at once: for what does not wait. Throws OutriderError. */
  callNow(method, params = {}) {
    return this.#result(library().call(this.#open(), this.#request(method, params)));
  }

  /** The same on a thread, for what may wait. */
  async call(method, params = {}) {
    const going = library().callOnThread(this.#open(), this.#request(method, params));
    this.#calls.add(going);
    try {
      return this.#result(await going);
    } finally {
      this.#calls.delete(going);
    }
  }

  /** Ends everything and frees it, once the calls on threads are back: the library allows none to
   * begin once it destroys, and they may still wait for a thread. None waits there for long. Again:
   * no effect, but that it waits as well. */
  close() {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end() {
    const handle = this.#handle;
    this.#handle = null;
    await Promise.allSettled(this.#calls);
    if (handle && alive.delete(this)) await library().destroy(handle);
  }

  #open() {
    if (!this.#handle) throw new OutriderError('this Outrider is closed', undefined, 'cancelled');
    return this.#handle;
  }

  #request(method, params) {
    const encoded = encode(asOptions(params, 'params'));
    return `{"jsonrpc":"2.0","id":${++this.#ids},"method":${JSON.stringify(method)},"params":${encoded}}`;
  }

  #result(text) {
    if (text === null) throw new OutriderError('out of memory', undefined, 'resource_exhausted');
    const { error, result } = JSON.parse(text);
    if (error) throw new OutriderError(error.message, error.data?.field || undefined, error.data?.code);
    return result;
  }
}

module.exports = { Instance, OutriderError, asOptions, shown, version };

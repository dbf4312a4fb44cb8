// The C interface (outrider.h) by the FFI package koffi: JSON-RPC calls on an instance.
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { promisify } = require('node:util');
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
  };
  return functions;
}

/** The library's version: "0.1.0". */
function version() {
  return library().version();
}

/** JSON, which has no form for NaN, functions or BigInt: JSON.stringify would drop some of them. */
function encode(value) {
  return JSON.stringify(value, (name, part) => {
    if (typeof part === 'function' || typeof part === 'symbol' || typeof part === 'bigint' ||
        (typeof part === 'number' && !Number.isFinite(part))) {
      throw new OutriderError(`${name}: ${String(part)} is no value that JSON has`, name,
                              'invalid_argument');
    }
    return part;
  });
}

/** An instance. */
class Instance {
  #handle;
  #ids = 0;
  #calls = new Set();  // those on threads

  constructor(config) {
    const error = [null];
    this.#handle = library().create(encode(config), error);
    if (!this.#handle) {
      const field = /^[\w.]+/.exec(error[0] ?? '')?.[0];
      const known = field !== undefined && field.split('.')[0] in config;
      throw new OutriderError(error[0] ?? 'out of memory', known ? field : undefined,
                              'invalid_argument');
    }
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

  /** Ends everything and frees it, once the calls on threads are back. Again: no effect. */
  async close() {
    const handle = this.#handle;
    this.#handle = null;
    await Promise.allSettled(this.#calls);
    if (handle) await library().destroy(handle);
  }

  #open() {
    if (!this.#handle) throw new OutriderError('this Outrider is closed', undefined, 'cancelled');
    return this.#handle;
  }

  #request(method, params) {
    return encode({ jsonrpc: '2.0', id: ++this.#ids, method, params });
  }

  #result(text) {
    if (text === null) throw new OutriderError('out of memory', undefined, 'resource_exhausted');
    const { error, result } = JSON.parse(text);
    if (error) throw new OutriderError(error.message, error.data?.field || undefined, error.data?.code);
    return result;
  }
}

module.exports = { Instance, OutriderError, version };

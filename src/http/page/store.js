// Conversations that survive the page: in IndexedDB, as localStorage ends at 5 MB. Where the
// browser gives none (a private window), they last until the page is closed.

const kDatabase = "outrider";
const kStore = "conversations";

function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function openDatabase() {
  const request = indexedDB.open(kDatabase, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(kStore, {keyPath: "id"});
  return done(request);
}

class DatabaseStore {
  persistent = true;

  constructor(database) {
    this.database = database;
  }

  #store(mode) {
    return this.database.transaction(kStore, mode).objectStore(kStore);
  }

  async all() {
    try {
      return {records: await done(this.#store("readonly").getAll()), problem: null};
    } catch (error) {
      return this.#oneByOne(error);
    }
  }

  // One that is damaged, or all of them being too much at once, fails getAll(). Each is read in a
  // transaction of its own, which an error ends.
  async #oneByOne(error) {
    const keys = await this.#keys();
    const read = await Promise.allSettled(keys.map((key) => this.#get(key)));
    const records = read.flatMap(({value}) => value ?? []);
    const missing = read.filter(({status}) => status === "rejected");
    const which = keys.length === 0 ? "The conversations" : `${missing.length} of the conversations`;
    return {records, problem: keys.length > 0 && missing.length === 0 ? null
      : `${which} in this browser cannot be read: ${(missing[0]?.reason ?? error).message}`};
  }

  async #keys() {
    try {
      return await done(this.#store("readonly").getAllKeys());
    } catch {
      return [];
    }
  }

  async #get(key) {
    return done(this.#store("readonly").get(key));
  }

  // A page that goes away aborts what it has not committed, and by itself a transaction is committed
  // only after the answers to its requests: what was typed just before a reload would be lost. So
  // nothing is read here before it is written; see conversations.js for what two tabs write. It begins
  // at once; an error, also of a database that the browser has closed, is the promise's.
  async #write(change) {
    const store = this.#store("readwrite");
    change(store);
    return new Promise((resolve, reject) => {
      const {transaction} = store;
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("the browser gave it up"));
      transaction.commit();
    });
  }

  put(record, instead = null) {
    return this.#write((store) => {
      store.put(record);
      if (instead !== null) store.delete(instead);
    });
  }

  remove(id) {
    return this.#write((store) => store.delete(id));
  }
}

const kMemoryStore = {
  persistent: false,
  all: async () => ({records: [], problem: null}),
  put: async () => {},
  remove: async () => {},
};

/**
 * all(), put(record, instead), remove(id), each a promise; `persistent`: whether they are kept. all()
 * gives {records, problem}: those that can be read, and a sentence that says why not all, or null. With
 * put() the record `instead` goes, both or neither.
 */
export async function openStore() {
  try {
    return new DatabaseStore(await openDatabase());
  } catch {
    return kMemoryStore;
  }
}

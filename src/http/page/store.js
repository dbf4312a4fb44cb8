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
    return done(this.#store("readonly").getAll());
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
  all: async () => [],
  put: async () => {},
  remove: async () => {},
};

/**
 * all(), put(record, instead), remove(id), each a promise; `persistent`: whether they are kept. With
 * put() the record `instead` goes, both or neither.
 */
export async function openStore() {
  try {
    return new DatabaseStore(await openDatabase());
  } catch {
    return kMemoryStore;
  }
}

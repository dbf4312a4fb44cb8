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

  all() {
    return done(this.#store("readonly").getAll());
  }

  // A page that goes away aborts what it has not committed, and by itself a transaction is committed
  // only after the answer to its request: what was typed just before a reload would be lost.
  #write(request) {
    request.transaction.commit();
    return done(request);
  }

  put(conversation) {
    return this.#write(this.#store("readwrite").put(conversation));
  }

  remove(id) {
    return this.#write(this.#store("readwrite").delete(id));
  }
}

const kMemoryStore = {
  persistent: false,
  all: async () => [],
  put: async () => {},
  remove: async () => {},
};

/** all(), put(conversation), remove(id), each a promise; `persistent`: whether they are kept. */
export async function openStore() {
  try {
    return new DatabaseStore(await openDatabase());
  } catch {
    return kMemoryStore;
  }
}

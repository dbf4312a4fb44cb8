"""A browser that keeps nothing more: what is said goes on, and that it is not kept is said."""

from page_case import PageCase, needs_mock

CLOSED = """window.closed_store = false;
    const {transaction} = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (...given) {
      if (window.closed_store) throw new DOMException("The database connection is closing.", "InvalidStateError");
      return transaction.apply(this, given);
    };"""

# Reading fails by the functions, and of the records, that sessionStorage.unreadable names.
UNREADABLE = """for (const name of ["getAll", "getAllKeys", "get"]) {
      const read = IDBObjectStore.prototype[name];
      IDBObjectStore.prototype[name] = function (...given) {
        if (sessionStorage.unreadable?.split(" ").some((one) => [name, given[0]].includes(one)))
          throw new DOMException("Failed to read large IndexedDB value", "DataError");
        return read.apply(this, given);
      };
    }"""


class StoreTest(PageCase):
    def set_quota(self, **size):
        self.context.new_cdp_session(self.page).send(
            "Storage.overrideQuotaForOrigin", {"origin": self.url.rstrip("/"), **size})

    @needs_mock
    def test_an_answer_is_written_to_its_end_where_there_is_no_room_to_keep_it(self):
        self.open()
        self.set_quota(quotaSize=1)
        self.mock.hold_at = 20
        self.send("Explain")
        self.page.wait_for_selector(".toast:has-text('Not kept in this browser: it has no room left')")
        self.page.wait_for_timeout(2000)  # so that a part of the answer is to be kept, too
        self.mock.go.set()
        answer = self.ended()
        self.assertIn("section 2.", answer.inner_text())
        self.assertEqual(answer.locator(".error").count(), 0)
        self.assertEqual(self.page.locator(".toast").count(), 1, "it is said once at a time")
        self.set_quota()
        self.mock.hold_at = None
        self.ask("emoji")
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.page.locator(".message").count(), 4, "there is room again: all is kept")

    def test_a_question_is_sent_although_the_browser_has_closed_the_store(self):
        self.context.add_init_script(CLOSED)
        self.open()
        self.page.evaluate("window.closed_store = true")
        answer = self.ask("Explain")
        self.assertGreater(len(answer.locator(".markdown").inner_text()), 5)
        self.page.wait_for_selector(".toast:has-text('Not kept in this browser: The database connection')")

    def read_without(self, *names):
        """Loads the page again; whether it says that something cannot be read, and what it lists."""
        self.page.evaluate("(names) => sessionStorage.unreadable = names", " ".join(names))
        self.page.reload()
        self.page.wait_for_selector("#model-state.ready")
        return (self.page.locator(".toast").all_inner_texts(),
                self.page.locator(".conversation-list .name").all_inner_texts())

    @needs_mock
    def test_conversations_that_cannot_be_read_are_said_and_the_others_shown(self):
        self.context.add_init_script(UNREADABLE)
        self.open()
        for question in ("first", "second"):
            self.page.click("#new-conversation")
            self.ask(question)
        key = self.page.evaluate("""() => new Promise((resolve) => {
            indexedDB.open("outrider").onsuccess = ({target: {result}}) => {
              const store = result.transaction("conversations").objectStore("conversations");
              store.getAll().onsuccess = ({target: {result}}) =>
                resolve(result.find(({messages}) => messages[0].content === "first").id);
            };
        })""")
        why = "cannot be read: Failed to read large IndexedDB value"
        self.assertEqual(self.read_without(), ([], ["second", "first"]))
        self.assertEqual(self.read_without("getAll"), ([], ["second", "first"]))
        self.assertEqual(self.read_without("getAll", key),
                         ([f"1 of the conversations in this browser {why}"], ["second"]))
        self.assertEqual(self.read_without("getAll", "getAllKeys"),
                         ([f"The conversations in this browser {why}"], []))
        self.assertEqual(self.read_without(), ([], ["second", "first"]), "they are still there")

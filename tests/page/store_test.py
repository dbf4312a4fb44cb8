"""A browser that keeps nothing more: what is said goes on, and that it is not kept is said."""

from page_case import PageCase, needs_mock

CLOSED = """window.closed_store = false;
    const {transaction} = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (...given) {
      if (window.closed_store) throw new DOMException("The database connection is closing.", "InvalidStateError");
      return transaction.apply(this, given);
    };"""


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

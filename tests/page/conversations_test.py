"""The page's conversations: kept, renamed, deleted, exported, shown while another one goes on."""

import json

from page_case import PageCase, needs_mock


# How many conversations the browser has stored.
STORED = """() => new Promise((done) => {
  indexedDB.open('outrider').onsuccess = (opened) => {
    const store = opened.target.result.transaction('conversations').objectStore('conversations');
    store.count().onsuccess = (counted) => done(counted.target.result);
  };
})"""


class ConversationsTest(PageCase):
    def names(self):
        return self.page.locator(".conversation-list .name").all_inner_texts()

    def test_they_are_there_again_after_a_reload(self):
        self.open()
        self.ask("first question")
        shown = self.text(".assistant .markdown")
        self.page.click("#new-conversation")
        self.ask("second question")
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.names(), ["second question", "first question"])
        self.page.click("text=first question")
        self.assertEqual(self.text(".assistant .markdown"), shown)
        self.ask("third question")
        self.assertEqual(len(self.bodies[-1]["messages"]), 3)

    def test_no_emoji_is_cut_in_two_where_a_name_ends(self):
        self.open()
        self.ask("a" * 46 + "\U0001F600 and more")
        self.assertEqual(self.names(), ["a" * 46 + "…"])

    def test_rename_delete_and_take_back(self):
        self.open()
        self.ask("question")
        item = self.page.locator(".conversation-list li")
        item.hover()
        item.get_by_label("Rename question").click()
        self.page.fill(".rename", "A name")
        self.page.keyboard.press("Enter")
        self.assertEqual(self.names(), ["A name"])
        item.hover()
        item.get_by_label("Delete A name").click()
        self.assertEqual(self.names(), [])
        self.assertEqual(self.page.locator(".message").count(), 0)
        self.page.click("text=Undo")
        self.assertEqual(self.names(), ["A name"])
        self.assertEqual(self.page.locator(".message").count(), 2)
        item.hover()
        item.get_by_label("Delete A name").click()
        self.until(lambda: self.page.evaluate(STORED) == 0, "the store is empty")
        self.page.reload()
        self.page.wait_for_selector(".welcome")
        self.assertEqual(self.names(), [])

    def test_what_is_changed_in_the_instant_before_a_reload_is_kept(self):
        self.open()
        for round in range(5):
            self.ask(f"question {round}")
            self.page.locator(".conversation-list .name").dblclick()
            self.page.fill(".rename", f"name {round}")
            with self.page.expect_navigation():
                self.page.evaluate("""() => {
                    document.querySelector('.rename').dispatchEvent(
                        new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
                    location.reload();
                }""")
            self.page.wait_for_selector(".assistant")
            self.assertEqual(self.names(), [f"name {round}"])

    def test_export_gives_the_conversation_as_json(self):
        self.open()
        self.ask("a question")
        self.page.locator(".conversation-list li").hover()
        with self.page.expect_download() as download:
            self.page.get_by_label("Export a question").click()
        self.assertEqual(download.value.suggested_filename, "a-question.json")
        exported = json.loads(open(download.value.path(), encoding="utf-8").read())
        self.assertEqual([m["role"] for m in exported["messages"]], ["user", "assistant"])
        self.assertEqual(exported["messages"][0], {"role": "user", "content": "a question"})
        self.assertEqual(set(exported["messages"][1]), {"role", "content"}, "as /load of chat takes it")
        self.assertIn("spans", exported["details"][1])
        self.assertGreater(len(exported["messages"][1]["content"]), 5)

    @needs_mock
    def test_an_answer_goes_on_while_another_conversation_is_shown(self):
        self.mock.hold_at = 20
        self.open()
        self.send("first Explain")
        self.page.wait_for_selector(".assistant")
        self.page.click("#new-conversation")
        self.assertEqual(self.page.locator(".message").count(), 0)
        self.mock.go.set()
        self.page.click("text=first Explain")
        answer = self.ended()
        self.assertIn("section 2.", answer.inner_text())

"""What is answered again or asked otherwise: the text that was there stays, as another version."""

import json

from page_case import PageCase, needs_mock

FAILS = "**/v1/chat/completions"


class VersionsTest(PageCase):
    def again(self, index=0):
        self.page.locator(".assistant").nth(index).get_by_label("Answer again").click()

    def count(self):
        return self.page.locator(".message").count()

    def questions(self):
        return self.page.locator(".user .bubble").all_inner_texts()

    def held(self, *questions):
        """Each question answered, and answers from now on wait at their first token."""
        self.open()
        for question in questions:
            self.ask(question)
        self.mock.hold_at = 0

    def test_what_is_behind_an_answer_stays_when_it_is_answered_again(self):
        self.open()
        for question in ("first", "second", "third"):
            self.ask(question)
        self.again(0)
        self.until(lambda: self.count() == 2, "the new answer alone")
        self.ended(0)
        versions = self.page.locator(".assistant .versions")
        self.assertEqual(versions.inner_text(), "2/2")
        versions.get_by_label("Earlier version").click()
        self.assertEqual(self.questions(), ["first", "second", "third"])
        self.assertEqual(versions.inner_text(), "1/2")
        self.assertTrue(self.page.evaluate("document.activeElement.closest('.versions') !== null"))
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.questions(), ["first", "second", "third"])
        versions.get_by_label("Later version").click()
        self.assertEqual(self.questions(), ["first"])
        self.ask("otherwise")
        self.assertEqual([m["content"] for m in self.bodies[-1]["messages"] if m["role"] == "user"],
                         ["first", "otherwise"])

    def test_undo_brings_back_what_an_edited_question_replaced(self):
        self.open()
        for question in ("first", "second"):
            self.ask(question)
        self.page.locator(".user").first.hover()
        self.page.get_by_label("Edit and send again").first.click()
        self.page.fill(".edit", "changed")
        self.page.press(".edit", "Enter")
        self.until(lambda: self.questions() == ["changed"], "the changed question")
        self.ended(0)
        self.page.click("text=Undo")
        self.assertEqual(self.questions(), ["first", "second"])
        self.page.get_by_label("Later version").click()
        self.assertEqual(self.questions(), ["changed"])

    def test_undo_shows_what_it_brings_back_where_another_conversation_is_shown(self):
        self.open()
        for question in ("first", "second"):
            self.ask(question)
        self.again(0)
        self.until(lambda: self.count() == 2, "the new answer alone")
        self.ended(0)
        self.page.click("#new-conversation")
        self.page.click("text=Undo")
        self.assertEqual(self.questions(), ["first", "second"])

    @needs_mock
    def test_an_answer_that_is_stopped_before_it_begins_replaces_nothing(self):
        self.held("first", "second")
        shown = self.page.locator(".assistant .markdown").first.inner_text()
        self.again(0)
        self.page.wait_for_selector(".waiting:visible")
        self.page.keyboard.press("Escape")
        self.until(lambda: self.count() == 4, "the answers that were there")
        self.assertEqual(self.page.locator(".assistant .markdown").first.inner_text(), shown)
        self.assertEqual(self.page.locator(".versions").count(), 0)
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.questions(), ["first", "second"])

    @needs_mock
    def test_undo_ends_the_new_answer(self):
        self.held("first", "second")
        self.again(0)
        self.page.wait_for_selector(".waiting:visible")
        self.page.click("text=Undo")
        self.assertEqual(self.questions(), ["first", "second"])
        self.until(lambda: self.page.locator(".versions").count() == 0, "the empty version is gone")
        self.until(lambda: self.mock.cancelled == 1, "the server sees the connection close")

    @needs_mock
    def test_what_there_is_of_an_answer_stays_when_the_server_is_gone(self):
        self.open()
        self.mock.break_at = 30
        shown = self.ask("Explain").locator(".markdown").inner_text()
        self.assertGreater(len(shown), 20)
        self.page.route(FAILS, lambda route: route.abort())
        self.page.get_by_text("Try again").click()
        self.page.wait_for_selector(".toast:has-text('Not answered again: The server cannot be reached')")
        answer = self.ended()
        self.assertEqual(answer.locator(".markdown").inner_text(), shown)
        self.page.unroute(FAILS)
        self.mock.break_at = None
        answer.get_by_text("Try again").click()
        self.until(lambda: self.page.locator(".versions").count() == 1, "another version")
        self.assertIn("section 2.", self.ended().inner_text())

    @needs_mock
    def test_a_version_of_a_version_is_found_again(self):
        self.open()
        for question in ("first", "emoji"):
            self.ask(question)
        self.again(1)
        self.until(lambda: self.page.locator(".versions").count() == 1, "two versions")
        self.ended(1)
        self.again(0)
        self.until(lambda: self.count() == 2, "the first answer alone")
        self.ended(0)
        self.again(0)
        self.until(lambda: self.text(".versions") == "3/3", "three versions")
        self.ended(0)
        self.page.get_by_label("Earlier version").click()
        self.page.get_by_label("Earlier version").click()
        self.assertEqual(self.page.locator(".versions").all_inner_texts(), ["1/3", "2/2"])


class VersionFilesTest(PageCase):
    def export(self):
        with self.page.expect_download() as download:
            self.page.click("#export-all")
        path = download.value.path()
        with open(path, encoding="utf-8") as file:
            return path, json.load(file)

    def give(self, value):
        self.page.set_input_files("#import-file", {
            "name": "chat.json", "mimeType": "application/json", "buffer": json.dumps(value).encode()})

    def delete(self, name):
        self.page.locator(".conversation-list li").first.hover()
        self.page.get_by_label(f"Delete {name}").click()
        self.page.wait_for_selector(".welcome")

    def questions(self):
        return self.page.locator(".user .bubble").all_inner_texts()

    def two_versions(self):
        """Of the first answer; behind the earlier one, the second question has two versions as well."""
        self.open()
        for question in ("first", "emoji"):
            self.ask(question)
        self.page.locator(".user").last.hover()
        self.page.get_by_label("Edit and send again").last.click()
        self.page.fill(".edit", "planets")
        self.page.press(".edit", "Enter")
        self.until(lambda: self.questions() == ["first", "planets"], "the changed question")
        self.ended(1)
        self.page.locator(".assistant").first.get_by_label("Answer again").click()
        self.until(lambda: self.page.locator(".message").count() == 2, "the new answer alone")
        self.ended(0)

    def check_versions(self):
        versions = self.page.locator(".versions")
        self.assertEqual(versions.all_inner_texts(), ["2/2"])
        self.page.get_by_label("Earlier version").click()
        self.assertEqual(self.questions(), ["first", "planets"])
        self.assertEqual(versions.all_inner_texts(), ["1/2", "2/2"])
        self.assertGreater(self.page.locator(".assistant").last.locator(".guess").count(), 0)
        self.page.get_by_label("Earlier version").last.click()
        self.assertEqual(self.questions(), ["first", "emoji"])
        self.page.get_by_label("Later version").last.click()
        self.page.get_by_label("Later version").first.click()
        self.assertEqual(self.questions(), ["first"])

    def test_a_file_has_all_versions_and_gives_them_back(self):
        self.two_versions()
        path, (exported,) = self.export()
        self.assertEqual([one["role"] for one in exported["messages"]], ["user", "assistant"],
                         "those that are shown, for programs that know of no versions")
        self.delete("first")
        self.page.set_input_files("#import-file", path)
        self.page.wait_for_selector(".assistant")
        self.check_versions()
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.check_versions()
        self.page.set_input_files("#import-file", path)
        self.page.wait_for_selector(".toast:has-text('1 conversation of this file was here')")

    def test_a_conversation_is_here_whichever_of_its_versions_is_shown(self):
        self.two_versions()
        path, (exported,) = self.export()
        self.page.get_by_label("Earlier version").click()
        self.page.set_input_files("#import-file", path)
        self.page.wait_for_selector(".toast:has-text('1 conversation of this file was here')")
        del exported["versions"]  # as exports were: what was shown, and that alone
        self.page.get_by_label("Later version").first.click()
        self.give([exported, exported])
        self.page.wait_for_selector(".toast:has-text('2 conversations of this file were here')")
        self.assertEqual(self.page.locator(".conversation-list .name").count(), 1)

    def test_a_file_that_has_more_versions_than_are_here_is_imported(self):
        self.two_versions()
        path, (exported,) = self.export()
        self.delete("first")
        self.give({**exported, "versions": None})
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.page.locator(".versions").count(), 0)
        self.page.set_input_files("#import-file", path)
        self.page.wait_for_selector(".versions")
        self.check_versions()

    def test_versions_in_another_form_are_named_with_their_place(self):
        self.open()
        said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
        other = {"messages": [{"role": "assistant", "content": "b"}]}
        form = "not in the form of this page"
        for versions, wrong in (({"at": 0, "tails": [None]}, f"the versions of message 2 are {form}"),
                                ({"at": 2, "tails": [other, other]}, form), ({"at": 1, "tails": [None, other]}, form),
                                (5, form), ({"at": 0, "tails": [None, {}]}, "version 2 of message 2 has no"),
                                ({"at": 0, "tails": [None, {"messages": []}]}, "begins with no message"),
                                ({"at": 0, "tails": [None, {"messages": [{"role": "user"}, 5]}]},
                                 "message 2 of version 2 of message 2 has no role")):
            self.give({"messages": said, "versions": [None, versions]})
            self.page.locator(".toast", has_text=wrong).last.wait_for()
        self.assertEqual(self.page.locator(".conversation-list .name").count(), 0)


class ContinueTest(PageCase):
    @needs_mock
    def test_an_answer_that_was_stopped_goes_on_where_it_ended(self):
        self.open()
        whole = self.ask("Explain").locator(".markdown").inner_text()
        self.page.click("#new-conversation")
        self.mock.hold_at = 30
        self.send("Explain")
        self.until(lambda: len(self.text(".assistant .markdown")) > 20, "some text")
        self.page.keyboard.press("Escape")
        answer = self.ended()
        begun = answer.locator(".markdown").inner_text()
        self.mock.hold_at = None
        answer.get_by_text("Continue").click()
        self.until(lambda: len(self.bodies) == 3, "the request")
        self.ended()
        self.assertIs(self.bodies[2]["continue_final_message"], True)
        self.assertEqual([one["role"] for one in self.bodies[2]["messages"]], ["user", "assistant"])
        self.until(lambda: answer.locator(".markdown").inner_text() == whole, "the whole text")
        self.assertLess(len(begun), len(whole))
        self.assertNotIn("Stopped", answer.inner_text())
        self.assertEqual(answer.get_by_text("Continue").count(), 0)

    @needs_mock
    def test_an_answer_that_broke_off_goes_on_and_counts_all_of_its_tokens(self):
        self.open()
        tokens = self.ask("Explain").locator(".figure", has_text=" tokens").first.inner_text()
        self.page.click("#new-conversation")
        self.mock.break_at = 30
        answer = self.ask("Explain")
        self.mock.break_at = None
        answer.get_by_text("Continue").click()
        self.until(lambda: "section 2." in answer.inner_text(), "the rest")
        self.ended()
        self.assertEqual(answer.locator(".error").count(), 0)
        self.assertEqual(answer.locator(".figure", has_text=" tokens").first.inner_text(), tokens)

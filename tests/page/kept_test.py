"""What belongs to a conversation: its system prompt, what is typed for it, and where the focus is."""

import json

from page_case import PageCase, needs_mock


class SystemPromptTest(PageCase):
    def system_of(self, body):
        return [one["content"] for one in body["messages"] if one["role"] == "system"]

    def test_a_conversation_keeps_the_system_prompt_that_it_began_with(self):
        self.open()
        self.ask("first")
        self.page.click("#open-settings")
        self.page.click("#new-conversation")
        self.page.fill("#setting-system", "You are a pirate.")
        self.ask("second")
        self.assertEqual(self.text(".note-message pre"), "You are a pirate.")
        self.page.locator(".conversation-list .name", has_text="first").click()
        self.assertEqual(self.page.input_value("#setting-system"), "")
        self.assertEqual(self.page.locator(".note-message").count(), 0)
        self.page.locator(".assistant").get_by_label("Answer again").click()
        self.until(lambda: len(self.bodies) == 3, "the request")
        self.ended()
        self.assertEqual([self.system_of(body) for body in self.bodies],
                         [[], ["You are a pirate."], []])
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.page.locator(".conversation-list .name", has_text="second").click()
        self.assertEqual(self.text(".note-message pre"), "You are a pirate.")

    def test_changing_it_in_a_conversation_changes_that_one(self):
        self.open()
        self.ask("first")
        self.page.click("#open-settings")
        self.page.fill("#setting-system", "Be brief.")
        self.assertEqual(self.text(".note-message pre"), "Be brief.")
        self.ask("second")
        self.assertEqual(self.system_of(self.bodies[-1]), ["Be brief."])
        self.page.get_by_text("Back to the server's defaults").click()
        self.assertEqual(self.page.locator(".note-message").count(), 0)

    def test_typing_in_it_leaves_what_is_typed_elsewhere(self):
        self.open()
        self.ask("first")
        self.page.locator(".user").hover()
        self.page.get_by_label("Edit and send again").click()
        self.page.fill(".edit", "changed")
        self.page.click("#open-settings")
        for system in ("Be brief.", "Be very brief.", ""):
            self.page.fill("#setting-system", system)
            self.assertEqual(self.page.locator(".note-message pre").all_inner_texts(),
                             [system] if system else [])
            self.assertEqual(self.page.input_value(".edit"), "changed")
        self.page.fill("#setting-system", "Be brief.")
        self.assertEqual(self.page.evaluate("document.querySelector('#messages').firstChild.className"),
                         "message note-message")
        self.page.press(".edit", "Enter")
        self.until(lambda: len(self.bodies) == 2, "the request")
        self.ended()
        self.assertEqual([one["content"] for one in self.bodies[1]["messages"]], ["Be brief.", "changed"])

    @needs_mock
    def test_typing_in_it_leaves_the_results_of_tools(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#setting-tools", '[{"type": "function", "function": {"name": "get_weather"}}]')
        self.ask("How is the weather?")
        self.page.fill(".results textarea", "blue")
        self.page.fill("#setting-system", "Be brief.")
        self.assertEqual(self.text(".note-message pre"), "Be brief.")
        self.assertEqual(self.page.input_value(".results textarea"), "blue")

    def test_it_is_in_the_file_and_comes_back_from_it(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#setting-system", "Be brief.")
        self.ask("a question")
        with self.page.expect_download() as download:
            self.page.click("#export-all")
        (exported,) = json.loads(open(download.value.path(), encoding="utf-8").read())
        self.assertEqual(exported["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertEqual(len(exported["messages"]), len(exported["details"]))
        self.page.locator(".conversation-list li").hover()
        self.page.get_by_label("Delete a question").click()
        self.page.fill("#setting-system", "")
        self.page.set_input_files("#import-file", download.value.path())
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.text(".note-message pre"), "Be brief.")
        self.assertGreater(self.page.locator(".legend li").count(), 1, "the answer's own details")


class DraftTest(PageCase):
    def test_what_is_typed_stays_with_its_conversation_and_survives_a_reload(self):
        self.open()
        self.ask("first")
        self.page.fill("#prompt", "for the first")
        self.page.click("#new-conversation")
        self.assertEqual(self.page.input_value("#prompt"), "")
        self.page.fill("#prompt", "for a new one")
        self.page.reload()
        self.page.wait_for_selector(".welcome")
        self.assertEqual(self.page.input_value("#prompt"), "for a new one")
        self.page.click("text=first")
        self.assertEqual(self.page.input_value("#prompt"), "for the first")
        self.page.press("#prompt", "Enter")
        self.ended()
        self.assertEqual(self.page.input_value("#prompt"), "")
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.page.input_value("#prompt"), "", "what was sent is no draft")


    def test_what_is_typed_before_the_scripts_are_here_stays(self):
        self.open()
        held = []
        self.page.route("**/app.js", lambda route: held.append(route))
        self.page.goto(self.url, wait_until="commit")
        self.page.fill("#prompt", "typed early")
        self.until(lambda: held, "the script is asked for")
        held[0].continue_()
        self.page.wait_for_selector(".welcome")
        self.page.wait_for_selector("#model-state.ready")
        self.assertEqual(self.page.input_value("#prompt"), "typed early")
        self.page.unroute("**/app.js")
        self.page.reload()
        self.page.wait_for_selector(".welcome")
        self.assertEqual(self.page.input_value("#prompt"), "typed early")
        self.ask("sent")
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.page.input_value("#prompt"), "")


class FocusTest(PageCase):
    def press_in_list(self, label):
        """By keyboard: an item's buttons are there once the focus is in it."""
        self.page.locator(".conversation-list .name").first.focus()
        self.page.get_by_label(label).focus()
        self.page.keyboard.press("Enter")

    def focused(self):
        return self.page.evaluate("document.activeElement.id || document.activeElement.className")

    def test_it_is_at_the_prompt_after_a_question_was_changed_or_answered_again(self):
        self.open()
        self.ask("first")
        self.page.get_by_label("Answer again").focus()
        self.page.keyboard.press("Enter")
        self.ended()
        self.assertEqual(self.focused(), "prompt")
        self.page.get_by_label("Edit and send again").focus()
        self.page.keyboard.press("Enter")
        self.page.keyboard.type(" changed")
        self.page.keyboard.press("Enter")
        self.ended()
        self.assertEqual(self.focused(), "prompt")

    def test_it_stays_in_the_list_after_renaming_and_deleting(self):
        self.open()
        self.ask("first")
        self.press_in_list("Rename first")
        self.page.keyboard.type("A name")
        self.page.keyboard.press("Enter")
        self.assertEqual(self.page.evaluate("document.activeElement.textContent"), "A name")
        self.press_in_list("Delete A name")
        self.assertEqual(self.page.evaluate("document.activeElement.textContent"), "Undo")
        self.page.keyboard.press("Enter")
        self.assertEqual(self.page.evaluate("document.activeElement.textContent"), "A name")

    def test_a_notice_stays_as_long_as_someone_is_at_its_button(self):
        self.page.clock.install()
        self.open()
        self.ask("first")
        self.press_in_list("Delete first")
        self.page.clock.run_for(60_000)
        self.assertEqual(self.page.locator(".toast").count(), 1)
        self.page.focus("#prompt")
        self.page.clock.run_for(20_000)
        self.assertEqual(self.page.locator(".toast").count(), 0)

    def test_it_goes_to_a_panel_that_opens(self):
        self.open()
        self.page.focus("#open-settings")
        self.page.keyboard.press("Enter")
        self.assertEqual(self.focused(), "tab-settings")
        self.page.keyboard.press("Escape")
        self.assertEqual(self.focused(), "open-settings")


class ComposingTest(PageCase):
    """Escape that ends an input method's composition is for that alone."""

    def test_it_ends_neither_an_edit_nor_a_new_name(self):
        self.open()
        self.ask("first")
        self.page.locator(".user").hover()
        self.page.get_by_label("Edit and send again").click()
        self.page.fill(".edit", "changed")
        self.press_composing(".edit", "Escape")
        self.assertEqual(self.page.input_value(".edit"), "changed")
        self.page.press(".edit", "Escape")
        self.assertEqual(self.page.locator(".edit").count(), 0)
        self.page.locator(".conversation-list li").hover()
        self.page.get_by_label("Rename first").click()
        self.page.fill(".rename", "A name")
        self.press_composing(".rename", "Escape")
        self.assertEqual(self.page.input_value(".rename"), "A name")
        self.page.press(".rename", "Escape")
        self.assertEqual(self.text(".conversation-list .name"), "first")

    @needs_mock
    def test_it_stops_no_answer_and_closes_no_panel(self):
        self.mock.hold_at = 20
        self.open()
        self.page.click("#open-settings")
        self.press_composing("#setting-system", "Escape")
        self.assertTrue(self.page.locator("#panel").is_visible())
        self.send("first")
        self.until(lambda: len(self.text(".assistant .markdown")) > 5, "some text")
        self.press_composing("#prompt", "Escape")
        self.mock.go.set()
        self.assertIn("section 2.", self.ended().inner_text())


class ListTest(PageCase):
    @needs_mock
    def test_the_list_says_in_which_conversation_an_answer_is_written(self):
        self.mock.hold_at = 5
        self.open()
        self.send("first")
        self.page.wait_for_selector(".conversation-list .writing")
        self.page.click("#new-conversation")
        self.page.get_by_label("first, an answer is being written").wait_for()
        self.mock.go.set()
        self.page.wait_for_selector(".conversation-list .writing", state="hidden")

    def test_many_conversations_can_be_searched(self):
        self.open()
        self.assertFalse(self.page.locator("#search").is_visible())
        many = [{"messages": [{"role": "user", "content": f"question {i}"},
                              {"role": "assistant", "content": f"answer {'whale' if i == 3 else i}"}]}
                for i in range(12)]
        self.page.set_input_files("#import-file", {
            "name": "many.json", "mimeType": "application/json", "buffer": json.dumps(many).encode()})
        self.page.wait_for_selector("#search", state="visible")
        self.page.fill("#search", "WHALE")
        names = self.page.locator(".conversation-list .name")
        self.assertEqual(names.all_inner_texts(), ["question 3"])
        self.page.fill("#search", "")
        self.assertEqual(names.count(), 12)

    def test_the_conversation_that_is_shown_is_in_sight_in_a_long_list(self):
        self.open()
        many = [{"created": i + 1, "updated": i + 1, "messages": [{"role": "user", "content": f"question {i}"},
                 {"role": "assistant", "content": "answer"}]} for i in range(60)]
        self.page.set_input_files("#import-file", {
            "name": "many.json", "mimeType": "application/json", "buffer": json.dumps(many).encode()})
        self.page.wait_for_selector(".toast")
        self.page.locator(".conversation-list .name").nth(50).click()
        seen = """() => {
            const {top, bottom} = document.querySelector('.conversation-list .current').getBoundingClientRect();
            const list = document.querySelector('#sidebar nav').getBoundingClientRect();
            return top >= list.top - 1 && bottom <= list.bottom + 1;
        }"""
        self.assertTrue(self.page.evaluate(seen))
        self.ask("one more")  # which puts it at the top
        self.assertTrue(self.page.evaluate(seen))
        self.page.locator(".conversation-list .name").nth(50).click()
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertTrue(self.page.evaluate(seen))


class NarrowListTest(PageCase):
    viewport = {"width": 375, "height": 700}

    def test_the_list_over_the_text_has_the_focus_and_nothing_behind_it_does(self):
        self.open()
        self.page.click("#toggle-sidebar")
        self.assertEqual(self.page.evaluate("document.activeElement.id"), "close-sidebar")
        self.assertTrue(self.page.evaluate("document.querySelector('#main').inert"))
        self.page.keyboard.press("Escape")
        self.assertFalse(self.page.evaluate("document.querySelector('#main').inert"))
        self.assertEqual(self.page.evaluate("document.activeElement.id"), "toggle-sidebar")
        self.assertEqual(self.page.get_by_role("heading", level=1).count(), 1)

    def test_escape_of_an_input_method_leaves_the_list_open(self):
        self.open()
        self.page.click("#toggle-sidebar")
        self.press_composing("#close-sidebar", "Escape")
        self.assertTrue(self.page.evaluate("document.querySelector('#main').inert"))

    def test_a_notice_lies_over_neither_the_search_nor_the_first_conversations(self):
        self.open()
        self.ask("first")
        self.page.click("#toggle-sidebar")
        self.page.get_by_label("Delete first").click()
        notice = self.page.locator(".toast").bounding_box()
        nav = self.page.locator("#sidebar nav").bounding_box()
        self.assertGreater(notice["y"], nav["y"] + nav["height"] / 2)

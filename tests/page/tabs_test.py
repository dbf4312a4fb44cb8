"""Two tabs of the page: they share the conversations, and none loses what was said in the other."""

from page_case import PageCase, needs_mock

DEAF = "window.BroadcastChannel = class { postMessage() {} };"


class TabsTest(PageCase):
    def in_tab(self, tab):
        self.page = tab
        tab.bring_to_front()

    def two_tabs(self, question="first"):
        """Both show one conversation, of one question."""
        self.open()
        self.ask(question)
        one, other = self.page, self.new_tab()
        self.in_tab(other)
        self.open()
        self.page.wait_for_selector(".assistant")
        return one, other

    def names(self):
        return self.page.locator(".conversation-list .name").all_inner_texts()

    def questions(self):
        return self.page.locator(".user .bubble").all_inner_texts()

    def kept(self):
        """The questions of each conversation that a new tab finds, those with a name in its list."""
        self.in_tab(self.new_tab())
        self.open()
        kept = {}
        for name in self.page.locator(".conversation-list .name").all():
            name.click()
            kept[name.inner_text()] = self.questions()
        return kept

    def on_item(self, label):
        item = self.page.locator(".conversation-list li").first
        item.hover()
        item.get_by_label(label).first.click()

    def test_one_goes_on_where_the_other_has_ended(self):
        one, other = self.two_tabs()
        self.ask("second")
        self.in_tab(one)
        self.until(lambda: self.questions() == ["first", "second"], "the other tab's question")
        self.ended()
        self.ask("third")
        self.assertEqual(len(self.bodies[-1]["messages"]), 5)
        self.in_tab(other)
        self.until(lambda: self.questions() == ["first", "second", "third"], "the third question")
        self.assertEqual(self.names(), ["first"])
        self.assertEqual(self.kept(), {"first": ["first", "second", "third"]})

    @needs_mock
    def test_what_both_answer_at_once_is_kept_as_two(self):
        one, other = self.two_tabs()
        self.mock.hold_at = 20
        self.send("in the other")
        self.in_tab(one)
        self.send("in the one")
        self.until(lambda: len(self.bodies) == 3, "both requests")
        self.mock.go.set()
        for tab in (one, other):
            self.in_tab(tab)
            self.ended()
            self.until(lambda: sorted(self.names()) == ["first", "first (copy)"],
                       "both conversations")
        self.assertEqual(sorted(self.kept().values()),
                         [["first", "in the one"], ["first", "in the other"]])

    def test_what_both_ended_before_either_heard_is_kept_as_two(self):
        self.context.add_init_script("""window.BroadcastChannel = class extends BroadcastChannel {
            postMessage(data) { setTimeout(() => super.postMessage(data), window.late ?? 0); }};""")
        one, other = self.two_tabs()
        for tab, question in ((one, "in the one"), (other, "in the other")):
            self.in_tab(tab)
            self.page.evaluate("window.late = 3000")
            self.ask(question)
        for tab in (one, other):
            self.in_tab(tab)
            self.until(lambda: sorted(self.names()) == ["first", "first (copy)"],
                       "both conversations")
        self.assertEqual(sorted(self.kept().values()),
                         [["first", "in the one"], ["first", "in the other"]])

    def test_a_tab_that_missed_the_others_turns_removes_none(self):
        self.context.add_init_script(DEAF)
        one, other = self.two_tabs()
        self.ask("second")
        self.in_tab(one)
        self.assertEqual(self.questions(), ["first"])
        self.ask("third")
        self.in_tab(other)
        self.ask("fourth")
        self.page.wait_for_timeout(100)
        self.in_tab(self.new_tab())
        self.open()
        self.assertEqual(self.names(), ["first", "first"])
        kept = []
        for name in self.page.locator(".conversation-list .name").all():
            name.click()
            kept.append(self.questions())
        self.assertEqual(kept, [["first", "second", "fourth"], ["first", "third"]])

    def test_what_one_deletes_is_gone_in_the_other_and_can_be_taken_back(self):
        one, other = self.two_tabs()
        self.on_item("Delete first")
        self.in_tab(one)
        self.page.wait_for_selector(".toast:has-text('was deleted in another tab')")
        self.assertEqual(self.names(), [])
        self.assertEqual(self.page.locator(".welcome").count(), 1)
        self.in_tab(other)
        self.page.click("text=Undo")  # at once: it is offered for 15 seconds
        self.in_tab(one)
        self.until(lambda: self.names() == ["first"], "the conversation is back")
        self.assertEqual(self.kept(), {"first": ["first"]})

    @needs_mock
    def test_what_one_deletes_while_the_other_answers_in_it_is_kept_by_the_answer(self):
        one, other = self.two_tabs()
        self.mock.hold_at = 20
        self.send("second")
        self.until(lambda: len(self.bodies) == 2, "the request")
        self.in_tab(one)
        self.on_item("Delete first")
        self.assertEqual(self.names(), [])
        self.in_tab(other)
        self.mock.go.set()
        self.ended()
        self.assertEqual(self.kept(), {"first": ["first", "second"]})

    @needs_mock
    def test_a_name_given_while_the_other_answers_makes_no_copy(self):
        one, other = self.two_tabs()
        self.mock.hold_at = 20
        self.send("second")
        self.until(lambda: len(self.bodies) == 2, "the request")
        self.in_tab(one)
        self.on_item("Rename first")
        self.page.fill(".rename", "A name")
        self.page.keyboard.press("Enter")
        self.in_tab(other)
        self.until(lambda: self.names() == ["A name"], "the name")
        self.mock.go.set()
        self.ended()
        self.in_tab(one)
        self.until(lambda: self.questions() == ["first", "second"], "the answered question")
        self.assertEqual(self.names(), ["A name"])
        self.assertEqual(self.kept(), {"A name": ["first", "second"]})

    def test_what_is_being_written_in_one_is_not_replaced_by_the_other(self):
        one, other = self.two_tabs()
        self.page.locator(".user").hover()
        self.page.get_by_label("Edit and send again").click()
        self.page.fill(".edit", "changed")
        self.in_tab(one)
        self.ask("second")
        self.in_tab(other)
        self.until(lambda: len(self.names()) == 2, "both conversations")
        self.assertEqual(self.page.input_value(".edit"), "changed")
        self.page.press(".edit", "Enter")
        self.until(lambda: self.questions() == ["changed"], "the changed question")
        self.ended()
        self.assertEqual(self.kept(), {"first (copy)": ["changed"], "first": ["first", "second"]})

    @needs_mock
    def test_a_version_that_one_makes_while_the_other_is_in_use_stays(self):
        one, other = self.two_tabs()
        self.page.locator(".user").hover()
        self.page.get_by_label("Edit and send again").click()
        self.page.fill(".edit", "changed")
        self.in_tab(one)
        self.page.get_by_label("Answer again").click()  # the mock says the same again
        self.page.wait_for_selector(".versions")
        self.ended()
        self.in_tab(other)
        self.until(lambda: len(self.names()) == 2, "the other tab has heard of it")
        self.in_tab(self.new_tab())
        self.open()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.page.locator(".versions").inner_text(), "2/2")

    @needs_mock
    def test_a_tab_that_is_opened_while_an_answer_is_written_has_the_conversation_once(self):
        self.mock.hold_at = 20
        self.open()
        self.send("first")
        self.until(lambda: len(self.text(".assistant .markdown")) > 5, "some text")
        one = self.page
        self.in_tab(self.new_tab())
        self.open()
        self.page.wait_for_selector(".assistant")
        self.mock.go.set()
        self.until(lambda: "section 2." in self.text(".assistant"), "the whole answer")
        self.assertEqual(self.names(), ["first"])
        self.in_tab(one)
        self.on_item("Delete first")
        self.in_tab(self.context.pages[1])
        self.until(lambda: self.names() == [], "it is deleted here, too")

    def reloaded_while_it_answers(self, ask):
        """One tab asks and is loaded again in the middle of the answer, then asks once more."""
        one, other = self.two_tabs()
        self.mock.hold_at = 20
        ask()
        self.until(lambda: len(self.bodies) == 2, "the request")
        self.until(lambda: len(self.page.locator(".assistant .markdown").last.inner_text()) > 5, "some text")
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.mock.hold_at = None
        self.ask("third")
        asked = self.questions()
        self.in_tab(one)
        self.until(lambda: self.questions() == asked, "the third question")
        self.assertEqual(self.names(), ["first"])
        self.assertEqual(self.kept(), {"first": asked})

    @needs_mock
    def test_a_tab_that_is_loaded_again_while_it_answers_leaves_one_conversation_in_the_other(self):
        self.reloaded_while_it_answers(lambda: self.send("second"))

    @needs_mock
    def test_a_tab_that_is_loaded_again_while_it_answers_again_leaves_one_conversation_too(self):
        self.reloaded_while_it_answers(lambda: self.page.get_by_label("Answer again").click())

    def test_a_setting_that_one_changes_is_not_undone_by_the_other(self):
        one, other = self.two_tabs()
        self.page.click("#open-settings")
        self.page.fill("#setting-temperature", "0.3")
        self.page.click("#colours")
        self.in_tab(one)
        self.until(lambda: self.page.get_attribute("#colours", "aria-checked") == "false", "the colours' switch")
        self.assertEqual(self.page.locator(".guess").count(), 0)
        self.page.click("#open-settings")
        self.page.fill("#setting-top_k", "7")
        self.ask("second")
        self.assertEqual((self.bodies[-1]["temperature"], self.bodies[-1]["top_k"]), (0.3, 7))
        self.in_tab(other)
        self.page.reload()
        self.page.click("#open-settings")
        self.assertEqual([self.page.input_value(f"#setting-{name}") for name in ("temperature", "top_k")],
                         ["0.3", "7"])

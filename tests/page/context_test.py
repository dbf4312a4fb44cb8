"""A conversation that fills its context, and a text that grows while someone reads it."""

from page_case import PageCase, needs_mock

TOP = "document.querySelector('#scroller').scrollTop"
LEFT = """(() => { const {scrollHeight, scrollTop, clientHeight} = document.querySelector('#scroller');
    return scrollHeight - scrollTop - clientHeight; })()"""


class ContextTest(PageCase):
    @needs_mock
    def test_a_full_context_is_named_with_what_helps(self):
        self.mock.context = 60
        self.open()
        answer = self.ask("Explain")
        self.assertIn("Context full (60 of 60 tokens)", answer.inner_text())
        self.assertNotIn("limit of tokens", answer.inner_text())
        self.assertEqual(self.text("#context"), "Context 100 % full (60 of 60 tokens)")
        self.assertEqual(answer.get_by_text("Continue").count(), 0, "there is no room")
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertIn("Context full (60 of 60 tokens)", self.ended().inner_text())
        self.ended().get_by_role("button", name="New conversation").click()
        self.assertEqual(self.page.locator(".message").count(), 0)
        self.assertEqual(self.text("#context"), "")

    @needs_mock
    def test_the_limit_of_tokens_that_was_set_is_not_called_a_full_context(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#setting-max_tokens", "12")
        answer = self.ask("Explain")
        self.assertIn("Ended at the limit of tokens", answer.inner_text())
        self.assertEqual(self.text("#context"), "")
        answer.get_by_text("Continue").click()
        self.until(lambda: "24 tokens" in answer.inner_text(), "twelve more")

    @needs_mock
    def test_a_context_that_is_nearly_full_is_warned_of(self):
        self.open()
        self.ask("emoji")
        self.assertEqual(self.text("#context"), "")
        used = 30 + int(self.page.locator(".figure", has_text=" tokens").first.inner_text().split()[0])
        self.mock.context = used + 5
        self.page.reload()
        self.page.wait_for_selector("#context:has-text('full')")
        self.assertIn(f"({used} of {used + 5} tokens)", self.text("#context"))

    @needs_mock
    def test_a_prompt_without_room_offers_a_new_conversation(self):
        self.open()
        self.mock.failure = (400, {"message": "This model's maximum is 256", "n_prompt_tokens": 300,
                                   "n_ctx": 256, "code": "context_length_exceeded"})
        answer = self.ask("hello")
        self.assertIn("Context full: the prompt has 300 tokens, and the context 256. A new conversation has room again",
                      answer.inner_text())
        answer.get_by_role("button", name="New conversation").click()
        self.assertEqual(self.page.locator(".welcome").count(), 1)


class FollowTest(PageCase):
    viewport = {"width": 1400, "height": 500}

    def scrolled_up(self):
        """In the midst of an answer, a little above its end."""
        self.mock.hold_at = 400
        self.open()
        self.send("long")
        self.until(lambda: self.page.evaluate(TOP) > 300, "a text that is longer than the window")
        self.page.mouse.move(600, 250)
        self.page.mouse.wheel(0, -30)
        self.until(lambda: self.page.evaluate(LEFT) > 25, "a bit above the end")

    @needs_mock
    def test_who_scrolls_up_a_little_stays_there(self):
        self.scrolled_up()
        self.page.wait_for_timeout(300)  # a smooth scroll
        shown = self.page.evaluate(TOP)
        self.mock.go.set()
        self.ended()
        self.assertEqual(self.page.evaluate(TOP), shown)
        self.page.wait_for_selector("#to-end", state="visible")
        self.page.click("#to-end")
        self.until(lambda: self.page.evaluate(LEFT) <= 1, "the end")

    @needs_mock
    def test_who_is_at_the_end_again_is_taken_along(self):
        self.scrolled_up()
        self.page.mouse.wheel(0, 500)
        self.until(lambda: self.page.evaluate(LEFT) <= 1, "the end")
        self.mock.go.set()
        self.ended()
        self.until(lambda: self.page.evaluate(LEFT) <= 1, "the new end")

    @needs_mock
    def test_the_end_stays_in_sight_when_a_panel_opens(self):
        self.open()
        self.ask("Write merge in Python, at length: long")
        self.until(lambda: self.page.evaluate(LEFT) <= 1, "the end")
        self.page.click("#open-settings")
        self.page.wait_for_selector("#panel", state="visible")
        self.until(lambda: self.page.evaluate(LEFT) <= 1, "the end again")

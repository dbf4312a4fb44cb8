"""Chatting: what is sent, what is shown while an answer comes and after."""

from mock_texts import REASONING, tokens_of
from page_case import PageCase, needs_mock


class ChatTest(PageCase):
    def test_an_answer_streams_and_shows_its_figures(self):
        self.open()
        answer = self.ask("Explain speculative decoding")
        self.assertGreater(len(answer.locator(".markdown").inner_text()), 20)
        figures = answer.locator(".figures").inner_text()
        self.assertIn("tokens/s", figures)
        self.assertIn("a step", figures)

    @needs_mock
    def test_what_is_said_against_plain_decoding_is_the_answers_own_estimate(self):
        self.mock.times = {"predicted_ms": 1000, "plain_ms": 1799}  # and 1 ms for choosing tokens
        self.open()
        answer = self.ask("Explain")
        self.assertIn("about 1.80× plain", answer.locator(".figures").inner_text())
        figure = answer.locator(".figure", has_text="plain")
        self.assertIn("Estimated: ", figure.get_attribute("title"))
        self.assertEqual(self.page.locator("#live .figure", has_text="plain").count(), 0)
        self.page.reload()
        self.assertIn("about 1.80× plain", self.ended().locator(".figures").inner_text())

    @needs_mock
    def test_where_nothing_tells_what_plain_decoding_takes_nothing_is_said_of_it(self):
        self.mock.times = {"plain_ms": None}  # the cost curve is there, of when the model was opened
        self.open()
        figures = self.ask("Explain").locator(".figures").inner_text()
        self.assertIn("tokens/s", figures)
        self.assertNotIn("plain", figures)

    def test_the_text_is_complete_and_in_order(self):
        self.open()
        body = self.ask("emoji")
        if self.mock:
            self.assertEqual(body.locator(".markdown").inner_text(),
                             "Good morning \U0001F600! Ça va? 日本語も大丈夫。")

    def test_guessed_tokens_are_coloured_by_their_drafter_and_can_be_plain(self):
        self.real_tokens = 200
        self.open()
        answer = self.ask("Write the line 'The quick brown fox jumps over the lazy dog.' ten times.")
        guesses = answer.locator(".guess")
        self.assertGreater(guesses.count(), 0)
        self.assertRegex(guesses.first.get_attribute("title"), r"^guessed by [\w-]+$")
        self.assertGreater(answer.locator(".legend li").count(), 1)
        coloured = answer.locator(".markdown").inner_text()
        self.page.click("#colours")
        self.assertEqual(answer.locator(".guess").count(), 0)
        self.assertEqual(answer.locator(".legend").count(), 0)
        self.assertEqual(answer.locator(".markdown").inner_text(), coloured)
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.page.locator(".guess").count(), 0, "the switch is kept")

    @needs_mock
    def test_the_legend_counts_every_token_once(self):
        self.open()
        answer = self.ask("Explain")
        shares = [int(text.split()[-2]) for text in answer.locator(".legend li").all_inner_texts()]
        self.assertAlmostEqual(sum(shares), 100, delta=3)

    def test_stop_ends_the_answer_and_keeps_what_there_is(self):
        if self.mock:
            self.mock.hold_at = 30
        self.real_tokens = 1000
        self.open()
        self.send("Tell a long story of a hundred paragraphs")
        self.until(lambda: len(self.text(".assistant .markdown")) > 20, "some text")
        self.assertEqual(self.page.get_attribute("#send", "aria-label"), "Stop (Esc)")
        self.page.keyboard.press("Escape")
        answer = self.ended()
        self.assertIn("Stopped", answer.inner_text())
        self.assertGreater(len(answer.locator(".markdown").inner_text()), 20)
        self.assertEqual(self.page.get_attribute("#send", "aria-label"), "Send (Enter)")
        if self.mock:
            self.until(lambda: self.mock.cancelled == 1, "the server sees the connection close")

    def test_shift_enter_begins_a_line_and_enter_sends(self):
        self.open()
        self.page.click("#prompt")
        self.page.keyboard.type("one")
        self.page.keyboard.press("Shift+Enter")
        self.page.keyboard.type("two")
        self.assertEqual(self.page.input_value("#prompt"), "one\ntwo")
        self.page.keyboard.press("Enter")
        self.ended()
        self.assertEqual(self.bodies[0]["messages"], [{"role": "user", "content": "one\ntwo"}])
        self.assertEqual(self.page.input_value("#prompt"), "")

    def test_an_edited_message_replaces_what_followed(self):
        self.open()
        self.ask("first")
        self.ask("second")
        self.page.locator(".user").first.hover()
        self.page.locator(".user").first.get_by_label("Edit and send again").click()
        self.page.fill(".edit", "changed")
        self.page.press(".edit", "Enter")
        self.until(lambda: self.page.locator(".message").count() == 2, "two messages")
        self.ended(0)
        self.assertEqual(self.text(".user .bubble"), "changed")
        self.assertEqual(self.bodies[-1]["messages"], [{"role": "user", "content": "changed"}])

    def test_answer_again_asks_with_the_same_history(self):
        self.open()
        self.ask("first")
        self.ask("second")
        self.page.locator(".assistant").nth(1).get_by_label("Answer again").click()
        self.until(lambda: len(self.bodies) == 3, "a third request")
        self.ended(1)
        self.assertEqual(self.page.locator(".message").count(), 4)
        self.assertEqual(self.bodies[-1]["messages"], self.bodies[-2]["messages"])
        self.assertEqual([m["role"] for m in self.bodies[-1]["messages"]],
                         ["user", "assistant", "user"])

    @needs_mock
    def test_reasoning_is_folded_and_not_sent_back(self):
        self.open()
        answer = self.ask("the sum of 17 and 25")
        details = answer.locator("details")
        self.assertIsNone(details.get_attribute("open"))
        self.assertIn("Reasoning", details.inner_text())
        details.locator("summary").click()
        self.assertIn("17 and 25 make 42", details.inner_text())
        self.assertEqual(answer.locator(".markdown").inner_text(), "17 + 25 = 42.")
        self.ask("thanks")
        self.assertEqual(self.bodies[-1]["messages"][1],
                         {"role": "assistant", "content": "17 + 25 = **42**."})

    @needs_mock
    def test_reasoning_is_drawn_where_it_is_open_and_keeps_what_is_selected(self):
        self.mock.hold_at = 8
        self.open()
        self.send("the sum of 17 and 25")
        shown = self.page.locator(".reasoning-text")
        self.page.wait_for_selector("summary:text('Thinking…')")
        self.page.wait_for_timeout(100)
        self.assertEqual(shown.evaluate("node => node.childNodes.length"), 0, "it is folded")
        self.page.click("summary")
        self.page.evaluate("getSelection().selectAllChildren(document.querySelector('.reasoning-text'))")
        selected = self.page.evaluate("String(getSelection())")
        self.assertTrue(REASONING.startswith(selected.strip()) and selected.strip(), selected)
        self.mock.go.set()
        self.ended()
        self.assertEqual(shown.text_content(), REASONING)
        self.assertEqual(self.page.evaluate("String(getSelection())"), selected)
        grown = shown.inner_html()
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(shown.evaluate("node => node.childNodes.length"), 0, "it is folded")
        self.page.click("summary")
        self.assertEqual(shown.inner_html(), grown, "the same colours as at once")
        self.page.click("#colours")
        self.assertEqual(shown.inner_html(), REASONING)

    @needs_mock
    def test_reasoning_that_has_ended_is_not_drawn_again(self):
        self.mock.hold_at = len(tokens_of(REASONING))
        self.open()
        self.send("the sum of 17 and 25")
        self.page.wait_for_selector("summary:text('Thinking…')")
        self.page.click("summary")
        shown = self.page.locator(".reasoning-text")
        self.until(lambda: shown.text_content() == REASONING, "all of the reasoning")
        shown.evaluate("""node => { window.changes = 0;
            new MutationObserver((all) => window.changes += all.length).observe(
                node, {childList: true, characterData: true, subtree: true}); }""")
        self.mock.go.set()
        answer = self.ended()
        self.assertEqual(answer.locator(".markdown").inner_text(), "17 + 25 = 42.")
        self.assertEqual(self.page.evaluate("window.changes"), 0)
        self.page.click("#colours")
        self.assertGreater(self.page.evaluate("window.changes"), 0, "or nothing was counted")

    def live(self, unit):
        """The figure of this unit beside the running answer, or None."""
        figure = self.page.locator("#live .figure", has_text=unit)
        return figure.inner_text() if figure.count() else None

    @needs_mock
    def test_acceptance_is_shown_while_the_answer_runs(self):
        self.mock.hold_at = 30
        self.open()
        self.send("Explain")
        self.until(lambda: self.live("accepted"), "acceptance")
        seen = []  # until all that came is drawn: the same for half a second

        def is_settled():
            seen.append(self.live("accepted"))
            return len(seen) > 25 and len(set(seen[-25:])) == 1

        self.until(is_settled, "the last figure")
        self.assertRegex(self.live("accepted"), r"^\d+ % accepted$")
        self.assertIsNone(self.live("plain"), "nothing tells how fast plain decoding is")
        shown = self.live("accepted")
        self.page.keyboard.press("Escape")
        self.assertIn(shown, self.ended().locator(".figures").inner_text(), "of one that was stopped")
        self.mock.go.set()
        figures = self.ask("Explain").locator(".figures").inner_text()
        self.assertRegex(figures, r"\d+ % accepted")
        steps = self.mock.ended
        self.assertIn(f"{round(100 * steps['accepted'] / steps['drafted'])} % accepted", figures)

    @needs_mock
    def test_the_speed_against_plain_decoding_is_shown_live_once_an_answer_told_it(self):
        self.mock.rate = 60
        self.open()
        self.page.click("#open-settings")
        self.page.click("#setting-speculation")
        self.page.fill("#setting-max_tokens", "20")
        self.send("Explain")
        self.ended()
        self.assertIsNone(self.live("plain"))
        self.page.click("#setting-speculation")
        self.page.fill("#setting-max_tokens", "")
        self.mock.hold_at = 60
        self.send("Explain")
        self.until(lambda: self.live("plain"), "the live speed-up")
        self.assertRegex(self.live("plain"), r"^about [\d.]+× plain$")
        self.assertIn("So far", self.page.locator("#live .figure", has_text="plain").get_attribute("title"))
        self.mock.times = {"predicted_ms": 1000, "plain_ms": 2499}
        self.mock.go.set()
        answer = self.ended()
        self.assertIn("about 2.50× plain", answer.locator(".figures").inner_text(), "the server's own")
        self.mock.go.clear()
        self.page.click("#setting-speculation")
        self.send("long")
        self.until(lambda: self.live("tokens/s"), "its speed")
        self.assertIsNone(self.live("plain"), "it is plain decoding itself")
        self.page.keyboard.press("Escape")
        self.ended()

    @needs_mock
    def test_progress_of_the_prompt_is_shown_until_the_first_token(self):
        self.mock.hold_prompt = True
        self.open()
        self.send("Explain")
        self.page.wait_for_selector(".waiting:text('Reading the prompt, 1024 of 2048 tokens')")
        self.mock.go.set()
        self.ended()
        self.assertFalse(self.page.locator(".waiting").is_visible())

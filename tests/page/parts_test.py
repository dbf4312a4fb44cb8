"""The page's other parts: side by side, settings, conversations, panels, keys, states, phones."""

import json

from mock_server import STATES
from page_case import PageCase, needs_mock


# How many conversations the browser has stored.
STORED = """() => new Promise((done) => {
  indexedDB.open('outrider').onsuccess = (opened) => {
    const store = opened.target.result.transaction('conversations').objectStore('conversations');
    store.count().onsuccess = (counted) => done(counted.target.result);
  };
})"""


class SideBySideTest(PageCase):
    def compare(self, prompt):
        self.open()
        self.page.click("#view-compare")
        self.send(prompt)
        self.page.wait_for_selector(".verdict:is(.same, .differs, .open)")
        return self.text(".verdict")

    def test_both_run_with_one_seed_and_the_text_is_the_same(self):
        verdict = self.compare("Explain speculative decoding")
        self.assertRegex(verdict, r"^[\d.]+×")
        self.assertIn("The same text, token for token", verdict)
        off, on = sorted(self.bodies, key=lambda body: body["speculative"] is not False)
        self.assertEqual((off["speculative"], on["speculative"]), (False, True))
        self.assertEqual(off["seed"], on["seed"])
        self.assertEqual(off["messages"], on["messages"])
        panes = self.page.locator(".pane")
        self.assertEqual(panes.nth(0).locator(".guess").count(), 0)
        self.assertGreater(panes.nth(1).locator(".guess").count(), 0)
        self.assertEqual(panes.nth(0).locator(".pane-text").inner_text(),
                         panes.nth(1).locator(".pane-text").inner_text())

    @needs_mock
    def test_it_says_at_which_token_the_texts_part(self):
        self.mock.differ_at = 20
        verdict = self.compare("Explain")
        self.assertIn("part at token 21", verdict)
        self.assertIn("“ otherwise” with it", verdict)

    @needs_mock
    def test_one_after_the_other_never_overlaps(self):
        self.mock.hold_at = 10
        self.open()
        self.page.click("#view-compare")
        self.page.select_option("#compare-order", "in turn")
        self.assertIn("measures better", self.text(".compare-order"))
        self.send("Explain")
        self.page.wait_for_selector(".pane .waiting:text('Waits for the other one')")
        self.until(lambda: "Speculative" in self.page.locator(".pane").first.inner_text(), "text")
        self.assertEqual([body["speculative"] for body in self.mock.requests], [False])
        self.mock.go.set()
        self.page.wait_for_selector(".verdict.same")
        self.assertEqual([body["speculative"] for body in self.mock.requests], [False, True])

    @needs_mock
    def test_stop_ends_both(self):
        self.mock.hold_at = 20
        self.open()
        self.page.click("#view-compare")
        self.send("long")
        for pane in (0, 1):
            text = self.page.locator(".pane .markdown").nth(pane)
            self.until(lambda: len(text.inner_text()) > 5, "some text")
        self.page.keyboard.press("Escape")
        self.page.wait_for_selector(".verdict.open")
        self.assertIn("as far as both got", self.text(".verdict"))
        self.until(lambda: self.mock.cancelled == 2, "the server sees both connections close")

    @needs_mock
    def test_a_failure_of_one_is_shown_in_its_place(self):
        self.mock.failure = (503, {"message": "The queue is full: 16 requests wait"})
        self.compare("Explain")
        self.assertIn("The queue is full: 16 requests wait", self.text(".panes"))


class SettingsTest(PageCase):
    @needs_mock
    def test_nothing_is_sent_that_was_not_set(self):
        self.open()
        self.ask("hello")
        self.assertEqual(set(self.bodies[0]), {"model", "messages", "stream", "stream_options",
                                               "token_sources", "return_progress", "speculative"})
        self.assertIs(self.bodies[0]["speculative"], True)

    def test_settings_reach_the_request(self):
        self.open()
        self.page.click("#open-settings")
        for name, value in {"temperature": "0.7", "top_k": "20", "top_p": "0.9", "min_p": "0.05",
                            "seed": "42", "max_tokens": "12", "width": "3"}.items():
            self.page.fill(f"#setting-{name}", value)
        self.page.fill("#setting-system", "Be brief.")
        self.page.select_option("#setting-rule", "coupled")
        self.page.check(".checks input[value=suffix]")
        self.ask("hello")
        body = self.bodies[0]
        self.assertEqual({name: body[name] for name in ("temperature", "top_k", "top_p", "min_p",
                                                        "seed", "max_tokens")},
                         {"temperature": 0.7, "top_k": 20, "top_p": 0.9, "min_p": 0.05,
                          "seed": 42, "max_tokens": 12})
        self.assertEqual(body["speculative"], {"drafters": ["suffix"], "rule": "coupled",
                                               "width": 3})
        self.assertEqual(body["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertIn("Ended at the limit", self.page.locator(".assistant").inner_text())

    @needs_mock
    def test_speculation_can_be_switched_off_and_everything_put_back(self):
        self.open()
        self.page.click("#open-settings")
        self.page.click("#setting-speculation")
        answer = self.ask("hello")
        self.assertIs(self.bodies[0]["speculative"], False)
        self.assertEqual(answer.locator(".guess").count(), 0)
        self.page.get_by_text("Back to the server's defaults").click()
        self.ask("hello")
        self.assertIs(self.bodies[1]["speculative"], True)

    def test_a_value_out_of_range_is_named_and_nothing_is_sent_with_another(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#setting-top_p", "2")
        self.assertEqual(self.text("#setting-top_p-problem"), "a number from 0 to 1")
        self.send("hello")
        self.page.wait_for_selector(".toast:has-text('Not sent. Top p: a number from 0 to 1')")
        self.assertEqual(self.bodies, [])
        self.page.fill("#setting-top_p", "")
        self.ask("hello")
        self.assertNotIn("top_p", self.bodies[0])

    @needs_mock
    def test_a_width_that_is_not_sent_stops_nothing(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#setting-width", "0")
        self.page.click("#setting-speculation")
        self.ask("hello")
        self.assertIs(self.bodies[0]["speculative"], False)


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


class KeyTest(PageCase):
    @needs_mock
    def test_the_page_asks_for_the_key_and_again_after_a_wrong_one(self):
        self.mock.key = "secret"
        self.page.goto(self.url)
        self.page.wait_for_selector("#key-dialog[open]")
        self.give_key("wrong")
        self.page.wait_for_selector("text=It did not accept the last one.")
        self.give_key("secret")
        self.page.wait_for_selector("#model-state.ready")
        self.ask("hello")
        stored = self.page.evaluate("[JSON.stringify({...localStorage}), {...sessionStorage}]")
        self.assertNotIn("secret", stored[0])
        self.assertIn("secret", stored[1].values())

    @needs_mock
    def test_who_gives_no_key_is_asked_again_only_when_they_act(self):
        self.mock.key = "secret"
        self.page.goto(self.url)
        self.page.wait_for_selector("#key-dialog[open]")
        self.page.keyboard.press("Escape")
        self.page.wait_for_selector("#banner.bad")
        self.assertIn("wants a key", self.text("#banner"))
        self.page.wait_for_timeout(2000)
        self.assertFalse(self.page.locator("#key-dialog").is_visible())
        self.page.click("text=Try again")
        self.page.wait_for_selector("#key-dialog[open]")


class StatesTest(PageCase):
    @needs_mock
    def test_an_error_before_the_answer_is_shown_with_its_sentence(self):
        self.open()
        self.mock.failure = (400, {"message": "temperature is 9: it must be from 0 to 5",
                                   "param": "temperature"})
        answer = self.ask("hello")
        self.assertIn("temperature is 9: it must be from 0 to 5", answer.inner_text())
        answer.get_by_text("Try again").click()
        self.page.wait_for_selector(".assistant .markdown p")
        self.assertEqual(self.page.locator(".message").count(), 2)

    @needs_mock
    def test_an_error_in_the_answer_keeps_what_was_said(self):
        self.open()
        self.mock.break_at = 30
        answer = self.ask("Explain")
        self.assertIn("The target stopped answering", answer.inner_text())
        self.assertIn("Speculative decoding lets", answer.inner_text())

    @needs_mock
    def test_a_question_without_an_answer_is_not_sent_again_with_the_next(self):
        self.open()
        self.mock.failure = (500, {"message": "out of memory"})
        self.ask("first")
        self.ask("second")
        self.assertEqual(self.bodies[-1]["messages"], [{"role": "user", "content": "second"}])

    @needs_mock
    def test_a_server_that_loads_shows_its_progress_until_it_is_ready(self):
        self.mock.health = 0.37
        self.page.goto(self.url)
        self.page.wait_for_selector("text=Opening smollm2-1.7b-q4_0, 37 %")
        self.mock.health, self.mock.models = None, STATES["loading"]
        self.page.wait_for_selector("text=Opening smollm2-1.7b-q4_0, 42 %")
        self.mock.models = STATES["ready"]
        self.page.wait_for_selector("#model-state.ready")
        self.assertFalse(self.page.locator("#banner").is_visible())

    @needs_mock
    def test_a_model_that_could_not_be_opened_says_why(self):
        self.mock.models = STATES["failed"]
        self.open()
        self.assertIn("the file is cut off", self.text("#banner"))

    @needs_mock
    def test_a_server_that_went_away_is_said_and_noticed_when_it_is_back(self):
        self.open()
        self.mock.models, self.mock.health = [], 0.5
        self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        self.page.wait_for_selector("#banner:not([hidden])")
        self.mock.models, self.mock.health = STATES["ready"], None
        self.page.wait_for_selector("#model-state.ready")

    @needs_mock
    def test_the_chosen_model_is_asked(self):
        self.mock.models = STATES["many"]
        self.open()
        self.page.select_option("#model", "qwen3-4b-q4_k_m")
        self.ask("hello")
        self.assertEqual(self.bodies[0]["model"], "qwen3-4b-q4_k_m")


class PanelsTest(PageCase):
    @needs_mock
    def test_models_and_drafters_say_why_they_are_off(self):
        self.mock.models = STATES["no-draft"]
        self.open()
        self.page.click("#open-models")
        self.page.wait_for_selector("text=No draft model was given (-d).")
        text = self.text("#panel-models")
        for part in ("made for another tokenizer", "Not attached to this model.", "exact",
                     "8,192 tokens", "gemma-3-270m-it-q8_0.gguf beside it could guess, too"):
            self.assertIn(part, text)

    def test_the_speed_panel_draws_what_is_known(self):
        self.open()
        self.ask("Explain")
        self.page.click("#open-speed")
        self.page.wait_for_selector("#panel-speed h3")
        self.assertIn("What a step costs", self.text("#panel-speed"))
        if self.mock:
            self.assertEqual(self.page.locator(".chart polyline").count(), 2)
            self.assertEqual(self.page.locator(".bars tbody tr").count(), 7)
            box = self.page.locator(".chart svg").bounding_box()
            self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
            self.assertRegex(self.text(".chart-note"), r"^\d+ tokens a step: [\d.]+ ms")

    def test_escape_closes_the_panel_and_focus_goes_back(self):
        self.open()
        self.page.click("#open-speed")
        self.page.keyboard.press("Escape")
        self.assertFalse(self.page.locator("#panel").is_visible())
        self.assertEqual(self.page.evaluate("document.activeElement.id"), "open-speed")

    def test_the_theme_goes_round_and_is_kept(self):
        self.open()
        ground = "getComputedStyle(document.querySelector('.main')).backgroundColor"
        seen = []
        for _ in range(3):
            self.page.click("#theme")
            seen.append((self.page.evaluate("document.documentElement.dataset.theme"),
                         self.page.evaluate(ground)))
        self.assertEqual([theme for theme, _ in seen], ["light", "dark", "auto"])
        self.assertNotEqual(seen[0][1], seen[1][1])
        self.page.click("#theme")
        self.page.click("#theme")
        self.page.reload()
        self.assertEqual(self.page.evaluate("document.documentElement.dataset.theme"), "dark")

    def test_everything_that_acts_has_a_name_and_shows_its_focus(self):
        self.open()
        self.ask("hello")
        self.page.click("#open-settings")
        nameless = self.page.evaluate("""() => [...document.querySelectorAll(
            'button, input, select, textarea, [role=tab]')].filter((node) =>
              node.checkVisibility() && !node.getAttribute('aria-label') && !node.labels?.length &&
              !node.getAttribute('aria-labelledby') && !node.textContent.trim())
            .map((node) => node.outerHTML)""")
        self.assertEqual(nameless, [])
        self.page.focus("#open-models")
        self.page.keyboard.press("Tab")
        self.assertNotEqual(self.page.evaluate(
            "getComputedStyle(document.activeElement).outlineStyle"), "none")


class PhoneTest(PageCase):
    viewport = {"width": 375, "height": 700}

    def test_nothing_is_wider_than_the_screen(self):
        self.open()
        self.ask("Write merge in Python, then the planets in a table")
        for button in (None, "#open-settings", "#open-models", "#open-speed"):
            if button:
                self.page.click(button)
            self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 375)
            if button:
                self.page.click("#close-panel")
        self.page.click("#view-compare")
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 375)

    def test_the_list_opens_over_the_text_and_closes_by_a_choice(self):
        self.open()
        self.ask("hello")
        self.assertFalse(self.page.locator("#new-conversation").is_visible())
        self.page.click("#toggle-sidebar")
        self.page.wait_for_selector("#new-conversation", state="visible")
        self.page.click("#new-conversation")
        self.page.wait_for_selector("#new-conversation", state="hidden")
        self.assertEqual(self.page.locator(".message").count(), 0)

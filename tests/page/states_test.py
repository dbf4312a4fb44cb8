"""The page's states: keys, errors, a server that loads, fails or goes away, several models."""

from mock_server import STATES
from page_case import PageCase, needs_mock


class KeyTest(PageCase):
    @needs_mock
    def test_the_page_asks_for_the_key_and_again_after_a_wrong_one(self):
        self.mock.key = "secret"
        self.page.goto(self.url)
        self.page.wait_for_selector("#key-dialog[open]")
        self.give_key("wrong")
        self.page.wait_for_selector("text=It did not accept the last one.")
        self.give_key("secret\u200b")  # no header could carry it
        self.page.wait_for_selector("#key-text:has-text('a character that no key has')")
        self.give_key("secret")
        self.page.wait_for_selector("#model-state.ready")
        self.ask("hello")
        stored = self.page.evaluate("[JSON.stringify({...localStorage}), {...sessionStorage}]")
        self.assertNotIn("secret", stored[0])
        self.assertIn("secret", stored[1].values())

    @needs_mock
    def test_who_gives_no_key_is_asked_again_only_when_they_act(self):
        self.mock.key = "secret"
        self.page.clock.install()
        self.page.goto(self.url)
        self.page.wait_for_selector("#key-dialog[open]")
        self.page.keyboard.press("Escape")
        self.page.wait_for_selector("#banner.bad")
        self.assertIn("This server needs a key", self.text("#banner"))
        self.assertNotIn("Authorization", self.text("#banner"))
        self.assertEqual(self.text("#model option"), "key needed")
        for _ in range(2):  # the page asks again behind its answer to the one before
            with self.page.expect_response("**/v1/models") as refused:
                self.page.clock.fast_forward(5000)
            self.assertEqual(refused.value.status, 401)
        self.assertFalse(self.page.locator("#key-dialog").is_visible())
        self.page.click("text=Give a key")
        self.page.wait_for_selector("#key-dialog[open]")

    @needs_mock
    def test_escape_leaves_the_dialog_that_a_question_opened_and_ends_the_question(self):
        self.mock.key = "secret"
        self.page.goto(self.url)
        self.page.wait_for_selector("#key-dialog[open]")
        self.give_key("wrong")
        self.page.wait_for_selector("text=It did not accept the last one.")
        self.page.click("#key-cancel")
        self.send("hello")
        self.page.wait_for_selector("#key-dialog[open]")
        self.page.keyboard.press("Escape")
        self.page.wait_for_selector("#key-dialog", state="hidden")
        self.assertIn("This server needs a key", self.ended().locator(".error").inner_text())
        self.assertEqual(self.page.get_attribute("#send", "aria-label"), "Send (Enter)")


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
    def test_an_answer_that_fails_as_the_server_is_gone_is_seen_at_the_models_state_too(self):
        self.open()
        self.page.route("**/v1/**", lambda route: route.abort())
        self.ask("hello")
        self.page.wait_for_selector("#model-state.failed")
        self.assertIn("cannot be reached", self.text("#banner"))
        self.page.unroute("**/v1/**")
        self.page.wait_for_selector("#model-state.ready")

    @needs_mock
    def test_what_stands_in_the_way_keeps_its_button_and_its_focus_while_the_server_is_asked_again(self):
        self.mock.models = STATES["failed"]
        self.open()
        self.page.evaluate("""() => {
            window.changed = 0;
            new MutationObserver(() => ++window.changed).observe(document.querySelector('#banner'),
                {childList: true, subtree: true, characterData: true, attributes: true});
        }""")
        self.page.focus("#banner button")
        for _ in range(2):  # the second answer is there: what the first one changed has been seen
            with self.page.expect_response("**/v1/models"):
                self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            self.page.wait_for_timeout(100)
        self.assertEqual(self.page.evaluate("[window.changed, document.activeElement.textContent]"),
                         [0, "Try again"])

    @needs_mock
    def test_progress_is_shown_in_the_bar_that_is_there(self):
        self.mock.health = 0.37
        self.page.goto(self.url)
        self.page.wait_for_selector("text=Opening smollm2-1.7b-q4_0, 37 %")
        self.page.evaluate("window.bar = document.querySelector('#banner progress')")
        self.mock.health = 0.5
        self.page.wait_for_selector("text=Opening smollm2-1.7b-q4_0, 50 %")
        self.assertEqual(self.page.evaluate("[window.bar.isConnected, window.bar.value]"), [True, 0.5])

    @needs_mock
    def test_the_chosen_model_is_asked(self):
        self.mock.models = STATES["many"]
        self.open()
        self.page.select_option("#model", "qwen3-4b-q4_k_m")
        self.ask("hello")
        self.assertEqual(self.bodies[0]["model"], "qwen3-4b-q4_k_m")

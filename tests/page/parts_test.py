"""The page's other parts: side by side, settings, panels, phones."""

from mock_server import STATES
from page_case import PageCase, needs_mock


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

    def further(self, fields):
        """Sets the further fields of requests."""
        if not self.page.locator("#setting-more").is_visible():
            self.page.click("#open-settings")
            self.page.click(".more summary")
        self.page.fill("#setting-more", fields)

    @needs_mock
    def test_further_fields_leave_speculation_off_on_one_side_and_decide_the_seed(self):
        self.open()
        self.further('{"speculative": {"width": 3, "min_p": 0.1}, "seed": 7}')
        self.page.fill("#setting-width", "5")
        self.page.check(".checks input[value=suffix]")
        self.page.click("#view-compare")
        self.send("Explain")
        self.page.wait_for_selector(".verdict.same")
        self.assertEqual([(body["speculative"], body["seed"]) for body in self.bodies],
                         [(False, 7), ({"drafters": ["suffix"], "width": 3, "min_p": 0.1}, 7)])
        self.further('{"speculative": false, "seed": -1}')
        self.send("Explain")
        self.until(lambda: len(self.bodies) == 4, "both requests")
        self.page.wait_for_selector(".verdict.same")
        self.assertEqual([body["speculative"] for body in self.bodies[2:]],
                         [False, {"drafters": ["suffix"], "width": 5}])
        seeds = {body["seed"] for body in self.bodies[2:]}
        self.assertEqual((len(seeds), min(seeds) >= 0), (1, True), "the same for both")

    def test_the_texts_can_be_read_on_low_screens(self):
        self.open()
        self.page.click("#view-compare")
        for width, height in ((844, 390), (320, 568), (1280, 800)):
            self.page.set_viewport_size({"width": width, "height": height})
            for pane in self.page.locator(".pane").all():
                self.assertGreater(pane.bounding_box()["height"], 190, f"at {width} by {height}")
            view = "document.querySelector('#compare-view')"
            low = self.page.evaluate(f"{view}.scrollHeight > {view}.clientHeight")
            self.assertEqual(low, height < 600)
            if low:
                self.page.evaluate(f"{view}.scrollTop = {view}.scrollHeight")
                self.assertGreater(self.page.evaluate(f"{view}.scrollTop"), 0)
            self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), width)

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
        self.assertEqual(self.page.input_value("#compare-order"), "in turn")  # what is exact comes first
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
        self.page.select_option("#compare-order", "together")
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
    def test_what_the_server_decides_is_shown_in_the_empty_fields(self):
        self.open()
        self.page.click("#open-settings")
        self.page.wait_for_selector("#setting-temperature[placeholder='0.8']")
        placeholder = lambda name: self.page.get_attribute(f"#setting-{name}", "placeholder")
        self.assertEqual([placeholder(name) for name in ("top_k", "seed", "min_p", "typical_p")],
                         ["40", "auto", "auto", "1"])

    def test_further_fields_are_folded_checked_and_sent(self):
        self.open()
        self.page.click("#open-settings")
        self.assertFalse(self.page.locator("#setting-repeat_penalty").is_visible())
        self.page.click(".more summary")
        self.page.fill("#setting-repeat_penalty", "1.1")
        self.page.fill("#setting-more", '{"min_p": ')
        self.assertIn("No JSON", self.text("#setting-more-problem"))
        self.page.fill("#setting-more", '{"stream": false}')
        self.assertIn("“stream” is the page's own", self.text("#setting-more-problem"))
        self.page.fill("#setting-more", '{"speculative": 3}')
        self.assertIn("true, false or an object", self.text("#setting-more-problem"))
        self.page.fill("#setting-more", '{"n": 2}')
        self.assertIn("“n” is the page's own", self.text("#setting-more-problem"))
        self.send("hello")
        self.page.wait_for_selector(".toast:has-text('Not sent')")
        self.assertEqual(self.bodies, [])
        self.page.fill("#setting-more", '{"logit_bias": {"15": -1}}')
        self.ask("hello")
        self.assertEqual((self.bodies[0]["repeat_penalty"], self.bodies[0]["logit_bias"]),
                         (1.1, {"15": -1}))

    @needs_mock
    def test_further_fields_add_to_what_is_set_of_speculation(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#setting-width", "5")
        self.page.click(".more summary")
        self.page.fill("#setting-more", '{"speculative": {"rule": "coupled"}}')
        self.ask("hello")
        self.page.fill("#setting-more", '{"speculative": false}')
        self.ask("hello")
        self.page.fill("#setting-more", '{"speculative": {"rule": "coupled"}}')
        self.page.click("#setting-speculation")
        self.ask("hello")
        self.assertEqual([body["speculative"] for body in self.bodies],
                         [{"width": 5, "rule": "coupled"}, False, False])

    @needs_mock
    def test_speculation_can_be_switched_off_and_everything_put_back(self):
        self.open()
        self.page.click("#open-settings")
        self.page.click("#setting-speculation")
        answer = self.ask("hello")
        self.assertIs(self.bodies[0]["speculative"], False)
        self.assertEqual(answer.locator(".guess").count(), 0)
        self.assertEqual(answer.locator(".note").count(), 0)  # no warning of what was asked for
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

    @needs_mock
    def test_a_drafter_that_never_guessed_does_not_seem_to(self):
        self.open()
        self.page.click("#open-models")
        self.page.wait_for_selector(".card:has-text('ngram-cache') >> text=The planner has not used it so far.")
        card = self.page.locator(".card:has(.swatch)", has_text="suffix")
        self.assertIn("guessing", card.inner_text())
        self.assertNotIn("not used", card.inner_text())

    @needs_mock
    def test_the_speed_panel_is_scrolled_by_keys_and_its_columns_have_names(self):
        self.page.set_viewport_size({"width": 1280, "height": 400})
        self.open()
        self.page.click("#open-speed")
        self.page.wait_for_selector("#panel-speed .numbers")
        self.assertEqual(self.page.locator("#panel-speed th:empty").count(), 0)
        self.page.focus("#panel-speed")
        self.page.keyboard.press("End")
        self.until(lambda: self.page.evaluate("document.querySelector('#panel-speed').scrollTop") > 0, "it scrolls")

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

    def test_what_is_on_is_seen_where_the_system_sets_the_colours(self):
        self.page.emulate_media(forced_colors="active")
        self.open()
        self.ask("Explain")
        ground = lambda selector: self.page.evaluate(
            "(selector) => getComputedStyle(document.querySelector(selector)).backgroundColor", selector)
        on = ground("#colours .switch-track")
        self.page.click("#colours")
        self.until(lambda: ground("#colours .switch-track") != on, "another ground when it is off")
        self.assertEqual(ground("#view-chat"), on)
        self.assertNotEqual(ground("#view-compare"), on)
        self.page.click("#colours")
        self.assertNotEqual(ground(".shares-bar span:first-child"), ground(".shares-bar span:last-child"))
        self.assertIn("underline", self.page.evaluate(
            "getComputedStyle(document.querySelector('.guess')).textDecorationLine"))
        self.assertEqual(self.page.evaluate(
            "getComputedStyle(document.querySelector('.conversation-list .current')).outlineStyle"), "solid")

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

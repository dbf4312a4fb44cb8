"""What the page's tests share: a browser, the mock server or a real one, and what a person does."""

import functools
import os
import pathlib
import shutil
import sys
import unittest

from playwright.sync_api import sync_playwright

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
from mock_server import Server  # noqa: E402
from sanitized import bound  # noqa: E402

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")

# What the browser says of answers that a test wants to be errors.
NETWORK = "Failed to load resource"


class Settings:
    """Of a run: the environment's, or run.py's command line fills it in."""
    url = os.environ.get("OUTRIDER_URL")  # of a real server; None or empty: the mock
    key = os.environ.get("OUTRIDER_KEY")  # that it wants
    screenshots = None  # a folder


def find_chromium():
    """The browser: of the environment, of this machine, or None for playwright's own."""
    named = os.environ.get("OUTRIDER_CHROMIUM")
    return named or next(filter(None, map(shutil.which, CHROMIUM)), None)


def needs_mock(test):
    """For what only the mock can be made to do."""
    @functools.wraps(test)
    def run(self):
        if Settings.url:
            self.skipTest("needs the mock server")
        test(self)
    return run


class PageCase(unittest.TestCase):
    """One browser for all tests of a class, a new profile and a new mock for each."""
    viewport = {"width": 1280, "height": 800}
    real_tokens = 40  # of an answer of a real server, at most
    timeout_ms = int(bound(60_000))  # a bound, not a measure: builds may run beside the tests
    arguments = ()  # of the browser, beside those that all tests need

    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        cls.browser = cls.playwright.chromium.launch(executable_path=find_chromium(),
                                                     args=["--no-sandbox", *cls.arguments])
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.server = None if Settings.url else Server().start()
        self.mock = self.server and self.server.mock
        self.context = self.browser.new_context(viewport=self.viewport, accept_downloads=True)
        self.context.set_default_timeout(self.timeout_ms if not Settings.url else bound(120_000))
        self.problems = []
        self.bodies = []
        self.page = self.new_tab()

    def new_tab(self):
        """Another tab of the same browser; `page` stays the one that the other functions mean."""
        page = self.context.new_page()
        page.on("console", self.note_console)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("request", self.note_request)
        return page

    def tearDown(self):
        if Settings.screenshots:
            os.makedirs(Settings.screenshots, exist_ok=True)
            self.page.screenshot(path=os.path.join(Settings.screenshots, f"{self.id()}.png"))
        self.context.close()
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.assertEqual(self.problems, [], "the console is not clean")

    def note_console(self, message):
        if message.type in ("error", "warning") and NETWORK not in message.text:
            self.problems.append(f"{message.type}: {message.text}")

    def note_request(self, request):
        if request.url.endswith("/v1/chat/completions"):
            self.bodies.append(request.post_data_json)
        if not request.url.startswith((self.url, "blob:", "data:")):
            self.problems.append(f"asked another server: {request.url}")

    @property
    def url(self):
        return Settings.url.rstrip("/") + "/" if Settings.url else self.server.url

    def open(self):
        if Settings.url:  # a real model may go on for as long as its context lasts
            self.page.add_init_script(f"""localStorage.getItem('outrider.settings') ||
                localStorage.setItem('outrider.settings', '{{"max_tokens": "{self.real_tokens}"}}')""")
        self.page.goto(self.url)
        if Settings.url and Settings.key:
            self.give_key(Settings.key)
        self.page.wait_for_selector("#model-state.ready, #model-state.absent, #banner:not([hidden])")

    def give_key(self, key):
        self.page.fill("#key", key)
        self.page.press("#key", "Enter")

    def send(self, text):
        self.page.fill("#prompt", text)
        self.page.press("#prompt", "Enter")

    def ask(self, text):
        """Sends and waits for the end; returns the answer's element."""
        answers = self.page.locator(".assistant")
        before = answers.count()
        self.send(text)
        answers.nth(before).wait_for()
        return self.ended(before)

    def ended(self, index=-1):
        answer = self.page.locator(".assistant").nth(index)
        answer.locator("xpath=self::*[@aria-busy='false']//*[contains(@class, 'foot-line')]").wait_for()
        return answer

    def until(self, condition, what):
        """Waits, with the browser going on, until condition() holds."""
        for _ in range(self.timeout_ms // 20):
            if condition():
                return
            self.page.wait_for_timeout(20)
        self.fail(f"never: {what}")

    def press_composing(self, selector, key):
        """The key that ends an input method's composition, as browsers tell it, and as Safari does."""
        for told in ({"isComposing": True}, {"keyCode": 229}):
            self.page.locator(selector).dispatch_event(
                "keydown", {"key": key, "bubbles": True, "cancelable": True, **told})

    def text(self, selector):
        return self.page.locator(selector).inner_text()

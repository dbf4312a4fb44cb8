"""Tools that the model calls and a person answers for; and conversations that come from files."""

import json

from page_case import PageCase, needs_mock

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather",
          "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


class ToolsTest(PageCase):
    def give_tools(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#setting-tools", json.dumps(TOOLS))

    @needs_mock
    def test_a_call_is_shown_and_its_result_goes_back(self):
        self.give_tools()
        answer = self.ask("How is the weather?")
        self.assertEqual(self.bodies[0]["tools"], TOOLS)
        self.assertEqual(answer.locator(".call h3").inner_text(), "Calls get_weather")
        self.assertEqual(json.loads(answer.locator(".call pre").inner_text()),
                         {"city": "Paris", "days": 3})
        result = answer.get_by_label("Result of get_weather")
        result.fill('{"sky": "<b>blue</b>"}')
        self.page.click("#colours")
        self.assertEqual(result.input_value(), '{"sky": "<b>blue</b>"}', "it is not drawn anew")
        answer.get_by_text("Send the result").click()
        self.ended(1)
        call = {"id": "call_1", "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Paris", "days": 3}'}}
        self.assertEqual(self.bodies[1]["messages"], [
            {"role": "user", "content": "How is the weather?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": '{"sky": "<b>blue</b>"}', "tool_call_id": "call_1",
             "name": "get_weather"}])
        note = self.page.locator(".note-message")
        self.assertEqual(note.locator("pre").inner_text(), '{"sky": "<b>blue</b>"}')
        self.assertEqual(self.page.locator(".results").count(), 0, "it has been gone on with")
        self.page.reload()
        self.page.wait_for_selector(".call")
        self.assertEqual(note.count(), 1)

    @needs_mock
    def test_a_call_that_was_stopped_is_neither_answered_nor_sent(self):
        self.mock.hold_at = 0
        self.give_tools()
        self.send("How is the weather?")
        self.until(lambda: '{"city": "Par' in self.text(".call"), "the first piece of a call")
        self.page.keyboard.press("Escape")
        answer = self.ended()
        self.assertIn('{"city": "Par', answer.inner_text())
        self.assertEqual(answer.locator(".results").count(), 0)
        self.page.fill("#setting-tools", "")
        self.mock.hold_at = None
        self.ask("And now?")
        self.assertEqual(self.bodies[-1]["messages"], [{"role": "user", "content": "And now?"}])
        self.assertNotIn("tools", self.bodies[-1])

    def test_what_are_no_tools_is_said_at_the_field(self):
        self.open()
        self.page.click("#open-settings")
        wrong = {"[{": "no JSON: ", "{}": "no array", "[1]": 'tool 1 has no "type": "function"',
                 json.dumps([*TOOLS, {"type": "function", "function": {}}]): "tool 2 has no \"function\" "
                                                                             'with a "name"'}
        for text, said in wrong.items():
            self.page.fill("#setting-tools", text)
            self.assertIn(said, self.text("#setting-tools-problem"))
        self.page.fill("#setting-tools", json.dumps(TOOLS))
        self.assertEqual(self.text("#setting-tools-problem"), "")

    def test_nothing_is_sent_without_the_tools_that_were_written_wrong(self):
        self.open()
        self.page.click("#open-settings")
        self.page.fill("#setting-tools", "[{]")
        self.page.click("#close-panel")
        for view in ("#view-chat", "#view-compare"):
            self.page.click(view)
            self.send("hello")
            self.page.locator(".toast", has_text="Not sent. Tools: no JSON").last.wait_for()
            self.assertEqual(self.page.evaluate("document.activeElement.id"), "setting-tools")
            self.assertIn("no JSON", self.text("#setting-tools-problem"))
            self.assertEqual(self.page.input_value("#prompt"), "hello", "what was typed is kept")
        self.page.click("#view-chat")
        self.assertEqual(self.page.locator(".message").count(), 0)
        self.assertEqual(self.bodies, [])
        self.page.fill("#setting-tools", "")
        self.ask("hello")
        self.assertEqual(len(self.bodies), 1)

    def test_tools_that_were_stored_wrong_are_not_left_out_either(self):
        self.page.add_init_script("""localStorage.setItem('outrider.settings', '{"tools": "{}"}')""")
        self.open()
        self.send("hello")
        self.page.wait_for_selector(".toast:has-text('Not sent. Tools: no array')")
        self.assertEqual(self.bodies, [])


class ImportTest(PageCase):
    def names(self):
        return self.page.locator(".conversation-list .name").all_inner_texts()

    def give_file(self, value, name="chat.json"):
        text = value if isinstance(value, str) else json.dumps(value)
        self.page.set_input_files("#import-file", {
            "name": name, "mimeType": "application/json", "buffer": text.encode()})

    def test_what_was_exported_is_there_again(self):
        self.open()
        first = self.ask("a question")
        shown, legend = first.locator(".markdown").inner_text(), first.locator(".legend").count()
        figures = first.locator(".figures").inner_text()
        guesses = first.locator(".guess").count()
        with self.page.expect_download() as download:
            self.page.click("#export-all")
        path = download.value.path()
        self.page.locator(".conversation-list li").hover()
        self.page.get_by_label("Delete a question").click()
        self.page.set_input_files("#import-file", path)
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.names(), ["a question"])
        again = self.ended()
        self.assertEqual(again.locator(".markdown").inner_text(), shown)
        self.assertEqual(again.locator(".guess").count(), guesses)
        self.assertEqual(again.locator(".legend").count(), legend)
        self.assertEqual(again.locator(".figures").inner_text(), figures)
        self.ask("another one")
        self.assertEqual([m["role"] for m in self.bodies[-1]["messages"]],
                         ["user", "assistant", "user"])
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.names(), ["a question"])

    def test_a_file_of_the_terminals_chat_can_be_gone_on_with(self):
        self.open()
        call = {"type": "function", "id": "c1", "function": {"name": "add", "arguments": '{"a": 1}'}}
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"},
                    {"role": "assistant", "content": "", "tool_calls": [call]},
                    {"role": "tool", "content": "2", "tool_call_id": "c1", "name": "add"},
                    {"role": "assistant", "content": "Two.", "reasoning_content": "Easy."}]
        self.give_file({"messages": messages})
        self.page.wait_for_selector(".call")
        self.assertEqual(self.page.locator(".note-message pre").all_inner_texts(), ["Be brief.", "2"])
        self.assertIn("Reasoning", self.text(".reasoning:not([hidden]) summary"))
        self.ask("Sure?")
        sent = self.bodies[-1]["messages"]
        del messages[4]["reasoning_content"]
        self.assertEqual(sent, messages + [{"role": "user", "content": "Sure?"}])

    def test_a_file_that_is_no_conversation_is_named_with_what_is_wrong(self):
        self.open()
        wrong = {"{": "not JSON", "[]": "no message", '{"a": 1}': '"messages"',
                 '{"messages": [{"role": "robot", "content": ""}]}': "message 1 has no role",
                 '{"messages": [{"role": "user", "content": 5}]}': "message 1 has a content",
                 '[{"messages": []}, null]': "entry 2",
                 '{"messages": [{"role": "assistant", "content": "", "tool_calls": [1]}]}': "tool_calls"}
        for i, (text, said) in enumerate(wrong.items()):
            self.give_file(text, f"file-{i}.json")
            toast = self.page.locator(".toast", has_text=f"file-{i}.json")
            toast.wait_for()
            self.assertIn(said, toast.inner_text())
        self.assertEqual(self.names(), [])

    def test_what_only_this_page_knows_is_taken_when_it_is_right(self):
        self.open()
        self.give_file({"name": "<i>n</i>", "messages": [
            {"role": "user", "content": "q"}, {"role": "assistant", "content": "answer"}],
            "details": [None, {"spans": [["suffix", -5], "x"], "counts": {"target": "many"},
                               "timings": 3, "finish": {}, "usage": {"completion_tokens": 1}}]})
        answer = self.ended()
        self.assertEqual(answer.locator(".markdown").inner_text(), "answer")
        self.assertEqual(answer.locator(".guess").count(), 0)
        self.assertEqual(self.names(), ["<i>n</i>"])

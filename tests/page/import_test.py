"""Files of llama-server's page, files that are imported twice, and files that become a message's part."""

import json

from page_case import PageCase, needs_mock


def node(name, role, content, parent, **more):
    return {"convId": "x", "id": name, "type": "root" if parent is None else "text", "role": role,
            "content": content, "timestamp": 1_700_000_000_000, "parent": parent, "children": [], **more}


CONV = {"id": "x", "name": "Of the sea", "lastModified": 1_700_000_000_000, "currNode": "a2"}
# Its answer was made twice: the second one is shown.
TREE = [node("r", "system", "", None), node("q", "user", "What is the sea?", "r", extra=[
            {"type": "TEXT", "name": "note.md", "content": "# Salt"}]),
        node("a1", "assistant", "Wet.", "q"),
        node("a2", "assistant", "Salty.", "q", reasoningContent="Think.", model="some-model",
             toolCalls="")]


def jsonl(conv, messages):
    lines = [{"harness": "llama.cpp", "type": "session", **conv},
             *({"message": {**message}, "type": "message"} for message in messages)]
    return "\n".join(json.dumps(line) for line in lines)


class ImportTest(PageCase):
    def names(self):
        return self.page.locator(".conversation-list .name").all_inner_texts()

    def give_file(self, value, name="chat.json"):
        data = value if isinstance(value, bytes) else value.encode()
        self.page.set_input_files("#import-file", {"name": name, "mimeType": "application/json",
                                                   "buffer": data})

    def check_the_sea(self):
        answer = self.ended()
        self.assertEqual(self.names(), ["Of the sea"])
        self.assertEqual(answer.locator(".markdown").inner_text(), "Salty.")
        self.assertIn("Reasoning", answer.inner_text())
        self.assertIn("some-model", answer.inner_text())
        self.ask("Sure?")
        self.assertEqual(self.bodies[-1]["messages"], [
            {"role": "user", "content": "What is the sea?\n\nnote.md:\n```md\n# Salt\n```\n"},
            {"role": "assistant", "content": "Salty."}, {"role": "user", "content": "Sure?"}])

    def test_what_llama_server_exports_today_is_taken_as_it_was_shown(self):
        self.open()
        self.give_file(jsonl(CONV, TREE), "chat.jsonl")
        self.check_the_sea()

    def test_what_llama_server_exported_before_is_taken_with_its_title(self):
        self.open()
        self.give_file(json.dumps([{"conv": CONV, "messages": TREE}]))
        self.check_the_sea()

    def test_its_branches_become_versions(self):
        self.open()
        # What was shown, a changed question with what is behind it, and an answer that failed.
        tree = [*TREE[:4], node("q2", "user", "Sure?", "a1"), node("b2", "assistant", "Quite.", "q2"),
                node("q3", "user", "Really?", "a1"), node("b3", "assistant", "Yes.", "q3"),
                node("b4", "assistant", "", "q3"), node("o", "user", "Otherwise", "r"),
                node("p", "assistant", "Another answer.", "o")]
        self.give_file(jsonl(CONV, tree), "chat.jsonl")
        self.ended()
        texts = lambda: self.page.locator(".bubble, .assistant .markdown").all_inner_texts()[1:]
        versions = self.page.locator(".versions")
        self.assertEqual((texts(), versions.all_inner_texts()), (["Salty."], ["1/2", "2/2"]))
        self.page.get_by_label("Earlier version").last.click()
        self.assertEqual((texts(), versions.all_inner_texts()),
                         (["Wet.", "Really?", "Yes."], ["1/2", "1/2", "2/2"]))
        self.page.get_by_label("Earlier version").last.click()
        self.assertEqual(texts(), ["Wet.", "Sure?", "Quite."])
        self.page.get_by_label("Later version").first.click()
        self.assertEqual(self.page.locator(".bubble, .assistant .markdown").all_inner_texts(),
                         ["Otherwise", "Another answer."])

    def test_messages_of_its_that_lead_in_a_circle_end(self):
        self.open()
        tree = [node("a", "user", "one", "b"), node("b", "assistant", "two", "a"),
                node("c", "assistant", "three", "a"), node("a", "user", "one again", "c")]
        self.give_file(jsonl({**CONV, "currNode": "b"}, tree), "chat.jsonl")
        self.ended()
        self.assertEqual(self.names(), ["Of the sea"])

    def test_its_system_prompt_becomes_the_conversations(self):
        self.open()
        tree = [TREE[0], node("s", "system", "Be brief.", "r"), node("q", "user", "Hi", "s"),
                node("a", "assistant", "Hello.", "q")]
        self.give_file(jsonl({**CONV, "currNode": "a"}, tree), "chat.jsonl")
        self.ended()
        self.assertEqual(self.page.locator(".note-message pre").all_inner_texts(), ["Be brief."])
        self.ask("And?")
        self.assertEqual([one["role"] for one in self.bodies[-1]["messages"]],
                         ["system", "user", "assistant", "user"])

    def test_an_archive_is_named_with_what_to_do(self):
        self.open()
        self.give_file(b"PK\x03\x04 and so on", "all.zip")
        self.page.wait_for_selector(".toast:has-text('all.zip cannot be imported: it is a ZIP archive: unpack it')")

    def test_a_line_that_is_cut_off_is_named(self):
        self.open()
        self.give_file(jsonl(CONV, TREE)[:-20], "cut.jsonl")
        self.page.wait_for_selector(".toast:has-text('cut.jsonl cannot be imported: line 5 is not JSON')")
        self.assertEqual(self.names(), [])

    def test_the_same_file_twice_is_there_once(self):
        self.open()
        self.ask("one")
        self.page.click("#new-conversation")
        self.ask("two")
        with self.page.expect_download() as download:
            self.page.click("#export-all")
        self.page.set_input_files("#import-file", download.value.path())
        self.page.wait_for_selector(".toast:has-text('2 conversations of this file were here')")
        self.assertEqual(self.names(), ["two", "one"])


class MessageFilesTest(PageCase):
    def drop(self, *files):
        """Each (name, bytes or how many zeros, type)."""
        self.page.evaluate("""(files) => {
            const dataTransfer = new DataTransfer();
            for (const [name, bytes, type] of files) {
              dataTransfer.items.add(new File([new Uint8Array(bytes)], name, {type}));
            }
            const at = document.querySelector('.messages');
            for (const type of ['dragover', 'drop']) {
              const event = new DragEvent(type, {dataTransfer, bubbles: true, cancelable: true});
              at.dispatchEvent(event);
              window.taken = event.defaultPrevented;
            }
        }""", [[name, data if isinstance(data, int) else list(data), *(types or [""])]
                     for name, data, *types in files])

    def test_a_file_that_is_dropped_becomes_a_block_of_the_message(self):
        self.open()
        self.page.fill("#prompt", "Look:")
        self.drop(("a.py", b"print('```')\n"))
        wanted = "Look:\n\na.py:\n````py\nprint('```')\n````\n\n"
        self.until(lambda: self.page.input_value("#prompt") == wanted, "the file's text")
        self.assertTrue(self.page.evaluate("window.taken"), "the browser does not open it")

    def test_what_is_no_text_is_not_taken_and_does_not_open_either(self):
        self.open()
        self.drop(("a.png", b"\x89PNG\r\n\x1a\n\x00"))
        self.page.wait_for_selector(".toast:has-text('a.png cannot be added: it is no text')")
        self.assertEqual(self.page.input_value("#prompt"), "")
        self.assertTrue(self.page.evaluate("window.taken"))

    def test_a_picture_is_refused_as_one_whatever_its_size(self):
        self.open()
        self.drop(("photo.png", (1 << 20) + 1, "image/png"))
        self.page.wait_for_selector(
            ".toast:has-text('photo.png cannot be added: it is a picture, and messages are text')")
        self.drop(("drawing.svg", b"<svg></svg>", "image/svg+xml"))
        self.until(lambda: "<svg></svg>" in self.page.input_value("#prompt"), "the drawing's text")

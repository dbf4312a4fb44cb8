#!/usr/bin/env python3
"""Tests of bench/spec_bench.py: which questions become prompts, in which form, and what is refused."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
sys.dont_write_bytecode = True
import spec_bench  # noqa: E402


def question(number, category="writing"):
    return json.dumps({"question_id": number, "category": category,
                       "turns": [f"Question {number}?", "And then?"]})


class SpecBench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.questions = pathlib.Path(folder.name) / "question.jsonl"
        self.out = pathlib.Path(folder.name) / "spec-bench.jsonl"

    def make(self, text):
        """The exit status and what was printed."""
        self.questions.write_bytes(text.encode())
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            status = spec_bench.main([str(self.questions), str(self.out)])
        return status, out.getvalue()

    def said(self):
        lines = self.out.read_text().splitlines()
        return [json.loads(line)["messages"][0]["content"] for line in lines]

    def test_every_second_question_becomes_a_prompt_in_the_files_order(self):
        status, printed = self.make("\n".join(question(n) for n in (81, 82, 90, 83, 84)))
        self.assertEqual(status, 0)
        self.assertIn("3 prompts", printed)
        self.assertEqual(self.said(), ["Question 81?", "Question 90?", "Question 84?"])

    def test_a_prompt_has_the_first_turn_alone_byte_for_byte(self):
        self.make('{"turns": ["Was hei\\u00dft \\"\u00fc\\n\\"?", "x"], "question_id": 1, '
                  '"category": "qa"}')
        self.assertEqual(self.out.read_bytes(),
                         b'{"category": "qa", "messages": [{"role": "user", "content": '
                         b'"Was hei\\u00dft \\"\\u00fc\\n\\"?"}]}\n')

    def test_blank_lines_are_no_questions_and_a_line_ends_at_a_line_feed_alone(self):
        # U+2028 stands unescaped in some texts, and Python's splitlines() would cut there.
        text = json.dumps({"category": "qa", "turns": ["a\u2028b"]}, ensure_ascii=False)
        self.make(f"{text}\r\n\n{question(2)}\r\n{question(3)}\r\n\n")
        self.assertEqual(self.said(), ["a\u2028b", "Question 3?"])

    def test_other_questions_than_the_measured_ones_are_told(self):
        self.assertIn("not those that docs/benchmarks.md measures", self.make(question(1))[1])
        with unittest.mock.patch.object(spec_bench, "MEASURED", self.sha256()):
            self.assertIn("1 prompts, those that docs/benchmarks.md measures",
                          self.make(question(1))[1])

    def sha256(self):
        return spec_bench.hashlib.sha256(self.out.read_bytes()).hexdigest()

    def test_what_is_no_question_is_named_by_its_line_and_changes_nothing(self):
        self.out.write_text("of an earlier run\n")
        for line in ("{", "[]", '{"turns": ["a"]}', '{"category": "a", "turns": []}',
                     '{"category": "a", "turns": [1]}', '{"category": "a", "turns": "text"}',
                     '{"category": 1, "turns": ["a"]}'):
            with self.subTest(line):
                status, printed = self.make(f"{question(1)}\n{question(2)}\n\n{line}\n")
                self.assertEqual(status, 1)
                self.assertIn("question.jsonl': line 4: ", printed)
                self.assertEqual(self.out.read_text(), "of an earlier run\n")

    def test_a_file_that_is_not_there_is_an_error(self):
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            status = spec_bench.main([str(self.questions), str(self.out)])
        self.assertEqual(status, 1)
        self.assertIn("question.jsonl", printed.getvalue())


if __name__ == "__main__":
    unittest.main()

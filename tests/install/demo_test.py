#!/usr/bin/env python3
"""scripts/demo.py, what `./dev demo` ends with, on tiny models: its texts, its table, its last
lines; and, with a command that is made up, that texts which differ are noticed.

Usage: demo_test.py OUTRIDER TARGET.gguf DRAFT.gguf"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "demo.py"
OUTRIDER, TARGET, DRAFT = map(os.path.abspath, sys.argv[1:4])
SAME = "The texts are the same, token for token, with speculation on and off."

# Answers like `outrider run --result FILE`, with other tokens where it speculates.
LIAR = """#!{python}
import json, sys
fast = "-d" in sys.argv
result = {{"tokens": [1, 2, 3 if fast else 4], "timings": {{"predicted_per_second": 20 if fast else 10}},
           "speculation": {{"exactness": "{exactness}", "tokens_per_step": 2, "acceptance_rate": 0.5}},
           "kernels": "stock", "kernels_reason": "no others"}}
open(sys.argv[sys.argv.index("--result") + 1], "w").write(json.dumps(result))
"""


def demo(command, **environment):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OUTRIDER_DEMO_")}
    return subprocess.run([sys.executable, DEMO, command, TARGET, DRAFT], text=True, check=False,
                          capture_output=True, errors="replace", env={**kept, **environment})


class Demo(unittest.TestCase):
    def test_both_temperatures_stream_and_the_table_ends_with_the_same_texts(self):
        done = demo(OUTRIDER, OUTRIDER_DEMO_TOKENS="32", OUTRIDER_DEMO_CHAT="0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.rstrip().splitlines()
        end = lines.index(SAME)
        head, *rows = lines[end - 6:end - 1]
        self.assertEqual(re.split(r"  +", head.strip()),
                         ["tokens/s", "speed-up", "tokens/step", "accepted", "text", "exactness"])
        for row, name in zip(rows, ("T=0 off", "T=0 on", "T=1 off", "T=1 on"), strict=True):
            cells = re.split(r"  +", row)
            self.assertEqual((cells[0], len(cells)), (name, 7), row)
            self.assertGreater(float(cells[1]), 0, row)
            self.assertEqual(cells[5], "identical" if name.endswith("on") else "-", row)
            self.assertRegex(cells[2], r"^[0-9.]+x$")
        blank, kernels, gain, _, command = lines[end + 1:]
        self.assertEqual(blank, "")
        self.assertRegex(kernels, r"^kernels: (Outrider's$|llama\.cpp's: .)")
        self.assertRegex(gain, r"^gain: [0-9.]+ times plain decoding at temperature 0, "
                               r"[0-9.]+ times plain decoding at temperature 1; one run each way$")
        self.assertEqual(shlex.split(command), [OUTRIDER, "bench", "-m", TARGET, "-d", DRAFT,
                                                "--prompts", "prompts.jsonl"])
        parts = re.findall(r"^── (.+?) ─*\n(.*?)(?=^── |\Z)", done.stdout, re.MULTILINE | re.DOTALL)
        texts = [text for _, text in parts[:-1]]
        self.assertEqual([title for title, _ in parts],
                         [f"temperature {temperature}, speculation {state}"
                          for temperature in (0, 1) for state in ("off", "on")] + ["result"])
        self.assertTrue(all(text.strip() for text in texts), "texts are streamed")
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[2], texts[3])

    def test_it_says_whose_kernels_ran_and_its_last_command_measures_prompts_of_the_users(self):
        done = demo(OUTRIDER, OUTRIDER_DEMO_TOKENS="8", OUTRIDER_DEMO_CHAT="0",
                    OUTRIDER_KERNELS="stock")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("\nkernels: llama.cpp's: asked for (kernels=stock)\n", done.stdout)
        command = shlex.split(done.stdout.rstrip().splitlines()[-1])
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "prompts.jsonl").write_text('{"prompt": "Hello"}\n')
            measured = subprocess.run([*command, "-n", "4", "--repeat", "1"], cwd=folder, text=True,
                                      check=False, capture_output=True, errors="replace")
        self.assertEqual(measured.returncode, 0, measured.stderr)
        self.assertIn("speed-up (95 %)", measured.stdout)

    def test_a_terminal_in_latin_1_gets_what_it_can_show(self):
        with tempfile.TemporaryDirectory() as folder:
            command = pathlib.Path(folder) / "outrider"
            command.write_text(LIAR.format(python=sys.executable, exactness="none"))
            command.chmod(0o755)
            done = demo(command, PYTHONIOENCODING="latin-1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("temperature 1, speculation on", done.stdout)

    def test_control_texts_that_differ_are_told_and_a_bug_is_a_failure(self):
        for exactness, code, sentence in (("exact", 1, "that is a bug"), ("none", 0, "The texts differ")):
            with tempfile.TemporaryDirectory() as folder:
                command = pathlib.Path(folder) / "outrider"
                command.write_text(LIAR.format(python=sys.executable, exactness=exactness))
                command.chmod(0o755)
                done = demo(command)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(sentence, done.stdout)
            self.assertIn("DIFFERENT", done.stdout)
            self.assertNotIn(SAME, done.stdout)
            self.assertIn("\nkernels: llama.cpp's: no others\ngain: 2.00 times plain decoding at ",
                          done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])

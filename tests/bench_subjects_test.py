#!/usr/bin/env python3
"""Tests of bench/subjects.py: the programs that are measured run at their own defaults. And of what
bench/compare_peers.py, compare_clients.py and throughput.py do with what they measured."""

import argparse
import contextlib
import io
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import compare_clients  # noqa: E402
import compare_peers  # noqa: E402
import peer_tables  # noqa: E402
import subjects  # noqa: E402
import throughput  # noqa: E402

BENCH = pathlib.Path(compare_peers.__file__).parent


class Rpc(unittest.TestCase):
    def test_a_shells_settings_reach_no_program_that_is_measured(self):
        settings = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0",
                    "LLAMA_ARG_THREADS": "1", "HOME_OF_ITS_OWN": "stays"}
        echo = ("import json, os, sys\n"
                "for line in sys.stdin:\n"
                "    print(json.dumps({'id': json.loads(line)['id'], 'result': dict(os.environ)}),"
                " flush=True)\n")
        with mock.patch.dict(os.environ, settings):
            program = subjects.Rpc([sys.executable, "-c", echo])
        try:
            told = program.call("environment", {})
        finally:
            program.process.stdin.close()
            program.process.wait()
            program.process.stdout.close()
        self.assertEqual(told.get("HOME_OF_ITS_OWN"), "stays")
        for name in settings.keys() - {"HOME_OF_ITS_OWN"}:
            self.assertNotIn(name, told)


class Intervals(unittest.TestCase):
    def test_students_t_of_few_degrees_is_the_tables(self):
        table = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060,
                 9: 2.2622, 10: 2.2281, 11: 2.2010, 12: 2.1788, 20: 2.0860, 30: 2.0423, 100: 1.9840}
        for freedom, t in table.items():
            self.assertAlmostEqual(peer_tables.student(freedom) / t, 1.0, delta=0.01, msg=freedom)

    def test_without_a_text_nothing_is_known(self):
        mean, half = peer_tables.interval({}, "0", "auto", ["none"])
        self.assertTrue(math.isnan(mean))
        self.assertEqual(half, math.inf)

    def test_of_few_values_the_95th_percentile_is_the_greatest(self):
        for values, wanted in (([4, 1, 3, 2], 4), (range(1, 17), 16), (range(1, 20), 19),
                               (range(1, 21), 19), (range(1, 101), 95), ([5], 5)):
            self.assertEqual(compare_clients.spread("x", values)["x_95"], 1000 * wanted)


class Fake:
    """A program that is asked; `said` is told of each question."""

    def __init__(self, said=lambda prompt: None, tps=10.0):
        self.said, self.tps, self.prompts, self.used_s = said, tps, [], 0.0

    def complete(self, prompt, *_):
        self.said(prompt)
        return {"tps": self.tps, "drafted": 0, "accepted": 0, "tokens": 9, "text": prompt}

    def process(self):
        return mock.Mock(pid="none")  # nothing tells its processor time

    def stop(self):
        pass


class EndedEarly(unittest.TestCase):
    ARGUMENTS = ["compare_peers.py", "--target", "t.gguf", "--peers", "none", "--ours", "plain",
                 "auto", "--temps", "0", "--draft", "d.gguf"]

    def test_what_was_measured_is_shown_and_written_whatever_ends_it(self):
        for error, ends_with in ((KeyboardInterrupt(), KeyboardInterrupt),
                                 (SystemExit("rpc: failed"), SystemExit), (TimeoutError(), OSError)):
            with tempfile.TemporaryDirectory() as folder:
                prompts = pathlib.Path(folder) / "prompts.jsonl"
                prompts.write_text("".join(f'{{"category": "c{i}", "prompt": "p{i}"}}\n'
                                           for i in range(3)))
                wanted = pathlib.Path(folder) / "figures.json"

                def say(prompt, error=error):
                    if prompt == "p2":
                        raise error

                said = io.StringIO()
                with (mock.patch.object(sys, "argv", self.ARGUMENTS + [
                          "--prompts", str(prompts), "--json", str(wanted)]),
                      mock.patch.object(compare_peers, "Peer", lambda *_: Fake()),
                      mock.patch.object(compare_peers, "Ours", lambda *_: Fake(say, 20.0)),
                      mock.patch.object(compare_peers.signal, "signal"),
                      contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()),
                      self.assertRaises(ends_with)):
                    compare_peers.main()
                self.assertIn("Ended early, behind 2 texts of each setting", said.getvalue())
                self.assertIn("| c1 | 10.0 | 20.0 | 20.0 | none | 2.00 | 1.00 | yes |",
                              said.getvalue())
                self.assertEqual(wanted.read_text().count('"text": "p1"'), 3)


class Options(unittest.TestCase):
    def check(self, *options):
        return subprocess.run([sys.executable, BENCH / "compare_peers.py", "--target", "-", "--draft",
                               "-", *options, "--check"], check=False, capture_output=True, text=True)

    def test_what_is_wrong_is_said_before_anything_runs(self):
        for option, value in (("--temps", "abc"), ("--temps", "0,"), ("--rounds", "0"),
                              ("--tokens", "7"), ("--until", "0"), ("--most-rounds", "-1"),
                              ("--per-category", "x"), ("--peers", "nonsense"),
                              ("--peers", "draft-simple:x"), ("--ours", "bogus@zz"),
                              ("--ours", "draft-model@4x"), ("--json", "/no/such/folder/x.json")):
            done = self.check(option, value)
            self.assertEqual(done.returncode, 2, (option, value, done.stderr))
            self.assertIn(f"error: argument {option}: '", done.stderr)

    def test_what_the_documents_ask_for_passes(self):
        done = self.check("--temps", "0,0.8d,1", "--until", "0.05", "--head", "-", "--peers", "none",
                          "draft-simple:1", "draft-eagle3", "ngram-map-k4v", "--ours", "plain", "auto",
                          "draft-model@4", "suffix,eagle3@auto", "--json", os.devnull)
        self.assertEqual(done.returncode, 0, done.stderr)


class Throughput(unittest.TestCase):
    class Asked(Fake):
        def complete(self, prompt, tokens, speculative):
            self.prompts.append(prompt)
            return tokens, prompt + (" other" if speculative and self.tps == 0 else "")

        def cpu_s(self):
            self.used_s += 1.0
            return self.used_s

    def row(self, ours):
        asked = {throughput.LLAMA: self.Asked(), throughput.PLAIN: self.Asked(), throughput.OURS: ours}
        runs = throughput.measure(asked, ["a", "b"], 2, argparse.Namespace(rounds=3, each=2, tokens=4))
        return throughput.row(2, runs), asked

    def test_in_a_round_all_settings_are_asked_the_same(self):
        row, asked = self.row(self.Asked())
        self.assertTrue(row.endswith(" yes |"), row)
        warm = 2
        rounds = {name: [sorted(one.prompts[warm + 4 * i:warm + 4 * i + 4]) for i in range(3)]
                  for name, one in asked.items()}
        self.assertEqual(rounds[throughput.PLAIN], rounds[throughput.OURS])
        self.assertEqual(rounds[throughput.PLAIN], rounds[throughput.LLAMA])
        self.assertEqual(len({prompt for one in rounds[throughput.PLAIN] for prompt in one}), 12)

    def test_control_a_text_that_differs_is_told(self):
        row, _ = self.row(self.Asked(tps=0))
        self.assertTrue(row.endswith(" NO |"), row)


if __name__ == "__main__":
    unittest.main()

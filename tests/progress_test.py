#!/usr/bin/env python3
"""Tests of scripts/progress.py, the one line of progress of `./dev`, with a clock of their own."""

import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import progress  # noqa: E402


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def shown(lines, terminal=False, seconds=1.0, columns=80):
    """What is written for lines that come so many seconds apart."""
    out, clock = io.StringIO(), Clock()
    display = progress.Progress("building", out, terminal, clock, columns)
    for line in lines:
        clock.now += seconds
        display.read(line + "\n")
    display.end()
    return out.getvalue()


def steps(n):
    return [f"[{i}/{n}] Building CXX object a{i}.o" for i in range(1, n + 1)]


class Lines(unittest.TestCase):
    def test_hundreds_of_steps_become_a_dozen_lines(self):
        text = shown(steps(350)).splitlines()
        self.assertLess(len(text), 25)
        self.assertGreater(len(text), 9)

    def test_a_line_tells_the_part_the_count_and_the_time_left(self):
        text = shown(steps(100), seconds=6.0)
        self.assertIn("building: 10 of 100, about 9 min left\n", text)

    def test_long_steps_are_told_of_though_no_tenth_is_full(self):
        text = shown(steps(1000)[:4], seconds=31.0)
        self.assertEqual(text.count(" of 1000"), 5)  # with the end

    def test_nothing_to_do_says_nothing(self):
        self.assertEqual(shown(["ninja: Entering directory `build'", "[0/2] Re-checking globbed "
                                "directories...", "ninja: no work to do."]), "")

    def test_on_a_terminal_one_line_is_written_over(self):
        text = shown(steps(50), terminal=True)
        self.assertEqual(text.count("\n"), 1)
        self.assertEqual(text.count("\r\033[K"), 51)

    def test_a_line_is_never_wider_than_the_terminal(self):
        for part in shown(steps(50), terminal=True, columns=20).split("\r\033[K")[:-1]:
            self.assertLess(len(part), 20)

    def test_errors_come_through_whole(self):
        lines = ["FAILED: a.o ", "c++ -c a.cc", "a.cc:1:1: error: no", "ninja: build stopped: x."]
        for terminal in (False, True):
            text = shown([*steps(3), *lines], terminal)
            for line in lines:
                self.assertIn(line + "\n", text)


class Tests(unittest.TestCase):
    LINES = ["Test project /x", "      Start  1: a", "1/3 Test  #1: a ....   Passed    0.01 sec",
             "      Start  2: b", "2/3 Test  #2: b ....***Failed    0.01 sec", "b said this",
             "      Start  3: c", "3/3 Test  #3: c ....***Skipped   0.01 sec",
             "67% tests passed, 1 tests failed out of 3"]

    def test_a_failed_test_and_what_it_said_come_through_and_passed_ones_do_not(self):
        text = shown(self.LINES, seconds=3.0)
        self.assertIn("***Failed", text)
        self.assertIn("b said this\n", text)
        self.assertIn("67% tests passed", text)
        self.assertNotIn("Passed", text)
        self.assertNotIn("Start", text)
        self.assertIn("3 of 3, 1 failed", text)


if __name__ == "__main__":
    unittest.main()

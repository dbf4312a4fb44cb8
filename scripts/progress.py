#!/usr/bin/env python3
"""One line of progress instead of hundreds: reads what ninja or ctest prints, shows the part, the
count and the time left, and lets through what is neither (errors, what a failed test said).

Usage: progress.py TITLE < OUTPUT

On a terminal the line is written over; elsewhere there is a new one with each tenth of the work
(not more often than every 5 seconds) and after 30 seconds. The time left takes the steps to come
for as long as those done, so it is a guess. Nothing is shown when there is nothing to do."""

import os
import re
import sys
import time

STEP = re.compile(r"\[(\d+)/(\d+)\] ")  # ninja
TEST = re.compile(r" *(\d+)/(\d+) Test +#\d+: ")  # ctest, when a test has ended
NOISE = re.compile(r"\[\d+/\d+\] Re-checking globbed|\[0/\d+\]|ninja: no work to do|"
                   r"ninja: Entering directory| +Start +\d+: |Test project |$")
TENTHS, SOON, LATE = 10, 5.0, 30.0


def spoken(seconds):
    """A duration as one says it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"


class Progress:
    def __init__(self, title, out, terminal, clock=time.monotonic, columns=80):
        self.title, self.out, self.terminal = title, out, terminal
        self.clock, self.columns = clock, columns
        self.start = self.shown = clock()
        self.done = self.total = self.tenth = self.failed = 0
        self.open = False  # a line that is to be written over

    def line(self):
        text = f"{self.title}: {self.done} of {self.total}"
        if self.failed:
            text += f", {self.failed} failed"
        elapsed = self.clock() - self.start
        if 0 < self.done < self.total and elapsed > 2:
            text += f", about {spoken(elapsed / self.done * (self.total - self.done))} left"
        return text

    def step(self, done, total):
        self.done, self.total = done, total
        now = self.clock()
        if self.terminal:
            self.out.write(f"\r\033[K{self.line()[:self.columns - 1]}")
            self.open = True
        else:
            tenth = TENTHS * done // max(1, total)
            due = tenth > self.tenth and now - self.shown >= SOON
            if not due and now - self.shown < LATE:
                return
            self.out.write(self.line() + "\n")
            self.tenth, self.shown = tenth, now
        self.out.flush()

    def let_through(self, text):
        self.close()
        self.out.write(text)
        self.out.flush()

    def close(self):
        if self.open:
            self.out.write("\r\033[K")
            self.open = False

    def read(self, line):
        if NOISE.match(line):
            return
        step, test = STEP.match(line), TEST.match(line)
        if step:
            self.step(int(step.group(1)), int(step.group(2)))
        elif test:
            if not re.search(r"  Passed  |\*\*\*Skipped", line):
                self.failed += 1
                self.let_through(line)
            self.step(int(test.group(1)), int(test.group(2)))
        else:
            self.let_through(line)

    def end(self):
        self.close()
        elapsed = self.clock() - self.start
        if self.total and elapsed > SOON:
            failed = f", {self.failed} failed" if self.failed else ""
            self.out.write(f"{self.title}: {self.done} of {self.total}{failed}, "
                           f"in {spoken(elapsed)}\n")
        self.out.flush()


def main():
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        columns = 80
    progress = Progress(sys.argv[1], sys.stdout, sys.stdout.isatty(), columns=columns)
    sys.stdin.reconfigure(errors="replace")
    try:
        for line in sys.stdin:
            progress.read(line)
    except KeyboardInterrupt:
        progress.close()
        return 130
    progress.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Tests of `outrider serve` with clients that nobody here wrote: openai for Python and node.js,
LangChain, llm, curl, schemathesis, prometheus-client, and the page in Chromium; and the commands of
the documents.

Usage: run.py --binary BINARY --target T.gguf [--draft D.gguf] [--folder FOLDER] [--report FILE]
              [--only clients|page] [--install] [PYTEST ARGUMENTS]

Installs the clients into FOLDER (pinned, once), starts the server on a free port, runs *_test.py and
test_*.py of this folder, those of the documents and the page's, prints a table, and ends the server. Exit 0: all
passed; 77: the clients cannot be had here, and why is said; else 1. With --install it only
installs.

A command that was built with a sanitizer gets more time (sanitized.py), and what it or its children
report is a failure. The page is tested against it alone, not against the mock."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as tree

import installed
import sanitized
import served

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = HERE.parent / "page"
DOCUMENTS = HERE.parent / "docs"
SKIPPED = 77
NO_TESTS = 5  # pytest's status when -k chose none of a group
OUTCOMES = ("passed", "failed", "skipped")
SECONDS = 900  # a bound for a group of tests, not a measure (bound()): builds may run beside them
# Of the page's tests those that need a real server's answers most, and no long ones.
PAGE_TESTS = "streams_and_shows or guessed_tokens or same_seed or both_run or stop_ends_the_answer"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "outrider")
    parser.add_argument("--target", type=pathlib.Path)
    parser.add_argument("--draft", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "clients")
    parser.add_argument("--report", type=pathlib.Path, help="the results, as ctest's and pytest's XML")
    parser.add_argument("--only", choices=("clients", "page"))
    parser.add_argument("--install", action="store_true", help="install the clients, run nothing")
    given, rest = parser.parse_known_args()
    if not given.install and not given.target:
        parser.error("--target: which model to serve")
    return given, rest


class Run:
    """pytest, once for each group of tests; their reports."""

    def __init__(self, python, folder, more):
        self.python, self.folder, self.more = python, folder, more
        self.cases, self.failed = [], False

    def tests(self, group, folder, environment, *choice):
        report = self.folder / f"{group}.xml"
        report.unlink(missing_ok=True)
        seconds = sanitized.bound(SECONDS)
        command = [self.python, "-m", "pytest", "-q", "--no-header", "--tb=short",
                   "-p", "no:cacheprovider", f"--session-timeout={seconds}",
                   f"--junitxml={report}", *choice, *self.more, "."]
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **environment)
        try:
            # The session's limit ends it in order; this one is for a test that does not return.
            done = subprocess.run(command, env=environment, cwd=folder, check=False,
                                  stdin=subprocess.DEVNULL, stdout=sys.stderr, 
                                  timeout=seconds + 60)
            self.failed |= done.returncode not in (0, NO_TESTS if self.more else 0)
        except subprocess.TimeoutExpired:
            print(f"run.py: the tests '{group}' did not end", file=sys.stderr)
            self.failed = True
        if report.exists():
            for case in tree.parse(report).getroot().iter("testcase"):
                case.set("classname", f"{group}.{case.get('classname')}")
                self.cases.append(case)

    def add_sanitizer(self, kind, n_reports):
        """That it reported nothing, as one more test."""
        case = tree.Element("testcase", classname="sanitizer.reports_test", time="0",
                            name=f"the {kind} sanitizer reports nothing")
        if n_reports > 0:
            tree.SubElement(case, "failure", message=f"it reported {n_reports} times")
            self.failed = True
        self.cases.append(case)

    def table(self):
        rows = {}
        for case in self.cases:
            group, *parts = case.get("classname").split(".")
            file = next((part for part in parts if "test" in part), case.get("name"))
            row = rows.setdefault((group, file), dict.fromkeys((*OUTCOMES, "seconds"), 0))
            row[outcome(case)] += 1
            row["seconds"] += float(case.get("time", 0))
        for (group, file), row in rows.items():
            print(f"{group:12} {file:24} {row['passed']:3} passed {row['failed']:3} failed "
                  f"{row['skipped']:3} skipped {row['seconds']:6.1f} s")

    def write(self, report):
        outcomes = [outcome(case) for case in self.cases]
        suite = tree.Element("testsuite", name="clients", tests=str(len(outcomes)),
                             failures=str(outcomes.count("failed")),
                             skipped=str(outcomes.count("skipped")))
        suite.extend(self.cases)
        tree.ElementTree(suite).write(report)


def outcome(case):
    bad = case.find("failure") is not None or case.find("error") is not None
    return "failed" if bad else "skipped" if case.find("skipped") is not None else "passed"


def run_all(given, run):
    server_of_tests = {"OUTRIDER_BINARY": str(given.binary.resolve()),
                       "OUTRIDER_TARGET": str(given.target), "OUTRIDER_DRAFT": str(given.draft or "")}
    with served.Served(given.binary, given.target, given.draft) as server:
        here = {"OUTRIDER_URL": server.url, "OUTRIDER_MODEL": server.model}
        if given.only != "page":
            node = {"OUTRIDER_CLIENTS_NODE": str(given.folder / "node")}
            run.tests("clients", HERE, {**server_of_tests, **here, **node})
            run.tests("documents", DOCUMENTS, server_of_tests)
        if given.only == "clients":
            return
        if not os.environ.get("OUTRIDER_CHROMIUM") and not any(map(shutil.which, CHROMIUM)):
            print("run.py: there is no Chromium, so the page was not tested; on Debian: apt-get "
                  "install chromium", file=sys.stderr)
            run.failed = run.failed or os.environ.get("CI") == "true"
            return
        if not os.environ.get("OUTRIDER_SANITIZER"):
            run.tests("page", PAGE, {"OUTRIDER_URL": ""})
    # The page shows guesses, and the planner may find that none pay on this machine.
    with served.Served(given.binary, given.target, given.draft, "--width", "4") as server:
        run.tests("page, served", PAGE, {"OUTRIDER_URL": server.url}, "-k", PAGE_TESTS)


def main():
    given, more = arguments()
    for name in ("NO_PROXY", "no_proxy"):  # a proxy is for the registries, not for the server here
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1,localhost,::1"]))
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        python = installed.python_packages(given.folder / "python")
        installed.node_packages(given.folder / "node")
    except installed.Unavailable as missing:
        print(f"run.py: the clients are not there, and were not tested: {missing}", file=sys.stderr)
        return SKIPPED
    if given.install:
        return 0
    run = Run(python, given.folder, more)
    reports = given.folder / "sanitizer"
    kind = sanitized.prepare(given.binary, reports)
    try:
        run_all(given, run)
    except served.ServerFailed as failure:
        print(f"run.py: {failure}", file=sys.stderr)
        run.failed = True
    if kind:
        run.add_sanitizer(kind, sanitized.tell(reports))
    run.table()
    if given.report:
        run.write(given.report)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The tests of the page of `outrider serve`, in headless Chromium: against a mock server, or with
--url against one that runs.

Usage: run.py [--url URL [--key KEY]] [--screenshots FOLDER] [-v] [NAME ...]
NAME: a file, class or test, such as chat_test or chat_test.ChatTest. Needs `pip install playwright`
and a Chromium: Debian's package, or OUTRIDER_CHROMIUM=PATH. Exit 0: all passed."""

import argparse
import pathlib
import sys
import unittest

from page_case import Settings

FILES = sorted(path.stem for path in pathlib.Path(__file__).parent.glob("*_test.py"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="of a server that runs; without it, the mock")
    parser.add_argument("--key", help="that it wants")
    parser.add_argument("--screenshots", metavar="FOLDER", help="one of the end of each test")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    Settings.url, Settings.key = arguments.url, arguments.key
    Settings.screenshots = arguments.screenshots
    tests = unittest.defaultTestLoader.loadTestsFromNames(arguments.names or FILES)
    result = unittest.TextTestRunner(verbosity=1 + arguments.verbose).run(tests)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Tests the package for Node.js: types with TypeScript, the rest with node:test, on a library and a
pair of tiny models that a build has made, or (--installed) as it is installed in a folder.

Usage: test_node.py BUILD_DIR [--report FILE] [--installed FOLDER]

Exit 0: all passed; 77: what it needs cannot be had here, and why is said; else 1."""

import argparse
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "node"
TESTS = "outrider.test.js"
sys.path.insert(0, str(ROOT / "tests" / "clients"))
import installed  # noqa: E402
import module_tests  # noqa: E402

SKIPPED = 77
SECONDS = 600  # of all tests: a bound, not a measure
TYPES = ["--noEmit", "--strict", "--allowJs", "--checkJs", "--noUnusedLocals", "--target", "es2022",
         "--module", "node16", "--resolveJsonModule", "--types", "node", TESTS]


def staged(build):
    """A copy of the package beside what it needs, in the build folder."""
    folder = installed.node_packages(build / "node", PACKAGE)
    for file in [*PACKAGE.glob("*.js"), PACKAGE / "index.d.ts"]:
        shutil.copy(file, folder)
    return folder


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path, help="the results, as XML")
    parser.add_argument("--installed", type=pathlib.Path, help="a folder whose node_modules have outrider")
    given = parser.parse_args()
    build = given.build.resolve()
    environment = module_tests.environment(build)
    folder = given.installed
    types = None
    if folder is None:
        try:
            folder = staged(build)
        except installed.Unavailable as missing:
            print(f"test_node.py: the package was not tested: {missing}", file=sys.stderr)
            return SKIPPED
        environment["OUTRIDER_LIBRARY"] = str(build / "liboutrider.so")
        types = [folder / "node_modules" / ".bin" / "tsc", *TYPES]
    for file in (PACKAGE / "test" / TESTS, PACKAGE / "README.md"):
        shutil.copy(file, folder)
    failed = types is not None and subprocess.run(types, check=False, cwd=folder,
                                                  stdout=sys.stderr).returncode != 0
    reporters = ["--test-reporter=dot", "--test-reporter-destination=stdout"]
    if given.report:
        reporters += ["--test-reporter=junit", f"--test-reporter-destination={given.report.resolve()}"]
    tests = subprocess.run(["node", "--test", *reporters, TESTS], env=environment, check=False,
                           cwd=folder, stdout=sys.stderr, timeout=SECONDS)
    return 1 if failed or tests.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())

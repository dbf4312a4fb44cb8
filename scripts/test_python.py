#!/usr/bin/env python3
"""Tests the module outrider: types with mypy, the rest with pytest, on a library and a pair of tiny
models that a build has made, or (--installed) as it is installed for a Python.

Usage: test_python.py BUILD_DIR [--report FILE] [--installed PYTHON]

Exit 0: all passed; 77: pytest or mypy cannot be had here, and why is said; else 1."""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python"
TESTS = PACKAGE / "tests"
sys.path.insert(0, str(ROOT / "tests" / "clients"))
import installed  # noqa: E402
import module_tests  # noqa: E402

SKIPPED = 77
SECONDS = 300  # of a test: a bound, not a measure


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path, help="pytest's results, as XML")
    parser.add_argument("--installed", type=pathlib.Path, help="a Python that has outrider and pytest")
    given = parser.parse_args()
    build = given.build.resolve()
    environment = module_tests.environment(build, PYTHONDONTWRITEBYTECODE="1")
    python = given.installed
    failed = False
    if python is None:
        try:
            python = installed.python_packages(build / "python", TESTS / "requirements.txt",
                                               TESTS / "constraints.txt")
        except installed.Unavailable as missing:
            print(f"test_python.py: the Python module was not tested: {missing}", file=sys.stderr)
            return SKIPPED
        environment.update(OUTRIDER_LIBRARY=str(build / "liboutrider.so"),
                           PYTHONPATH=str(PACKAGE), MYPYPATH=str(PACKAGE))
        types = subprocess.run([python, "-m", "mypy", "--strict", "--cache-dir",
                                build / "python" / "mypy", PACKAGE / "outrider", TESTS],
                               env=environment, check=False, cwd=TESTS, stdout=sys.stderr)
        failed = types.returncode != 0
    report = [f"--junitxml={given.report.resolve()}"] if given.report else []
    tests = subprocess.run([python, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider",
                            f"--timeout={SECONDS}", *report, TESTS],
                           env=environment, check=False, cwd=TESTS, stdout=sys.stderr)
    return 1 if failed or tests.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())

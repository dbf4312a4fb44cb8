"""Programs that were built with a sanitizer: how long tests wait for them, and what they report.

OUTRIDER_TEST_SLOWER is the factor for every bound of time in the tests of clients, documents and the
page (1). Bounds end what hangs, so one that is too large costs nothing where all is well. run.py sets
it for a sanitized command, and OUTRIDER_SANITIZER, for tests of what such a build does not have."""

import os
import re
import shutil

# Answers took nine times as long with the address sanitizer (curl, LangChain; 2026-11-28); the other
# one's were not timed.
SLOWER = {"address": 15, "thread": 30}
VARIABLES = ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
# Of every kind's reports; a note (of suppressions that were used, say) has none of these.
FINDING = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|FATAL: ThreadSanitizer|"
                     r"SUMMARY: \w+Sanitizer|runtime error: ")


def bound(seconds):
    """A bound of time for this run. Any unit."""
    return seconds * float(os.environ.get("OUTRIDER_TEST_SLOWER", "1"))


def kind_of(binary):
    """The sanitizer that a command was built with, "address" or "thread"; "": none. By the build
    folder, which it lies in."""
    cache = binary.resolve().parent / "CMakeCache.txt"
    if not cache.exists():
        return ""
    found = re.search(r"^OUTRIDER_SANITIZE:\w+=(.*)$", cache.read_text(), re.MULTILINE)
    return found[1] if found else ""


def prepare(binary, folder):
    """Sets this process' environment for tests of the command: its children report to files in
    `folder`, with the options of the C++ tests for all else (cmake/sanitizers/defaults.c). Returns the
    sanitizer's kind."""
    kind = kind_of(binary)
    if not kind:
        return ""
    os.environ.setdefault("OUTRIDER_TEST_SLOWER", str(SLOWER[kind]))
    os.environ["OUTRIDER_SANITIZER"] = kind
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for variable in VARIABLES:
        given = os.environ.get(variable)
        ours = f"log_path={folder.resolve()}/report:print_suppressions=0"
        os.environ[variable] = f"{given}:{ours}" if given else ours
    return kind


def findings(folder):
    """[(file, its text)] of what was found: by servers, commands and their children, also where nobody
    looked at their exit status."""
    texts = [(path, path.read_text(errors="replace")) for path in sorted(folder.glob("report.*"))]
    return [(path, text) for path, text in texts if FINDING.search(text)]


def tell(folder, lines=60):
    """Says what was found; how much that was."""
    found = findings(folder)
    for path, text in found:
        print(f"{path}:", *text.splitlines()[:lines], sep="\n")
    return len(found)

#!/usr/bin/env python3
"""llama.cpp's own server tests against `outrider serve`.

  python3 tests/clients/llama_server_tests.py BUILD [PYTEST ARGUMENTS]

BUILD is a build folder with `outrider` and `testing/outrider-tiny-model`. The tests are those of the
pinned source, unchanged, in a copy below BUILD; llama_server_wrapper.py is their server, with tiny
random models in place of those of a hub. Which of them fail is known, and why:
llama_expected_failures.txt. A test that fails and is not listed there, or that passes although it
is listed, fails this run. With PYTEST ARGUMENTS (`-k NAME`) only what was run is compared.

What it needs of Python's registry is installed with the other clients (installed.py), into
build/clients. A command that was built with a sanitizer must have reported nothing (sanitized.py).
Exit 0: all as expected; 77: it cannot be had here; else 1.
"""
import os
import shutil
import socket
import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

import installed
import sanitized

HERE = Path(__file__).resolve().parent
CLIENTS = HERE.parents[1] / "build" / "clients"
# Those that need no model that is not text, no hub, and no tool of llama-server's own.
FILES = ["basic", "completion", "chat_completion", "tokenize", "template", "security",
         "speculative", "ignore_eos", "ctx_shift", "infill", "compat_oai_responses",
         "compat_anthropic"]
DRAFT = "stories15M-q4_0.gguf"  # what test_speculative.py would download
AT_LEAST = 100  # pass


def source_of(build):
    """llama.cpp's source: the build folder has a link to it."""
    source = (build / "llama.cpp-source").resolve()
    if not (source / "tools/server/tests").is_dir():
        sys.exit(f"{build} has no llama.cpp-source with tools/server/tests")
    return source


def prepare(build):
    """A copy of the tests, where the paths that they take to templates lead to the source."""
    source = source_of(build)
    root = build / "llama_server_tests"
    tests = root / "tools/server/tests"
    shutil.rmtree(tests, ignore_errors=True)
    shutil.copytree(source / "tools/server/tests", tests)
    shutil.rmtree(root / "models-made", ignore_errors=True)
    if not (root / "models").exists():
        (root / "models").symlink_to(source / "models")
    # utils.py imports it for downloads; there are none.
    (tests / "wget.py").write_text("def download(url, out):\n    raise OSError('no hub here')\n")
    (tests / "tmp").mkdir(exist_ok=True)
    subprocess.run([build / "testing/outrider-tiny-model", tests / "tmp" / DRAFT, "--space-prefix",
                    "--experts", "4", "--noise", "0.02"], check=True)
    return root, tests


def expected_failures():
    """[(name, reason)]; a name that ends in * stands for all that begin so."""
    result = []
    reason = ""
    for line in (HERE / "llama_expected_failures.txt").read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif "::" in line:
            result.append((line.strip(), reason))
    return result


def listed(name, expected):
    for pattern, _reason in expected:
        if name == pattern or pattern.endswith("*") and name.startswith(pattern[:-1]):
            return pattern
    return None


def outcomes(report):
    """{"test_basic.py::test_server_props": "passed" | "failed" | "skipped"}"""
    result = {}
    for case in tree.parse(report).getroot().iter("testcase"):
        name = case.get("classname").split(".")[-1] + ".py::" + case.get("name")
        kinds = {child.tag for child in case}
        result[name] = ("failed" if kinds & {"failure", "error"} else
                        "skipped" if "skipped" in kinds else "passed")
    return result


def judge(results, whole):
    """{name: what is not as expected}"""
    expected = expected_failures()
    used = set()
    wrong = {}
    for name, outcome in sorted(results.items()):
        pattern = listed(name, expected)
        used.add(pattern)
        if outcome == "failed" and pattern is None:
            wrong[name] = "fails, and is not expected to"
        if outcome == "passed" and pattern is not None:
            wrong[name] = f"passes, although it is expected to fail ({pattern})"
    for pattern, _reason in expected if whole else []:
        if pattern not in used:
            wrong[pattern] = "is expected to fail, but there is no such test"
    passed = list(results.values()).count("passed")
    if whole and passed < AT_LEAST:
        wrong["all"] = f"{passed} passed, fewer than {AT_LEAST}"
    return wrong


def write_report(results, wrong, path):
    """JUnit's XML: what passed, and as failures what is not as expected. What fails as expected is
    left out."""
    suite = tree.Element("testsuite", name="llama.cpp's server tests")
    for name in sorted({name for name, outcome in results.items() if outcome == "passed"} | set(wrong)):
        case = tree.SubElement(suite, "testcase", name=name)
        if name in wrong:
            tree.SubElement(case, "failure", message=wrong[name])
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(wrong)))
    tree.ElementTree(suite).write(path)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = Path(sys.argv[1]).resolve()
    arguments = sys.argv[2:]
    source_of(build)  # first: what follows would make a folder of any other word
    try:
        python = installed.python_packages(CLIENTS / "python")
    except installed.Unavailable as missing:
        print(f"llama.cpp's server tests were not run: {missing}", file=sys.stderr)
        sys.exit(77)
    kind = sanitized.prepare(build / "outrider", build / "llama_server_tests/sanitizer")
    root, tests = prepare(build)
    report = root / "report.xml"
    environment = {**os.environ,
                   "LLAMA_SERVER_BIN_PATH": str(HERE / "llama_server_wrapper.py"),
                   "OUTRIDER": str(build / "outrider"),
                   "OUTRIDER_TINY_MODEL": str(build / "testing/outrider-tiny-model"),
                   "OUTRIDER_TEST_MODELS": str(root / "models-made"),
                   "OUTRIDER_CACHE": str(root / "cache"),
                   "PORT": str(free_port()),  # theirs is 8080, where another server may listen
                   # Nothing of a hub: what a test would download is not there.
                   "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9",
                   "NO_PROXY": "127.0.0.1,localhost,::1"}
    files = [f"unit/test_{name}.py" for name in FILES]
    log = root / "pytest.log"  # what fails as expected says thousands of lines
    with open(log, "w", encoding="utf-8") as output:
        subprocess.run([python, "-m", "pytest", "-q", "--no-header", "--tb=line", "-p",
                        "no:cacheprovider", f"--junitxml={report}", "-m", "not slow", *files,
                        *arguments], cwd=tests, env=environment, check=False, stdout=output,
                       stderr=subprocess.STDOUT)
    results = outcomes(report)
    wrong = judge(results, whole=not arguments)
    if kind and (reports := sanitized.tell(root / "sanitizer")):
        wrong["sanitizer"] = f"reported {reports} times"
    write_report(results, wrong, root / "judged.xml")
    for name, what in wrong.items():
        print(f"{name} {what}; see {log}")
    counts = {kind: list(results.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    print(f"llama.cpp's server tests: {counts['passed']} passed, {counts['failed']} failed, "
          f"{counts['skipped']} skipped; {len(wrong)} not as expected")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

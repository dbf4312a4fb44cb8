#!/usr/bin/env python3
"""Tests of how tests of clients find what a sanitizer reports (tests/clients/sanitized.py), and that a
server that exits badly is noticed (tests/clients/served.py)."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "clients"))
import sanitized  # noqa: E402
import served  # noqa: E402

# Answers as far as served.py asks, and exits with a status of its own behind a SIGTERM.
SERVER = """#!{python}
import http.server, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{{"data": [{{"id": "fake"}}]}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
signal.signal(signal.SIGTERM, lambda *_: sys.exit({status}))
print(f"listening on http://127.0.0.1:{{server.server_port}}", flush=True)
server.serve_forever()
"""
LEAK = "#include <stdlib.h>\nint main(void) { void* volatile p = malloc(7); p = 0; return p != 0; }\n"


class SanitizedCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        environment = unittest.mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        for name in ("OUTRIDER_TEST_SLOWER", "OUTRIDER_SANITIZER", *sanitized.VARIABLES):
            os.environ.pop(name, None)

    def binary(self, sanitizer):
        (self.folder / "CMakeCache.txt").write_text(f"A:BOOL=ON\nOUTRIDER_SANITIZE:STRING={sanitizer}\n")
        return self.folder / "outrider"


class Builds(SanitizedCase):
    def test_the_build_folder_says_which_sanitizer(self):
        self.assertEqual(sanitized.kind_of(self.folder / "outrider"), "")
        for kind in ("", "address", "thread"):
            self.assertEqual(sanitized.kind_of(self.binary(kind)), kind)

    def test_only_a_sanitized_command_changes_the_environment(self):
        before = dict(os.environ)
        self.assertEqual(sanitized.prepare(self.binary(""), self.folder / "reports"), "")
        self.assertEqual((dict(os.environ), sanitized.bound(60)), (before, 60))
        self.assertEqual(sanitized.prepare(self.binary("thread"), self.folder / "reports"), "thread")
        self.assertGreater(sanitized.bound(60), 60)
        self.assertIn("log_path=", os.environ["TSAN_OPTIONS"])

    def test_what_is_set_already_stays(self):
        os.environ.update(OUTRIDER_TEST_SLOWER="3", ASAN_OPTIONS="detect_leaks=0")
        sanitized.prepare(self.binary("address"), self.folder / "reports")
        self.assertEqual(sanitized.bound(2), 6)
        self.assertTrue(os.environ["ASAN_OPTIONS"].startswith("detect_leaks=0:log_path="))


class Reports(SanitizedCase):
    TEXTS = ("==7==ERROR: AddressSanitizer: heap-use-after-free on address",
             "==7==ERROR: LeakSanitizer: detected memory leaks",
             "WARNING: ThreadSanitizer: data race (pid=7)",
             "FATAL: ThreadSanitizer: unexpected memory mapping",
             "a.cc:3:5: runtime error: signed integer overflow")

    def test_every_kind_of_report_is_one_and_a_note_is_none(self):
        for number, text in enumerate(self.TEXTS):
            (self.folder / f"report.{number}").write_text(f"=======\n{text}\n")
        (self.folder / "report.99").write_text("ThreadSanitizer: Matched 1 suppressions (pid=7):\n")
        self.assertEqual(len(sanitized.findings(self.folder)), len(self.TEXTS))

    def test_a_program_that_nobody_waits_for_is_found_too(self):
        source, program = self.folder / "leak.c", self.folder / "leak"
        source.write_text(LEAK)
        made = subprocess.run(["cc", "-fsanitize=address", source, "-o", program], check=False,
                              capture_output=True)
        if made.returncode != 0:
            self.skipTest("cc has no address sanitizer")
        reports = self.folder / "reports"
        sanitized.prepare(self.binary("address"), reports)
        subprocess.run(["sh", "-c", f"'{program}' || true"], check=True)
        self.assertEqual(len(sanitized.findings(reports)), 1)


class Defaults(SanitizedCase):
    """cmake/sanitizers/defaults.c, which every program of a sanitized build has."""

    def test_a_checkout_may_have_any_name(self):
        lists = self.folder / "my src, a:b"
        lists.mkdir()
        sanitizers = pathlib.Path(__file__).resolve().parent.parent / "cmake/sanitizers"
        for name in ("lsan.supp", "ubsan.supp", "tsan.supp"):
            (lists / name).write_text((sanitizers / name).read_text())
        source, program = self.folder / "main.c", self.folder / "program"
        source.write_text("int main(void) { return 0; }\n")
        made = subprocess.run(["cc", "-fsanitize=address,undefined", f'-DOUTRIDER_SUPPRESSIONS="{lists}"',
                               sanitizers / "defaults.c", source, "-o", program], check=False,
                              capture_output=True)
        if made.returncode != 0:
            self.skipTest("cc has no address sanitizer")
        done = subprocess.run([program], check=False, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Servers(SanitizedCase):
    def serve(self, status):
        binary = self.folder / "outrider"
        binary.write_text(SERVER.format(python=sys.executable, status=status))
        binary.chmod(0o755)
        with served.Served(binary, "target.gguf") as server:
            self.assertEqual(server.model, "fake")

    def test_a_server_that_exits_badly_is_a_failure(self):
        self.serve(0)
        with self.assertRaisesRegex(served.ServerFailed, "exited with 23"):
            self.serve(23)

    def test_what_failed_before_is_not_hidden_by_it(self):
        with self.assertRaises(ZeroDivisionError):
            with unittest.mock.patch.object(self, "assertEqual", side_effect=ZeroDivisionError):
                self.serve(23)


if __name__ == "__main__":
    unittest.main()

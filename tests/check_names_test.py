#!/usr/bin/env python3
"""Tests of check_names.py: each makes a small tree, with or without a name of what is not there."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import check_names  # noqa: E402


class CheckNames(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("src/http/listener.h", "src/kernels/simd_avx2.h", "tests/golden/a.json",
                     "tests/a_test.py", "include/outrider.h", "scripts/draw.py"):
            self.write(name, "")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def errors(self):
        checker = check_names.Checker(self.root)
        checker.run()
        return checker.errors

    def assert_found(self, name, text, expected):
        self.write(name, text)
        self.assertEqual(self.errors(), [f"{name}:{line}: names {word}, which does not exist"
                                         for line, word in expected])

    def test_what_is_there_may_be_named(self):
        self.write("docs/a.md", "`listener.h`, `src/http`, `http/listener.h`, tests/golden/a.json, "
                                "`simd_*.h`, `a_test.py`, [page](../README.md#use), `src/http/`\n")
        self.write("README.md", "# Use\n[a](docs/a.md), https://src/http/gone.h, ~/src/gone.h\n")
        self.write("src/http/listener.cc", "// As listener.h and http/listener.h say (draw.py).\n")
        self.assertEqual(self.errors(), [])

    def test_a_page_names_a_file_that_is_gone(self):
        for page in ("docs/a.md", "README.md", "CONTRIBUTING.md", "node/README.md"):
            for word in ("gone.h", "gone.cc", "gone.py", "gone.js", "src/http/gone.h", "gone_*.h",
                         "http/gone.h", "src/gone"):
                with self.subTest(f"{page} {word}"):
                    self.assert_found(page, f"\nIt is in `{word}`.\n", [(2, word)])
            self.write(page, "")

    def test_a_path_counts_without_backticks_and_a_bare_name_does_not(self):
        self.assert_found("docs/a.md", "gone.h, src/http/gone.h\n", [(1, "src/http/gone.h")])

    def test_a_file_that_was_moved_is_not_where_it_was(self):
        self.write("src/http/access/access.h", "")
        self.assert_found("docs/a.md", "`access.h`, `src/http/access.h`\n", [(1, "src/http/access.h")])

    def test_a_link_leads_to_a_file(self):
        self.assert_found("docs/a.md", "[a](b.md), [c](https://c.org/d.md#e)\n", [(1, "b.md")])

    def test_a_link_leads_to_a_heading_of_its_page(self):
        self.write("README.md", "")
        self.write("docs/b.md", "# What a step costs: llama.cpp's `x` (Zen 4)\n## Same\n### Same\n"
                                "```sh\n# no-heading\n```\n## [Linked](../README.md) here\n")
        self.assert_found("docs/a.md", "[a](b.md#what-a-step-costs-llamacpps-x-zen-4) [b](b.md#same)\n"
                                       "[c](b.md#same-1), [d](b.md#linked-here), [e](#own)\n## Own\n", [])
        self.assert_found("docs/a.md", "[a](b.md#same-2)\n[b](b.md#no-heading), [c](#own)\n"
                                       "[d](../tests/a_test.py#L3)\n",
                          [(1, "b.md#same-2"), (2, "b.md#no-heading"), (2, "#own")])

    def test_comments_of_headers_and_sources(self):
        for name in ("include/outrider.h", "src/http/listener.cc", "tests/x_test.cc"):
            with self.subTest(name):
                self.assert_found(name, "/* In gone.h and\n * gone.cc. */\nint a;  // http/gone.h\n",
                                  [(1, "gone.h"), (2, "gone.cc"), (3, "http/gone.h")])
                self.write(name, "")
        self.assert_found("src/http/listener.cc", "// See src/http/CMakeLists.txt.\n",
                          [(1, "src/http/CMakeLists.txt")])

    def test_code_and_strings_are_the_compilers(self):
        self.assert_found("src/http/listener.cc", '#include "gone.h"\nconst char* a = "gone.h";\n', [])

    def test_what_is_not_ours_is_free(self):
        self.assert_found("docs/a.md", "`llama.h`, `common.h`, `llama-grammar.h`, `gguf.h`, `value.cpp`\n",
                          [])
        self.assert_found("src/http/listener.cc", "// As in ggml-common.h and common/common.h.\n", [])

    def test_what_tools_make_does_not_count(self):
        self.write("build/gone.h", "")
        self.assert_found("docs/a.md", "`gone.h`\n", [(1, "gone.h")])

    def git(self, *arguments):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments],
                              cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("commit", "-q", "--allow-empty", "-m", "a")
        # One that is a number alone would not be seen as a commit.
        while not check_names.COMMIT.fullmatch(self.git("rev-parse", "--short=10", "HEAD")):
            self.git("commit", "-q", "--allow-empty", "-m", "again")
        return self.git("rev-parse", "--short=10", "HEAD")

    def test_commits_that_benchmarks_name_are_in_the_history(self):
        self.git("init", "-q")
        first = self.commit()
        last = self.commit()
        gone = "0123abc"
        text = f"On {first} and ({last}), 1234567 tokens, deadbeef, ik_llama.cpp 8337e4cd\n"
        self.assert_found("docs/benchmarks.md", text, [])
        self.assert_found("docs/benchmarks.md", text + f"as of {gone}:\n", [(2, gone)])
        self.write("docs/benchmarks.md", "")
        self.assert_found("docs/benchmarks-history.md", text + f"as of {gone}:\n", [(2, gone)])
        self.write("docs/benchmarks-history.md", "")
        self.assert_found("docs/a.md", f"as of {gone}\n", [])

    def test_commits_are_passed_over_without_their_history(self):
        text = "On 0123abc and fedc987.\n"
        self.assert_found("docs/benchmarks.md", text, [])
        self.git("init", "-q")
        self.commit()
        self.assert_found("docs/benchmarks.md", text, [])
        whole = self.commit()
        text = f"On {whole} and fedc987.\n"
        self.assert_found("docs/benchmarks.md", text, [(1, "fedc987")])
        shallow = self.root / "build/shallow"  # the checker passes over build/
        self.git("clone", "-q", "--depth=1", f"file://{self.root}", str(shallow))
        self.root = shallow
        self.assert_found("docs/benchmarks.md", text, [])

    def test_the_command_fails_on_such_a_name_and_on_wrong_usage(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            self.assertEqual(check_names.main([str(self.root)]), 0)
            self.assertEqual(check_names.main(["--what"]), 2)
            self.write("README.md", "`gone.h`\n")
            self.assertEqual(check_names.main([str(self.root)]), 1)
        self.assertIn("README.md:1: ", out.getvalue())


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Tests of cmake/unity_groups.py: which files are compiled together."""

import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cmake"))
import unity_groups  # noqa: E402

OPEN, CLOSE = "namespace outrider {\nnamespace {\n", "}  // namespace\n}  // namespace outrider\n"


def body(text):
    return OPEN + text + CLOSE


class Groups(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "x").mkdir()

    def groups(self, files, lines=2500):
        """The names in each unit, for files given as name=text."""
        for name, text in files.items():
            (self.root / "x" / name).write_text(text)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            unity_groups.main([str(self.root), str(lines), "x"])
        return [re.findall(r'/x/([\w.]+)"', line) for line in out.getvalue().splitlines()]

    def test_files_that_share_no_name_are_one_unit(self):
        self.assertEqual(self.groups({"a.cc": body("int f() { return 1; }\n"),
                                      "b.cc": body("int g() { return 1; }\n")}), [["a.cc", "b.cc"]])

    def test_the_same_name_in_two_files_keeps_them_apart(self):
        for text in ("int f() { return 1; }\n", "constexpr int kX = 1;\n", "struct X {\n};\n",
                     "using X = int;\n", "std::vector<int> f(\n    int a);\n", "#define X 1\n",
                     "template <class T>\nT f(T t) { return t; }\n"):
            self.assertEqual(self.groups({"a.cc": body(text), "b.cc": body(text)}), [], text)

    def test_the_same_using_declaration_does_no_harm(self):
        text = body("using json::Json;\n")
        self.assertEqual(len(self.groups({"a.cc": text, "b.cc": text})), 1)
        self.assertEqual(self.groups({"a.cc": text, "b.cc": body("using Json = int;\n")}), [])

    def test_a_constant_that_another_file_mentions_keeps_them_apart(self):
        self.assertEqual(self.groups({"a.cc": body("constexpr int kSmall = 1;\n"),
                                      "b.cc": body("int g() { int kSmall = 2; return kSmall; }\n")}),
                         [])

    def test_a_constant_that_a_header_has_too_is_alone(self):
        files = {"a.cc": body("constexpr int kRoot = 1;\n"), "b.cc": body("int g();\n"),
                 "c.cc": body("int h();\n"), "k.h": "namespace outrider {\nconstexpr int kRoot = 0;\n}\n"}
        self.assertEqual(self.groups(files), [["b.cc", "c.cc"]])

    def test_files_of_other_namespaces_and_tests_are_not_put_together(self):
        self.assertEqual(self.groups({"a.cc": body("int f();\n"), "b.cc": "namespace c {\n}\n",
                                      "c_test.cc": body("int g();\n")}), [])

    def test_a_unit_stays_under_its_lines(self):
        files = {f"{name}.cc": body(f"int {name}();\n" * 10) for name in "abcd"}
        self.assertEqual(self.groups(files, lines=30), [["a.cc", "b.cc"], ["c.cc", "d.cc"]])

    def test_members_are_not_names_of_the_file(self):
        self.assertEqual(len(self.groups({"a.cc": body("int A::run() { return 1; }\n"),
                                          "b.cc": body("int B::run() { return 1; }\n")})), 1)

    def test_what_is_edited_is_compiled_alone_and_the_others_stay_together(self):
        files = {f"{name}.cc": body(f"int {name}();\n") for name in "abc"}
        self.groups(files)
        git = ["git", "-C", str(self.root), "-c", "user.name=t", "-c", "user.email=t@t"]
        for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "t"]):
            subprocess.run([*git, *command], check=True)
        self.assertEqual(self.groups({}), [["a.cc", "b.cc", "c.cc"]])
        self.assertEqual(self.groups({"b.cc": body("int b2();\n")}), [["a.cc", "c.cc"]])


if __name__ == "__main__":
    unittest.main()

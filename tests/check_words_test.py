#!/usr/bin/env python3
"""Tests of check_words.py: each makes a small tree, with or without a word that is not used."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import check_words  # noqa: E402

GLOSSARY = """# Glossary
| word | stands for | otherwise say |
| --- | --- | --- |
| probe | the check of exactness | check |

## Words that are not used
| word | say instead | but for |
| --- | --- | --- |
| oath, oaths | guarantee | `*.js`, `tools/old.cc`: a language's |
| by the book | plainly | |

## More
| word | say instead | but for |
| --- | --- | --- |
| apple | pear | |
"""


class CheckWords(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("docs/glossary.md", GLOSSARY)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def assert_lines(self, name, text, lines):
        self.write(name, text)
        checker = check_words.Checker(self.root)
        checker.run()
        self.assertEqual([error.rpartition(": \"")[0] for error in checker.errors],
                         [f"{name}:{line}" for line in lines], checker.errors)

    def test_a_clean_tree_passes(self):
        self.assert_lines("src/a.cc", "// A guarantee, a probe, an apple.\n", [])

    def test_comments_and_strings_of_cpp(self):
        for name in ("src/a.h", "src/a.cc", "tools/a.cc", "include/a.h", "tests/a_test.cc"):
            with self.subTest(name):
                self.assert_lines(name, '// An oath.\nint a;\n/* Two\n * Oaths. */ const char* b = "oath";\n'
                                        'const char* c = R"(\noath)";\n', [1, 4, 4, 6])
                self.write(name, "")

    def test_identifiers_are_free(self):
        self.assert_lines("src/a.cc", "bool oath = oaths(kOath);  // my_oath\n", [])
        self.write("src/a.cc", "")
        self.assert_lines("tools/a.py", "oath = oaths(1)\n", [])

    def test_comments_and_strings_of_python(self):
        self.assert_lines("scripts/a.py", '"""An\noath."""\na = 1  # oath\nb = "oath"\nc = f("""\n\noath""")\n',
                          [2, 3, 4, 7])

    def test_comments_and_strings_of_javascript(self):
        self.write("docs/glossary.md", GLOSSARY.replace("`*.js`, ", ""))
        self.assert_lines("src/http/page/a.js", "// oath\noath('oath', \"oath\", `\noath`);\n", [1, 2, 2, 3])

    def test_documents_and_scripts_as_a_whole(self):
        for name in ("README.md", "docs/a.md", "cmake/a.cmake", "scripts/dev/a.sh", "dev",
                     "CMakeLists.txt", "src/http/page/index.html", "packaging/outrider.toml"):
            with self.subTest(name):
                self.assert_lines(name, "\nAn Oath, and `oath`.\n", [2, 2])
                self.write(name, "")

    def test_several_words_and_words_within_words(self):
        self.assert_lines("README.md", "By the book. Loath, oathless. By the\nbook.\n", [1])

    def test_what_the_last_column_names_is_free(self):
        self.assert_lines("node/a.js", "// oath\n", [])
        self.assert_lines("tools/old.cc", "// oath\n", [])
        self.assert_lines("tools/new.cc", "// oath\n", [1])

    def test_it_says_what_to_say_instead(self):
        self.write("README.md", "oath\n")
        checker = check_words.Checker(self.root)
        checker.run()
        self.assertEqual(checker.errors, ['README.md:1: "oath": say guarantee'])

    def test_the_command_fails_on_such_a_word_on_wrong_usage_and_without_a_table(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            self.assertEqual(check_words.main([str(self.root)]), 0)
            self.assertEqual(check_words.main(["--what"]), 2)
            self.write("README.md", "oath\n")
            self.assertEqual(check_words.main([str(self.root)]), 1)
            self.write("docs/glossary.md", "# Glossary\n")
            self.assertEqual(check_words.main([str(self.root)]), 2)
        self.assertIn("README.md:1: ", out.getvalue())


class TheRealGlossary(unittest.TestCase):
    def test_its_table_is_read(self):
        words = check_words.read_table((HERE.parent / check_words.GLOSSARY).read_text())
        self.assertGreaterEqual(len(words), 7)
        self.assertTrue(any(word.pattern.search("a trial") for word in words))


if __name__ == "__main__":
    unittest.main()

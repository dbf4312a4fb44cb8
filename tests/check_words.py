#!/usr/bin/env python3
"""Checks that no word stands in comments, documents or messages that docs/glossary.md rules out.

The words are the first column of its table "Words that are not used", several forms with commas
between them; the second says what to say instead, the third in which files the word may stand
(names in backticks, * for anything). They are looked for as whole words, in upper and lower case:

  C, C++          comments and strings           JavaScript, TypeScript   the same
  Python          comments and strings           all other files of text  the whole

Identifiers are not looked at, nor is the glossary itself.

Usage: check_words.py [ROOT]. Exit 0: clean, 1: such words, as file:line: text, 2: wrong usage or no
table. Tested by check_words_test.py.
"""

import fnmatch
import io
import pathlib
import re
import sys
import tokenize

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers  # noqa: E402

GLOSSARY = "docs/glossary.md"
HEADING = "## Words that are not used"
FOLDERS = (*check_layers.SCRIPT_FOLDERS, "include", "docs")
PAGES = ("*.md", "dev", "CMakeLists.txt", "pyproject.toml")  # in the root
WHOLE = (".md", ".html", ".css", ".cmake", ".sh", ".toml", ".in", ".service", ".txt")
SCRIPTS = (".js", ".mjs", ".ts")
# What a script's text consists of, as far as this check goes.
SCRIPT_LITERAL = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|"""
                            r"""`(?:\\.|[^`\\])*`""", re.DOTALL)


class Word:
    """A row of the table."""

    def __init__(self, forms, instead, free):
        self.pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, forms)) + r")\b", re.IGNORECASE)
        self.instead = instead
        self.free = free  # patterns of files' names


def read_table(text):
    """The rows of the table in the glossary's TEXT."""
    rows = text.partition(HEADING + "\n")[2].partition("\n## ")[0]
    words = []
    for row in re.findall(r"^\| (.*) \|$", rows, re.MULTILINE):
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) == 3 and cells[0] != "word" and not cells[0].startswith("-"):
            forms = [form.strip() for form in cells[0].split(",")]
            words.append(Word(forms, cells[1], re.findall(r"`([^`]+)`", cells[2])))
    return words


def python_literals(text):
    lines = [" " * len(line) for line in text.splitlines()]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for offset, line in enumerate(token.string.splitlines()):
                lines[token.start[0] - 1 + offset] += " " + line
    return "\n".join(lines)


def read_words(path):
    """What a person reads of the file."""
    text = path.read_text(errors="replace")
    if path.suffix in check_layers.SUFFIXES:
        return check_layers.literals(text, check_layers.LITERAL)
    if path.suffix in SCRIPTS:
        return check_layers.literals(text, SCRIPT_LITERAL)
    return python_literals(text) if path.suffix == ".py" else text


class Checker:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.words = read_table((self.root / GLOSSARY).read_text())
        self.errors = []
        self.n_files = 0

    def files(self):
        suffixes = (*check_layers.SUFFIXES, *SCRIPTS, *WHOLE, ".py")
        yield from check_layers.source_files(self.root, FOLDERS, suffixes)
        for pattern in PAGES:
            yield from sorted(self.root.glob(pattern))

    def check_file(self, path):
        self.n_files += 1
        name = path.relative_to(self.root).as_posix()
        words = [word for word in self.words
                 if not any(fnmatch.fnmatch(name, "*" + free) for free in word.free)]
        text = read_words(path)
        for word in words:
            for match in word.pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                self.errors.append(f"{name}:{line}: \"{match.group()}\": say {word.instead}")

    def run(self):
        for path in self.files():
            if path != self.root / GLOSSARY and "check_words" not in path.name:
                self.check_file(path)
        return not self.errors


def main(arguments):
    root = check_layers.root_of(arguments, __doc__)
    if root is None:
        return 2
    if not (root / GLOSSARY).is_file() or not read_table((root / GLOSSARY).read_text()):
        print(f"check_words: '{root / GLOSSARY}' has no table of words", file=sys.stderr)
        return 2
    checker = Checker(root)
    return check_layers.run_check("check_words", checker, f"{len(checker.words)} rows of words, ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

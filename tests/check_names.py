#!/usr/bin/env python3
"""Checks that the files and commits exist which documents and comments name.

Read are Markdown files (the root's, docs/ and node/) and the comments of C and C++. What counts as
a name:

  - a path that begins with a folder of this repository, of src/ or of include/: it exists from there,
    as a file or, in Markdown, as a folder: tests/golden, src/http/listener.cc, http/listener.h;
  - a word that ends like a file of ours, in Markdown in backticks only: `listener.h`, `x_test.py`.
    Some file of the tree has that name, in whatever folder;
  - a link of Markdown to a file, and to a heading of a page: it exists, from the folder of the page.

The commits that COMMITTED names are of this repository's history. That is passed over where the
checkout has not all of it, and where it has none of them: a copy that begins anew.

A * stands for anything: `simd_*.h`. Not ours, and therefore free: what has a hyphen (no file of ours
in C or C++ does), headers of third parties, and the few names of ELSEWHERE.

Usage: check_names.py [ROOT]. Exit 0: clean, 1: names of what does not exist, as file:line: text,
2: wrong usage. Tested by check_names_test.py.
"""

import bisect
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers  # noqa: E402

DOCUMENTS = ("*.md", "docs/*.md", "node/*.md")
SOURCE_FOLDERS = (*check_layers.FOLDERS, "include")
NOT_OURS = {".git", "build", *check_layers.NOT_OURS}
# Of llama.cpp, and one of GCC.
ELSEWHERE = {"common.h", "speculative.h", "convert_lora_to_gguf.py", "libgomp_g.h"}

COMMITTED = ("docs/benchmarks.md", "docs/benchmarks-counts.md", "docs/benchmarks-history.md",
             "docs/benchmarks-steps.md", "docs/reliability.md")
COMMITS_ELSEWHERE = {"8337e4cd"}  # of ik_llama.cpp, which the kernels are measured beside

PATH = re.compile(r"(?<![\w./:*~<-])[\w.-]+(?:/[\w.*-]+)+")
FILE = re.compile(r"(?<![\w./:*<-])[\w.*/-]*"
                  r"(?:[\w*]\.(?:h|cc|c|py|js|mjs|cmake|sh)|\bCMakeLists\.txt)(?![\w/-]|\.\w)")
QUOTED = re.compile(r"`([^`]+)`")
# A number alone, or letters alone, may be something else.
COMMIT = re.compile(r"(?<![\w./-])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}(?![\w-])")
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"#{1,6} +(.*?)\s*$")


def is_third_party(name):
    return any(pattern.search(name) for pattern in check_layers.THIRD_PARTY.values())


def commits_of(root):
    """The names of all commits up to the checkout's, sorted; none where it is no full clone."""
    def git(*arguments):
        try:
            done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    top = git("rev-parse", "--show-toplevel")
    if not top or not os.path.samefile(top, root):
        return []
    if git("rev-parse", "--is-shallow-repository") != "false":
        return []
    return sorted(git("rev-list", "HEAD").split())


def headings_of(text):
    """The headings of a page: the number of each one's line, and its anchor as GitHub makes it."""
    found, seen, inside = {}, {}, False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            inside = not inside
        heading = HEADING.match(line)
        if heading and not inside:
            shown = re.sub(r"\]\([^)]*\)", "]", heading[1]).lower()
            anchor = re.sub(r"[^\w -]", "", shown).replace(" ", "-")
            again = seen.get(anchor, 0)
            seen[anchor] = again + 1
            found[number] = f"{anchor}-{again}" if again else anchor
    return found


def comments(text):
    """TEXT of C or C++ with all but its comments taken out; lines stay where they are."""
    return check_layers.literals(text, check_layers.LITERAL,
                                 lambda literal: literal.startswith(("//", "/*")))


class Checker:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.errors = []
        self.n_files = 0
        self.names = set()    # of files
        self.paths = set()    # of files and folders, from the root
        self.folders = set()  # what a path of ours begins with
        self.anchors = {}     # of pages that links lead to
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(set(folders) - NOT_OURS)
            here = pathlib.Path(folder).relative_to(self.root)
            if here in (pathlib.Path(), pathlib.Path("src"), pathlib.Path("include")):
                self.folders |= set(folders)
            self.names |= set(files)
            self.paths |= {(here / name).as_posix() for name in (*folders, *files)}

    def exists(self, path):
        """Whether there is such a file or folder, from the root, from src/ or from include/."""
        whole = [prefix + path.rstrip("/") for prefix in ("", "src/", "include/")]
        if "*" in path:
            return any(fnmatch.filter(self.paths, one) for one in whole)
        return any(one in self.paths for one in whole)

    def missing(self, name):
        """Whether NAME, a word that ends like a file, or a path, names what is not there."""
        if name.split("/")[0] in self.folders and "/" in name:
            return not self.exists(name)
        base = name.rpartition("/")[2]
        if "-" in base or base in ELSEWHERE or is_third_party(name):
            return False
        return not fnmatch.filter(self.names, base)

    def anchors_of(self, page):
        page = page.resolve()
        if page not in self.anchors:
            self.anchors[page] = set(headings_of(page.read_text()).values())
        return self.anchors[page]

    def check_commits(self):
        commits = commits_of(self.root)
        named = []
        for name in COMMITTED if commits else ():
            path = self.root / name
            lines = path.read_text().splitlines() if path.exists() else []
            named += [(path, number, word) for number, line in enumerate(lines, start=1)
                      for word in COMMIT.findall(line) if word not in COMMITS_ELSEWHERE]
        gone = []
        for one in named:
            at = bisect.bisect_left(commits, one[2])
            if at == len(commits) or not commits[at].startswith(one[2]):
                gone.append(one)
        if len(gone) < len(named):
            for one in gone:
                self.complain(*one)

    def complain(self, path, number, name):
        error = (f"{path.relative_to(self.root).as_posix()}:{number}: names {name}, which does not "
                 "exist")
        if error not in self.errors:
            self.errors.append(error)

    def check_document(self, path):
        self.n_files += 1
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            for quoted in QUOTED.findall(line):
                if FILE.fullmatch(quoted) and self.missing(quoted):
                    self.complain(path, number, quoted)
            for word in PATH.findall(line):
                word = word.rstrip(".,")
                if word.split("/")[0] in self.folders and not self.exists(word):
                    self.complain(path, number, word)
            for target, anchor in LINK.findall(line):
                page = path.parent / target if target else path
                if not page.exists():
                    self.complain(path, number, target)
                elif anchor and page.suffix == ".md" and anchor not in self.anchors_of(page):
                    self.complain(path, number, f"{target}#{anchor}")

    def check_comments(self, path):
        self.n_files += 1
        text = comments(path.read_text(errors="replace"))
        for number, line in enumerate(text.splitlines(), start=1):
            for word in FILE.findall(line):
                if self.missing(word):
                    self.complain(path, number, word)

    def run(self):
        for pattern in DOCUMENTS:
            for path in sorted(self.root.glob(pattern)):
                self.check_document(path)
        for path in check_layers.source_files(self.root, SOURCE_FOLDERS, check_layers.SUFFIXES):
            self.check_comments(path)
        self.check_commits()
        return not self.errors


def main(arguments):
    root = check_layers.root_of(arguments, __doc__)
    return 2 if root is None else check_layers.run_check("check_names", Checker(root))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

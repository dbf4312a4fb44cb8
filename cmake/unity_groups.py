#!/usr/bin/env python3
"""Which files of a folder are compiled together (cmake/unity.cmake). Prints CMake lines.

Usage: unity_groups.py ROOT LINES FOLDER...

Files of one folder come into one unit as long as it stays under LINES lines and they do not get in
each other's way: in a unit, what a file keeps to itself (an unnamed namespace, `static`, #define) is
seen by the files behind it. So no two files of a unit
  - declare the same name differently;
  - use a constant's, type's or macro's name that the other keeps to itself;
  - open different outermost namespaces (a C header may have a type of the other's name);
and a file that keeps such a name to itself which some header declares is compiled alone. Tests are
grouped apart from the rest, because they are another target. A file that git shows as edited is
compiled by itself: it keeps its place in the plan, so that its first edit compiles its old unit
once more, and later edits the file alone.

Names are read by their place in the line, without a parser: declarations start in the first column
here and in llama.cpp. A name that is overlooked is an error of the compiler, and goes away with
SKIP_UNITY_BUILD_INCLUSION on one of the two files."""

import pathlib
import re
import subprocess
import sys

TYPE = re.compile(r"(?:typedef\s+)?(?:class|struct|union|enum(?:\s+class|\s+struct)?|concept)\s+(\w+)")
ALIAS = re.compile(r"(?:using|namespace)\s+(\w+)\s*=")
USING = re.compile(r"using\s+(?:\w+::)*(\w+);")
MACRO = re.compile(r"#\s*define\s+(\w+)")
FUNCTION = re.compile(r"[^(={]*?(\w+)\s*\(")
VARIABLE = re.compile(r"[^(={;\[]*?(\w+)\s*(?:\[\w*\]\s*)*[={;]")
TEMPLATE = re.compile(r"template\s*<[^{;]*>\s*")
OUTERMOST = re.compile(r"^(?:inline )?namespace (\w+)", re.MULTILINE)
SHARED = ("using ", "namespace ", "return ", "extern ", "static_assert", "friend ")


def declared_name(line):
    """The name that a line in the first column declares, or None: no members of classes."""
    line = TEMPLATE.sub("", line)
    for pattern in (MACRO, ALIAS, USING):
        found = pattern.match(line)
        if found:
            return found.group(1)
    if line.startswith(SHARED) or not (line[:1].isalpha() or line[:1] == "_"):
        return None
    found = TYPE.match(line)
    if found and not line.rstrip().endswith(";") and "(" not in line:
        return found.group(1)
    found = FUNCTION.match(line) or VARIABLE.match(line)
    if not found or line[:found.start(1)].endswith(("::", "~")):
        return None
    name = found.group(1)
    return None if name == "operator" or name.isupper() else name  # TEST_F(...) and the like


class Source:
    """What a file declares, and what it keeps to itself."""

    def __init__(self, path):
        text = path.read_text(encoding="utf-8", errors="replace")
        self.path = path
        self.lines = text.count("\n")
        self.words = set(re.findall(r"\w+", text))
        outermost = OUTERMOST.search(text)
        self.outermost = outermost.group(1) if outermost else ""
        self.names = {}  # to the line where one `using` is as good as another, else to the file
        self.own = set()  # constants, types, macros; functions may be overloaded
        unnamed = False
        for line in text.splitlines():
            if line.startswith("namespace {"):
                unnamed = True
            elif line.startswith("}  // namespace") and len(line.split()) == 3:
                unnamed = False
            name = declared_name(line)
            if name is None:
                continue
            used = USING.match(line)
            self.names[name] = line if used else str(path)
            if not used and not name.islower() and (unnamed or line.startswith(("static ", "#"))):
                self.own.add(name)

    def bears(self, other):
        return (self.outermost == other.outermost
                and all(other.names.get(name, line) == line for name, line in self.names.items())
                and not self.own & other.words and not other.own & self.words)


def grouped(sources, limit, in_headers):
    """The groups: each file goes to the first one that has room and that it gets on with."""
    groups = []
    for source in sources:
        group = None
        if not source.own & in_headers:
            group = next((g for g in groups if sum(s.lines for s in g) + source.lines <= limit
                          and all(source.bears(s) for s in g)), None)
        if group is None:
            group = []
            if not source.own & in_headers:
                groups.append(group)
        group.append(source)
    return groups


def edited(root):
    """What git shows as changed or new; nothing where there is no git."""
    try:
        shown = subprocess.run(["git", "-C", str(root), "status", "--porcelain", "-z",
                                "--untracked-files=all", "--no-renames"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                               text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return set()
    return {root / entry[3:] for entry in shown.split("\0") if entry}


def main(arguments):
    root, limit, folders = pathlib.Path(arguments[0]), int(arguments[1]), arguments[2:]
    apart = edited(root)
    number = 0
    headers = [p for folder in folders for p in (root / folder).glob("*.h")]
    in_headers = {name for path in headers for name, line in Source(path).names.items()
                  if not USING.match(line)}
    for folder in folders:
        paths = sorted(p for p in (root / folder).glob("*") if p.suffix in (".cc", ".cpp"))
        for tests in (False, True):
            sources = [Source(p) for p in paths if p.stem.endswith("_test") == tests]
            for group in grouped(sources, limit, in_headers):
                number += 1  # of all folders, because a target may hold several
                together = [f'"{s.path}"' for s in group if s.path not in apart]
                if len(together) > 1:
                    print(f"set_source_files_properties({' '.join(together)} "
                          f"${{OUTRIDER_UNITY_WHERE}} PROPERTIES UNITY_GROUP {number} "
                          "SKIP_UNITY_BUILD_INCLUSION OFF)")


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/env python3
"""Which files of a folder are compiled together (cmake/unity.cmake). Prints CMake lines.

Usage: unity_groups.py ROOT LINES FOLDER...

Files of one folder come into one unit as long as it stays under LINES lines and no two of them
declare the same name: in a unit, what two files keep to themselves (an unnamed namespace, `static`)
would be one. Tests are grouped apart from the rest, because they are another target. A file that
git shows as edited is compiled by itself: it keeps its place in the plan, so that a first edit
compiles its old unit once more, and later edits the file alone.

Names are read by their place in the line, without a parser: declarations start in the first column
here and in llama.cpp. A name that is overlooked is an error of the compiler, and goes away with
SKIP_UNITY_BUILD_INCLUSION on one of the two files."""

import pathlib
import re
import subprocess
import sys

TYPE = re.compile(r"(?:typedef\s+)?(?:class|struct|union|enum(?:\s+class|\s+struct)?|concept)\s+(\w+)")
ALIAS = re.compile(r"(?:using|namespace)\s+(\w+)\s*=")
MACRO = re.compile(r"#\s*define\s+(\w+)")
FUNCTION = re.compile(r"[^(={]*?(\w+)\s*\(")
VARIABLE = re.compile(r"[^(={;\[]*?(\w+)\s*(?:\[\w*\]\s*)*[={;]")
TEMPLATE = re.compile(r"template\s*<[^{;]*>\s*")


def declared(text):
    """The names that a file declares in the first column, but for members of classes."""
    names = set()
    for line in text.splitlines():
        macro = MACRO.match(line)
        if macro:
            names.add(macro.group(1))
            continue
        line = TEMPLATE.sub("", line)
        if not line[:1].isalpha() and line[:1] != "_":
            continue
        alias = ALIAS.match(line)
        if alias:
            names.add(alias.group(1))
            continue
        if line.startswith(("using ", "namespace ", "return ", "extern ")):
            continue
        found = TYPE.match(line)
        if found and not line.rstrip().endswith(";") and "(" not in line:
            names.add(found.group(1))
            continue
        found = FUNCTION.match(line) or VARIABLE.match(line)
        if not found or line[:found.start(1)].endswith(("::", "~")):
            continue
        if found.group(1) not in ("operator", "static_assert") and not found.group(1).isupper():
            names.add(found.group(1))
    return names


def grouped(files, limit):
    """The files' groups: each goes to the first one that has room and none of its names."""
    groups = []  # [lines, names, files]
    for path, text in files:
        lines, names = text.count("\n"), declared(text)
        for group in groups:
            if group[0] + lines <= limit and not group[1] & names:
                break
        else:
            group = [0, set(), []]
            groups.append(group)
        group[0] += lines
        group[1] |= names
        group[2].append(path)
    return [group[2] for group in groups]


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
    for folder in folders:
        paths = sorted(p for p in (root / folder).glob("*") if p.suffix in (".cc", ".cpp"))
        for tests in (False, True):
            files = [(p, p.read_text(encoding="utf-8", errors="replace")) for p in paths
                     if p.stem.endswith("_test") == tests]
            for group in grouped(files, limit):
                number += 1  # of all folders, because a target may hold several
                together = [f'"{p}"' for p in group if p not in apart]
                if len(together) > 1:
                    print(f"set_source_files_properties({' '.join(together)} "
                          f"${{OUTRIDER_UNITY_WHERE}} PROPERTIES UNITY_GROUP {number} "
                          "SKIP_UNITY_BUILD_INCLUSION OFF)")


if __name__ == "__main__":
    main(sys.argv[1:])

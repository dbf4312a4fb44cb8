#!/usr/bin/env python3
"""Checks every #include of Outrider's sources against the arrows in CMakeLists.txt.

The table is the outrider_layer(...), outrider_tool(...) and outrider_testing(...) lines of the root
CMakeLists.txt, the same lines that make the targets. What is checked:

  - a layer includes itself and the layers that its LINKS reach, nothing else; a room ("a/b", the
    folder src/a/b) is a layer of its own, to those inside a as to those outside;
  - a layer's tests also include what the layers named by its TESTED_WITH reach;
  - headers of a THIRD_PARTY only where the table gives it; llama.cpp's own (llama, ggml, gguf,
    common) therefore only in src/llama and testing/, and in bench/, which compares with it;
  - in a tool's folder, a room of ROOMS_ABOVE only from itself, and a room of ROOMS_BELOW includes
    nothing of the folder but itself (its tests may);
  - the lab only from those files of the command that LAB_FILES names: what serves does without it;
  - testing/ only from tests and from testing/ itself, and its GGUF_FILES only by tests that are
    TESTED_WITH testing_gguf;
  - each arrow is one that some file of the row, or a test of it, needs: a layer that LINKS leads to
    by no other way, or a THIRD_PARTY whose headers nobody includes, lets through what nobody allowed;
  - quoted includes are paths from src/ (or from the root, for testing/, tools/ and tests/);
  - files have at most 400 lines, those in Python and JavaScript too; functions of C++ at most 70.

Two checks beside this one read the sources as well: check_names.py, whether the files that documents
and comments name exist, and check_words.py, whether a word is used that docs/glossary.md rules out.

Usage: check_layers.py [ROOT]. Exit 0: clean, 1: violations, as file:line: text, 2: wrong usage.
"""

import fnmatch
import pathlib
import re
import sys

FOLDERS = ("src", "tools", "testing", "tests", "bench", "examples", "fuzz")
MAX_LINES = 400
MAX_FUNCTION_LINES = 70
SUFFIXES = (".h", ".cc", ".c", ".cpp", ".cu")
# What includes nothing, and has the same limit of lines.
SCRIPT_FOLDERS = (*FOLDERS, "scripts", "python", "node", "cmake", "packaging")
SCRIPT_SUFFIXES = (".py", ".js", ".mjs", ".ts", ".sh")
NOT_OURS = {"node_modules", "__pycache__"}  # folders that tools make

# THIRD_PARTY name -> the headers that are its own. "llama" also owns every quoted include without a
# known folder: llama-common's headers are called "common.h", "log.h", "sampling.h", ...
THIRD_PARTY = {
    "llama": re.compile(r"^(llama(-cpp)?|gguf|ggml[-\w]*)\.h$|^(jinja|sheredom)/"),
    "nlohmann": re.compile(r"^nlohmann/"),
    "httplib": re.compile(r"^(cpp-httplib/)?httplib\.h$"),
    "cli11": re.compile(r"^CLI/"),
    "toml": re.compile(r"^toml\+\+/"),
    "gtest": re.compile(r"^g(test|mock)/"),
    "benchmark": re.compile(r"^benchmark/"),
}
# llama-common's headers bring their types.
COMES_INDIRECTLY = ("llama", "httplib")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CALL = re.compile(r"^outrider_(layer|tool|testing)\(([^)]*)\)", re.MULTILINE)
# What a brace may stand in without opening anything: comments, strings, characters, directives.
LITERAL = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|"""
                     r"""(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""",
                     re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"\s*(?:template\s*<.*>\s*)?(?:inline\s+)?"
                   r"(?:namespace|class|struct|union|enum|extern)\b[^(]*$", re.DOTALL)
TEST_SUPPORT = ("testing", "testing_gguf")
KEYWORDS = ("LINKS", "THIRD_PARTY", "TESTED_WITH", "GGUF_FILES", "LAB_FILES",
            "ROOMS_ABOVE", "ROOMS_BELOW")


class Row:
    """One line of the table: a folder and what it may use."""

    def __init__(self, kind, name):
        self.kind = kind
        self.name = name
        self.lists = {keyword: [] for keyword in KEYWORDS}

    @property
    def folder(self):
        return "src/" + self.name if self.kind == "layer" else self.name


def read_table(text):
    """Returns {name: Row} in the order of the table, and a list of what is wrong with it."""
    rows, problems = {}, []
    for call in CALL.finditer(text):
        line = text.count("\n", 0, call.start()) + 1
        words = re.sub(r"#.*", "", call.group(2)).split()
        row = Row(call.group(1), words[0])
        into = None
        for word in words[1:]:
            if word in KEYWORDS:
                into = row.lists[word]
            elif into is None:
                problems.append(f"CMakeLists.txt:{line}: '{word}' follows no keyword")
            else:
                into.append(word)
        for link in row.lists["LINKS"]:
            if link not in rows:
                problems.append(f"CMakeLists.txt:{line}: {row.name} links {link}, which is not "
                                "a layer above it in the table (lowest first, no cycles)")
        for name in row.lists["THIRD_PARTY"]:
            if name not in THIRD_PARTY:
                problems.append(f"CMakeLists.txt:{line}: no third party '{name}'; give one of "
                                + ", ".join(THIRD_PARTY))
        rows[row.name] = row
    for row in rows.values():  # a layer further up may help to test
        for name in row.lists["TESTED_WITH"]:
            if name not in rows and name not in TEST_SUPPORT:
                problems.append(f"CMakeLists.txt:1: {row.name} is tested with {name}, which is "
                                "neither a layer of the table nor " + " or ".join(TEST_SUPPORT))
    if not rows:
        problems.append("CMakeLists.txt:1: no outrider_layer(...) lines found")
    return rows, problems


def reach(rows, name):
    """The layers that NAME may include: itself and all that its LINKS lead to."""
    found, todo = set(), [name]
    while todo:
        current = todo.pop()
        if current not in found and current in rows:
            found.add(current)
            todo += rows[current].lists["LINKS"]
    return found


def blank(text):
    """Spaces in place of TEXT; lines stay where they are."""
    return re.sub(r"[^\n]", " ", text)


def literals(text, pattern, wanted=lambda literal: True):
    """TEXT with all but what PATTERN matches and is WANTED taken out; lines stay where they are."""
    kept, end = [], 0
    for match in pattern.finditer(text):
        literal = match.group()
        kept += [blank(text[end:match.start()]), literal if wanted(literal) else blank(literal)]
        end = match.end()
    return "".join(kept)


def functions(text):
    """(first line, lines) of each function that TEXT defines; a lambda is part of its function."""
    text = LITERAL.sub(lambda match: blank(match.group()), text)
    found, open_braces, statement, line, first = [], [], "", 1, 1
    for character in text:
        line += character == "\n"
        in_function = "function" in open_braces
        if character == "{":
            if in_function or re.search(r"[\w>]$", statement):
                open_braces.append("value")  # a block, or a member's initialiser: a_{1}
            elif SCOPE.match(statement):
                open_braces.append("scope")
                statement = ""
            elif ")" in statement and not statement.rstrip().endswith("="):
                open_braces.append("function")
            else:
                open_braces.append("value")
        elif character == "}" and open_braces:
            kind = open_braces.pop()
            if kind == "function":
                found.append((first, line - first + 1))
            if kind != "value":
                statement = ""
        elif not in_function and character == ";" and open_braces[-1:] in ([], ["scope"]):
            statement = ""
        elif not in_function:
            if not statement and character.isspace():
                continue
            first = first if statement else line
            statement += character
    return found


def source_files(root, folders, suffixes):
    """Our files of these suffixes in these folders of ROOT, sorted."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and not NOT_OURS & set(path.parts):
                yield path


class Permission:
    """What one file may include."""

    def __init__(self, layers, third_party, testing):
        self.layers = set(layers)
        self.third_party = set(third_party)
        self.testing = testing  # "", "testing" or "testing_gguf"

    def __str__(self):
        parts = [", ".join(sorted(self.layers)) or "no layer"]
        if self.testing:
            parts.append("testing/" + ("" if self.testing == "testing_gguf" else " without GGUF"))
        if self.third_party:
            parts.append("third party: " + ", ".join(sorted(self.third_party)))
        return "; ".join(parts)


class Checker:
    def __init__(self, root, whole=False):
        self.root = pathlib.Path(root)
        self.whole = whole  # else a part of a tree, which need not use all of its table
        self.rows, self.errors = read_table((self.root / "CMakeLists.txt").read_text())
        self.testing_row = next((r for r in self.rows.values() if r.kind == "testing"), None)
        self.layers = [r.name for r in self.rows.values() if r.kind == "layer"]
        self.n_files = 0
        self.used = {}  # of each row with files: the layers and third parties that they include

    def is_gguf(self, stem):
        patterns = self.testing_row.lists["GGUF_FILES"] if self.testing_row else []
        stem = stem.removesuffix("_test")
        return any(fnmatch.fnmatch(stem, pattern) for pattern in patterns)

    def owner(self, path):
        """The row of the table that PATH (relative) belongs to, or None."""
        parts = path.parts
        if parts[0] == "src":  # the folder itself: one in it without a row is in no layer
            return self.rows.get("/".join(parts[1:-1]))
        row = self.rows.get(parts[0])
        return row if row and path.as_posix().startswith(row.folder + "/") else None

    def permission(self, path):
        if path.parts[0] in ("tests", "bench", "fuzz"):
            extra = {"tests": {"gtest", "nlohmann"}, "bench": {"benchmark", "llama"},
                     "fuzz": {"cli11"}}
            return Permission([*self.layers, "tools", path.parts[0]], extra[path.parts[0]],
                              "testing_gguf")
        if path.parts[0] == "examples":  # what users see: no third party, no test support
            own_loop = path.name == "own_loop.cc"  # its subject is a program on llama.cpp itself
            return Permission(self.layers, {"llama"} if own_loop else set(), "")
        row = self.owner(path)
        if row is None:
            self.errors.append(f"{path.as_posix()}:1: this folder is not in the table of layers "
                               "in CMakeLists.txt; add it with the arrows it needs")
            return None
        layers = reach(self.rows, row.name)
        room = "/".join(path.parts[1:-1])
        if row.kind == "tool" and room not in ("", *row.lists["ROOMS_ABOVE"], *row.lists["ROOMS_BELOW"]):
            self.errors.append(f"{path.as_posix()}:1: the room {room} is not in the table in "
                               "CMakeLists.txt; add it to ROOMS_ABOVE or ROOMS_BELOW")
            return None
        if row.kind == "tool" and path.stem not in row.lists["LAB_FILES"]:
            layers.discard("lab")
        third_party = set(row.lists["THIRD_PARTY"])
        testing = ""
        is_test = path.stem.endswith("_test")
        if row.kind == "testing":
            testing = "testing_gguf"
            in_tools = len(path.parts) > 2
            if not in_tools and not self.is_gguf(path.stem):
                testing = "testing"  # must build without llama.cpp
                layers = {layer for layer in layers if layer.split("/")[0] != "llama"}
                third_party -= {"llama", "cli11"}
        elif is_test:
            third_party.add("gtest")
            for name in row.lists["TESTED_WITH"]:
                if name in TEST_SUPPORT:
                    testing = max(testing, name)
                else:
                    layers |= reach(self.rows, name)
        return Permission(layers, third_party, testing)

    def included_layer(self, target):
        """The layer that TARGET, a path from src/ or from the root, belongs to by its folder."""
        folder = target.rpartition("/")[0]
        return folder if folder in self.rows else target.partition("/")[0]

    def complaint(self, allowed, quote, target):
        """None if a file with the permission ALLOWED may include TARGET, else why not."""
        for name, pattern in THIRD_PARTY.items():
            if pattern.search(target):
                return None if name in allowed.third_party else f"{name}'s header \"{target}\""
        if quote == "<":
            return None  # the standard library or the system
        folder, _, rest = target.partition("/")
        if rest and folder == "testing":
            if not allowed.testing:
                return f"test support \"{target}\""
            gguf = self.is_gguf(pathlib.PurePath(rest).stem)
            return f"\"{target}\", which needs llama.cpp," if (
                gguf and allowed.testing == "testing") else None
        if rest and folder in (*self.rows, "tests", "bench", "fuzz"):
            layer = self.included_layer(target)
            return None if layer in allowed.layers else f"layer {layer} (\"{target}\")"
        if "llama" in allowed.third_party:
            return None  # llama-common's headers have no folder
        return f"\"{target}\", which is no path from src/ and none of llama.cpp's headers here,"

    def room_complaint(self, path, target):
        """None if a tool's file PATH may include TARGET of the same folder, else why not."""
        row = self.owner(path)
        parts = target.split("/")
        if row is None or row.kind != "tool" or parts[0] != row.name or path.stem.endswith("_test"):
            return None
        own, other = ("/".join(names[1:-1]) for names in (path.parts, parts))
        if own == other:
            return None
        if other in row.lists["ROOMS_ABOVE"]:
            return f"\"{target}\", a room above"
        return f"\"{target}\", which is above this room" if own in row.lists["ROOMS_BELOW"] else None

    def check_file(self, path):
        self.n_files += 1
        relative = path.relative_to(self.root)
        allowed = self.permission(relative)
        if allowed is None:
            return
        text = path.read_text(errors="replace")
        lines = text.splitlines()
        matches = [INCLUDE.match(line) for line in lines]
        self.note_use(relative, [match.group(2) for match in matches if match])
        for number, match in enumerate(matches, start=1):
            why = match and (self.complaint(allowed, *match.groups())
                             or self.room_complaint(relative, match.group(2)))
            if why:
                self.errors.append(f"{relative.as_posix()}:{number}: may not include {why} "
                                   f"(allowed: {allowed})")
        for first, length in functions(text):
            if length > MAX_FUNCTION_LINES:
                self.errors.append(f"{relative.as_posix()}:{first}: a function of {length} lines, "
                                   f"at most {MAX_FUNCTION_LINES} can be")
        self.check_length(relative, len(lines))

    def note_use(self, path, targets):
        """PATH, of the row that it belongs to, includes TARGETS."""
        row = self.owner(path)
        if row is None:
            return
        used = self.used.setdefault(row.name, set())
        for target in targets:
            used.add(self.included_layer(target))
            used.update((name, "third party") for name, pattern in THIRD_PARTY.items()
                        if pattern.search(target))

    def check_use(self):
        """Finds arrows that nobody needs. A layer's own rooms are linked for those who link it."""
        for name, used in self.used.items():
            links, third_party = (self.rows[name].lists[k] for k in ("LINKS", "THIRD_PARTY"))
            for link in links:
                others = [reach(self.rows, other) for other in links if other != link]
                alone = reach(self.rows, link).difference(*others)
                if alone and not alone & used and not link.startswith(name + "/"):
                    self.errors.append(f"CMakeLists.txt:1: {name} links {link}, and no file of it "
                                       "includes anything from " + ", ".join(sorted(alone)))
            for other in third_party:
                if (other, "third party") not in used and other not in COMES_INDIRECTLY:
                    self.errors.append(f"CMakeLists.txt:1: {name} has the third party {other}, "
                                       "and no file of it includes its headers")

    def check_length(self, relative, length):
        if length > MAX_LINES:
            self.errors.append(f"{relative.as_posix()}:{length}: {length} lines; split it "
                               f"(at most {MAX_LINES})")

    def run(self):
        for path in source_files(self.root, FOLDERS, SUFFIXES):
            self.check_file(path)
        for path in source_files(self.root, SCRIPT_FOLDERS, SCRIPT_SUFFIXES):
            self.n_files += 1
            length = len(path.read_text(errors="replace").splitlines())
            self.check_length(path.relative_to(self.root), length)
        if self.whole:
            self.check_use()
        return not self.errors


def root_of(arguments, page):
    """The folder to check. None: the arguments are wrong, and what PAGE says of the usage is told."""
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(page.split("\n\n")[-1].strip(), file=sys.stderr)
        return None
    return pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)


def run_check(name, checker, more=""):
    """Prints what CHECKER finds, and how much it looked at. Returns the exit code."""
    checker.run()
    for line in checker.errors:
        print(line)
    print(f"{name}: {checker.n_files} files, {more}{len(checker.errors)} errors")
    return 1 if checker.errors else 0


def main(arguments):
    root = root_of(arguments, __doc__)
    if root is None:
        return 2
    if not (root / "CMakeLists.txt").is_file():
        print(f"check_layers: '{root}' has no CMakeLists.txt", file=sys.stderr)
        return 2
    return run_check("check_layers", Checker(root, whole=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The code blocks of Markdown files, and the options that their text names.

A block that begins with ```sh is a script that the tests run. More words behind `sh` say how:
`server` starts it and leaves it running for the blocks that follow, `skip: REASON` does not run it.
A block without a language may hold anything but commands: one that looks like a command and is not
marked is an error, so that nobody adds a command that no test runs."""

import dataclasses
import pathlib
import re

FENCE = re.compile(r"^( *)```(.*)$")
COMMAND = re.compile(r"^\s*(\$ |(sudo )?(build/)?outrider |\./dev |curl |cmake |pip |npm |apt|cc |docker )")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


@dataclasses.dataclass
class Block:
    file: pathlib.Path
    line: int      # of the opening fence, counted from 1
    language: str  # "" for none
    how: str       # what follows the language
    text: str

    @property
    def name(self):
        return f"{self.file.name}:{self.line}"

    @property
    def skipped(self):
        return self.how.startswith("skip")

    @property
    def reason(self):
        return self.how.partition(":")[2].strip()

    def looks_like_commands(self):
        return any(COMMAND.match(line) for line in self.text.splitlines())


def blocks_of(file):
    found, open_at, words, lines = [], None, [], []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if fence and open_at is None:
            open_at, words, lines = number, fence[2].strip().split(" ", 1), []
        elif fence:
            found.append(Block(file, open_at, words[0], words[1] if len(words) > 1 else "",
                               "\n".join(lines)))
            open_at = None
        elif open_at is not None:
            lines.append(line)
    if open_at is not None:
        raise ValueError(f"{file}:{open_at}: a block that does not end")
    return found


def options_in_text(file, first_cells=True):
    """The options (--like-this) of a file's inline code, each with the line that has it first.
    first_cells: those in the first column of tables, too."""
    found, inside = {}, False
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            if line.startswith("|") and not first_cells:
                line = line.split("|", 2)[2]
            for code in re.findall(r"`([^`]+)`", line):
                for option in OPTION.findall(code):
                    found.setdefault(option, number)
    return found

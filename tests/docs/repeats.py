"""How the figures of docs/benchmarks*.md are repeated, which the line behind a heading says.

Every section (##), and every part of one (###) that has a table, says it in one of three ways:

  Repeat: `COMMAND` ...                     by commands of its own
  Repeat: as in [NAME](FILE.md#PART) ...    by those of another part, which has commands of its own
  Not to be repeated: REASON                by nothing: what made the figures is gone
"""

import dataclasses
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_names  # noqa: E402

OWN, OTHERS, NOTHING = "Repeat: `", "Repeat: as in [", "Not to be repeated: "
LINK = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")


@dataclasses.dataclass
class Part:
    file: pathlib.Path
    anchor: str
    level: int   # of its heading: 2 or 3
    title: str
    lines: list  # behind the heading

    @property
    def name(self):
        return f"{self.file.name}#{self.anchor}"

    @property
    def how(self):
        return self.lines[0] if self.lines else ""

    @property
    def has_table(self):
        return any(line.startswith("|") for line in self.lines)

    @property
    def commands(self):
        """Those of its own."""
        return re.findall(r"`([^`]+)`", self.how) if self.how.startswith(OWN) else []

    @property
    def sources(self):
        """The names of the parts whose commands repeat it."""
        if not self.how.startswith(OTHERS):
            return []
        return [f"{pathlib.Path(page).name or self.file.name}#{anchor}"
                for page, anchor in LINK.findall(self.how)]


def parts_of(file):
    """The sections of a page and their parts; a section ends where its first part begins."""
    parts, lines = [], None
    anchors = check_names.headings_of(file.read_text())
    for number, line in enumerate(file.read_text().splitlines(), 1):
        heading = re.match(r"(#{1,3}) (.*)", line) if number in anchors else None
        if heading:
            lines = []
            if len(heading[1]) > 1:
                parts.append(Part(file, anchors[number], len(heading[1]), heading[2], lines))
        elif lines is not None:
            lines.append(line)
    return parts


def problem_of(part, parts):
    """Why the figures of one of `parts` cannot be repeated; "" where they can, or that is said."""
    if part.level > 2 and not part.has_table and not part.how.startswith((OWN, OTHERS, NOTHING)):
        return ""
    if part.commands or len(part.how) > len(NOTHING) and part.how.startswith(NOTHING):
        return ""
    by_name = {other.name: other for other in parts}
    for source in part.sources:
        if source not in by_name or not by_name[source].commands:
            return f"'{source}' has no commands of its own"
    if part.sources:
        return ""
    return f"the line behind the heading begins with none of '{OWN}', '{OTHERS}', '{NOTHING}'"

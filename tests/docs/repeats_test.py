"""Every table of the benchmarks says how its figures are repeated, in one of the ways of repeats.py,
and the README's figures are among them. That what the commands name exists is checked by
commands_test.py, which knows every option."""

import pathlib
import re

import pytest

import repeats

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PARTS = [part for file in sorted(DOCS.glob("benchmarks*.md")) for part in repeats.parts_of(file)]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_says_how_to_repeat_it(part):
    assert repeats.problem_of(part, PARTS) == ""


def test_all_pages_are_looked_at():
    assert {part.file.name for part in PARTS} == {file.name for file in DOCS.glob("benchmarks*.md")}
    assert any(part.commands for part in PARTS)
    assert any(part.sources for part in PARTS)


RATIO = re.compile(r"\b\d+\.\d\d\b")


def test_the_readmes_gains_are_figures_of_the_benchmarks():
    readme = (DOCS.parent / "README.md").read_text()
    gains = RATIO.findall(readme.partition("\n## What you gain\n")[2].partition("\n## ")[0])
    assert len(gains) > 20
    assert set(gains) - set(RATIO.findall((DOCS / "benchmarks.md").read_text())) == set()


def test_the_readme_says_what_its_target_and_its_last_row_are():
    readme = (DOCS.parent / "README.md").read_text()
    gains = readme.partition("\n## What you gain\n")[2].partition("\n## ")[0]
    assert "[stand-in](docs/benchmarks.md" in gains, "whose draft is the model that it is made of"
    assert "[measured](docs/benchmarks.md#on-a-gpu)" in gains
    plot = (DOCS / "gain.svg").read_text()
    bars = dict(re.findall(r"<title>([^<]*): (\d+\.\d\d)</title>", plot))
    assert bars and set(bars.values()) <= set(RATIO.findall(gains)), "the plot is of the table"
    for label in bars:
        assert " at once" not in label or "its default" in label, label


def test_the_goal_for_several_requests_has_its_tables_least_and_greatest():
    text = (DOCS / "benchmarks.md").read_text()
    begin = text.index("\n## Several requests at once")
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text[begin:text.index("\n## ", begin + 1)].splitlines()
            if line.startswith("|")]
    alone, several, column = [], [], None
    for row in rows:
        if "requests at once" in row:
            column = row.index("of llama-server's best") if "llama-server" in row else None
        elif column is not None and RATIO.fullmatch(row[column]):
            (alone if row[1] == "1" else several).append(float(row[column]))
    assert len(alone) == 6 and len(several) == 15
    goal = next(line for line in text.splitlines() if line.startswith("| 1.3 times "))
    assert f"{min(several)} to {max(several)} times with 4 and 16" in goal
    assert f"(with one {min(alone)} to {max(alone)})" in goal


@pytest.fixture
def problems(tmp_path):
    """problems(text, other): what is wrong with the parts of a page, by anchor."""
    def of(text, other=""):
        (tmp_path / "a.md").write_text("# Title\nText.\n" + text)
        (tmp_path / "b.md").write_text("# Title\n" + other)
        parts = repeats.parts_of(tmp_path / "a.md")
        everywhere = parts + repeats.parts_of(tmp_path / "b.md")
        found = {part.anchor: repeats.problem_of(part, everywhere) for part in parts}
        return {anchor: problem for anchor, problem in found.items() if problem}
    return of


OWN = "## A\nRepeat: `x`, `y`\n\n"
TABLE = "\n| a |\n| --- |\n| 1 |\n"


def test_commands_of_its_own_the_commands_of_others_and_none_are_right(problems):
    assert problems(OWN + TABLE + "### B\nRepeat: as in [A](#a), with `-n 2`\n" + TABLE +
                    "## C\nRepeat: as in [A](#a) and [D](b.md#d)\n"
                    "### E\nNot to be repeated: it is gone.\n" + TABLE + "### F\nText.\n",
                    "## D\nRepeat: `z`\n") == {}


def test_a_section_without_a_command_is_found(problems):
    assert set(problems("## A\n\nFigures: `x`\n## B\n" + TABLE + OWN + "## C\n\nRepeat: `x`\n")) == \
        {"a", "b", "c"}


def test_a_part_with_a_table_does_not_inherit_by_being_below(problems):
    assert set(problems(OWN + "### B\n" + TABLE + "### C\nText: `x`\n" + TABLE)) == {"b", "c"}


def test_what_is_inherited_has_commands_of_its_own(problems):
    for source in ("#none", "#b", "b.md#d", "c.md#a"):
        text = f"{OWN}### B\nRepeat: as in [X]({source})\n{TABLE}"
        assert set(problems(text, "## D\nRepeat: as in [A](a.md#a)\n")) == {"b"}, source
    assert set(problems(OWN + "### B\nRepeat: as in [X], which is no link\n")) == {"b"}


def test_that_nothing_repeats_it_needs_a_reason(problems):
    assert set(problems(OWN + "### B\nNot to be repeated: \n" + TABLE)) == {"b"}


def test_headings_in_blocks_are_none_and_equal_ones_are_told_apart(problems):
    text = OWN + "```sh\n## no heading\n```\n" + OWN.replace("Repeat", "Repeated")
    assert set(problems(text)) == {"a-1"}

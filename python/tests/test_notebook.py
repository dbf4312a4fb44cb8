"""The notebook of examples/ runs, cell by cell, as Jupyter would run it; and the README's example."""

from __future__ import annotations

import asyncio
import pathlib
import re
import textwrap
from typing import Any

import pytest

from conftest import DRAFT, TARGET

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "python_notebook.py"


def test_every_cell_runs(monkeypatch: pytest.MonkeyPatch,
                         capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TARGET", str(TARGET))
    monkeypatch.setenv("DRAFT", str(DRAFT))
    cells = re.split(r"^# %%.*$", NOTEBOOK.read_text(), flags=re.MULTILINE)
    names: dict[str, Any] = {"__name__": "__main__"}
    assert len(cells) > 5
    for cell in cells:
        exec(compile(cell, str(NOTEBOOK), "exec"), names)
    out = capsys.readouterr().out
    assert "the same text: True" in out
    # On a model as small as this one the planner may find that guessing never pays.
    assert f"speculative: {names['fast'].stats()}" in out
    assert "plain: 48 tokens" in out


def test_the_example_in_the_readme_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    example = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    (tmp_path / "target.gguf").symlink_to(TARGET)
    (tmp_path / "draft.gguf").symlink_to(DRAFT)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"prompts": ["One", "Two"], "asyncio": asyncio}
    # Its last line awaits, so all of it is a coroutine's.
    exec("async def main():\n" + textwrap.indent(example, "    ") + "    return answers", names)
    assert len(asyncio.run(names["main"]())) == 2
    assert " tokens, " in capsys.readouterr().out

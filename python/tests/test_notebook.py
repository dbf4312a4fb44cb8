"""The notebook of examples/ runs, cell by cell, as Jupyter would run it."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import pytest

from conftest import DRAFT, TARGET

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python_notebook.py"


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
    assert "guesses right" in out

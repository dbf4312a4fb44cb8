"""Where the module looks for what was built with it: in an editable install the Python files are in the
checkout, and what was built is in another folder of the package's path."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

import outrider
from outrider import _command, _library


def two_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """Makes them the package's path, and gives the second one."""
    folders = [tmp_path / "checkout", tmp_path / "site-packages"]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(outrider, "__path__", [str(folder) for folder in folders])
    return folders[1]


def test_the_library_is_found_in_any_folder_of_the_package(monkeypatch: pytest.MonkeyPatch,
                                                           tmp_path: pathlib.Path) -> None:
    monkeypatch.delenv("OUTRIDER_LIBRARY", raising=False)
    built = two_folders(monkeypatch, tmp_path) / _library.NAME
    assert _library.packaged(_library.NAME) is None
    built.write_text("no library")
    with pytest.raises(outrider.Error, match=str(built)):
        _library.library.__wrapped__()


def test_the_command_is_found_in_any_folder_of_the_package(monkeypatch: pytest.MonkeyPatch,
                                                           tmp_path: pathlib.Path) -> None:
    folder = two_folders(monkeypatch, tmp_path)
    with pytest.raises(SystemExit, match="built without the command"):
        _command.main()
    (folder / "bin").mkdir()
    (folder / "bin" / "outrider").write_text("")
    begun: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: begun.append(program))
    _command.main()
    assert begun == [folder.resolve() / "bin" / "outrider"]

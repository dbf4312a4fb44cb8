"""A pair of tiny models (OUTRIDER_TINY: a folder with tiny-target.gguf and tiny-draft.gguf, as the
build writes them) and the module on them."""

from __future__ import annotations

import os
import pathlib
from typing import Iterator

import pytest

import outrider

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(os.environ.get("OUTRIDER_TINY", ROOT / "build" / "tests"))
TARGET = FOLDER / "tiny-target.gguf"
DRAFT = FOLDER / "tiny-draft.gguf"


@pytest.fixture(scope="session")
def o() -> Iterator[outrider.Outrider]:
    """An instance that the tests share."""
    with outrider.Outrider(TARGET, DRAFT, threads=1, seed=1) as instance:
        yield instance

"""llama.cpp's client for SPEED-Bench, tools/server/bench/speed-bench of its pinned source, unchanged. Its
data set is on a hub, so rows of ours are in its place (speed_bench/datasets.py)."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import served
from sanitized import bound

HERE = pathlib.Path(__file__).resolve().parent
ROWS = [
    {"question_id": "1", "category": "writing", "turns": ["Tell me about the sea.", "And the sky?"]},
    {"question_id": "2", "category": "coding", "turns": ["Write a loop in Python."]},
    {"question_id": "3", "category": "coding", "turns": ["Repeat: one two three one two three."]},
]
TOKENS = 24


@pytest.fixture
def speed_bench(place, tmp_path):
    """speed_bench("script.py", arguments): what it printed."""
    binary = os.environ.get("OUTRIDER_BINARY")
    folder = pathlib.Path(binary).parent / "llama.cpp-source/tools/server/bench/speed-bench" \
        if binary else None
    if folder is None or not folder.is_dir():
        pytest.skip("llama.cpp's source is not beside OUTRIDER_BINARY")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    environment = dict(os.environ, PYTHONPATH=str(HERE / "speed_bench"),
                       OUTRIDER_SPEED_BENCH_ROWS=str(rows))

    def run(script, *arguments):
        done = subprocess.run([sys.executable, folder / script, *arguments], env=environment, text=True,
                              capture_output=True, check=False, timeout=bound(240))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return run


@pytest.fixture
def measured(speed_bench, tmp_path):
    """measured("name", server, fields): the results of all rows, by id, and the report's file."""
    def measure(name, server, fields):
        path = tmp_path / f"{name}.json"
        speed_bench("speed_bench.py", "--url", server.url, "--model", server.model, "--osl",
                    str(TOKENS), "--concurrency", "2", "--extra-inputs",
                    json.dumps({"temperature": 0, **fields}), "--output", str(path))
        report = json.loads(path.read_text())
        assert report["completed_samples"] == len(ROWS) and not report["failed_samples"]
        return sorted(report["results"], key=lambda result: result["id"]), path
    return measure


def compared(speed_bench, baseline, speculative):
    return speed_bench("speed_bench_compare.py", "--baseline", str(baseline),
                       "--speculative", str(speculative))


def test_it_measures_both_ways_and_compares_them(speed_bench, measured, place):
    plain, plain_file = measured("plain", place, {"speculative": False})
    guessed, guessed_file = measured("guessed", place, {"width": 4})
    for one, other in zip(plain, guessed):
        assert one["completion_tokens"] == other["completion_tokens"] > 0
        assert one["prompt_tokens"] == other["prompt_tokens"] and one["draft_n"] == 0
        assert 0 <= other["draft_n_accepted"] <= other["draft_n"]
        assert other["predicted_per_second"] > 0 and other["prompt_ms"] > 0
    assert sum(result["draft_n_accepted"] for result in guessed) > 0
    assert "overall" in compared(speed_bench, plain_file, guessed_file)


def test_it_measures_llama_server_beside_ours(speed_bench, measured, place):
    server = served.llama_server_from_environment()
    if server is None:
        pytest.skip("llama-server or a draft is not there; ./dev peers builds the one")
    with server:
        theirs, their_file = measured("theirs", server, {})
    ours, our_file = measured("ours", place, {})
    for one, other in zip(theirs, ours):
        assert one["prompt_tokens"] == other["prompt_tokens"]
        for result in (one, other):
            assert 0 <= result["draft_n_accepted"] <= result["draft_n"]
            assert result["completion_tokens"] > 0 and result["predicted_per_second"] > 0
    table = compared(speed_bench, their_file, our_file)
    print(table)
    assert "overall" in table

"""llama.cpp's client for SPEED-Bench, tools/server/bench/speed-bench of its pinned source, unchanged. Its
data set is on a hub, so rows of ours are in its place (speed_bench/datasets.py)."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

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
                              capture_output=True, check=False, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return run


def test_it_measures_both_ways_and_compares_them(speed_bench, place, tmp_path):
    reports = {}
    for name, fields in (("plain", {"speculative": False}), ("guessed", {"width": 4})):
        path = tmp_path / f"{name}.json"
        speed_bench("speed_bench.py", "--url", place.url, "--model", place.model, "--osl", str(TOKENS),
                    "--concurrency", "2", "--extra-inputs", json.dumps({"temperature": 0, **fields}),
                    "--output", str(path))
        reports[name] = json.loads(path.read_text())
        assert reports[name]["completed_samples"] == len(ROWS) and not reports[name]["failed_samples"]
    plain, guessed = (sorted(report["results"], key=lambda result: result["id"])
                      for report in (reports["plain"], reports["guessed"]))
    for one, other in zip(plain, guessed):
        assert one["completion_tokens"] == other["completion_tokens"] > 0
        assert one["prompt_tokens"] == other["prompt_tokens"] and one["draft_n"] == 0
        assert 0 <= other["draft_n_accepted"] <= other["draft_n"]
        assert other["predicted_per_second"] > 0 and other["prompt_ms"] > 0
    assert sum(result["draft_n_accepted"] for result in guessed) > 0
    table = speed_bench("speed_bench_compare.py", "--baseline", str(tmp_path / "plain.json"),
                        "--speculative", str(tmp_path / "guessed.json"))
    assert "overall" in table

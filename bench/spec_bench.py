#!/usr/bin/env python3
"""Makes the prompts of docs/benchmarks.md, spec-bench.jsonl, of Spec-Bench's questions.

Spec-Bench is the repository hemingkx/Spec-Bench on GitHub, its questions are the file
data/spec_bench/question.jsonl in it: 480 lines like {"question_id": 81, "category": "writing",
"turns": ["...", "..."]}. Taken is every second line, the first among them, in the file's order, and
of each its first turn, as {"category": ..., "messages": [{"role": "user", "content": ...}]}. So the
same questions give the same bytes; whether they are those that were measured is said at the end.

Usage: spec_bench.py QUESTION_FILE OUT. Tested by tests/spec_bench_test.py.
"""
import argparse
import hashlib
import json
import sys

# Of the 240 prompts that docs/benchmarks.md measures (the questions of fd2c1cd7, April 2025).
MEASURED = "16759a657c69c8e6eb557e87059ab3e59d4bbc82427fd1a2fb0cec1be6c2bd2d"


def prompt_of(line):
    """A line of the questions -> a line of prompts; ValueError where it is no question."""
    question = json.loads(line)
    if not isinstance(question, dict):
        raise ValueError("no object")
    category, turns = question.get("category"), question.get("turns")
    if not isinstance(category, str):
        raise ValueError("no text 'category'")
    if not isinstance(turns, list) or not turns or not isinstance(turns[0], str):
        raise ValueError("no text in 'turns'")
    return json.dumps({"category": category, "messages": [{"role": "user", "content": turns[0]}]})


def prompts_of(text):
    """All questions -> every second as a prompt; ValueError names the line that is none."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    prompts = []
    for number, line in lines[::2]:
        try:
            prompts.append(prompt_of(line) + "\n")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return "".join(prompts)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", metavar="QUESTION_FILE")
    parser.add_argument("out", metavar="OUT")
    args = parser.parse_args(arguments)
    try:
        with open(args.questions, encoding="utf-8", newline="") as file:
            prompts = prompts_of(file.read())
        # Only now: a wrong file of questions leaves the prompts of an earlier run as they are.
        with open(args.out, "w", encoding="utf-8", newline="") as file:
            file.write(prompts)
    except (OSError, ValueError) as error:
        print(f"spec_bench: '{args.questions}': {error}", file=sys.stderr)
        return 1
    same = hashlib.sha256(prompts.encode()).hexdigest() == MEASURED
    print(f"{prompts.count(chr(10))} prompts, " +
          ("those that docs/benchmarks.md measures" if same else
           "not those that docs/benchmarks.md measures: Spec-Bench's questions have changed"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

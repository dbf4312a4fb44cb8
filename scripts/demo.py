#!/usr/bin/env python3
"""The demo behind `./dev demo`: the same prompt with speculation off and on, at temperature 0 and 1.
Streams the text, then prints one small table, whose kernels ran, and the command that measures the
gain on prompts of your own.

Usage: demo.py OUTRIDER TARGET.gguf DRAFT.gguf
Environment: OUTRIDER_DEMO_TOKENS (default 128), OUTRIDER_DEMO_PROMPT, OUTRIDER_DEMO_CHAT=0 (no
template).
"""

import json
import math
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

PROMPT = ("Write a short story about a lighthouse keeper who finds a message in a bottle. "
          "Then explain in three sentences how a lighthouse lens works.")
SEED = 42


def environment(name, default):
    return os.environ.get("OUTRIDER_DEMO_" + name, default)


def rule(text):
    width = 78
    print(f"\n── {text} " + "─" * max(0, width - len(text) - 4), flush=True)


def generate(binary, target, draft, temperature, speculate):
    """Runs the command, its text streaming to our stdout; returns the result object (--result)."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        command = [binary, "run", "-m", target, "-p", environment("PROMPT", PROMPT),
                   "-n", environment("TOKENS", "128"), "--temp", str(temperature),
                   "--top-k", "0", "--top-p", "1", "--min-p", "0",
                   "--seed", str(SEED), "--result", str(result)]
        if environment("CHAT", "1") != "0":
            command.append("--chat")
        command += ["-d", draft] if speculate else ["--drafter", "none"]
        code = subprocess.run(command, check=False).returncode
        print(flush=True)
        if code != 0:
            sys.exit(f"demo: '{' '.join(command)}' failed with exit code {code}")
        return json.loads(result.read_text())


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def kernels_text(result):
    """As the command's tables say it (src/run/stats_table.h), as far as a result has it."""
    own = result["kernels"] == "own"
    return "Outrider's" if own else f"llama.cpp's: {result['kernels_reason']}"


def print_gain(binary, target, draft, gains):
    """What the pairs of runs gained, GAINS by temperature, and how to measure it."""
    if gains:
        times = ", ".join(f"{gain:.2f} times plain decoding at temperature {temperature}"
                          for temperature, gain in gains.items())
        print(f"gain: {times}; one run each way")
    command = [binary, "bench", "-m", target, "-d", draft, "--prompts", "prompts.jsonl"]
    if environment("CHAT", "1") != "0":
        command.append("--chat")
    print("Your own prompts' gain, with intervals (prompts.jsonl: a line {\"prompt\": \"...\"} "
          f"for each):\n  {shlex.join(command)}")


def main(arguments):
    if len(arguments) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    binary, target, draft = arguments
    sys.stdout.reconfigure(errors="replace")  # the lines are drawn with characters Latin-1 has not
    print(f"target: {target}\ndraft:  {draft}\nprompt: {environment('PROMPT', PROMPT)}")
    rows = []
    gains = {}
    same, broken = True, False
    for temperature in (0, 1):
        rule(f"temperature {temperature}, speculation off")
        plain = generate(binary, target, draft, temperature, speculate=False)
        rule(f"temperature {temperature}, speculation on")
        fast = generate(binary, target, draft, temperature, speculate=True)
        equal = plain["tokens"] == fast["tokens"]
        same = same and equal
        broken = broken or (not equal and fast["speculation"]["exactness"] == "exact")
        base = plain["timings"]["predicted_per_second"]
        speed = fast["timings"]["predicted_per_second"]
        if base is None or speed is None:
            print("demo: the answer is too short to measure a speed")
            base, speed = base or math.nan, speed or math.nan
        else:
            gains[temperature] = speed / base
        speculation = fast["speculation"]
        rows.append((f"T={temperature} off", f"{base:.1f}", "1.00x", "1.00", "-", "-", "-"))
        rows.append((f"T={temperature} on", f"{speed:.1f}", f"{speed / base:.2f}x",
                     f"{speculation['tokens_per_step']:.2f}",
                     percent(speculation["acceptance_rate"]),
                     "identical" if equal else "DIFFERENT", speculation["exactness"]))
    rule("result")
    head = ("", "tokens/s", "speed-up", "tokens/step", "accepted", "text", "exactness")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    if same:
        print("\nThe texts are the same, token for token, with speculation on and off.")
    elif broken:
        print("\nThe texts differ although this setup was found to be exact: that is a bug.")
    else:
        print("\nThe texts differ; the exactness column says what this setup guarantees.")
    print(f"\nkernels: {kernels_text(fast)}")
    print_gain(binary, target, draft, gains)
    return 1 if broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

#!/usr/bin/env python3
"""The demo: one prompt, with speculation off and on, at temperature 0 and 1, and what it gained.

usage: demo.py OUTRIDER TARGET.gguf DRAFT.gguf
"""
import json
import os
import subprocess
import sys
import tempfile

PROMPT = "Explain to a curious child why the sky is blue and sunsets are red."
TOKENS = 96
WIDTH = 4
SEED = 7


def style(code, text):
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\033[{code}m{text}\033[0m" if coloured else text


def has_chat_template(outrider, target):
    run = subprocess.run([outrider, "inspect", "--json", target], stdout=subprocess.PIPE, check=False)
    if run.returncode != 0:
        sys.exit(run.returncode)
    return bool(find(json.loads(run.stdout), "chat_template"))


def find(tree, key):
    """The first value of `key` anywhere in a JSON object."""
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            value = find(branch, key)
            if value is not None:
                return value
    return None


def generate(command, temperature, width):
    """Streams the text to the terminal and returns the result object."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.json")
        arguments = ["--temp", str(temperature), "--width", str(width), "--result", result]
        if width > 1 and sys.stdout.isatty():
            arguments.append("--color")
        code = subprocess.run(command + arguments, check=False).returncode
        if code != 0:
            sys.exit(code)
        with open(result, encoding="utf-8") as file:
            return json.load(file)


def show(rows):
    head = ["", "tokens/s", "speed-up", "tokens per step", "acceptance", "same text"]
    widths = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    for number, row in enumerate([head] + rows):
        line = "  ".join(c.ljust(w) if i == 0 else c.rjust(w)
                         for i, (c, w) in enumerate(zip(row, widths)))
        print(style("1", line) if number == 0 else line)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    outrider, target, draft = sys.argv[1:]
    command = [outrider, "run", "-m", target, "-d", draft, "-p", PROMPT, "-n", str(TOKENS),
               "--seed", str(SEED), "--top-k", "0", "--top-p", "1", "--min-p", "0"]
    if has_chat_template(outrider, target):
        command.append("--chat")
    print(style("1", "target ") + os.path.basename(target))
    print(style("1", "draft  ") + os.path.basename(draft))
    print(style("1", "prompt ") + PROMPT)
    rows = []
    all_same = True
    verdict = None
    for temperature in (0, 1):
        results = []
        for width, name in ((1, "speculation off"), (WIDTH, "speculation on")):
            title = f"temperature {temperature}, {name}"
            print("\n" + style("1;36", f"--- {title} ---"), flush=True)
            results.append(generate(command, temperature, width))
            print()
        off, on = (r["timings"]["predicted_per_second"] for r in results)
        same = results[0]["tokens"] == results[1]["tokens"]
        all_same = all_same and same
        s = results[1]["speculation"]
        verdict = s["exactness"]
        rate = "-" if s["acceptance_rate"] is None else f"{100 * s['acceptance_rate']:.0f} %"
        rows.append([f"temperature {temperature}, off", f"{off:.1f}", "1.00x", "1.00", "-", ""])
        rows.append([f"temperature {temperature}, on", f"{on:.1f}", f"{on / off:.2f}x",
                     f"{s['tokens_per_step']:.2f}", rate, "yes" if same else "NO"])
    print()
    show(rows)
    print(f"\nbatches on this machine: {verdict}")
    # A text that differs although the backend is bit-exact would be a bug.
    sys.exit(0 if all_same or verdict != "exact" else 1)


if __name__ == "__main__":
    main()

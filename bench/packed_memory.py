#!/usr/bin/env python3
"""What packing weights for own kernels costs in memory and in time to load, beside llama.cpp's.

Each model is loaded by `outrider rpc` with --kernels auto and stock in turn, and writes a token. The
memory is what the process then holds (RSS: its own pages, and those of the mapped file that were
touched); the time ends when the model is ready. The first load of each is not counted: it measures
the machine and fills the file cache. Two ratios are goals: memory at most 1.03 of llama.cpp's, but
for a tied embedding, which is packed beside its mapped rows (the column "packed" says how much is
packed, of how much in the file); loading at most a second a gigabyte longer.

Usage: packed_memory.py MODEL.gguf... [--outrider FILE] [--rounds N]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from subjects import resident_bytes

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ("auto", "stock")
MB = 1e6


def ask(process, method, params):
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    answer = json.loads(line) if line else {}
    if "result" not in answer:
        sys.exit(f"{method}: {answer.get('error', 'the process has ended')}")
    return answer["result"]


def load(command):
    """-> seconds until the model is ready, bytes held behind a token, and what status says of it."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "OMP_WAIT_POLICY": "passive"}) as process:
        status = ask(process, "system.status", {"wait_ms": 600000})
        seconds = time.monotonic() - begin
        ask(process, "completion.run", {"prompt": "Hello", "max_tokens": 1})
        memory = resident_bytes(process.pid)
        process.stdin.close()
    return seconds, memory, status["target"]["info"]


def measure(model, args):
    loads = {kernels: [] for kernels in KERNELS}
    for number in range(args.rounds + 1):
        for kernels in KERNELS:
            found = load([args.outrider, "rpc", "-m", model, "--kernels", kernels, "--exact", "off",
                          "--gpu-layers", "0", "-c", "512"])
            if number > 0:
                loads[kernels].append(found)
    return loads


def row(model, loads):
    middle = {kernels: [statistics.median(values) for values in list(zip(*found))[:2]]
              for kernels, found in loads.items()}
    (own_s, own), (stock_s, stock) = middle["auto"], middle["stock"]
    info = loads["auto"][0][2]
    gigabytes = os.path.getsize(model) / 1e9
    packed = f"{info['packed_bytes'] / MB:.0f} MB, {info['kernels']}"
    return (f"| {pathlib.Path(model).stem} | {own / MB:.0f} | {stock / MB:.0f} | {own / stock:.3f} | "
            f"{packed} | {own_s:.2f} | {stock_s:.2f} | {(own_s - stock_s) / gigabytes:+.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--outrider", default=str(ROOT / "build" / "outrider"))
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print("| model | own, MB | llama.cpp's, MB | ratio | packed | load, s | llama.cpp's, s | "
          "more, s a GB |\n|---|---|---|---|---|---|---|---|", flush=True)
    for model in args.models:
        print(row(model, measure(model, args)), flush=True)


if __name__ == "__main__":
    main()

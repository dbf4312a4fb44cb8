#!/usr/bin/env python3
"""What is left of the speed on a machine that has other work.

Three situations in turn, in each round: nothing else runs; one process for each processor computes
without end; a second Outrider (`outrider rpc` with the same files) answers requests without end. In
each: `outrider rpc` plainly and by its defaults, and llama-server unless --llama-server is empty, one
request at a time, temperature 0. The processes stay loaded; who is not asked does not compute. Tokens a
second are of the whole request, prompt included; the median over the rounds, and what part of the
quiet speed that is.
"""
import argparse
import itertools
import os
import statistics
import subprocess
import sys
import threading
import time

from subjects import Outrider, Peer, arguments, processor, prompts_of

SITUATIONS = ["quiet", "busy", "second run"]
numbers = itertools.count()  # each prompt gets another beginning, so that nothing of it is cached


class Busy:
    """A process for each processor that only computes."""

    def __init__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                          for _ in range(os.cpu_count())]

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Second:
    """Asks another Outrider, one request after the other."""

    def __init__(self, other, prompt):
        self.over = False
        self.thread = threading.Thread(target=self.ask, args=(other, prompt), daemon=True)
        self.thread.start()

    def ask(self, other, prompt):
        while not self.over:
            other.complete(prompt, 32, True)

    def stop(self):
        self.over = True
        self.thread.join()


def neighbour(situation, other, prompt):
    if situation == "busy":
        return Busy()
    return Second(other, prompt) if situation == "second run" else None


def measure(args, subjects, other, prompts):
    speeds = {(situation, name): [] for situation in SITUATIONS for name, _, _ in subjects}
    for turn in range(args.rounds):
        prompt = prompts[turn % len(prompts)]
        for situation in SITUATIONS:
            beside = neighbour(situation, other, prompt)
            try:
                time.sleep(0.5)
                for name, subject, speculative in subjects:
                    begin = time.monotonic()
                    subject.complete(f"{next(numbers)}. {prompt}", args.tokens, speculative)
                    speed = args.tokens / (time.monotonic() - begin)
                    speeds[situation, name].append(speed)
                    print(f"{turn + 1}. {situation}, {name}: {speed:.2f}", file=sys.stderr)
            finally:
                if beside:
                    beside.stop()
    return speeds


def main():
    parser = arguments(__doc__)
    parser.add_argument("--second", help="the other Outrider's program [the same]")
    parser.add_argument("--tokens", type=int, default=48, help="of a request")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    prompts = prompts_of(args.prompts)
    ours = Outrider(args)
    subjects = [("plain", ours, False)] + ([("Outrider", ours, True)] if args.draft else [])
    peer = Peer(args) if args.llama_server else None
    if peer:
        subjects.append(("llama-server", peer, False))
    second = argparse.Namespace(**{**vars(args), "outrider": args.second or args.outrider})
    other = Outrider(second)
    for _, subject, speculative in subjects + [("", other, True)]:
        subject.complete(prompts[0], 8, speculative)  # warm
    speeds = measure(args, subjects, other, prompts)
    print(f"{processor()}, {args.threads} threads, median of {args.rounds} rounds; tokens a second "
          "(of the quiet speed)\n")
    print("| | " + " | ".join(SITUATIONS) + " |\n| --- |" + " --- |" * len(SITUATIONS))
    for name, _, _ in subjects:
        medians = [statistics.median(speeds[situation, name]) for situation in SITUATIONS]
        cells = [f"{m:.2f}" + (f" ({m / medians[0]:.2f})" if i else "")
                 for i, m in enumerate(medians)]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for process in (ours, other):
        process.stop()
    if peer:
        peer.stop()


if __name__ == "__main__":
    main()

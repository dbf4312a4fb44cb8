#!/usr/bin/env python3
"""Total tokens a second with 1, 4 and 16 requests at once, beside llama-server.

Same file, same prompts, one after the other in one run. Every request is --tokens tokens at
temperature 0 (ends of text ignored). llama-server decodes plainly, and with --draft also by
draft-simple; Outrider, as `outrider rpc`, plainly and by its defaults, in turn in one process. A
figure is all generated tokens divided by the time from the first request to the last answer,
prompts included (each with another beginning, so that nothing of it is cached); the median over the
rounds. Needs llama-server (`./dev peers`).
"""
import argparse
import concurrent.futures
import itertools
import json
import statistics
import time

from subjects import Rpc, Server, processor

numbers = itertools.count()


class Outrider:
    def __init__(self, args, slots):
        command = [args.outrider, "rpc", "-m", args.target, "-t", str(args.threads), "-c", "2048",
                   "--slots", str(slots)]
        self.rpc = Rpc(command + (["-d", args.draft] if args.draft else []))
        self.rpc.wait_until_loaded(args.draft)

    def complete(self, prompt, tokens, speculative):
        result = self.rpc.call("completion.run", {
            "prompt": prompt, "temp": 0, "max_tokens": tokens, "ignore_eos": True,
            "speculative": speculative})
        return result["usage"]["completion_tokens"]

    def stop(self):
        self.rpc.stop()


class Peer:
    def __init__(self, args, slots, draft):
        extra = ["-m", args.target, "--parallel", str(slots), "-c", str(2048 * slots)]
        if draft:
            extra += ["-md", args.draft, "--spec-type", "draft-simple", "--spec-draft-n-max", "3"]
        self.server = Server(args.llama_server, extra, args.threads)

    def complete(self, prompt, tokens, _):
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": True,
                "cache_prompt": False}
        return self.server.post("/completion", body)["timings"]["predicted_n"]

    def stop(self):
        self.server.stop()


def measure(subject, prompts, clients, tokens, speculative=False):
    asked = [f"{next(numbers)}. " + prompts[i % len(prompts)] for i in range(clients)]
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        counts = list(pool.map(lambda p: subject.complete(p, tokens, speculative), asked))
    return sum(counts) / (time.monotonic() - begin)


def measure_peer(args, prompts, clients, draft):
    peer = Peer(args, clients, draft)
    measure(peer, prompts, clients, 4)  # warm
    speeds = [measure(peer, prompts, clients, args.tokens) for _ in range(args.rounds)]
    peer.stop()
    return statistics.median(speeds)


def measure_ours(args, prompts, clients):
    ours = Outrider(args, clients)
    measure(ours, prompts, clients, 4)  # warm
    speeds = {False: [], True: []}
    for turn in range(args.rounds):
        for speculative in ((False, True) if turn % 2 == 0 else (True, False)):
            speeds[speculative].append(
                measure(ours, prompts, clients, args.tokens, speculative))
    ours.stop()
    return [statistics.median(speeds[kind]) for kind in (False, True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, help="a GGUF file")
    parser.add_argument("--draft", help="a GGUF file: measure speculation too")
    parser.add_argument("--prompts", default="bench/prompts.jsonl")
    parser.add_argument("--outrider", default="build/outrider")
    parser.add_argument("--llama-server", default="build/bin/llama-server")
    parser.add_argument("--clients", default="1,4,16", help="requests at once")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with open(args.prompts, encoding="utf-8") as file:
        prompts = [json.loads(line)["prompt"] for line in file if line.strip()]
    print(f"{processor()}, {args.threads} threads, {args.tokens} tokens each, median of "
          f"{args.rounds} rounds; total tokens a second\n")
    print("| requests at once | llama-server | draft-simple 3 | Outrider plain | Outrider | "
          "plain / llama-server | Outrider / its plain |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for clients in [int(n) for n in args.clients.split(",")]:
        peer = measure_peer(args, prompts, clients, draft=False)
        drafted = f"{measure_peer(args, prompts, clients, True):.1f}" if args.draft else "-"
        plain, auto = measure_ours(args, prompts, clients)
        print(f"| {clients} | {peer:.1f} | {drafted} | {plain:.1f} | {auto:.1f} | "
              f"{plain / peer:.2f} | {auto / plain:.2f} |", flush=True)


if __name__ == "__main__":
    main()

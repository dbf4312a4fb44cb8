#!/usr/bin/env python3
"""Total tokens a second with 1, 4 and 16 requests at once, beside llama-server.

Same file, same prompts, one after the other in one run. Every request is plain decoding of --tokens
tokens at temperature 0 (ends of text ignored), or with --draft also with the draft model. A figure
is all generated tokens divided by the time from the first request to the last answer, prompts
included; the median over the rounds. Outrider runs as `outrider rpc`. Needs llama-server
(`./dev peers`).
"""
import argparse
import concurrent.futures
import json
import statistics
import time

from subjects import Rpc, Server, processor


class Outrider:
    def __init__(self, args, slots, draft):
        command = [args.outrider, "rpc", "-m", args.target, "-t", str(args.threads), "-c", "1024",
                   "--slots", str(slots)]
        self.rpc = Rpc(command + (["-d", args.draft] if draft else []))
        self.rpc.wait_until_loaded(draft)
        self.draft = draft

    def complete(self, prompt, tokens):
        result = self.rpc.call("completion.run", {
            "prompt": prompt, "temp": 0, "max_tokens": tokens, "ignore_eos": True,
            "speculative": self.draft})
        return result["usage"]["completion_tokens"]

    def stop(self):
        self.rpc.stop()


class Peer:
    def __init__(self, args, slots, draft):
        extra = ["-m", args.target, "--parallel", str(slots), "-c", str(1024 * slots)]
        if draft:
            extra += ["-md", args.draft, "--draft-max", "3", "--draft-min", "0"]
        self.server = Server(args.llama_server, extra, args.threads)

    def complete(self, prompt, tokens):
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": True,
                "cache_prompt": False}
        return self.server.post("/completion", body)["timings"]["predicted_n"]

    def stop(self):
        self.server.stop()


def measure(subject, prompts, clients, tokens):
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        counts = list(pool.map(lambda i: subject.complete(prompts[i % len(prompts)] + f" ({i})",
                                                          tokens), range(clients)))
    return sum(counts) / (time.monotonic() - begin)


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
    kinds = [("plain", False)] + ([("draft", True)] if args.draft else [])
    print(f"{processor()}, {args.threads} threads, {args.tokens} tokens each, median of "
          f"{args.rounds} rounds; total tokens a second\n")
    print("| requests at once | | llama-server | Outrider | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for clients in [int(n) for n in args.clients.split(",")]:
        for kind, draft in kinds:
            figures = {}
            for name, make in (("llama-server", Peer), ("outrider", Outrider)):
                subject = make(args, clients, draft)
                measure(subject, prompts, clients, 4)  # warm
                figures[name] = statistics.median(
                    measure(subject, prompts, clients, args.tokens) for _ in range(args.rounds))
                subject.stop()
            print(f"| {clients} | {kind} | {figures['llama-server']:.1f} | "
                  f"{figures['outrider']:.1f} | {figures['outrider'] / figures['llama-server']:.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Total tokens a second with 1, 4 and 16 requests at once, beside llama-server.

Same file, same prompts, one after the other in one run. Every request is --tokens tokens at
temperature 0 (ends of text ignored). llama-server decodes plainly, and with --draft also by
draft-simple; Outrider, as `outrider rpc`, plainly and by its defaults, in turn in one process. A
figure is all generated tokens divided by the time from the first request to the last answer,
prompts included (each with another beginning, so that nothing of it is cached); the median over the
rounds; Outrider / its plain is of the rounds' own ratios, with the least and the greatest. There are
--each questions for each client, who takes the next one when an answer is there:
with one alone the time would be that of the slowest, and a text that is done early would count for
nothing. Needs llama-server (`./dev peers`), but for --llama-server "", which leaves it out.
"""
import concurrent.futures
import itertools
import statistics
import time

from subjects import Outrider, Peer, arguments, processor, prompts_of

numbers = itertools.count()


def measure(subject, prompts, clients, each, tokens, speculative=False):
    asked = [f"{next(numbers)}. " + prompts[i % len(prompts)] for i in range(clients * each)]
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        counts = list(pool.map(lambda p: subject.complete(p, tokens, speculative), asked))
    return sum(counts) / (time.monotonic() - begin)


def measure_peer(args, prompts, clients, draft):
    peer = Peer(args, clients, draft)
    measure(peer, prompts, clients, 1, 4)  # warm
    speeds = [measure(peer, prompts, clients, args.each, args.tokens)
              for _ in range(args.rounds)]
    peer.stop()
    return statistics.median(speeds)


def measure_ours(args, prompts, clients):
    ours = Outrider(args, clients)
    measure(ours, prompts, clients, 1, 4)  # warm
    speeds = {False: [], True: []}
    cpu_s = {False: 0.0, True: 0.0}
    for turn in range(args.rounds):
        for speculative in ((False, True) if turn % 2 == 0 else (True, False)):
            before = ours.cpu_s()
            speeds[speculative].append(
                measure(ours, prompts, clients, args.each, args.tokens, speculative))
            cpu_s[speculative] += ours.cpu_s() - before
    ours.stop()
    pairs = sorted(auto / plain for plain, auto in zip(speeds[False], speeds[True]))
    return ([statistics.median(speeds[kind]) for kind in (False, True)], pairs,
            cpu_s[False] / cpu_s[True])


def main():
    parser = arguments(__doc__)
    parser.add_argument("--clients", default="1,4,16", help="requests at once")
    parser.add_argument("--each", type=int, default=3, help="questions of each client")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    prompts = prompts_of(args.prompts)
    print(f"{processor()}, {args.threads} threads, {args.each} x {args.tokens} tokens for each "
          f"client, median of {args.rounds} rounds; total tokens a second\n")
    print("| requests at once | llama-server | draft-simple 3 | Outrider plain | Outrider | "
          "plain / llama-server | Outrider / its plain | by processor time |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for clients in [int(n) for n in args.clients.split(",")]:
        peer = drafted = beside = "-"
        if args.llama_server:
            speed = measure_peer(args, prompts, clients, draft=False)
            peer = f"{speed:.1f}"
            drafted = f"{measure_peer(args, prompts, clients, True):.1f}" if args.draft else "-"
        (plain, auto), pairs, by_cpu = measure_ours(args, prompts, clients)
        if args.llama_server:
            beside = f"{plain / speed:.2f}"
        print(f"| {clients} | {peer} | {drafted} | {plain:.1f} | {auto:.1f} | {beside} | "
              f"{statistics.median(pairs):.2f} ({pairs[0]:.2f} to {pairs[-1]:.2f}) | "
              f"{by_cpu:.2f} |", flush=True)


if __name__ == "__main__":
    main()

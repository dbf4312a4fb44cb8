#!/usr/bin/env python3
"""Total tokens a second with 1, 4 and 16 requests at once, beside llama-server.

Same file, same prompts: each setting is a process of its own, all stay loaded, and in every round they
take turns on the same questions, back and forth. Every request is --tokens tokens at temperature 0 (ends
of text ignored). llama-server decodes plainly, and with --draft also by draft-simple; Outrider, as
`outrider rpc`, plainly and by its defaults. A figure is all generated tokens divided by the time from the
first request to the last answer, prompts included (each with another beginning, so that nothing of it is
cached); the median over the rounds; Outrider / its plain is of the rounds' own ratios, with the least
and the greatest. "Same text" says whether all of Outrider's texts equal its plain ones. There are
--each questions for each client, who takes the next one when an answer is there:
with one alone the time would be that of the slowest, and a text that is done early would count for
nothing. Needs llama-server (`./dev peers`), but for --llama-server "", which leaves it out.
"""
import collections
import concurrent.futures
import itertools
import statistics
import time

from subjects import Outrider, Peer, arguments, at_least, processor, prompts_of

LLAMA, DRAFTED, PLAIN, OURS = "llama-server", "draft-simple 3", "Outrider plain", "Outrider"
Run = collections.namedtuple("Run", "speed cpu_s texts")  # texts: in the order of the questions
numbers = itertools.count()


def questions(prompts, count):
    return [f"{next(numbers)}. " + prompts[i % len(prompts)] for i in range(count)]


def ask(subject, asked, clients, tokens, speculative):
    begin, before = time.monotonic(), subject.cpu_s()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        said = list(pool.map(lambda p: subject.complete(p, tokens, speculative), asked))
    speed = sum(count for count, _ in said) / (time.monotonic() - begin)
    return Run(speed, subject.cpu_s() - before, [text for _, text in said])


def measure(subjects, prompts, clients, args):
    """{name: [Run of each round]}: in a round all are asked the same questions."""
    for name, subject in subjects.items():  # warm
        ask(subject, questions(prompts, clients), clients, 4, name == OURS)
    runs = {name: [] for name in subjects}
    for turn in range(args.rounds):
        asked = questions(prompts, clients * args.each)
        for name in subjects if turn % 2 == 0 else reversed(subjects):
            runs[name].append(ask(subjects[name], asked, clients, args.tokens, name == OURS))
    return runs


def start(args, clients):
    subjects = {}
    if args.llama_server:
        subjects[LLAMA] = Peer(args, clients)
        if args.draft:
            subjects[DRAFTED] = Peer(args, clients, draft=True)
    return {**subjects, PLAIN: Outrider(args, clients), OURS: Outrider(args, clients)}


def row(clients, runs):
    speeds = {name: statistics.median(run.speed for run in of) for name, of in runs.items()}
    cells = [f"{speeds[name]:.1f}" if name in speeds else "-" for name in (LLAMA, DRAFTED, PLAIN, OURS)]
    beside = f"{speeds[PLAIN] / speeds[LLAMA]:.2f}" if LLAMA in speeds else "-"
    rounds = list(zip(runs[PLAIN], runs[OURS]))
    pairs = sorted(ours.speed / plain.speed for plain, ours in rounds)
    cpu_s = [sum(run.cpu_s for run in runs[name]) for name in (PLAIN, OURS)]
    same = all(ours.texts == plain.texts for plain, ours in rounds)
    return (f"| {clients} | {' | '.join(cells)} | {beside} | "
            f"{statistics.median(pairs):.2f} ({pairs[0]:.2f} to {pairs[-1]:.2f}) | "
            f"{cpu_s[0] / cpu_s[1]:.2f} | {'yes' if same else 'NO'} |")


def main():
    parser = arguments(__doc__)
    parser.add_argument("--clients", default="1,4,16", help="requests at once")
    parser.add_argument("--each", type=at_least(1), default=3, help="questions of each client")
    parser.add_argument("--tokens", type=at_least(1), default=48)
    parser.add_argument("--rounds", type=at_least(1), default=3)
    parser.add_argument("--threads", type=at_least(1), default=2)
    args = parser.parse_args()
    prompts = prompts_of(args.prompts)
    print(f"{processor()}, {args.threads} threads, {args.each} x {args.tokens} tokens for each "
          f"client, median of {args.rounds} rounds; total tokens a second\n")
    print("| requests at once | llama-server | draft-simple 3 | Outrider plain | Outrider | "
          "plain / llama-server | Outrider / its plain | by processor time | same text |")
    print("| --- " * 9 + "|")
    for clients in [int(n) for n in args.clients.split(",")]:
        subjects = start(args, clients)
        runs = measure(subjects, prompts, clients, args)
        for subject in subjects.values():
            subject.stop()
        print(row(clients, runs), flush=True)


if __name__ == "__main__":
    main()

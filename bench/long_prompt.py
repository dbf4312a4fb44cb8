#!/usr/bin/env python3
"""What a long prompt costs clients that are reading their answers, over HTTP.

Some clients stream long answers. In every second round another client asks about a long text after a
few seconds. The figure is the clients' speed while the long prompt is read, of their speed on the
same pieces of text without it. (Not in the same seconds: without it they are further on, where text
that repeats is said faster.) llama-server is measured likewise, as --peers says, "none" or
"draft-simple:N"; its answers need not be the same, so there the figure is what was gained in the same
seconds, in characters. Needs llama-server (`./dev peers`).
"""
import statistics
import sys
import threading

from compare_clients import Heard, Setting, ask_all, questions_of, settings_of
from subjects import arguments, processor

BEFORE_S = 3.0  # of the answers alone, until the long prompt comes
ENTRY_WORDS = 6


def long_text(words, number):
    entries = (f"Entry {number}.{i} tells of item {i * 7 % 101}." for i in range(words // ENTRY_WORDS))
    return f"Sum up text {number}: " + " ".join(entries)


def beside_long_prompt(port, setting, questions, prompt):
    """-> [Heard] of the questions, and the seconds from the long prompt to its first text."""
    long = []
    body = {**setting.body(prompt), "max_tokens": 2}
    timer = threading.Timer(BEFORE_S, lambda: long.append(Heard(port, body)))
    timer.start()
    heard, _ = ask_all(port, setting, questions, len(questions))
    timer.join()
    if not long:
        sys.exit(f"{setting.name}: the long prompt got no answer")
    return heard, long[0].times[0]


def same_texts(some, others):
    return [one.text for one in some] == [one.text for one in others]


def gained(heard, begin_s, end_s):
    return sum(one.length_at(end_s) - one.length_at(begin_s) for one in heard)


def seconds_of(heard, pieces):
    return sum(one.time_at(end) - one.time_at(begin) for one, (begin, end) in zip(heard, pieces))


def speed_kept(alone, beside, begin_s, end_s):
    if not same_texts(alone, beside):
        return gained(beside, begin_s, end_s) / gained(alone, begin_s, end_s)
    pieces = [(one.length_at(begin_s), one.length_at(end_s)) for one in beside]
    return seconds_of(alone, pieces) / seconds_of(beside, pieces)


def measure(setting, questions, args):
    """Of the speed without the long prompt, and the seconds that reading it took, for each round."""
    server = setting.start(len(questions) + 1)
    ask_all(server.port, setting, questions, len(questions))
    rounds = []
    for turn in range(args.rounds):
        alone, _ = ask_all(server.port, setting, questions, len(questions))
        beside, first_s = beside_long_prompt(server.port, setting, questions,
                                             long_text(args.words, turn))
        if setting.name.startswith("Outrider") and not same_texts(alone, beside):
            sys.exit("the answers differ with and without the long prompt")
        end_s = BEFORE_S + first_s
        if min(one.times[-1] for one in alone) < end_s:
            sys.exit(f"{setting.name}: an answer ended before the long prompt was read, which took "
                     f"{first_s:.1f} s: ask for more --tokens or fewer --words")
        rounds.append((speed_kept(alone, beside, BEFORE_S, end_s), first_s))
    server.stop()
    return rounds


def main():
    parser = arguments(__doc__)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1200, help="of each answer")
    parser.add_argument("--words", type=int, default=700, help="of the long prompt")
    parser.add_argument("--temp", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", nargs="*", default=["none"])
    args = parser.parse_args()
    questions = questions_of(args.prompts, args.clients)
    print(f"{processor()}, {args.threads} threads; {' '.join(sys.argv)}\n")
    print("| server | of the speed, each round | median | the long prompt, s |")
    print("| --- | --- | --- | --- |")
    for setting in settings_of(args, ["Outrider", "Outrider plain"]):
        rounds = measure(setting, questions, args)
        shares = [share for share, _ in rounds]
        print(f"| {setting.name} | {', '.join(f'{share:.2f}' for share in shares)} | "
              f"{statistics.median(shares):.2f} | "
              f"{statistics.median(first_s for _, first_s in rounds):.1f} |", flush=True)


if __name__ == "__main__":
    main()

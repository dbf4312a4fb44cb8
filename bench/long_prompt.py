#!/usr/bin/env python3
"""What a long prompt costs clients that are reading their answers, over HTTP.

Some clients stream long answers. In every second round another client asks about a long text after a
few seconds. Each answer is the same in all rounds, so how far it has come at a time, in characters,
is its speed. The figure is what the answers gained while the long prompt was read, of what they
gained in the same seconds of the rounds without it.
"""
import statistics
import sys
import threading
import time

from compare_clients import Heard, Setting
from subjects import arguments, processor

BEFORE_S = 3.0  # of the answers alone, until the long prompt comes


class Progress(Heard):
    """A streamed answer that knows how much of it there was at a time."""

    def __init__(self, port, body):
        self.begin, self.lengths = time.monotonic(), []
        super().__init__(port, body)

    def take(self, chunk, now):
        super().take(chunk, now)
        self.lengths.append((self.begin + now, len(self.text)))

    def at(self, moment):
        return max((length for time_s, length in self.lengths if time_s <= moment), default=0)


def round_of(port, setting, questions, long_prompt):
    """-> [Progress], when the clients began, and how long the long prompt took to its first token."""
    heard, first_s = [None] * len(questions), None

    def client(index):
        heard[index] = Progress(port, setting.body(questions[index]))

    threads = [threading.Thread(target=client, args=(i,)) for i in range(len(questions))]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    if long_prompt:
        time.sleep(BEFORE_S)
        first_s = Heard(port, {**setting.body(long_prompt), "max_tokens": 2}).times[0]
    for thread in threads:
        thread.join()
    if None in heard:
        sys.exit(f"{setting.name}: a client got no answer")
    return heard, begin, first_s


def main():
    parser = arguments(__doc__)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=800, help="of each answer")
    parser.add_argument("--words", type=int, default=700, help="of the long prompt")
    parser.add_argument("--temp", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    setting = Setting(args, "Outrider")
    questions = [f"Write a long story about the number {i + 2} and its friends."
                 for i in range(args.clients)]
    print(f"{processor()}, {args.threads} threads; {' '.join(sys.argv)}")
    server = setting.start(args.clients + 1)
    round_of(server.port, setting, questions, None)
    shares, times = [], []
    for turn in range(args.rounds):
        long_prompt = f"Sum up text {turn}: " + " ".join(
            f"Entry {turn}.{i} tells of item {i * 7 % 101}." for i in range(args.words // 6))
        alone, alone_began, _ = round_of(server.port, setting, questions, None)
        beside, began, first_s = round_of(server.port, setting, questions, long_prompt)
        if [one.text for one in alone] != [one.text for one in beside]:
            sys.exit("the answers differ with and without the long prompt")
        window = (BEFORE_S, BEFORE_S + first_s)
        if beside[0].times[-1] < window[1]:
            sys.exit("the answers ended before the long prompt was read: ask for more --tokens")
        gained = [sum(one.at(start + window[1]) - one.at(start + window[0]) for one in heard)
                  for heard, start in ((beside, began), (alone, alone_began))]
        shares.append(gained[0] / gained[1])
        times.append(first_s)
        print(f"round {turn + 1}: {shares[-1]:.2f} of the speed while the long prompt was read, "
              f"which took {first_s:.1f} s", flush=True)
    server.stop()
    print(f"median: {statistics.median(shares):.2f} of the speed, {statistics.median(times):.1f} s")


if __name__ == "__main__":
    main()

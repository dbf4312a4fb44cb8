#!/usr/bin/env python3
"""What a long prompt takes from clients whose answers are being streamed: `outrider serve` over HTTP.

Some clients stream answers without an end. Then another one asks with a long prompt, for one token.
Their tokens a second while it is read are compared with those in equally long spans just before and
just behind it, so that what an answer slows down by growing, and what else runs on the machine, is
in both. The first second is counted by itself: prompts get a second in advance. Goal: at most a fifth
of their speed (--prompt-share, 0.2). Speculation is off unless --speculative is given.
"""
import http.client
import json
import statistics
import sys
import threading
import time

from subjects import CONTEXT, Server, arguments, processor, prompts_of

WORDS = "The river ran past the old mill, and number {} of the stones in its bed was round. "
IN_ADVANCE_S = 1.0


def request(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
    connection.request("POST", "/v1/completions", json.dumps(body),
                       {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"status {answer.status}: {answer.read()[:300]}")
    return connection, answer


class Stream(threading.Thread):
    """One client: when each token came, until stop()."""

    def __init__(self, port, body):
        super().__init__(daemon=True)
        self.times, self.over = [], threading.Event()
        self.port, self.body = port, body

    def run(self):
        connection, answer = request(self.port, {**self.body, "stream": True, "token_sources": True})
        for line in answer:
            if line.startswith(b"data: {"):
                count = len(json.loads(line[6:]).get("tokens") or [])
                self.times += [time.monotonic()] * count
            if self.over.is_set():
                break
        connection.close()

    def rate(self, begin, end):
        return sum(begin <= at < end for at in list(self.times)) / (end - begin)


def rate(streams, begin, end):
    return sum(stream.rate(begin, end) for stream in streams)


def measure(args, port, number):
    """-> seconds, and the shares of their speed that the streams kept: at first, and behind that."""
    body = {"max_tokens": args.context - 600, "temperature": 0, "ignore_eos": True,
            "speculative": args.speculative}
    prompts = prompts_of(args.prompts)
    streams = [Stream(port, {**body, "prompt": f"{number}.{i} {prompts[i % len(prompts)][:300]}"})
               for i in range(args.clients)]
    for stream in streams:
        stream.start()
    while any(len(stream.times) < 10 for stream in streams):
        time.sleep(0.01)
    time.sleep(args.before)
    begin = time.monotonic()
    text = f"{number} " + "".join(WORDS.format(i) for i in range(args.sentences))
    connection, answer = request(port, {**body, "prompt": text, "max_tokens": 1})
    usage = json.load(answer)["usage"]
    end = time.monotonic()
    connection.close()
    took = min(end - begin, args.before)
    time.sleep(took)
    for stream in streams:
        stream.over.set()
    around = (rate(streams, begin - took, begin) + rate(streams, end, end + took)) / 2
    first = min(begin + IN_ADVANCE_S, end)
    for stream in streams:
        stream.join()
    return {"prompt_tokens": usage["prompt_tokens"], "seconds": end - begin, "around": around,
            "first": rate(streams, begin, first) / around,
            "then": rate(streams, first, end) / around if end > first else None,
            "all": rate(streams, begin, end) / around}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--sentences", type=int, default=100, help="of the long prompt, of 20 tokens each")
    parser.add_argument("--before", type=float, default=20.0, help="seconds of streaming before, at most compared")
    parser.add_argument("--context", type=int, default=CONTEXT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.2, help="--prompt-share; 1: no limit")
    parser.add_argument("--speculative", action="store_true")
    args = parser.parse_args()
    server = Server([args.outrider, "serve", "-m", args.target, "-t", str(args.threads), "-c",
                     str(args.context), "--slots", str(args.clients + 1), "--prompt-share",
                     str(args.share)] + (["-d", args.draft] if args.draft and args.speculative else []))
    print(f"{processor()}, {args.threads} threads; {' '.join(sys.argv)}")
    rounds = []
    for number in range(args.rounds):
        rounds.append(measure(args, server.port, number))
        print({key: value and round(value, 2) for key, value in rounds[-1].items()}, flush=True)
    server.stop()
    kept = [one["all"] for one in rounds]
    print(f"median of what {args.clients} streams keep of their speed: {statistics.median(kept):.2f}; "
          "behind the first second: "
          f"{statistics.median(one['then'] for one in rounds if one['then'] is not None):.2f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Several clients at once: `outrider serve` beside llama-server over HTTP, as clients see them.

Each client asks for one streamed chat answer after the other, each question with another beginning,
so that no prompt is read from a cache. Every setting is a server of its own with as many slots as
clients; they take turns on the same files and questions. Outrider is measured without speculation
(plain) and as it is by default; llama-server as --peers says, "none" or "draft-simple:N".

first: from the question to the first text. token: of one answer, the time from its first text to its
last, for each token between; pause: between two pieces of text that a reader sees one after the other
(pieces that arrive within 2 ms of each other are one). Each is a median, with the 95th percentile in
brackets: the least value that 95 % of all do not exceed, of fewer than 20 the greatest. Over the rounds
both are medians. CPU is the server's processor time for each token. Needs llama-server (`./dev peers`).
"""
import bisect
import itertools
import json
import re
import statistics
import sys
import threading
import time

from subjects import CONTEXT, Server, arguments, ask_chat, llama_server, processor, \
    processor_seconds, prompts_of, resident_bytes

SAME_S = 0.002  # pieces that arrive within this are one
MARKUP = re.compile(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", re.S)


class Heard:
    """One streamed answer, and when its pieces came."""

    def __init__(self, port, body):
        self.text, self.tokens, self.times, self.lengths = "", 0, [], []
        begin = time.monotonic()
        connection, answer = ask_chat(port, body)
        for line in answer:
            if line.startswith(b"data: {"):
                self.take(json.loads(line[6:]), time.monotonic() - begin)
        connection.close()

    def take(self, chunk, now):
        if chunk.get("usage"):
            self.tokens = chunk["usage"]["completion_tokens"]
        piece = chunk["choices"] and chunk["choices"][0]["delta"].get("content")
        if piece:
            self.text += piece
            self.times.append(now)
            self.lengths.append(len(self.text))

    def length_at(self, time_s):
        """Characters that were there so long after the question."""
        n = bisect.bisect_right(self.times, time_s)
        return self.lengths[n - 1] if n else 0

    def time_at(self, length):
        """Seconds after the question when so many characters were there. At most all of them."""
        return self.times[bisect.bisect_left(self.lengths, length)]

    def token_s(self):
        return (self.times[-1] - self.times[0]) / max(self.tokens - 1, 1)

    def pauses(self):
        gaps = (later - earlier for earlier, later in itertools.pairwise(self.times))
        return [gap for gap in gaps if gap > SAME_S]


class Setting:
    def __init__(self, args, name):
        self.args, self.name = args, name
        self.speculative = name != "Outrider plain"

    def start(self, clients):
        if self.name.startswith("Outrider"):
            draft = ["-d", self.args.draft] if self.args.draft else []
            return Server([self.args.outrider, "serve", "-m", self.args.target, "-t",
                           str(self.args.threads), "-c", str(CONTEXT), "--slots", str(clients)] + draft)
        extra = ["-m", self.args.target, "--parallel", str(clients), "-c", str(CONTEXT * clients)]
        kind, _, most = self.name.removeprefix("llama-server ").partition(":")
        if kind != "none":
            extra += ["-md", self.args.draft, "--spec-type", kind, "--spec-draft-n-max", most]
        return llama_server(self.args.llama_server, extra, self.args.threads)

    def body(self, question):
        body = {"messages": [{"role": "user", "content": question}], "stream": True,
                "stream_options": {"include_usage": True}, "max_tokens": self.args.tokens,
                "temperature": self.args.temp, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 7,
                "ignore_eos": True}
        return body if self.speculative else {**body, "speculative": False}


def ask_all(port, setting, questions, clients):
    """-> [Heard] in the order of the questions, and the time that all took."""
    waiting, heard = iter(list(enumerate(questions))), [None] * len(questions)
    lock = threading.Lock()

    def client():
        while True:
            with lock:
                index, question = next(waiting, (None, None))
            if question is None:
                return
            heard[index] = Heard(port, setting.body(question))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if None in heard:
        sys.exit(f"{setting.name}: a client got no answer")
    return heard, time.monotonic() - begin


def spread(name, values):
    values = sorted(values) or [0.0]
    rank = (95 * len(values) + 99) // 100  # from 1 on
    return {name: 1000 * statistics.median(values), name + "_95": 1000 * values[rank - 1]}


def measure(setting, questions, clients):
    server = setting.start(clients)
    ask_all(server.port, setting, [f"warm {i}" for i in range(clients)], clients)
    before = processor_seconds(server.process)
    heard, elapsed = ask_all(server.port, setting, questions, clients)
    tokens = sum(one.tokens for one in heard)
    figures = {"tokens_per_second": tokens / elapsed,
               **spread("first_ms", [one.times[0] for one in heard]),
               **spread("token_ms", [one.token_s() for one in heard]),
               **spread("pause_ms", [pause for one in heard for pause in one.pauses()]),
               "cpu_ms": 1000 * (processor_seconds(server.process) - before) / tokens,
               "memory_mib": resident_bytes(server.process.pid) / 2**20}
    server.stop()
    return figures, [one.text for one in heard]


def show(clients, rows, same):
    print(f"\n{clients} clients; Outrider's texts with and without speculation: "
          f"{'the same' if same else 'DIFFERENT'}\n")
    print("| server | tokens/s | first, ms | token, ms | pause, ms | CPU, ms/token | MiB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, row in rows.items():
        pairs = " | ".join(f"{row[kind]:.0f} ({row[kind + '_95']:.0f})"
                           for kind in ("first_ms", "token_ms", "pause_ms"))
        print(f"| {name} | {row['tokens_per_second']:.1f} | {pairs} | {row['cpu_ms']:.1f} | "
              f"{row['memory_mib']:.0f} |", flush=True)


def settings_of(args, own):
    """Outrider's, and llama-server's that the files at hand allow."""
    peers = [peer for peer in args.peers if args.draft or peer == "none"]
    return [Setting(args, name) for name in own + [f"llama-server {peer}" for peer in peers]]


def questions_of(path, count, first=1):
    """So many, each with another beginning."""
    prompts = ["\n".join(MARKUP.findall(text)) or text for text in prompts_of(path)]
    return [f"{first + i}. {prompts[i % len(prompts)]}" for i in range(count)]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--clients", default="1,4,16")
    parser.add_argument("--each", type=int, default=2, help="questions of each client; at least 4 in all")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--temp", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", nargs="*", default=["none", "draft-simple:1", "draft-simple:3"])
    parser.add_argument("--json", help="also write all figures to this file")
    args = parser.parse_args()
    settings = settings_of(args, ["Outrider", "Outrider plain"])
    asked, results = 0, []
    print(f"{processor()}, {args.threads} threads; {' '.join(sys.argv)}")
    for clients in map(int, args.clients.split(",")):
        found, same = {setting.name: [] for setting in settings}, True
        for turn in range(args.rounds):
            count = max(clients * args.each, 4)
            questions = questions_of(args.prompts, count, asked + 1)
            asked += count
            texts = {}
            for setting in settings if turn % 2 == 0 else reversed(settings):
                figures, texts[setting.name] = measure(setting, questions, clients)
                found[setting.name].append(figures)
            same = same and texts["Outrider"] == texts["Outrider plain"]
        rows = {name: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
                for name, rounds in found.items()}
        show(clients, rows, same)
        results += [{"clients": clients, "server": name, "same_text": same, **row}
                    for name, row in rows.items()]
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": processor(), "command": " ".join(sys.argv), "results": results},
                      file, indent=1)


if __name__ == "__main__":
    main()

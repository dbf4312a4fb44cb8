#!/usr/bin/env python3
"""What speculation is worth when the target lies on other machines.

Two workers (`outrider worker`) on this machine, one thread each, are reached through a proxy that
holds every byte back for half of a given round trip in each direction; the target's layers are spread
over them, the draft model stays here. For each round trip: plain decoding and speculation at some
widths, one after the other, same prompts, temperature 0; tokens a second after the first token by
outrider's own clock, total over the prompts, the best of the rounds (other work on the machine only
ever slows down). The texts must be the same everywhere. Prints a table, writes a plot.
"""
import argparse
import collections
import json
import os
import platform
import socket
import subprocess
import sys
import threading
import time


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Pump:
    """One direction of a connection: bytes leave `delay` seconds after they came, in order."""

    def __init__(self, source, sink, delay):
        self.source, self.sink, self.delay = source, sink, delay
        self.waiting = collections.deque()
        self.changed = threading.Condition()
        for step in (self.read, self.write):
            threading.Thread(target=step, daemon=True).start()

    def put(self, data):
        with self.changed:
            self.waiting.append((time.monotonic() + self.delay, data))
            self.changed.notify()

    def read(self):
        data = b"?"
        while data:
            try:
                data = self.source.recv(1 << 18)
            except OSError:
                data = b""
            self.put(data)

    def write(self):
        while True:
            with self.changed:
                while not self.waiting:
                    self.changed.wait()
                due, data = self.waiting.popleft()
            pause = due - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            try:
                if not data:
                    self.sink.shutdown(socket.SHUT_WR)
                    return
                self.sink.sendall(data)
            except OSError:
                return


class Proxy:
    """Listens on a port of its own and passes on to `port`, with a round trip of `ms` added."""

    def __init__(self, port, ms):
        self.target, self.delay = port, ms / 2000.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                worker = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            for end in (client, worker):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Pump(client, worker, self.delay)
            Pump(worker, client, self.delay)

    def close(self):
        self.listener.close()


class Worker:
    def __init__(self, program):
        self.port = free_port()
        self.process = subprocess.Popen(
            [program, "worker", "--port", str(self.port), "--threads", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if not self.process.stdout.readline().startswith("listening on "):
            sys.exit("a worker did not start")

    def close(self):
        self.process.terminate()
        self.process.wait()


def run(args, prompt, width, where):
    # Workers keep their cache in Q8_0; here it would be another by default, and the texts others.
    command = [args.outrider, "run", "--json", "-m", args.target, "-p", prompt, "-n",
               str(args.tokens), "--temp", "0", "--ignore-eos", "-c", "1024", "--threads", "1",
               "--cache-type-k", "q8_0", "--cache-type-v", "q8_0", "--width", str(width)] + where
    command += ["--drafter", "none"] if width == 1 else ["-d", args.draft]
    # A probe on workers is never kept, so each run would take ten seconds for it.
    environment = {**os.environ, "OUTRIDER_PROBE_BUDGET_MS": "1", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def measure(args, prompts, width, where, texts):
    """Tokens a second over all prompts, tokens a step, and whether the texts are those of before."""
    milliseconds, tokens, steps, same = 0.0, 0, 0, True
    for i, prompt in enumerate(prompts):
        result = run(args, prompt, width, where)
        milliseconds += result["timings"]["predicted_ms"]
        tokens += len(result["tokens"]) - 1
        steps += result["speculation"]["steps"]
        same = same and texts.setdefault(i, result["tokens"]) == result["tokens"]
    return 1000.0 * tokens / milliseconds, (tokens + len(prompts)) / steps, same


def svg(rows, names):
    """Bars of tokens a second: a group for each place, a bar for each width."""
    colours = ["#8d99ae", "#457b9d", "#2a9d8f", "#e9c46a"]
    top = max(speed for _, speeds in rows for speed, _, _ in speeds)
    y, parts = 30, []
    for place, speeds in rows:
        y += 14
        parts.append(f'<text x="10" y="{y}" font-weight="bold">{place}</text>')
        y += 15
        for (speed, _, _), name, colour in zip(speeds, names, colours):
            length = 400.0 * speed / top
            parts.append(f'<rect x="150" y="{y - 10}" width="{length:.1f}" height="11" '
                         f'fill="{colour}"/>')
            parts.append(f'<text x="{156 + length:.1f}" y="{y}">{speed:.1f} '
                         f'({speed / speeds[0][0]:.2f}x)</text>')
            parts.append(f'<text x="20" y="{y}">{name}</text>')
            y += 15
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 {y}" '
            'font-family="sans-serif" font-size="11">\n'
            '<rect width="100%" height="100%" fill="white"/>\n'
            '<text x="10" y="16" font-size="13">Tokens a second, target on two workers, by added '
            'round trip (beside: times plain decoding)</text>\n' + "\n".join(parts) + "\n</svg>\n")


def table(rows, names):
    lines = ["| target | " + " | ".join(names) + " | tokens a step | same texts |",
             "| --- |" + " --- |" * (len(names) + 2)]
    for place, speeds in rows:
        plain = speeds[0][0]
        cells = [f"{speed:.1f}" + ("" if i == 0 else f" ({speed / plain:.2f}x)")
                 for i, (speed, _, _) in enumerate(speeds)]
        steps = ", ".join(f"{steps:.2f}" for _, steps, _ in speeds)
        same = "yes" if all(same for _, _, same in speeds) else "NO"
        lines.append(f"| {place} | " + " | ".join(cells) + f" | {steps} | {same} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outrider", default="build/outrider")
    parser.add_argument("--target", required=True, help="a GGUF file")
    parser.add_argument("--draft", required=True, help="a GGUF file")
    parser.add_argument("--prompts", default="bench/prompts.jsonl")
    parser.add_argument("--tokens", type=int, default=48, help="of each text")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--round-trips", default="0,1,5,20", help="milliseconds, added")
    parser.add_argument("--widths", default="1,4,8", help="the first must be 1: plain decoding")
    parser.add_argument("--svg", help="write a plot")
    args = parser.parse_args()
    with open(args.prompts, encoding="utf-8") as file:
        prompts = [json.loads(line)["prompt"] for line in file if line.strip()]
    widths = [int(width) for width in args.widths.split(",")]
    names = ["plain" if width == 1 else f"width {width}" for width in widths]
    places = [("this process", None), ("own process", None)]
    places += [(f"workers, {ms} ms", float(ms)) for ms in args.round_trips.split(",")]
    texts, best = {}, {}
    for _ in range(args.rounds):
        for place, ms in places:
            workers = [Worker(args.outrider) for _ in range(2)] if ms is not None else []
            proxies = [Proxy(worker.port, ms) for worker in workers]
            where = ["--isolate"] if place == "own process" else []
            if proxies:
                where = ["--workers", ",".join(f"127.0.0.1:{proxy.port}" for proxy in proxies)]
            for width in widths:
                got = measure(args, prompts, width, where, texts)
                old = best.get((place, width), (0.0, 0.0, True))
                best[place, width] = (max(got[0], old[0]), got[1], got[2] and old[2])
                print(f"{place}, width {width}: {got[0]:.1f} tokens/s, {got[1]:.2f} a step",
                      file=sys.stderr)
            for end in proxies + workers:
                end.close()
    rows = [(place, [best[place, width] for width in widths]) for place, _ in places]
    print(f"{platform.machine()}, {os.cpu_count()} processors, {len(prompts)} prompts, "
          f"{args.tokens} tokens each, best of {args.rounds} rounds\n")
    print(table(rows, names))
    if args.svg:
        with open(args.svg, "w", encoding="utf-8") as file:
            file.write(svg(rows, names))
    if not all(same for _, speeds in rows for _, _, same in speeds):
        sys.exit("the texts differ")


if __name__ == "__main__":
    main()

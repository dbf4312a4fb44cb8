#!/usr/bin/env python3
"""Several clients at once: `outrider serve` beside llama-server, over HTTP, as clients see it.

Each client asks for one chat answer after another, streamed, and notes when the first token and each
further one came. The servers run one at a time, in turns, on the same files; the texts of Outrider
with and without speculation are compared. Needs nothing but Python.

  bench/compare_clients.py --target T.gguf [--draft D.gguf] --prompts FILE.jsonl [--clients 1,4,16]
"""

import argparse
import http.client
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time


def read_prompts(path):
    prompts = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                entry = json.loads(line)
                prompts.append(entry.get("prompt") or (entry.get("turns") or [None])[0]
                               or entry["messages"][-1]["content"])
    return prompts


class Server:
    """A server's process; `url` once it can answer."""

    def __init__(self, command, port):
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for _ in range(1200):
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended at once: {' '.join(command)}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit("the server never became ready")

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            for line in file:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) / 1024
        return 0.0

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def ask(port, prompt, options, notes):
    """One streamed answer; appends (first token s, gaps s, tokens, text)."""
    body = {"messages": [{"role": "user", "content": prompt}], "stream": True,
            "stream_options": {"include_usage": True}, **options}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    begin = last = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise SystemExit(f"status {response.status}: {response.read()[:300]}")
    first, gaps, tokens, text = None, [], 0, ""
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        now = time.monotonic()
        if chunk.get("usage"):
            tokens = chunk["usage"]["completion_tokens"]
        if not chunk["choices"] or not chunk["choices"][0]["delta"].get("content"):
            continue
        text += chunk["choices"][0]["delta"]["content"]
        if first is None:
            first = now - begin
        else:
            gaps.append(now - last)
        last = now
    notes.append((first or 0.0, gaps, tokens, text))


def measure(port, prompts, n_clients, options):
    """All prompts over `n_clients` clients -> figures, and the texts by prompt."""
    waiting = list(enumerate(prompts))
    lock, notes = threading.Lock(), {}

    def client():
        while True:
            with lock:
                if not waiting:
                    return
                index, prompt = waiting.pop(0)
            answer = []
            ask(port, prompt, options, answer)
            notes[index] = answer[0]

    threads = [threading.Thread(target=client) for _ in range(n_clients)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.monotonic() - begin
    all_notes = list(notes.values())
    gaps = sorted(gap for note in all_notes for gap in note[1]) or [0.0]
    tokens = sum(note[2] for note in all_notes)
    firsts = sorted(note[0] for note in all_notes)
    return {"tokens_per_second": tokens / elapsed, "tokens": tokens,
            "first_token_ms": 1000 * statistics.median(firsts),
            "first_token_ms_95": 1000 * firsts[int(0.95 * (len(firsts) - 1))],
            "gap_ms": 1000 * statistics.median(gaps),
            "gap_ms_95": 1000 * gaps[int(0.95 * (len(gaps) - 1))]}, {
                index: note[3] for index, note in notes.items()}


def commands(arguments, n_clients):
    """name -> (command, options of a request)."""
    port, threads = str(arguments.port), str(arguments.threads)
    ctx = 2048
    outrider = [arguments.outrider, "serve", "-m", arguments.target, "--port", port, "-t", threads,
                "--slots", str(n_clients), "-c", str(ctx)]
    llama = [arguments.llama_server, "-m", arguments.target, "--port", port, "-t", threads,
             "-np", str(n_clients), "-c", str(ctx * n_clients), "--no-webui"]
    sets = {"outrider": (outrider, {}), "outrider plain": (outrider, {"speculative": False}),
            "llama-server plain": (llama, {})}
    if arguments.draft:
        sets["outrider"] = (outrider + ["-d", arguments.draft], {})
        for n in arguments.draft_max.split(","):
            sets[f"llama-server draft {n}"] = (
                llama + ["-md", arguments.draft, "--draft-max", n, "--draft-min", "0"], {})
    return sets


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--draft")
    parser.add_argument("--prompts", required=True)
    parser.add_argument("--clients", default="1,4,16")
    parser.add_argument("--count", type=int, default=16, help="prompts")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--temp", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--draft-max", default="3", help="llama-server's, several by commas")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--port", type=int, default=18099)
    parser.add_argument("--outrider", default="build/outrider")
    parser.add_argument("--llama-server", default="build/bin/llama-server")
    parser.add_argument("--json", help="a file for all figures")
    arguments = parser.parse_args()
    prompts = read_prompts(arguments.prompts)[:arguments.count]
    options = {"max_tokens": arguments.tokens, "temperature": arguments.temp, "seed": 7}
    results = []
    for n_clients in map(int, arguments.clients.split(",")):
        figures, texts = {}, {}
        for _ in range(arguments.rounds):
            for name, (command, more) in commands(arguments, n_clients).items():
                server = Server(command, arguments.port)
                measure(arguments.port, prompts[:1], 1, {**options, **more})  # warm
                cpu = server.cpu_s()
                figure, texts[name] = measure(arguments.port, prompts, n_clients,
                                              {**options, **more})
                figure["cpu_ms_per_token"] = 1000 * (server.cpu_s() - cpu) / max(1, figure["tokens"])
                figure["memory_mib"] = server.memory_mib()
                figures.setdefault(name, []).append(figure)
                server.stop()
        same = texts["outrider"] == texts["outrider plain"]
        print(f"\n{n_clients} clients, {len(prompts)} prompts, {arguments.tokens} tokens, "
              f"temperature {arguments.temp}; texts with and without speculation "
              f"{'the same' if same else 'DIFFER'}")
        print(f"{'':24}tokens/s  first ms (95 %)     gap ms (95 %)   cpu ms/token  MiB")
        for name, rounds in figures.items():
            m = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
            results.append({"clients": n_clients, "server": name, "same_text": same, **m})
            print(f"{name:24}{m['tokens_per_second']:8.1f}  {m['first_token_ms']:8.0f} "
                  f"({m['first_token_ms_95']:6.0f})  {m['gap_ms']:8.1f} ({m['gap_ms_95']:6.1f})"
                  f"  {m['cpu_ms_per_token']:10.1f}  {m['memory_mib']:6.0f}", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": platform.processor() or platform.machine(),
                       "command": " ".join(sys.argv), "results": results}, file, indent=1)


if __name__ == "__main__":
    main()

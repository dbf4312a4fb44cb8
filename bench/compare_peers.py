#!/usr/bin/env python3
"""Measures outrider beside llama-server: same files, same prompts, one after the other in one run.

For each prompt and temperature, in every round: llama-server plain, llama-server with draft-simple,
outrider plain (--width 1), outrider with the draft. The order turns from round to round. A figure is
tokens a second after the first token, (n - 1) / time between first and last token, by each program's
own clock; the median over the rounds. Needs build/bin/llama-server (`./dev peers`).
"""
import argparse
import json
import math
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

NO_FILTERS = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """llama-server with one slot and no prompt cache."""

    def __init__(self, program, args, threads):
        self.port = free_port()
        command = [program, "--port", str(self.port), "--parallel", "1", "-t", str(threads),
                   "-c", "2048", "--cache-ram", "0", "--no-ui"] + args
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(600):
            try:
                self.get("/health")
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.2)
        self.log.seek(0)
        sys.stderr.write(self.log.read().decode(errors="replace")[-2000:])
        sys.exit("llama-server did not start: " + " ".join(command))

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return answer.read()

    def post(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}",
                                         json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def complete(self, prompt, temperature, seed, tokens):
        result = self.post("/completion", {
            "prompt": prompt, "n_predict": tokens, "temperature": temperature, "seed": seed,
            "cache_prompt": False, **NO_FILTERS})
        t = result["timings"]
        return {"tps": 1000.0 * (t["predicted_n"] - 1) / t["predicted_ms"],
                "drafted": t.get("draft_n", 0), "accepted": t.get("draft_n_accepted", 0),
                "text": result["content"]}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


class Outrider:
    def __init__(self, program, args, threads):
        self.command = [program, "run", "-t", str(threads), "-c", "2048", "--json",
                        "--top-k", "0", "--top-p", "1", "--min-p", "0"] + args

    def complete(self, prompt, temperature, seed, tokens):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(prompt)
            file.flush()
            run = subprocess.run(self.command + ["-f", file.name, "--temp", str(temperature),
                                                 "--seed", str(seed), "-n", str(tokens)],
                                 stdout=subprocess.PIPE, check=True)
        result = json.loads(run.stdout)
        s = result["speculation"]
        return {"tps": result["timings"]["predicted_per_second"], "drafted": s["drafted"],
                "accepted": s["accepted"], "text": result["text"], "exactness": s["exactness"],
                "tokens_per_step": s["tokens_per_step"],
                "overhead": overhead(result)}

    def stop(self):
        pass


def overhead(result):
    """Share of the time after the first token that is neither target nor draft model."""
    s = result["speculation"]
    busy = s["verify_ms"] + s["draft_ms"]
    total = result["timings"]["predicted_ms"]
    return 1.0 - busy / total if total else 0.0


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return f"{len(names)} x {names[0]}"
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def measure(subjects, prompts, temperatures, rounds, tokens):
    """{(category, temperature): {subject: [result of each round]}}"""
    results = {}
    for prompt in prompts:
        for temperature in temperatures:
            cell = results.setdefault((prompt["category"], temperature), {n: [] for n in subjects})
            for turn in range(rounds):
                names = list(subjects)
                names = names[turn % len(names):] + names[:turn % len(names)]
                for name in names:
                    cell[name].append(
                        subjects[name].complete(prompt["prompt"], temperature, 1 + turn, tokens))
            speeds = "  ".join(f"{n} {median(cell[n]):.1f}" for n in subjects)
            print(f"{prompt['category']:10} T={temperature}: {speeds}", file=sys.stderr)
    return results


def median(results):
    return statistics.median(r["tps"] for r in results)


def rate(results):
    drafted = sum(r["drafted"] for r in results)
    return f" ({sum(r['accepted'] for r in results)}/{drafted})" if drafted else ""


def print_table(results, subjects):
    names = list(subjects)
    print("| T | prompt | " + " | ".join(names) + " | outrider / its plain | outrider / best peer | same text |")
    print("| --- " * (len(names) + 5) + "|")
    ratios = {}
    for (category, temperature), cell in results.items():
        plain, ours = median(cell["outrider plain"]), median(cell["outrider"])
        peers = [median(cell[n]) for n in names if n.startswith("llama-server")]
        same = all(a["text"] == b["text"] for a, b in zip(cell["outrider plain"], cell["outrider"]))
        ratios.setdefault(temperature, []).append((ours / plain, ours / max(peers), plain / peers[0]))
        columns = " | ".join(f"{median(cell[n]):.1f}{rate(cell[n])}" for n in names)
        print(f"| {temperature} | {category} | {columns} | {ours / plain:.2f} | "
              f"{ours / max(peers):.2f} | {'yes' if same else 'NO'} |")
    for temperature, values in ratios.items():
        means = [math.exp(statistics.mean(math.log(v[i]) for v in values)) for i in range(3)]
        print(f"\nT={temperature}, geometric means: {means[0]:.2f} of our plain decoding, "
              f"{means[1]:.2f} of the best peer, our plain {means[2]:.2f} of llama-server's plain")


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--draft", required=True)
    parser.add_argument("--server", default=os.path.join(here, "build/bin/llama-server"))
    parser.add_argument("--outrider", default=os.path.join(here, "build/outrider"))
    parser.add_argument("--prompts", default=os.path.join(here, "bench/prompts.jsonl"))
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--n-max", type=int, default=3, help="llama-server's drafted tokens")
    parser.add_argument("--temps", default="0,1")
    parser.add_argument("--json", help="also write all figures to this file")
    args = parser.parse_args()
    with open(args.prompts, encoding="utf-8") as file:
        prompts = [json.loads(line) for line in file if line.strip()]
    pair = ["-m", args.target, "-d", args.draft]
    peer = ["-m", args.target]
    drafting = peer + ["-md", args.draft, "--spec-type", "draft-simple", "--spec-draft-n-max",
                       str(args.n_max), "-td", str(args.threads)]
    subjects = {
        "llama-server plain": Server(args.server, peer, args.threads),
        f"llama-server draft-simple n={args.n_max}": Server(args.server, drafting, args.threads),
        "outrider plain": Outrider(args.outrider, pair + ["--width", "1"], args.threads),
        "outrider": Outrider(args.outrider, pair + ["--width", str(args.width)], args.threads),
    }
    temperatures = [float(t) if "." in t else int(t) for t in args.temps.split(",")]
    try:
        results = measure(subjects, prompts, temperatures, args.rounds, args.tokens)
    finally:
        for subject in subjects.values():
            subject.stop()
    print(f"{time.strftime('%Y-%m-%d')}, {processor()}, {args.threads} threads, target "
          f"{os.path.basename(args.target)}, draft {os.path.basename(args.draft)}, {args.tokens} "
          f"tokens, median of {args.rounds} rounds; tokens a second (accepted/drafted)\n")
    print_table(results, subjects)
    ours = [r for cell in results.values() for r in cell["outrider"]]
    print(f"\nNeither target nor draft: {100 * statistics.median(r['overhead'] for r in ours):.1f} % "
          f"of the time after the first token; exactness: {ours[0]['exactness']}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([{"category": c, "temperature": t, "results": cell}
                       for (c, t), cell in results.items()], file, indent=1)


if __name__ == "__main__":
    main()

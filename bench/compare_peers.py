#!/usr/bin/env python3
"""Measures Outrider beside llama-server: same files, same prompts, one after the other in one run.

--peers names llama-server's settings: "none", "draft-simple:N" or "draft-eagle3:N" (N drafted tokens
at most) or one of its n-gram types. --ours names Outrider's: "plain", "auto" (the default: all that is
there, as many as pay), or DRAFTERS@WIDTH, such as draft-model@auto, draft-model@4, eagle3@auto or
suffix,draft-model@auto. A head (--head) is the draft of what names eagle3, and of "auto" where there
is no --draft. Every setting is a process of its own that answers all prompts, so what ours learns on
the way counts. The order turns from round to round; further rounds of a prompt find it in every
program's cache.

With --until X rounds are added until the 95 % interval of ours / best peer, over all of these prompts,
is less than X wide each way at every temperature, and --rounds is the least, --most-rounds the most.
Whether it is less than 0.05 is said in any case. What ends it early (Ctrl-C, SIGTERM, a program that
fails) does so behind the tables of what was measured.

A figure is tokens a second after the first token, (n - 1) / (time between the first token and the
last), by each program's own clock; the median over prompts and rounds of a category. "Best peer" is
llama-server's best setting for that category and temperature, chosen afterwards; its ratio is
followed by the least and the greatest of the rounds, each by itself. Processor time is that of the
process, prompt included, for each token said: on a machine that is shared it says more than the clock.
Temperatures are without filters; "0.8d" is 0.8 with llama.cpp's default filters. Needs llama-server (`./dev peers`).
"""
import argparse
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import time

from peer_tables import interval, print_tables
from subjects import CONTEXT, Rpc, at_least, llama_server, output_file, processor, processor_seconds

NO_FILTERS = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
DEFAULT_FILTERS = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}


class Peer:
    def __init__(self, args, setting):
        extra = ["-m", args.target] + args.peer_args.split()
        kind, _, n = setting.partition(":")
        if kind in ("draft-simple", "draft-eagle3"):
            file = args.draft if kind == "draft-simple" else args.head
            extra += ["-md", file, "--spec-draft-n-max", n or "3", "-td", str(args.threads)]
        if kind != "none":
            extra += ["--spec-type", kind]
        self.server = llama_server(args.server, extra, args.threads)

    def complete(self, prompt, sampling, seed, tokens):
        result = self.server.post("/completion", {
            "prompt": prompt, "n_predict": tokens, "seed": seed, "cache_prompt": True,
            "temperature": sampling["temp"], **{k: v for k, v in sampling.items() if k != "temp"}})
        t = result["timings"]
        return {"tps": 1000.0 * max(t["predicted_n"] - 1, 1) / t["predicted_ms"],
                "drafted": t.get("draft_n", 0), "accepted": t.get("draft_n_accepted", 0),
                "tokens": t["predicted_n"], "text": result["content"]}

    def process(self):
        return self.server.process

    def stop(self):
        self.server.stop()


LEAST_TOKENS = 8  # of a text that is timed
PEER = re.compile(r"none|draft-(simple|eagle3)(:[1-9]\d*)?|(draft|ngram)-[a-z0-9-]+")
OURS = re.compile(r"[a-z0-9-]+([,/][a-z0-9-]+)*(@(auto|[1-9]\d*))?")


@functools.cache
def kinds_of_drafters(outrider):
    """What the program says of each that it has: "model", "head" or "lookup"."""
    rpc = Rpc([outrider, "rpc"])
    status = rpc.call("system.status", {})
    rpc.stop()
    return {drafter["name"]: drafter["kind"] for drafter in status["drafters"]}


def may_ask_draft(outrider, drafters):
    if drafters in ("auto", "plain"):
        return drafters == "auto"
    kinds = kinds_of_drafters(outrider)
    return any(kinds.get(name) != "lookup" for name in re.split("[,/]", drafters))


class Ours:
    def __init__(self, args, setting):
        drafters, _, width = setting.partition("@")
        file = args.head if "eagle3" in drafters or not args.draft else args.draft
        draft = file and may_ask_draft(args.outrider, drafters)
        self.rpc = Rpc([args.outrider, "rpc", "-m", args.target, "-t", str(args.threads), "-c",
                        str(CONTEXT), "--slots", "1"] + (["-d", file] if draft else []))
        self.rpc.wait_until_loaded(draft)
        self.speculative = setting != "plain"
        if self.speculative and setting != "auto":
            self.speculative = {"drafters": drafters,
                                "width": int(width) if width.isdigit() else "auto"}

    def complete(self, prompt, sampling, seed, tokens):
        result = self.rpc.call("completion.run", {
            "prompt": prompt, "max_tokens": tokens, "seed": seed, **sampling,
            "speculative": self.speculative})
        s = result["speculation"]
        return {"tps": result["timings"]["predicted_per_second"], "drafted": s["drafted"],
                "accepted": s["accepted"], "tokens": result["usage"]["completion_tokens"],
                "text": result["text"], "tokens_per_step": s["tokens_per_step"]}

    def process(self):
        return self.rpc.process

    def stop(self):
        self.rpc.stop()


def sampling_of(text):
    if text.endswith("d"):
        return {"temp": float(text[:-1]), **DEFAULT_FILTERS}
    return {"temp": float(text), **NO_FILTERS}


def prompts_of(path, categories, per_category):
    """[(category, prompt)]: of `turns` or `messages` the user's first becomes a ChatML turn."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                found.setdefault(entry.get("category", "all"), []).append(prompt_of(entry))
            except (ValueError, LookupError, TypeError, AttributeError):
                raise ValueError(f"{path}, line {number} is no prompt: it must be an object with "
                                 "prompt, turns or messages") from None
    wanted = categories.split(",") if categories else list(found)
    for category in wanted:
        if category not in found:
            raise ValueError(f"{path} has no category {category!r}; it has "
                             f"{', '.join(map(repr, found)) or 'no prompts'}")
    return [(c, p) for c in wanted for p in found[c][:per_category]]


def prompt_of(entry):
    """Raises LookupError or TypeError where there is none."""
    prompt = entry.get("prompt")
    if prompt is not None:
        return prompt
    turns = entry.get("turns") or [m["content"] for m in entry["messages"] if m["role"] == "user"]
    return f"<|im_start|>user\n{turns[0]}<|im_end|>\n<|im_start|>assistant\n"


def complete(subject, prompt, sampling, seed, tokens):
    """What the subject says of itself, and "cpu_ms", of the processors for each token."""
    before = processor_seconds(subject.process())
    result = subject.complete(prompt, sampling, seed, tokens)
    after = processor_seconds(subject.process())
    if before is not None and after is not None and result["tokens"] > 0:
        result["cpu_ms"] = 1000.0 * (after - before) / result["tokens"]
    return result


def measure(results, subjects, prompts, temperatures, rounds, enough, tokens):
    """Fills {(category, temperature): {subject: [result of each round and prompt]}}, so that what was
    measured is there where it ends early: `rounds` is (least, most), and further rounds are added until
    enough(results)."""
    names = list(subjects)
    turn = 0
    for seed in range(1, rounds[1] + 1):
        for temperature in temperatures:
            for i, (category, prompt) in enumerate(prompts):
                order = names[turn % len(names):] + names[:turn % len(names)]
                turn += 1
                said = {name: {"round": seed, "prompt": i, **complete(
                    subjects[name], prompt, sampling_of(temperature), seed, tokens)}
                    for name in order}
                where = f"{seed}. T={temperature} {i + 1}/{len(prompts)} {category}"
                if min(r["tokens"] for r in said.values()) < LEAST_TOKENS:
                    print(f"{where}: left out, a text ended too soon to be timed", file=sys.stderr)
                    continue
                cell = results.setdefault((category, temperature), {n: [] for n in names})
                for name in names:
                    cell[name].append(said[name])
                speeds = "  ".join(f"{n} {said[n]['tps']:.1f}" for n in names)
                print(f"{where}: {speeds}", file=sys.stderr)
        if seed >= rounds[0] and enough(results):
            break


def temperatures_of(text):
    temperatures = text.split(",")
    for temperature in temperatures:
        if not re.fullmatch(r"\d+(\.\d+)?d?", temperature):
            raise argparse.ArgumentTypeError(f"'{temperature}' is no temperature, as 0, 1 or 0.8d")
    return temperatures


def width_of_interval(text):
    if not re.fullmatch(r"\d*\.?\d+", text) or float(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' must be a number above 0, as 0.05")
    return float(text)


def setting_of(pattern):
    def read(text):
        if not pattern.fullmatch(text):
            raise argparse.ArgumentTypeError(f"'{text}' is no setting; --help says which there are")
        return text
    return read


def options():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--draft", help="for draft-simple, and for what of ours uses it")
    parser.add_argument("--head", help="EAGLE-3, for draft-eagle3, and for what of ours uses it")
    parser.add_argument("--server", default=os.path.join(here, "build/bin/llama-server"))
    parser.add_argument("--outrider", default=os.path.join(here, "build/outrider"))
    parser.add_argument("--prompts", default=os.path.join(here, "bench/prompts.jsonl"),
                        help="JSON lines with category, and prompt, turns or messages")
    parser.add_argument("--categories", help="of the prompts, separated by commas; default: all")
    parser.add_argument("--per-category", type=at_least(1), default=1, help="prompts")
    parser.add_argument("--peers", nargs="*", metavar="SETTING", type=setting_of(PEER),
                        default=["none"] + [f"draft-simple:{n}" for n in (1, 2, 3, 4, 6, 8)])
    parser.add_argument("--ours", nargs="+", metavar="SETTING", type=setting_of(OURS),
                        default=["auto", "plain"])
    parser.add_argument("--tokens", type=at_least(LEAST_TOKENS), default=96)
    parser.add_argument("--rounds", type=at_least(1), default=1, help="each with another seed")
    parser.add_argument("--until", type=width_of_interval,
                        help="repeat until the interval is that narrow: 0.05")
    parser.add_argument("--most-rounds", type=at_least(1), default=12, help="with --until")
    parser.add_argument("--threads", type=at_least(1), default=os.cpu_count())
    parser.add_argument("--temps", type=temperatures_of, default="0,0.8d,1")
    parser.add_argument("--peer-args", default="", help="for every llama-server; with '-ctk bf16 "
                        "-ctv f16 -fa on' it says what ours says, so that all work on one text")
    parser.add_argument("--json", type=output_file, help="also write all figures to this file")
    parser.add_argument("--check", action="store_true",
                        help="only say what is wrong with the options and the prompts")
    args = parser.parse_args()
    for setting in args.peers + args.ours:
        if "eagle3" in setting and not args.head:
            parser.error(f"{setting} needs an EAGLE-3 head: give --head")
        if re.search("draft-(simple|model)", setting) and not args.draft:
            parser.error(f"{setting} needs a draft model: give --draft")
    try:
        prompts = prompts_of(args.prompts, args.categories, args.per_category)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if not prompts:
        parser.error(f"there are no prompts in {args.prompts}")
    return args, prompts


def run(args, prompts, results):
    """Fills `results`; the programs are gone when it returns or raises."""
    subjects = {}
    try:
        for setting in args.peers:
            subjects[setting] = Peer(args, setting)
        for setting in args.ours:
            subjects[setting] = Ours(args, setting)
        for subject in subjects.values():  # warm
            subject.complete(prompts[0][1], sampling_of("0"), 1, 4)
        judged = next((n for n in args.ours if n != "plain"), None)

        def enough(so_far):
            return not (args.until and args.peers and judged) or all(
                interval(so_far, t, judged, args.peers)[1] < args.until for t in args.temps)

        most = max(args.rounds, args.most_rounds) if args.until else args.rounds
        measure(results, subjects, prompts, args.temps, (args.rounds, most), enough, args.tokens)
        if not enough(results):
            print(f"After {most} rounds the interval is still wider than {args.until}.")
    finally:
        for subject in subjects.values():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # the others must go, too
                subject.stop()


def show(args, results):
    print(f"{time.strftime('%Y-%m-%d')}, {processor()}, {args.threads} threads, target "
          f"{os.path.basename(args.target)}, draft {os.path.basename(args.draft or 'none')}, "
          f"{args.tokens} tokens, {args.per_category} prompts a category, "
          f"{len({r['round'] for cell in results.values() for r in cell[args.ours[0]]})} rounds; "
          f"llama-server's arguments: {args.peer_args or 'none'}; "
          "tokens a second (accepted/drafted)")
    print_tables(results, args.peers, args.ours)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([{"category": c, "temperature": t, "results": cell}
                       for (c, t), cell in results.items()], file, indent=1)


def main():
    args, prompts = options()
    if args.check:
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # or the servers would stay
    results, ended = {}, None
    try:
        run(args, prompts, results)
    except BaseException as error:  # what was measured took hours: it is shown whatever ended it
        ended = error
    if not results:
        raise ended or SystemExit("no text was long enough to be timed")
    if ended:
        texts = sum(len(cell[args.ours[0]]) for cell in results.values())
        print(f"Ended early, behind {texts} texts of each setting; those count.")
    show(args, results)
    if ended:
        raise ended


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

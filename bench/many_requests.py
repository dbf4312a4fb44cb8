#!/usr/bin/env python3
"""The memory of `outrider serve` over many requests: several clients ask one short question after the
other, and every so often the server's memory (resident), handles and threads are noted.

Every tenth question is the one before it, so prompts are found in the cache as well as read; every
seventh time the client goes away behind the first line of its answer. A server that keeps something
of each request grows by the same from row to row; what grows at first is caches that fill up.
"""
import argparse
import concurrent.futures
import os
import threading

from subjects import Server, ask_chat, at_least, processor, resident_bytes


def ask(port, number, args):
    question = f"{number - number % 10 if number % 10 == 1 else number}: what is this number times two?"
    body = {"messages": [{"role": "user", "content": question}], "stream": True,
            "max_tokens": args.tokens, "temperature": number % 2, "seed": number}
    connection, answer = ask_chat(port, body)
    if number % 7 == 0:
        answer.readline()
    else:
        answer.read()
    connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--draft")
    parser.add_argument("--outrider", default="build/outrider")
    parser.add_argument("--requests", type=at_least(1), default=10000)
    parser.add_argument("--clients", type=at_least(1), default=4)
    parser.add_argument("--tokens", type=int, default=8, help="of an answer, at most")
    args = parser.parse_args()
    draft = ["-d", args.draft] if args.draft else []
    server = Server([args.outrider, "serve", "-m", args.target, "--slots", str(args.clients)] + draft)
    print(f"{processor()}; {args.clients} clients, answers of {args.tokens} tokens\n")
    print("| requests | MiB resident | handles | threads |\n| --- | --- | --- | --- |", flush=True)
    lock, numbers = threading.Lock(), iter(range(1, args.requests + 1))

    def client():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            ask(server.port, number, args)
            if number % max(args.requests // 10, 1) == 0 or number * 100 == args.requests:
                pid = server.process.pid
                handles, threads = (len(os.listdir(f"/proc/{pid}/{kind}")) for kind in ("fd", "task"))
                print(f"| {number:,} | {resident_bytes(pid) / 2**20:.1f} | {handles} | {threads} |",
                      flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.clients) as pool:
        for one in [pool.submit(client) for _ in range(args.clients)]:
            one.result()  # or what ended it


if __name__ == "__main__":
    main()

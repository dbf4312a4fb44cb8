#!/usr/bin/env python3
"""The memory of `outrider serve` over many requests: several clients ask one short question after the
other, and every so often the server's memory (resident), handles and threads are noted.

Every tenth question is the one before it, so prompts are found in the cache as well as read; every
seventh time the client goes away behind the first line of its answer. A server that keeps something
of each request grows by the same from row to row; what grows at first is caches that fill up.
"""
import argparse
import http.client
import json
import os
import sys
import threading

from subjects import Server, processor


def read_status(pid):
    """Resident MiB, handles, threads."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmRSS"].split()[0]) / 1024, len(os.listdir(f"/proc/{pid}/fd")), \
        int(fields["Threads"])


def ask(port, number, args):
    question = f"{number - number % 10 if number % 10 == 1 else number}: what is this number times two?"
    body = {"messages": [{"role": "user", "content": question}], "stream": True,
            "max_tokens": args.tokens, "temperature": number % 2, "seed": number}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"status {answer.status}: {answer.read()[:300]}")
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
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--clients", type=int, default=4)
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
            if number % (args.requests // 10) == 0 or number * 100 == args.requests:
                memory, handles, threads = read_status(server.process.pid)
                print(f"| {number:,} | {memory:.1f} | {handles} | {threads} |", flush=True)

    clients = [threading.Thread(target=client) for _ in range(args.clients)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()


if __name__ == "__main__":
    main()

"""What the benchmarks measure: llama-server and Outrider as processes that answer prompts."""
import argparse
import atexit
import concurrent.futures
import contextlib
import http.client
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

CONTEXT = 4096  # tokens of prompt and answer together


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return f"{len(names)} x {names[0]}"
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


# Settings of OpenMP's and of llama-server's options, which a shell may have. With
# OMP_WAIT_POLICY=passive, as our tests run, llama-server decoded at 0.62 of its speed (Zen 5).
_OTHERS_SETTINGS = ("OMP_", "GOMP_", "KMP_", "LLAMA_ARG_")


def default_environment():
    """The environment for what is measured, so that every program runs at its own defaults."""
    return {key: value for key, value in os.environ.items() if not key.startswith(_OTHERS_SETTINGS)}


def processor_seconds(process):
    """What a process has used of the processors, all its threads; None where nobody tells."""
    try:
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


def resident_bytes(pid):
    """What a process holds, its share of mapped files among it."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:"))
    except (OSError, StopIteration):
        sys.exit("the system does not say what a process holds (/proc)")


def ask_chat(port, body):
    """-> the connection and the answer, to be read and closed; any other status ends the benchmark."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"status {answer.status}: {answer.read()[:300]}")
    return connection, answer


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """A server over HTTP that answers /health, on a free port; ready when it is made."""

    def __init__(self, command):
        self.port = free_port()
        command = command + ["--port", str(self.port)]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log,
                                        env=default_environment())
        atexit.register(self.process.kill)  # where the benchmark gives up
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
        sys.exit("the server did not start: " + " ".join(command))

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return answer.read()

    def post(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}",
                                         json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:  # seen with llama-server and 16 slots
            self.process.kill()
            self.process.wait()


def llama_server(program, args, threads):
    """Without its prompt cache; one slot unless `args` say otherwise."""
    return Server([program, "--parallel", "1", "-t", str(threads), "-c", str(CONTEXT), "--cache-ram",
                   "0", "--no-ui"] + args)


class Rpc:
    """`outrider rpc`, which many threads may ask at once."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=default_environment())
        self.lock = threading.Lock()
        self.waiting = {}
        self.next_id = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            if "id" in answer:
                self.waiting.pop(answer["id"]).set_result(answer)
        for future in list(self.waiting.values()):
            future.set_exception(EOFError("outrider rpc ended"))

    def call(self, method, params):
        future = concurrent.futures.Future()
        with self.lock:
            self.next_id += 1
            self.waiting[self.next_id] = future
            message = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        answer = future.result()
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_until_loaded(self, draft):
        while True:
            status = self.call("system.status", {})
            states = [status["target"]["state"]] + ([status["draft"]["state"]] if draft else [])
            if all(state == "ready" for state in states):
                return
            if "failed" in states:
                sys.exit(f"loading failed: {status}")
            time.sleep(0.1)

    def stop(self):
        with contextlib.suppress(BrokenPipeError):  # where it ended by itself
            self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Outrider:
    """`outrider rpc` with a target and perhaps a draft, asked one question after the other or many at once."""

    def __init__(self, args, slots=1):
        command = [args.outrider, "rpc", "-m", args.target, "-t", str(args.threads), "-c", "2048",
                   "--slots", str(slots)]
        self.rpc = Rpc(command + (["-d", args.draft] if args.draft else []))
        self.rpc.wait_until_loaded(args.draft)

    def complete(self, prompt, tokens, speculative):
        """-> the tokens that were said, and their text."""
        result = self.rpc.call("completion.run", {
            "prompt": prompt, "temp": 0, "max_tokens": tokens, "ignore_eos": True,
            "speculative": speculative})
        return result["usage"]["completion_tokens"], result["text"]

    def cpu_s(self):
        """Processor time that it has taken so far, all threads together."""
        return processor_seconds(self.rpc.process)

    def stop(self):
        self.rpc.stop()


class Peer:
    """llama-server with as many slots; with `draft`, by draft-simple with three guesses at most."""

    def __init__(self, args, slots=1, draft=False):
        extra = ["-m", args.target, "--parallel", str(slots), "-c", str(2048 * slots)]
        if draft:
            extra += ["-md", args.draft, "--spec-type", "draft-simple", "--spec-draft-n-max", "3"]
        self.server = llama_server(args.llama_server, extra, args.threads)

    def complete(self, prompt, tokens, _):
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": True,
                "cache_prompt": False}
        result = self.server.post("/completion", body)
        return result["timings"]["predicted_n"], result["content"]

    def cpu_s(self):
        return processor_seconds(self.server.process)

    def stop(self):
        self.server.stop()


def at_least(least):
    """The type of an option that is a whole number."""
    def read(text):
        if not re.fullmatch(r"\d+", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' must be a whole number from {least} on")
        return int(text)
    return read


def output_file(text):
    """The type of an option that is a file to write: said now, and not after hours of measuring."""
    place = text if os.path.exists(text) else os.path.dirname(text) or "."
    if not text or os.path.isdir(text) or not os.access(place, os.W_OK):
        raise argparse.ArgumentTypeError(f"'{text}' cannot be written")
    return text


def arguments(description):
    """What the benchmarks of whole requests have in common."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, help="a GGUF file")
    parser.add_argument("--draft", help="a GGUF file: measure speculation too")
    parser.add_argument("--prompts", default="bench/prompts.jsonl")
    parser.add_argument("--outrider", default="build/outrider")
    parser.add_argument("--llama-server", default="build/bin/llama-server")
    return parser


def prompts_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["prompt"] for line in file if line.strip()]

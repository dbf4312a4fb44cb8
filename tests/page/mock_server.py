#!/usr/bin/env python3
"""A server with the endpoints that the page uses and no model: for the page's tests, and to look at
the page in each of its states.

Usage: mock_server.py [--port N] [--rate TOKENS_PER_SECOND] [--key KEY] [--state STATE]
STATE: ready (default), loading, failed, no-draft, many, empty."""

import argparse
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse

from mock_texts import answer_for, steps_of, tokens_of

PAGE = pathlib.Path(__file__).resolve().parents[2] / "src" / "http" / "page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
          "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'")
LOOKUP = ["suffix", "ngram-cache", "recycle"]
# As src/http/page_reply.cc makes it.
DRAFTERS = ([[name, place] for place, name in enumerate(["draft-model", *LOOKUP, "mtp"])]
            + [["eagle3", 0], ["dflash", 0]])
RANGES = {"temp": {"min": 0}, "top_k": {"min": -1, "max": 2**31 - 1}, "top_p": {"min": 0, "max": 1},
          "min_p": {"min": 0, "max": 1}, "seed": {"min": -1, "max": 2**63 - 1},
          "max_tokens": {"min": -1, "max": 2**31 - 1}, "width": {"min": 1, "max": 64},
          "repeat_penalty": {"min": 0.01}, "typical": {"min": 0, "max": 1}}
SCRIPTS = {"/drafters.js": ("kDrafterPlaces", DRAFTERS), "/fields.js": ("kRanges", RANGES)}


def model(name, state="ready", progress=1.0, error=None, draft="smollm2-135m-q4_k_s.gguf",
          offered=None):
    return {"id": name, "object": "model", "created": 1, "owned_by": "outrider", "draft": draft,
            "offered_draft": offered,
            "status": {"state": state, "progress": progress, "error": error}}


STATES = {
    "ready": [model("smollm2-1.7b-q4_0")],
    "loading": [model("smollm2-1.7b-q4_0", "loading", 0.42)],
    "failed": [model("smollm2-1.7b-q4_0", "failed", 0.1,
                     "'smollm2.gguf' ends at byte 1,048,576 of 1,006,633,472: the file is cut off")],
    "no-draft": [model("gemma-3-1b-it-q4_0", draft=None, offered="gemma-3-270m-it-q8_0.gguf")],
    "many": [model("smollm2-1.7b-q4_0"), model("qwen3-4b-q4_k_m", "absent", 0, draft=None),
             model("gemma-3-12b-it", "loading", 0.63),
             model("broken", "failed", 0, "'broken.gguf' is no GGUF file: it begins with 'PK'")],
    "empty": [],
}


class Mock:
    """What tests set and look at. `requests`: bodies of chat completions. `cancelled`: how many
    answers a closed connection ended."""

    def __init__(self):
        self.models = STATES["ready"]
        self.rate = 2000.0     # steps of one token a second
        self.key = None
        self.failure = None    # (status, error object): the answer to the next chat completion
        self.hold_at = None    # answers wait at this token until `go` is set
        self.go = threading.Event()
        self.break_at = None   # an answer ends with an error, at this token
        self.differ_at = None  # with speculation, the text differs from this token on
        self.health = None     # a progress: the server as a whole is loading, all else 503
        self.context = 8192    # tokens that a conversation may have
        self.end_token = None  # who guessed it: a token without a text, at the end of answers
        self.times = {}        # of answers, in place of the true ones: predicted_ms, plain_ms
        self.hold_prompt = False  # answers wait in the midst of the prompt's progress until `go`
        self.requests = []
        self.cancelled = 0
        self.ended = None      # {drafted, accepted} of the last answer that came to its end


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def mock(self):
        return self.server.mock

    def log_message(self, *_):
        pass

    def send_bytes(self, status, body, content_type):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def send_json(self, value, status=200):
        self.send_bytes(status, json.dumps(value).encode(), "application/json")

    def send_error_json(self, status, message, param=None, code=None):
        self.send_json({"error": {"message": message, "type": "invalid_request_error",
                                  "param": param, "code": code}}, status)

    def allowed(self):
        if self.mock.key and self.headers.get("Authorization") != f"Bearer {self.mock.key}":
            self.send_error_json(401, "This server wants a key: send it as 'Authorization: Bearer "
                                 "KEY'", code="invalid_api_key")
            return False
        if self.mock.health is not None:
            self.send_error_json(503, "The model is loading", code="loading")
            return False
        return True

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        if path == "/health":
            loading = self.mock.health
            if loading is None:
                self.send_json({"status": "ok"})
            else:
                self.send_json({"status": "loading", "progress": loading,
                                "model": "smollm2-1.7b-q4_0"}, 503)
        elif path == "/v1/models":
            if self.allowed():
                self.send_json({"object": "list", "data": self.mock.models})
        elif path == "/props":
            if self.allowed():
                self.send_json({"default_generation_settings": {"params": {
                    "temperature": 0.800000011920929, "top_k": 40, "seed": 42, "typical_p": 1.0}}})
        elif path == "/outrider/speculation":
            if self.allowed():
                self.send_json(self.speculation())
        else:
            self.send_file(path)

    def send_file(self, path):
        if path in SCRIPTS:
            name, table = SCRIPTS[path]
            self.send_bytes(200, f"export const {name} = {json.dumps(table)};\n".encode(), TYPES[".js"])
            return
        file = PAGE / (path.lstrip("/") or "index.html")
        if file.parent != PAGE or file.suffix not in TYPES or not file.is_file():
            self.send_error_json(404, f"There is nothing at {path}")
            return
        self.send_bytes(200, file.read_bytes(), TYPES[file.suffix])

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        if not self.allowed():
            return
        path = urllib.parse.urlsplit(self.path).path
        if path == "/rpc":
            self.send_json({"jsonrpc": "2.0", "id": body["id"], "result": self.status()})
        elif path == "/v1/chat/completions":
            self.mock.requests.append(body)
            if self.mock.failure:
                (status, error), self.mock.failure = self.mock.failure, None
                self.send_json({"error": error}, status)
            else:
                self.stream(body)
        else:
            self.send_error_json(404, f"There is nothing at {path}")

    # --- a chat completion

    def event(self, value):
        text = value if isinstance(value, str) else json.dumps(value)
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.read_prompt()
            self.answer(body)
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.mock.cancelled += 1
            self.close_connection = True

    def chunk(self, delta=None, finish=None, **more):
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        self.event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                    "model": "mock", "choices": choices, **more})

    def read_prompt(self):
        self.chunk({"role": "assistant", "content": None})
        if not self.mock.hold_prompt:
            return
        for part in range(1, 5):
            self.chunk({}, prompt_progress={"total": 2048, "cache": 0, "processed": part * 512,
                                            "time_ms": part * 10})
            if part == 2:
                self.hold()

    def call_tool(self, body):
        """Calls the first tool, its arguments in pieces, as the first two tokens of an answer."""
        name = body["tools"][0]["function"]["name"]
        call = {"index": 0, "id": f"call_{len(self.mock.requests)}", "type": "function",
                "function": {"name": name, "arguments": ""}}
        self.chunk({"tool_calls": [call]}, tokens=[{"id": 5, "text": "<call>", "by": "target"}])
        for i, piece in enumerate(['{"city": "Par', 'is", "days": 3}']):
            self.chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]},
                       tokens=[{"id": 6 + i, "text": piece, "by": "suffix"}])
            if self.mock.hold_at is not None:
                self.hold()
        self.end(body, [0, 0, 0], 1, 2, ["suffix"], 0.1, finish="tool_calls")

    def answer(self, body):
        if body.get("tools") and body["messages"][-1]["role"] == "user":
            self.call_tool(body)
            return
        asked = [one["content"] for one in body["messages"] if one["role"] != "assistant"]
        reasoning, text = answer_for(asked[-1])
        if body.get("continue_final_message"):
            reasoning, text = "", text.removeprefix(body["messages"][-1]["content"])
        tokens = [(*token, "reasoning_content") for token in tokens_of(reasoning)]
        tokens += [(*token, "content") for token in tokens_of(text)]
        if self.mock.differ_at is not None and body["speculative"]:
            at = self.mock.differ_at
            tokens[at] = (9999, " otherwise", " otherwise", tokens[at][3])
        tokens = tokens[:min(body.get("max_tokens", len(tokens)), self.mock.context - 30)]
        drafters, width = self.speculation_of(body["speculative"])
        said = drafted = accepted = 0
        start, steps = time.monotonic(), steps_of(tokens, drafters, width)
        due = start
        for names, step, n_drafted in steps:
            due += (1 + 0.06 * n_drafted) / self.mock.rate
            time.sleep(max(0, due - time.monotonic()))
            if self.mock.hold_at is not None and said >= self.mock.hold_at:
                self.hold()
            if self.mock.break_at is not None and said >= self.mock.break_at:
                self.event({"error": {"message": "The target stopped answering: its process ended "
                                      "by signal 9", "type": "server_error", "code": 500,
                                      "param": None}})
                return
            said += len(step)
            drafted += n_drafted
            accepted += len(step) - 1
            for kind in ("reasoning_content", "content"):
                own = [(name, token) for name, token in zip(names, step) if token[3] == kind]
                if own:
                    self.chunk({kind: "".join(token[2] for _, token in own)},
                               tokens=[{"id": token[0], "text": token[1], "by": name}
                                       for name, token in own],
                               speculation={"drafted": drafted, "accepted": accepted})
        self.end(body, tokens, len(steps), drafted, drafters, time.monotonic() - start)

    def hold(self):
        while not self.mock.go.wait(0.02):
            comment = b": waiting\n\n"  # how a closed connection is noticed
            self.wfile.write(b"%x\r\n%s\r\n" % (len(comment), comment))

    def speculation_of(self, asked):
        if asked is False:
            return [], 1
        has_draft = any(one["draft"] for one in self.mock.models)
        drafters = (["draft-model"] if has_draft else []) + LOOKUP
        if isinstance(asked, dict):
            return asked.get("drafters", drafters), asked.get("width", 4)
        return drafters, 4

    def end(self, body, tokens, steps, drafted, drafters, seconds, finish="stop"):
        accepted = len(tokens) - steps
        self.mock.ended = {"drafted": drafted, "accepted": accepted}
        cut = len(tokens) in (body.get("max_tokens"), self.mock.context - 30)
        times = {"predicted_ms": seconds * 1000, "plain_ms": 1000 * len(tokens) / self.mock.rate,
                 **self.mock.times}
        end = {"id": 2, "text": "<|im_end|>", "by": self.mock.end_token}
        self.chunk({}, "length" if cut else finish, tokens=[end] if self.mock.end_token else [],
                   timings={"prompt_ms": 21.0, "prompt_per_second": 1200.0,
                            "predicted_ms": times["predicted_ms"], "first_token_ms": 24.0,
                            "predicted_per_second": len(tokens) / max(seconds, 1e-6)},
                   speculation={"enabled": bool(drafters), "rule": "coupled", "exactness": "exact",
                                "reason": None if drafters else
                                "the request asked for plain decoding", "steps": steps, "drafted": drafted,
                                "accepted": accepted, "emitted": len(tokens),
                                "tokens_per_step": len(tokens) / max(steps, 1),
                                "acceptance_rate": accepted / drafted if drafted else None,
                                "draft_ms": 1, "verify_ms": 1, "sample_ms": 1, "plan_ms": 1,
                                "plain_ms": times["plain_ms"],
                                "drafters": {}})
        self.chunk(usage={"prompt_tokens": 30, "completion_tokens": len(tokens),
                          "total_tokens": 30 + len(tokens)})
        self.event("[DONE]")

    # --- what is there

    def speculation(self):
        widths = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
        one = 1000 / self.mock.rate
        return {"curve": [{"width": w, "ms": one * (1 + 0.05 * (w - 1) ** 1.05)} for w in widths],
                "floor": [{"width": w, "ms": one * max(0.84, 0.045 * w)} for w in widths],
                "depths": [{"depth": d, "drafted": int(4000 * 0.8 ** d), "accepted":
                            int(4000 * 0.8 ** d * (0.86 - 0.06 * d))} for d in range(1, 8)],
                "steps": 3120, "drafted": 9020, "accepted": 6210, "emitted": 9330,
                "tokens_per_step": 2.99, "acceptance_rate": 0.6885,
                "drafters": {"draft-model": {"calls": 2900, "drafted": 7100, "accepted": 5103,
                                             "acceptance_rate": 0.7187},
                             "suffix": {"calls": 3100, "drafted": 1220, "accepted": 830,
                                        "acceptance_rate": 0.68},
                             "recycle": {"calls": 3100, "drafted": 700, "accepted": 277,
                                         "acceptance_rate": 0.396}}}

    def status(self):
        one = next((m for m in self.mock.models if m["status"]["state"] == "ready"), model("none"))
        drafter = lambda name, **more: {
            "name": name, "kind": "lookup", "state": "ready", "attached": True, "path": None,
            "error": None, "memory_bytes": 3 << 20, "files": [], **more}
        draft = {"state": "ready", "path": one["draft"], "progress": 1, "error": None,
                 "serving": True, "serving_path": one["draft"], "notes": [],
                 "info": {"path": one["draft"], "name": "SmolLM2 135M", "n_params": 134515008,
                          "size_bytes": 102041888, "kernels": "own"}}
        if not one["draft"]:
            draft = {"state": "absent", "path": None, "progress": 0, "error": None,
                     "serving": False, "serving_path": None, "notes": [], "info": None}
        return {"version": "0.1.0",
                "target": {"state": "ready", "path": f"models/{one['id']}.gguf", "progress": 1,
                           "error": None, "serving": True, "notes": [],
                           "serving_path": f"models/{one['id']}.gguf",
                           "info": {"path": f"models/{one['id']}.gguf", "name": "SmolLM2 1.7B",
                                    "n_params": 1711376384, "size_bytes": 991000000,
                                    "kernels": "own"}},
                "draft": draft,
                "exactness": {"verdict": "exact", "coverage": "up to width 32", "reason": None},
                "n_ctx": self.mock.context, "slots": 4, "running": 0, "queued": 0,
                "drafters": [
                    drafter("draft-model", kind="model", state=draft["state"],
                            attached=bool(one["draft"]), path=one["draft"],
                            memory_bytes=102041888 if one["draft"] else 0),
                    drafter("suffix", remembered={"max_tokens": 1 << 20, "namespaces": 1,
                                                  "tokens": 51200, "memory_bytes": 9 << 20}),
                    drafter("ngram-cache", files=[{
                        "path": "stores/wiki.ngram", "tier": "static", "state": "failed",
                        "attached": False, "file_bytes": 0, "memory_bytes": 0,
                        "error": {"code": "invalid", "message": "made for another tokenizer"}}]),
                    drafter("recycle", attached=False, state="absent", memory_bytes=0)]}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # a browser opens several connections at once

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.mock = Mock()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--rate", type=float, default=25)
    parser.add_argument("--key")
    parser.add_argument("--state", choices=STATES, default="ready")
    arguments = parser.parse_args()
    server = Server(arguments.port)
    server.mock.rate, server.mock.key = arguments.rate, arguments.key
    server.mock.models = STATES[arguments.state]
    print(server.url)
    server.serve_forever()


if __name__ == "__main__":
    main()

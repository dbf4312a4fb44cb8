#!/usr/bin/env python3
"""Python, with nothing but what it brings: the same text without and with speculation, and both
speeds.

    python3 python_ctypes.py target.gguf draft.gguf [TOKENS]

The library is looked for where the system looks for libraries; OUTRIDER_LIBRARY names another."""

import ctypes
import itertools
import json
import os
import sys


class Outrider:
    """The C interface as a context manager. Calls release Python's lock, so that other threads go
    on while one waits."""

    def __init__(self, **config):
        self.lib = ctypes.CDLL(os.environ.get("OUTRIDER_LIBRARY", "liboutrider.so.0.1"))
        self.lib.outrider_create.restype = ctypes.c_void_p
        self.lib.outrider_create.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
        self.lib.outrider_call.restype = ctypes.c_void_p  # not c_char_p: it is ours to free
        self.lib.outrider_call.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self.lib.outrider_free.argtypes = [ctypes.c_void_p]
        self.lib.outrider_destroy.argtypes = [ctypes.c_void_p]
        self.ids = itertools.count(1)
        error = ctypes.c_void_p()
        self.handle = self.lib.outrider_create(json.dumps(config).encode(), ctypes.byref(error))
        if not self.handle:
            raise RuntimeError(self.take(error.value))

    def take(self, pointer):
        """The text at POINTER, which is freed."""
        text = ctypes.string_at(pointer).decode()
        self.lib.outrider_free(pointer)
        return text

    def call(self, method, **params):
        request = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}
        answer = json.loads(self.take(self.lib.outrider_call(self.handle,
                                                             json.dumps(request).encode())))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def stream(self, **params):
        """The text as it comes; the result is what the generator returns."""
        started = self.call("completion.start", **params)
        while True:
            news = self.call("completion.poll", id=started["id"], wait_ms=1000)
            for update in news["updates"]:
                yield update["text"]
            if news["finished"]:
                return news["result"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.outrider_destroy(self.handle)


def generate(outrider, **params):
    text = outrider.stream(prompt="Once upon a time", seed=1, **params)
    while True:
        try:
            print(next(text), end="", flush=True)
        except StopIteration as end:
            print()
            return end.value


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: python_ctypes.py TARGET.gguf DRAFT.gguf [TOKENS]")
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    with Outrider(model={"path": sys.argv[1]}, draft={"path": sys.argv[2]}) as outrider:
        status = outrider.call("system.status", wait_ms=600000)
        for role in ("target", "draft"):
            if status[role]["state"] != "ready":
                sys.exit(f"{role}: {status[role]['error']}")
        plain = generate(outrider, max_tokens=n, speculative=False)
        fast = generate(outrider, max_tokens=n)
    speeds = [result["timings"]["predicted_per_second"] or 0 for result in (plain, fast)]
    print(f"plain {speeds[0]:.1f} tokens/s, speculative {speeds[1]:.1f} tokens/s")
    equal = plain["tokens"] == fast["tokens"]
    print("the texts are equal" if equal else "the texts differ")
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()

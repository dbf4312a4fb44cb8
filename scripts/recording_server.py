#!/usr/bin/env python3
"""Stands in for `outrider`, and writes down what clients send to `outrider serve`.

Usage: recording_server.py BINARY JOURNAL COMMAND [ARGUMENTS ...]

`serve` runs on a port of its own, and a proxy on the loopback listens where it was to listen. Bytes
pass both ways as they are. Each request, once it is there as a whole, is a line of JSON in the file
JOURNAL: {"method", "target", "headers": [[name, value]], "body"}. Several servers may write to one
journal. Any other command is BINARY's own. Used by record_fuzz_inputs.py."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

LISTENING = re.compile(r"listening on http://([\w.\[\]:]+):(\d+)")
PIECE = 1 << 16  # bytes
HEAD_END = b"\r\n\r\n"


class Requests:
    """The requests in the bytes that come over one connection. What is none ends the reading of it."""

    def __init__(self):
        self.bytes, self.broken = b"", False

    def add(self, more):
        """The requests that are whole now."""
        self.bytes += more
        found = []
        while not self.broken:
            try:
                request = self._next()
            except ValueError:
                self.broken = True
                break
            if request is None:
                break
            found.append(request)
        return found

    def _next(self):
        head, end, rest = self.bytes.partition(HEAD_END)
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _version = first.split(" ")
        headers = [[part.strip() for part in line.split(":", 1)] for line in lines]
        given = {name.lower(): value for name, value in headers}
        if given.get("transfer-encoding", "").lower() == "chunked":
            body, rest = chunked(rest)
        else:
            length = int(given.get("content-length", 0))
            body, rest = (rest[:length], rest[length:]) if len(rest) >= length else (None, rest)
        if body is None:
            return None
        self.bytes = rest
        return {"method": method, "target": target, "headers": headers,
                "body": body.decode("utf-8", "backslashreplace")}


def chunked(rest):
    """A body in chunks, and what is behind it; None: it is not there as a whole."""
    body = b""
    while True:
        size, end, rest = rest.partition(b"\r\n")
        if not end:
            return None, rest
        length = int(size.split(b";")[0], 16)
        if len(rest) < length + 2:
            return None, rest
        body, rest = body + rest[:length], rest[length + 2:]
        if length == 0:
            return body, rest


class Proxy:
    """Listens on the loopback, and passes each connection on."""

    def __init__(self, port, upstream, journal):
        self.upstream, self.journal = upstream, journal
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        requests = Requests()
        with client, contextlib.suppress(OSError):
            with socket.create_connection(self.upstream) as server:
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                # A client that ends its side is taken for one that has gone: none of them waits then.
                pump(client, server, lambda piece: self._note(requests.add(piece)))
                back.join()

    def _note(self, requests):
        for request in requests:
            line = (json.dumps(request) + "\n").encode()
            with self.lock, open(self.journal, "ab", buffering=0) as journal:
                journal.write(line)


def pump(source, sink, look=lambda piece: None):
    """Until either side ends; then both do."""
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            look(piece)
            sink.sendall(piece)
    for side in (source, sink):
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)


def without_port(arguments):
    """The arguments with port 0, and the port that they named (else the environment's, else 0)."""
    left, port = [], int(os.environ.pop("OUTRIDER_PORT", 0))
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name == "--port":
            port = int(value if equals else next(words))
        else:
            left.append(word)
    return [*left, "--port", "0"], port


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    binary, journal, *arguments = sys.argv[1:]
    if arguments[0] != "serve":
        os.execv(binary, [binary, *arguments])
    arguments, port = without_port(arguments)
    with subprocess.Popen([binary, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as server:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: server.send_signal(number))
        for line in server.stdout:
            found = LISTENING.search(line)
            if found:
                proxy = Proxy(port, (found[1].strip("[]"), int(found[2])), journal)
                line = line.replace(found[0], f"listening on http://127.0.0.1:{proxy.port}")
            print(line, end="", flush=True)
    sys.exit(server.returncode)


if __name__ == "__main__":
    main()

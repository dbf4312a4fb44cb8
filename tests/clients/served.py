"""Servers as processes of their own, for tests: started on a free port, asked, ended. `outrider serve`,
and llama-server where it has been built (`./dev peers`)."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from sanitized import bound

LISTENING = re.compile(r"listening on (http://\S+)")
# Bounds, not measures. The first load of a model compares batches with single steps.
START_S = 120
END_S = 20
LAST_WORDS = 4000  # of what it printed, in a message


class ServerFailed(Exception):
    """It ended, or did not become ready; the message has what it printed."""


class ServerProcess:
    """`with ServerProcess(command) as server:` is ready, and ended behind it. The command says where it
    listens, and has /health and /v1/models."""

    ends_well = False  # whether it must exit with 0 behind a SIGTERM

    def __init__(self, command, key=None):
        self.key = key
        # What the caller's shell sets for the command is not for this one.
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("OUTRIDER_") or name == "OUTRIDER_CACHE"}
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT, env=environment)
        self.url = None

    def __enter__(self):
        try:
            end = time.monotonic() + bound(START_S)
            self.url = self._wait(end, self._address)
            self._wait(end, self._ready)
            models = json.loads(self.get("/v1/models"))
            self.model = models["data"][0]["id"]
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *failure):
        status, printed = self._end()
        if self.ends_well and status != 0 and failure[0] is None:
            raise ServerFailed(f"the server exited with {status}: {printed[-LAST_WORDS:]}")

    def _end(self):
        """Its exit status, and what it printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=bound(END_S))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        printed = self.printed()
        self.log.close()
        return self.process.returncode, printed

    def get(self, path):
        request = urllib.request.Request(self.url + path)
        if self.key:
            request.add_header("Authorization", f"Bearer {self.key}")
        with urllib.request.urlopen(request, timeout=bound(60)) as reply:
            return reply.read().decode()

    def printed(self):
        self.log.seek(0)
        return self.log.read()

    def _address(self):
        found = LISTENING.search(self.printed())
        return found and found[1]

    def _ready(self):
        try:
            self.get("/health")
            return True
        except urllib.error.HTTPError as answer:
            if answer.code == 503:
                return False
            raise

    def _wait(self, end, condition):
        while True:
            value = condition()
            if value:
                return value
            if self.process.poll() is not None:
                raise ServerFailed(f"the server ended ({self.process.returncode}): {self.printed()}")
            if time.monotonic() > end:
                raise ServerFailed(f"the server was not ready after {bound(START_S):.0f} s: "
                                   f"{self.printed()}")
            time.sleep(0.05)


class Served(ServerProcess):
    """`with Served(binary, target, draft, "--slots", "2") as server:`"""

    n_ctx = 2048  # tokens of context
    ends_well = True

    def __init__(self, binary, target, draft=None, *options, key=None):
        command = [str(binary), "serve", "-m", str(target), "--port", "0",
                   "--ctx", str(self.n_ctx), *map(str, options)]
        if draft:
            command += ["-d", str(draft)]
        if key:
            command += ["--api-key", key]
        super().__init__(command, key)


def llama_server_from_environment():
    """llama-server with the pair that run.py named, drafting as it does by default; None: it is not
    there. OUTRIDER_LLAMA_SERVER names another one than that of `./dev peers`."""
    beside = pathlib.Path(os.environ.get("OUTRIDER_BINARY", "")).parent / "bin" / "llama-server"
    program = pathlib.Path(os.environ.get("OUTRIDER_LLAMA_SERVER") or beside)
    draft = os.environ.get("OUTRIDER_DRAFT")
    if not program.is_file() or not draft:
        return None
    with socket.socket() as probe:  # it does not say which port it took
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return ServerProcess([str(program), "-m", os.environ["OUTRIDER_TARGET"], "-md", draft,
                          "--spec-type", "draft-simple", "--parallel", "2",
                          "-c", str(2 * Served.n_ctx), "--port", str(port)])


def from_environment(*options, key=None):
    """A further server, of the binary and the pair that run.py named; None: there is no binary."""
    binary = os.environ.get("OUTRIDER_BINARY")
    if not binary:
        return None
    return Served(pathlib.Path(binary), os.environ["OUTRIDER_TARGET"],
                  os.environ.get("OUTRIDER_DRAFT"), *options, key=key)

"""The server as a process: its end by a signal, its key, its log. (What needs no process is tested in
src/http.)"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import time
import urllib.parse

import pytest

import served
from sanitized import bound

KEY = "sk-which-nobody-may-see"
DRAIN_S = 2


@pytest.fixture
def server(tmp_path):
    log = tmp_path / "access.log"
    started = served.from_environment("--drain", DRAIN_S, "--access-log", log, key=KEY)
    if started is None:
        pytest.skip("OUTRIDER_BINARY is not set; run.py sets it")
    with started as running:
        running.access_log = log
        yield running


def begin(server, **options):
    """A completion whose answer is not read yet."""
    address = urllib.parse.urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=bound(120))
    body = {"prompt": "Once upon a time", "stream": True, "ignore_eos": True, **options}
    connection.request("POST", "/v1/completions?api_key=" + KEY, json.dumps(body),
                       {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
    return connection.getresponse()


def test_sigterm_ends_a_running_answer_with_what_it_has(server):
    response = begin(server, max_tokens=-1, shift_keep=0)  # without end: the signal ends it
    first = response.readline()
    begun = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    rest = response.read().decode()
    status = server.process.wait(bound(60))
    print(f"ended {time.monotonic() - begun:.2f} s after SIGTERM, with --drain {DRAIN_S}")
    assert first.startswith(b"data: ")
    assert rest.rstrip().endswith("data: [DONE]")
    last = json.loads(rest.strip().splitlines()[-3].removeprefix("data: "))
    assert last["choices"][0]["finish_reason"] == "length"
    assert last["speculation"]["emitted"] > 0 and last["speculation"]["steps"] > 0
    assert last["timings"]["predicted_n"] > 0 and last["timings"]["predicted_ms"] > 0
    assert status == 0


def test_the_key_is_neither_in_the_process_list_nor_in_the_log(server):
    answer = begin(server, max_tokens=8).read().decode()
    assert "[DONE]" in answer
    command = pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
    assert b"--api-key" in command and KEY.encode() not in command
    end = time.monotonic() + bound(60)
    while not server.access_log.exists() or "/v1/completions" not in server.access_log.read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    text = server.access_log.read_text()
    assert KEY not in text and "Once upon" not in text
    line = next(entry for entry in map(json.loads, text.splitlines())
                if entry["path"] == "/v1/completions")
    assert line["status"] == 200 and line["completion_tokens"] == 8 and line["finish"] == "length"


@pytest.mark.skipif(not shutil.which("prlimit"), reason="no prlimit")
def test_a_server_that_may_have_few_files_refuses_connections_and_leaves_none_waiting():
    if "OUTRIDER_BINARY" not in os.environ:
        pytest.skip("OUTRIDER_BINARY is not set; run.py sets it")
    command = ["prlimit", "--nofile=96:96", os.environ["OUTRIDER_BINARY"], "serve", "--port", "0",
               "-m", os.environ["OUTRIDER_TARGET"], "--keep-alive", "3600"]
    with served.ServerProcess(command) as server:
        assert "too few files for --max-connections 1024" in server.printed()
        address = urllib.parse.urlsplit(server.url)
        held = []
        status = 200
        try:
            while status == 200:
                held.append(http.client.HTTPConnection(address.hostname, address.port,
                                                       timeout=bound(60)))
                held[-1].request("GET", "/health")
                reply = held[-1].getresponse()
                status = reply.status
                reply.read()
            assert status == 503 and len(held) > 8
        finally:
            for client in held:
                client.close()

"""curl -N: the bytes of a stream as they are on the wire."""

import json
import shutil
import subprocess

import pytest

from sanitized import bound

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")


def curl(place, path, body, *options):
    return ["curl", "--silent", "--show-error", "--no-buffer", "--max-time", str(bound(120)), *options,
            "-H", f"Authorization: Bearer {place.key}", "-H", "Content-Type: application/json",
            "-d", json.dumps(body), place.url + path]


def body_of(place, **options):
    return {"model": place.model, "stream": True, "seed": 1, "max_tokens": 24,
            "messages": [{"role": "user", "content": "Tell me about the sea."}], **options}


def events_of(raw):
    """The data of each event, of bytes that must be nothing but events."""
    assert raw.endswith(b"\n\n") and b"\r" not in raw
    events = raw[:-2].split(b"\n\n")
    assert all(event.startswith(b"data: ") and b"\n" not in event for event in events)
    return [event[len(b"data: "):] for event in events]


def test_a_stream_is_events_of_one_line_and_ends_with_done(place):
    done = subprocess.run(curl(place, "/v1/chat/completions", body_of(place), "--include"),
                          capture_output=True, check=True)
    head, _, raw = done.stdout.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith("http/1.1 200")
    assert any(line.startswith("content-type: text/event-stream") for line in lines)
    assert "cache-control: no-cache" in lines and "transfer-encoding: chunked" in lines
    assert not any(line.startswith(("content-length:", "content-encoding:")) for line in lines)
    events = events_of(raw)
    assert events[-1] == b"[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks)


def test_the_first_bytes_come_before_the_last_token_is_made(place):
    """The server is asked, while the stream is open, how many completions run. This one has no end,
    so that it runs however late the question comes."""
    body = body_of(place, max_tokens=-1, ignore_eos=True, shift_keep=0)
    command = curl(place, "/v1/chat/completions", body)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        raw = b"".join(process.stdout.readline() for _ in range(2 * 21))  # an event, an empty line
        metrics = subprocess.run(
            ["curl", "--silent", "-H", f"Authorization: Bearer {place.key}", place.url + "/metrics"],
            capture_output=True, check=True, text=True).stdout
        process.kill()
    running = [line for line in metrics.splitlines() if line.startswith("outrider:requests_running")]
    assert sum(float(line.split()[-1]) for line in running) >= 1, running
    events = events_of(raw)
    assert json.loads(events[0])["choices"][0]["delta"]["role"] == "assistant"
    assert len(events) > 20


@pytest.mark.parametrize("path, body", [
    ("/v1/completions", {"prompt": "The sea"}),
    ("/completion", {"prompt": "The sea"}),
])
def test_texts_stream_in_the_same_framing(place, path, body):
    raw = subprocess.run(curl(place, path, {"stream": True, "max_tokens": 8, "seed": 1, **body}),
                         capture_output=True, check=True).stdout
    events = events_of(raw)
    if path.startswith("/v1"):
        assert events.pop() == b"[DONE]"
    assert all(isinstance(json.loads(event), dict) for event in events)


def test_the_apis_of_agents_name_their_events(place):
    bodies = {"/v1/responses": {"input": "Hi", "max_output_tokens": 8},
              "/v1/messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}}
    for path, body in bodies.items():
        raw = subprocess.run(curl(place, path, {"model": place.model, "stream": True, **body}),
                             capture_output=True, check=True).stdout
        assert raw.endswith(b"\n\n"), path
        for event in raw[:-2].split(b"\n\n"):
            name, _, data = event.partition(b"\n")
            assert name.startswith(b"event: ") and data.startswith(b"data: "), (path, event)
            assert json.loads(data[len(b"data: "):])["type"] == name[len(b"event: "):].decode()


def test_a_refusal_of_a_stream_is_no_stream(place):
    done = subprocess.run(curl(place, "/v1/chat/completions", body_of(place, temperature=-1),
                               "--write-out", "\n%{http_code} %{content_type}"),
                          capture_output=True, check=True, text=True)
    body, _, status = done.stdout.rpartition("\n")
    assert status.startswith("400 application/json")
    assert json.loads(body)["error"]["param"] == "temperature"


def test_http_1_0_and_keep_alive_are_answered(place):
    for option in ("--http1.0", "--http1.1"):
        done = subprocess.run(["curl", "--silent", option, "--write-out", "%{http_code} %{num_connects} ",
                               "-o", "/dev/null", place.url + "/health",
                               "-o", "/dev/null", place.url + "/health"],
                              capture_output=True, check=True, text=True)
        codes = done.stdout.split()
        assert codes[0] == codes[2] == "200"
        if option == "--http1.1":
            assert codes[3] == "0", "the second request has no connection of its own"

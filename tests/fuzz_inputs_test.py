#!/usr/bin/env python3
"""Tests of scripts/recording_server.py and scripts/fuzz_inputs.py: what clients send becomes inputs of the
fuzz targets."""

import json
import pathlib
import socket
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import fuzz_inputs  # noqa: E402
import recording_server  # noqa: E402

BODY = b'{"prompt":"a"}'
WITH_LENGTH = (b"POST /completion HTTP/1.1\r\nHost: 127.0.0.1:4711\r\nContent-Length: 14\r\n\r\n" + BODY)
IN_CHUNKS = (b"POST /completion HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
             b"7\r\n" + BODY[:7] + b"\r\n7;name=value\r\n" + BODY[7:] + b"\r\n0\r\n\r\n")
WITHOUT = b"GET /health HTTP/1.1\r\nAccept: */*\r\n\r\n"


class Recording(unittest.TestCase):
    def test_requests_are_found_however_the_bytes_come(self):
        for size in (1, 7, 1000):
            requests, found = recording_server.Requests(), []
            stream = WITH_LENGTH + WITHOUT + IN_CHUNKS + WITH_LENGTH
            for at in range(0, len(stream), size):
                found += requests.add(stream[at:at + size])
            self.assertEqual([request["target"] for request in found],
                             ["/completion", "/health", "/completion", "/completion"])
            self.assertEqual([request["body"] for request in found],
                             [BODY.decode(), "", BODY.decode(), BODY.decode()])

    def test_what_is_no_request_ends_the_reading(self):
        requests = recording_server.Requests()
        self.assertEqual(requests.add(b"nothing\r\n\r\n" + WITHOUT), [])
        self.assertEqual(requests.add(WITHOUT), [])

    def test_the_port_of_the_command_line_is_the_proxys(self):
        for words, port in ((["--port", "81", "-m", "x"], 81), (["--port=82", "-m", "x"], 82),
                            (["-m", "x"], 0)):
            self.assertEqual(recording_server.without_port(words), (["-m", "x", "--port", "0"], port))

    def test_bytes_pass_both_ways_and_are_written_down(self):
        with tempfile.TemporaryDirectory() as folder, \
                socket.create_server(("127.0.0.1", 0)) as upstream:
            journal = pathlib.Path(folder) / "journal"
            proxy = recording_server.Proxy(0, upstream.getsockname(), journal)
            self.addCleanup(proxy.listener.close)

            def answer():
                with upstream.accept()[0] as connection:
                    self.arrived = connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

            thread = threading.Thread(target=answer)
            thread.start()
            with socket.create_connection(("127.0.0.1", proxy.port)) as client:
                client.sendall(WITHOUT)
                self.assertEqual(client.recv(1000), b"HTTP/1.1 200 OK\r\n\r\n")
            thread.join()
            self.assertEqual(self.arrived, WITHOUT)
            self.assertEqual(json.loads(journal.read_text())["target"], "/health")


def recorded(body, target="/v1/chat/completions", method="POST", **headers):
    headers = {"Host": "127.0.0.1:4711", "X-Stainless-Os": "Linux", "User-Agent": "OpenAI/Python 3",
               **{name.replace("_", "-"): value for name, value in headers.items()}}
    body = body if isinstance(body, str) else json.dumps(body)
    return {"method": method, "target": target, "headers": list(headers.items()), "body": body}


def chat(**options):
    return {"model": "some-model", "messages": [{"role": "user", "content": "Hi"}], **options}


def files_of(*requests, client="curl"):
    return fuzz_inputs.files_of({client: list(filter(None, map(fuzz_inputs.clean, requests)))})


class Inputs(unittest.TestCase):
    def test_a_request_is_written_as_the_target_reads_it(self):
        files = files_of(recorded(chat(), "/v1/chat/completions?model=x%2Fy"))
        text = ('POST /v1/chat/completions?model=fake\nHost: 127.0.0.1\nUser-Agent: OpenAI/Python 3\n\n'
                '{"model":"fake","messages":[{"role":"user","content":"Hi"}]}')
        self.assertEqual(files, {"http/curl-chat": text})

    def test_the_richest_is_kept_and_what_has_another_field_each_named_after_one(self):
        files = files_of(recorded(chat(stream=True)), recorded(chat()), recorded(chat(stream=False)),
                         recorded(chat(stream=True, stop=["x"])), recorded(chat(n=2)),
                         recorded("", "/v1/models", "GET"), recorded("", "/v1/models", "GET"))
        self.assertEqual(sorted(files), ["http/curl-chat-n", "http/curl-chat-stop",
                                         "http/curl-get-models"])

    def test_what_another_client_has_sent_is_kept_once_and_each_client_has_one(self):
        both = [fuzz_inputs.clean(recorded(body)) for body in (chat(stop=["x"]), chat(n=2))]
        files = fuzz_inputs.files_of({"curl": both, "llm": both})
        self.assertEqual(sorted(files), ["http/curl-chat-n", "http/curl-chat-stop",
                                         "http/llm-chat-n"])

    def test_keys_and_random_ids_are_no_part_of_it(self):
        for name, value in (("Authorization", "Bearer sk-1"), ("x-api-key", "sk-1")):
            text, = files_of(recorded(chat(user="call_abcdEFGH1234"), **{name: value})).values()
            self.assertNotIn("sk-1", text)
            self.assertIn("sk-of-nobody", text)
            self.assertIn('"user":"call_1"', text)

    def test_what_names_a_machine_or_comes_of_the_tests_themselves_is_left_out(self):
        for body in (chat(user="/home/somebody/x"), chat(user="https://example.org")):
            self.assertEqual(files_of(recorded(body)), {})
        self.assertEqual(files_of(recorded(chat(), User_Agent="Python-urllib/3.11")), {})

    def test_what_the_fuzzer_would_cut_off_is_left_out(self):
        self.assertEqual(files_of(recorded(chat(user="x" * 5000))), {})

    def test_schemas_grammars_and_calls_are_inputs_of_their_targets(self):
        schema = {"type": "object", "properties": {"legs": {"type": "integer"}}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "system.status"}
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        files = files_of(recorded(chat(response_format=form)), recorded(call, "/rpc"),
                         recorded({"prompt": "a", "grammar": "root ::= [a-z]"}, "/completion"))
        self.assertEqual(json.loads(files["json_schema/curl-legs"]), schema)
        self.assertEqual(files["gbnf/curl-grammar"], "root ::= [a-z]")
        self.assertEqual([json.loads(line) for line in files["json_rpc/curl-calls"].splitlines()],
                         [call])
        self.assertIn(json.dumps(call, separators=(",", ":")), files["c_abi/curl-calls"])

    def test_writing_replaces_what_was_recorded_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            corpus = pathlib.Path(folder)
            (corpus / "http").mkdir()
            for name in ("curl-old", "by_hand"):
                (corpus / "http" / name).write_text("x")
            fuzz_inputs.write({"http/curl-chat": "a\r\nb"}, corpus, ["curl"])
            names = sorted(path.name for path in (corpus / "http").iterdir())
            self.assertEqual(names, ["by_hand", "curl-chat"])
            self.assertEqual((corpus / "http" / "curl-chat").read_bytes(), b"a\r\nb")


if __name__ == "__main__":
    unittest.main()

"""The same seed gives the same text in every API, with speculation and without."""

import json
import urllib.request

import pytest

from sanitized import bound

QUESTION = "Why is the sky blue?"
MESSAGES = [{"role": "user", "content": QUESTION}]
TOKENS = 20
# What this server adds to the services' own fields.
SETTINGS = {"seed": 21, "temp": 0.9, "top_k": 30}


@pytest.fixture
def ask(place):
    def post(path, body):
        request = urllib.request.Request(
            place.url + path, json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {place.key}"})
        with urllib.request.urlopen(request, timeout=bound(120)) as reply:
            return json.load(reply)
    return post


def texts(ask, place, speculative):
    settings = {**SETTINGS, "speculative": speculative, "model": place.model}
    prompt = ask("/apply-template", {"messages": MESSAGES})["prompt"]
    chat = {**settings, "max_tokens": TOKENS}
    rpc = {key: value for key, value in chat.items() if key != "model"}
    rpc = ask("/rpc", {"jsonrpc": "2.0", "id": 1, "method": "completion.run",
                       "params": {**rpc, "messages": MESSAGES}})
    yield "chat", ask("/v1/chat/completions",
                      {**chat, "messages": MESSAGES})["choices"][0]["message"]["content"]
    yield "text", ask("/v1/completions", {**chat, "prompt": prompt})["choices"][0]["text"]
    yield "llama-server's", ask("/completion", {**chat, "prompt": prompt})["content"]
    yield "messages", ask("/v1/messages", {**chat, "messages": MESSAGES})["content"][0]["text"]
    answer = ask("/v1/responses", {**settings, "max_output_tokens": TOKENS, "input": QUESTION})
    yield "responses", answer["output"][-1]["content"][0]["text"]
    yield "rpc", rpc["result"]["text"]


def test_all_apis_say_the_same(ask, place):
    said = [(name, text) for speculative in (True, False)
            for name, text in texts(ask, place, speculative)]
    assert len(said) == 12 and said[0][1]
    assert {text for _, text in said} == {said[0][1]}, said

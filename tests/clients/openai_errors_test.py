"""OpenAI's Python client: what is refused, as its own exceptions; and what is broken off."""

import time

import openai
import pytest

from sanitized import bound

# An answer that has no end: only who asked for it ends it.
ENDLESS = {"messages": [{"role": "user", "content": "Tell me everything about foxes."}],
           "extra_body": {"ignore_eos": True, "shift_keep": 0}, "stream": True}
PATIENCE_S = bound(60)  # a bound, not a measure


@pytest.mark.parametrize("field, options", [
    ("temperature", {"temperature": -1}),
    ("top_p", {"top_p": 2}),
    ("n", {"n": 0}),
    ("max_tokens", {"max_tokens": -5}),
    ("max_completion_tokens", {"max_tokens": openai.omit, "max_completion_tokens": "many"}),
    ("messages", {"messages": "hello"}),
    ("messages[0].role", {"messages": [{"role": "nobody", "content": "hello"}]}),
    ("tools", {"tools": "all"}),
    ("response_format.type", {"response_format": {"type": "xml"}}),
    ("speculativ", {"extra_body": {"speculativ": False}}),
    ("top_logprobs", {"logprobs": True, "top_logprobs": 21}),
])
def test_a_bad_field_is_a_bad_request_that_names_it(client, place, field, options):
    body = {"model": place.model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(**{**body, **options})
    error = refusal.value
    assert error.param == field, error.message
    assert error.type == "invalid_request_error" and field in error.message
    assert error.code is None  # where OpenAI has a text, or nothing; never a number


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_has_the_code_that_clients_look_for(client, place, stream):
    messages = [{"role": "user", "content": "fox " * 4000}]
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model=place.model, messages=messages, stream=stream)
    error = refusal.value
    assert error.code == "context_length_exceeded"
    assert f"maximum context length is {error.body['n_ctx']} tokens" in error.message
    assert error.body["type"] == "exceed_context_size_error"  # llama-server's, for its clients
    assert error.body["n_prompt_tokens"] > error.body["n_ctx"] > 0


def test_items_that_are_too_long_are_named_as_they_were_sent(client, place):
    with pytest.raises(openai.BadRequestError) as refusal:
        client.responses.create(model=place.model, input="fox " * 4000)
    assert refusal.value.param == "input", refusal.value.message


def test_what_is_not_done_says_so(client, place):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    with pytest.raises(openai.APIStatusError) as refusal:
        client.chat.completions.create(model=place.model, max_tokens=2,
                                       messages=[{"role": "user", "content": [picture]}])
    assert refusal.value.status_code == 501, refusal.value.message
    for ask in (lambda: client.embeddings.create(model=place.model, input="text"),
                lambda: client.images.generate(model=place.model, prompt="a fox")):
        with pytest.raises(openai.APIStatusError) as refusal:
            ask()
        assert refusal.value.status_code == 501 and refusal.value.message


def test_a_wrong_key_is_refused_and_the_right_one_is_not(small_server, small_client):
    assert list(small_client.models.list())
    for wrong in ("sk-of-the-test", "sk-of-the-tests2", "SK-OF-THE-TESTS"):
        with pytest.raises(openai.AuthenticationError) as refusal:
            small_client.with_options(api_key=wrong).models.list()
        assert wrong not in refusal.value.message
        assert refusal.value.code == "invalid_api_key"
    assert small_server.key not in small_server.printed()


def first_token(stream):
    return next(chunk for chunk in stream if chunk.choices and chunk.choices[0].delta.content)


def test_who_comes_too_many_is_told_to_come_again(small_client, small_server):
    with small_client.chat.completions.create(model=small_server.model, **ENDLESS) as stream:
        first_token(stream)
        with pytest.raises(openai.RateLimitError) as refusal:
            small_client.chat.completions.create(model=small_server.model, max_tokens=1,
                                                 messages=ENDLESS["messages"])
        assert int(refusal.value.response.headers["retry-after"]) >= 1
        first_token(stream)  # which goes on
    answer = when_free(small_client, small_server)
    assert answer.choices[0].message.content


def when_free(client, server):
    """An answer of a server with one slot, as soon as it has it."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return client.chat.completions.create(model=server.model, max_tokens=2,
                                                  messages=ENDLESS["messages"])
        except openai.RateLimitError:
            assert time.monotonic() < end, "the slot was never free"
            time.sleep(0.02)


def test_a_stream_that_is_broken_off_is_ended_though_it_has_no_end(small_client, small_server):
    with small_client.chat.completions.create(model=small_server.model, **ENDLESS) as stream:
        first_token(stream)
    assert when_free(small_client, small_server).choices[0].message.content

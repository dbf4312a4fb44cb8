"""Anthropic's own client against /v1/messages of a running server.

OUTRIDER_URL is the server's address ("http://127.0.0.1:8080"), OUTRIDER_MODEL the model to ask for,
OUTRIDER_KEY a key where the server wants one.
"""

import os

import anthropic
import pydantic
import pytest
from anthropic.types import Message, RawMessageStreamEvent

MODEL = os.environ["OUTRIDER_MODEL"]
QUESTION = "Name three colours."
WEATHER = {
    "name": "get_weather",
    "description": "The weather in a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


@pytest.fixture(scope="module")
def client():
    key = os.environ.get("OUTRIDER_KEY", "none")
    return anthropic.Anthropic(base_url=os.environ["OUTRIDER_URL"], api_key=key, max_retries=0)


def settings(**wishes):
    """What create() and stream() take. Not every version of the client knows temperature."""
    usual = {"model": MODEL, "max_tokens": 24, "extra_body": {"temperature": 0}}
    usual["messages"] = [{"role": "user", "content": QUESTION}]
    return usual | wishes


def ask(client, **wishes):
    return client.messages.create(**settings(**wishes))


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def calls_of(message):
    calls = [block for block in message.content if block.type == "tool_use"]
    assert calls and message.stop_reason == "tool_use"
    return calls


def test_an_answer_is_an_object_of_the_clients_types(client):
    message = Message.model_validate(ask(client).model_dump(mode="json"))
    assert text_of(message)
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.usage.output_tokens > 0
    assert message.model_extra["speculation"]["steps"] > 0


def test_a_stream_has_events_of_the_clients_types(client):
    adapter = pydantic.TypeAdapter(RawMessageStreamEvent)
    events = list(ask(client, stream=True))
    for event in events:
        adapter.validate_python(event.model_dump(mode="json"))
    types = [event.type for event in events]
    assert types[0] == "message_start"
    assert types[-2:] == ["message_delta", "message_stop"]
    assert events[0].message.usage.input_tokens + (
        events[0].message.usage.cache_read_input_tokens or 0
    ) > 0


def test_the_clients_helper_puts_a_stream_together(client):
    with client.messages.stream(**settings()) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == text_of(final) == text_of(ask(client))
    assert final.usage.output_tokens > 0


def test_the_text_is_the_same_without_speculation(client):
    seeded = {"temperature": 0.8, "seed": 7}
    plain = seeded | {"speculative": False}
    assert text_of(ask(client, extra_body=seeded)) == text_of(ask(client, extra_body=plain))


def test_max_tokens_and_stop_sequences_are_told(client):
    cut = ask(client, max_tokens=2)
    assert (cut.stop_reason, cut.usage.output_tokens) == ("max_tokens", 2)
    said = text_of(ask(client))
    stop = said[len(said) // 2 :][:3]
    stopped = ask(client, stop_sequences=["no such text", stop])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", stop)
    assert text_of(stopped) == said[: said.index(stop)]


def test_system_blocks_and_prefill_are_read(client):
    blocks = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    conversation = [
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {"role": "assistant", "content": "1. Red\n2."},
    ]
    message = ask(client, system=blocks, messages=conversation)
    assert text_of(message) and not text_of(message).startswith("1. Red")


def test_a_tool_is_called_and_its_result_read(client):
    conversation = [{"role": "user", "content": "What is the weather in Rome?"}]
    asked = {"tools": [WEATHER], "tool_choice": {"type": "any"}, "max_tokens": 200}
    message = ask(client, messages=conversation, **asked)
    calls = calls_of(message)
    assert calls[0].name == "get_weather" and calls[0].input["city"] in ("Paris", "Rome")
    conversation.append(message.to_param())
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": "Sunny, 21 C"} for call in calls
    ]
    conversation.append({"role": "user", "content": results})
    after = {"tools": [WEATHER], "tool_choice": {"type": "none"}}
    assert text_of(ask(client, messages=conversation, **after))


def test_a_streamed_call_is_the_one_that_is_sent_at_once(client):
    asked = settings(
        tools=[WEATHER], tool_choice={"type": "tool", "name": "get_weather"}, max_tokens=200
    )
    asked["messages"] = [{"role": "user", "content": "What is the weather in Rome?"}]
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    whole = client.messages.create(**asked)
    assert [c.input for c in calls_of(streamed)] == [c.input for c in calls_of(whole)]


@pytest.mark.parametrize("stream", [False, True])
def test_the_clients_tool_runner_calls_and_gives_the_result_back(client, stream):
    places = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        places.append(city)
        return "Sunny, 21 C"

    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=200,
        messages=[{"role": "user", "content": "What is the weather in Rome?"}],
        tools=[get_weather],
        tool_choice={"type": "tool", "name": "get_weather"},
        max_iterations=2,
        stream=stream,
        extra_body={"temperature": 0},
    )
    answers = [turn.get_final_message() if stream else turn for turn in runner]
    assert len(answers) == 2
    assert places and calls_of(answers[0])


def test_a_schema_is_kept_to(client):
    class Colour(pydantic.BaseModel):
        name: str
        warm: bool

    schema = Colour.model_json_schema()
    wish = {"format": {"type": "json_schema", "schema": schema}}
    message = ask(client, output_config=wish, max_tokens=200)
    Colour.model_validate_json(text_of(message))


def test_tokens_are_counted_as_they_are_read_later(client):
    asked = settings(system="Be brief.")
    message = client.messages.create(**asked)
    for name in ("max_tokens", "extra_body"):
        asked.pop(name)
    counted = client.messages.count_tokens(**asked)
    read = message.usage.input_tokens + message.usage.cache_read_input_tokens
    assert counted.input_tokens == read


def test_errors_are_those_of_the_api(client):
    image = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/x.png"}}
    cases = (
        ({"extra_body": {"temperature": -1}}, anthropic.BadRequestError, "invalid_request_error"),
        (
            {"messages": [{"role": "user", "content": [image]}]},
            anthropic.APIStatusError,
            "invalid_request_error",
        ),
    )
    for wish, kind, name in cases:
        with pytest.raises(kind) as failure:
            ask(client, **wish)
        body = failure.value.body
        assert body["type"] == "error"
        assert body["error"]["type"] == name
        assert body["error"]["message"]


def test_a_prompt_that_is_too_long_is_told_in_the_services_words(client):
    messages = [{"role": "user", "content": "fox " * 4000}]
    with pytest.raises(anthropic.BadRequestError) as failure:
        ask(client, messages=messages)
    assert failure.value.body["error"]["message"].startswith("prompt is too long: ")


def test_a_client_that_stops_reading_leaves_the_server_usable(client):
    with client.messages.stream(**settings(max_tokens=400)) as stream:
        next(iter(stream))
    assert text_of(ask(client))

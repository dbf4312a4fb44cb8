"""OpenAI's own client against /v1/responses of a running server.

OUTRIDER_URL is the server's address ("http://127.0.0.1:8080"), OUTRIDER_MODEL the model to ask for,
OUTRIDER_KEY a key where the server wants one.
"""

import json
import os

import openai
import pydantic
import pytest
from openai.types.responses import Response, ResponseStreamEvent

MODEL = os.environ["OUTRIDER_MODEL"]
QUESTION = "Name three colours."
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


@pytest.fixture(scope="module")
def client():
    key = os.environ.get("OUTRIDER_KEY", "none")
    return openai.OpenAI(base_url=os.environ["OUTRIDER_URL"] + "/v1", api_key=key, max_retries=0)


def ask(client, **wishes):
    settings = {"model": MODEL, "input": QUESTION, "temperature": 0, "max_output_tokens": 24}
    return client.responses.create(**(settings | wishes))


def test_what_nothing_comes_of_is_said_and_what_is_kept_to_repeated(client):
    asked = {"text": {"verbosity": "low"}, "include": ["reasoning.encrypted_content"]}
    raw = client.responses.with_raw_response.create(
        model=MODEL, input=QUESTION, max_output_tokens=4, max_tool_calls=2, **asked
    )
    ignored = raw.headers["x-outrider-ignored"].split(", ")
    assert sorted(ignored) == ["include=reasoning.encrypted_content", "text.verbosity"]
    assert raw.parse().max_tool_calls == 2


def calls_of(response):
    calls = [item for item in response.output if item.type == "function_call"]
    assert calls
    return calls


def validated(response):
    """The object again, held to the types of the client: it reads leniently itself."""
    return Response.model_validate(response.model_dump(mode="json"), strict=False)


def test_an_answer_is_an_object_of_the_clients_types(client):
    response = validated(ask(client))
    assert response.output_text
    assert response.status in ("completed", "incomplete")
    assert response.output[0].type == "message"
    assert response.usage.output_tokens > 0
    assert response.usage.input_tokens + response.usage.output_tokens == response.usage.total_tokens
    assert response.model_extra["speculation"]["steps"] > 0


def test_a_stream_has_events_of_the_clients_types_and_ends_with_the_object(client):
    adapter = pydantic.TypeAdapter(ResponseStreamEvent)
    events = list(ask(client, stream=True))
    for number, event in enumerate(events):
        adapter.validate_python(event.model_dump(mode="json"))
        assert event.sequence_number == number
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    last = events[-1].response
    assert events[-1].type == "response." + last.status
    assert text == last.output_text == ask(client).output_text


def test_the_clients_helper_puts_a_stream_together(client):
    with client.responses.stream(
        model=MODEL, input=QUESTION, temperature=0, max_output_tokens=400
    ) as stream:
        types = {event.type for event in stream}
        final = stream.get_final_response()
    assert "response.output_text.delta" in types
    assert final.status == "completed" and final.output_text


def test_the_text_is_the_same_without_speculation(client):
    seeded = {"temperature": 0.8, "extra_body": {"seed": 7}}
    plain = {"temperature": 0.8, "extra_body": {"seed": 7, "speculative": False}}
    assert ask(client, **seeded).output_text == ask(client, **plain).output_text


def test_an_answer_that_is_cut_is_incomplete(client):
    response = ask(client, max_output_tokens=2)
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.usage.output_tokens == 2


def test_earlier_items_can_be_sent_back(client):
    first = ask(client)
    conversation = [{"role": "user", "content": QUESTION}]
    conversation += [item.to_dict(mode="json") for item in first.output]
    conversation += [{"role": "user", "content": "And one more."}]
    second = ask(client, input=conversation, instructions="Be brief.")
    assert second.output_text
    assert second.usage.input_tokens > first.usage.input_tokens


@pytest.mark.parametrize("dump", [
    lambda item: item.to_dict(mode="json"),
    lambda item: item.model_dump(mode="json", by_alias=True),
])
def test_what_the_client_adds_to_items_can_be_sent_back(client, dump):
    asked = {"model": MODEL, "input": QUESTION, "temperature": 0, "max_output_tokens": 200}
    texts = client.responses.parse(**asked)
    calls = client.responses.parse(**asked, tools=[WEATHER], tool_choice="required")
    conversation = [{"role": "user", "content": QUESTION}]
    conversation += [dump(item) for item in texts.output + calls.output]
    for call in calls_of(calls):
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny, 21 C"}
        conversation.append(result)
    again = ask(client, input=conversation, tools=[WEATHER], tool_choice="none")
    assert again.usage.input_tokens > texts.usage.input_tokens


def test_a_tool_is_called_and_its_result_read(client):
    conversation = [{"role": "user", "content": "What is the weather in Rome?"}]
    asked = {"tools": [WEATHER], "tool_choice": "required", "max_output_tokens": 200}
    response = ask(client, input=conversation, **asked)
    calls = calls_of(validated(response))
    assert calls[0].name == "get_weather"
    assert json.loads(calls[0].arguments)["city"] in ("Paris", "Rome")
    conversation += [item.to_dict(mode="json") for item in response.output]
    for call in calls:
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny, 21 C"}
        conversation.append(result)
    assert ask(client, input=conversation, tools=[WEATHER], tool_choice="none").output_text


def test_a_streamed_call_is_the_one_that_is_sent_at_once(client):
    asked = {"tools": [WEATHER], "tool_choice": "required", "max_output_tokens": 200}
    asked["input"] = "What is the weather in Rome?"
    events = list(ask(client, stream=True, **asked))
    pieces = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
    done = [e for e in events if e.type == "response.function_call_arguments.done"]
    assert "".join(pieces) == "".join(event.arguments for event in done)
    whole = calls_of(ask(client, **asked))
    assert [event.arguments for event in done] == [call.arguments for call in whole]


def test_a_schema_is_kept_to(client):
    class Colour(pydantic.BaseModel):
        name: str
        warm: bool

    response = client.responses.parse(
        model=MODEL, input="A colour.", text_format=Colour, temperature=0, max_output_tokens=200
    )
    assert isinstance(response.output_parsed, Colour)


def test_tools_of_the_service_are_left_out_and_the_header_says_which(client):
    answer = client.responses.with_raw_response.create(
        model=MODEL, input="Hi", max_output_tokens=8, tools=[{"type": "web_search"}]
    )
    assert answer.headers["x-outrider-ignored-tools"] == "web_search"
    assert answer.parse().tools == []


def test_what_is_wrong_is_named(client):
    with pytest.raises(openai.BadRequestError) as wrong:
        ask(client, temperature=-1)
    assert wrong.value.param == "temperature"
    for wish in (
        {"previous_response_id": "resp_1"},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
    ):
        with pytest.raises(openai.APIStatusError) as unsupported:
            ask(client, **wish)
        assert unsupported.value.status_code == 501
        assert unsupported.value.message


def test_a_client_that_stops_reading_leaves_the_server_usable(client):
    stream = ask(client, stream=True, max_output_tokens=400)
    next(iter(stream))
    stream.close()
    assert ask(client).output_text

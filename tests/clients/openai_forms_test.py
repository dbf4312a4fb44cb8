"""OpenAI's Python client: answers in JSON, and calls of tools."""

import copy
import json

import openai
import pydantic
import pytest

WEATHER = {"type": "function",
           "function": {"name": "get_weather", "description": "The weather in a city now",
                        "parameters": {"type": "object",
                                       "properties": {"city": {"type": "string"},
                                                      "unit": {"enum": ["celsius", "fahrenheit"]}},
                                       "required": ["city", "unit"],
                                       "additionalProperties": False}}}
ASKED = [{"role": "user", "content": "What is the weather in Paris, in celsius?"}]


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    age: int = pydantic.Field(ge=0, le=120)
    friends: list[str] = pydantic.Field(max_length=2)


def test_a_json_object_is_one(chat):
    answer = chat("Describe a fox as JSON.", response_format={"type": "json_object"}, max_tokens=200,
                  temperature=0)
    choice = answer.choices[0]
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict)
    assert choice.message.content.lstrip().startswith("{")


def test_a_schema_is_kept(chat):
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]},
                                               "legs": {"type": "integer", "minimum": 2, "maximum": 8}},
              "required": ["colour", "legs"], "additionalProperties": False}
    answer = chat("Invent an animal.", max_tokens=100, seed=1, response_format={
        "type": "json_schema", "json_schema": {"name": "animal", "strict": True, "schema": schema}})
    animal = json.loads(answer.choices[0].message.content)
    assert animal["colour"] in ("red", "green") and 2 <= animal["legs"] <= 8 and len(animal) == 2


def test_parse_gives_the_model_class_and_speculation_does_not_change_it(client, place):
    said = []
    for speculative in (True, False):
        answer = client.chat.completions.parse(
            model=place.model, messages=[{"role": "user", "content": "Invent a person."}],
            response_format=Person, max_tokens=200, seed=4, extra_body={"speculative": speculative})
        person = answer.choices[0].message.parsed
        assert isinstance(person, Person) and 0 <= person.age <= 120
        said.append(person)
    assert said[0] == said[1]


def test_a_required_tool_is_called_with_arguments_of_its_schema(client, place):
    answer = client.chat.completions.create(model=place.model, messages=ASKED, tools=[WEATHER],
                                            tool_choice="required", max_tokens=200, temperature=0)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    call = choice.message.tool_calls[0]
    assert call.type == "function" and call.id and call.function.name == "get_weather"
    arguments = json.loads(call.function.arguments)
    assert set(arguments) == {"city", "unit"} and arguments["unit"] in ("celsius", "fahrenheit")


def test_a_named_tool_is_the_one_called(client, place):
    other = {"type": "function", "function": {"name": "get_time", "parameters": {
        "type": "object", "properties": {}, "additionalProperties": False}}}
    answer = client.chat.completions.create(
        model=place.model, messages=ASKED, tools=[WEATHER, other], max_tokens=200, temperature=0,
        tool_choice={"type": "function", "function": {"name": "get_time"}})
    assert {call.function.name for call in answer.choices[0].message.tool_calls} == {"get_time"}


def test_a_streamed_call_comes_in_pieces_that_make_the_whole_one(client, place):
    options = {"model": place.model, "messages": ASKED, "tools": [WEATHER], "tool_choice": "required",
               "max_tokens": 200, "temperature": 0}
    whole = client.chat.completions.create(**options).choices[0].message.tool_calls[0]
    with client.chat.completions.stream(**options) as stream:
        events = list(stream)
        streamed = stream.get_final_completion().choices[0]
    assert streamed.finish_reason == "tool_calls"
    call = streamed.message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == \
        (whole.function.name, json.loads(whole.function.arguments))
    assert any(event.type == "tool_calls.function.arguments.delta" for event in events)


def test_a_call_that_is_cut_short_is_no_text(client, place):
    for n_tokens in (1, 4, 12, 16):
        options = {"model": place.model, "messages": ASKED, "tools": [WEATHER],
                   "tool_choice": "required", "max_tokens": n_tokens, "temperature": 0}
        choice = client.chat.completions.create(**options).choices[0]
        assert not choice.message.content and choice.finish_reason == "length"
        chunks = list(client.chat.completions.create(stream=True, **options))
        assert not any(chunk.choices[0].delta.content for chunk in chunks)
        assert chunks[-1].choices[0].finish_reason == "length"
    whole = client.chat.completions.create(
        model=place.model, messages=ASKED, tools=[WEATHER], tool_choice="required",
        max_tokens=200, temperature=0, stop=['"unit"']).choices[0]
    assert whole.finish_reason == "stop" and not whole.message.content


def test_a_call_may_be_one_of_the_allowed_tools(client, place):
    other = {"type": "function", "function": {"name": "get_time", "parameters": {
        "type": "object", "properties": {}, "additionalProperties": False}}}
    answer = client.chat.completions.create(
        model=place.model, messages=ASKED, tools=[WEATHER, other], max_tokens=200, temperature=0,
        parallel_tool_calls=False,
        tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
            {"type": "function", "function": {"name": "get_time"}}]}})
    assert [call.function.name for call in answer.choices[0].message.tool_calls] == ["get_time"]


def test_an_answer_that_goes_on_is_told_with_its_beginning(client, place):
    options = {"model": place.model, "max_tokens": 4, "temperature": 0, "messages": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "Hello"}]}

    def streamed(**more):
        stream = client.chat.completions.create(stream=True, extra_body=more, **options)
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    answer = client.chat.completions.create(**options)
    text = answer.choices[0].message.content
    assert text.startswith("Hello") and len(text) > len("Hello")
    assert answer.usage.completion_tokens == 4
    assert streamed() == text
    named = {"continue_final_message": "content", "add_generation_prompt": False}
    assert streamed(**named) == text.removeprefix("Hello")
    assert streamed(echo=True, **named) == text


def test_who_asks_in_the_older_form_of_tools_is_answered_in_it(client, place):
    options = {"model": place.model, "messages": ASKED, "functions": [WEATHER["function"]],
               "function_call": {"name": "get_weather"}, "max_tokens": 200, "temperature": 0}
    choice = client.chat.completions.create(**options).choices[0]
    assert choice.finish_reason == "function_call"
    call = choice.message.function_call
    assert call.name == "get_weather" and set(json.loads(call.arguments)) == {"city", "unit"}
    assert choice.message.tool_calls is None
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**options, stream=True)]
    deltas = [chunk.delta.function_call for chunk in chunks if chunk.delta.function_call]
    assert "".join(delta.name or "" for delta in deltas) == call.name
    assert "".join(delta.arguments or "" for delta in deltas) == call.arguments
    assert chunks[-1].finish_reason == "function_call"
    said = [choice.message, {"role": "function", "name": call.name, "content": "17 degrees"}]
    again = client.chat.completions.create(
        model=place.model, messages=ASKED + said, functions=[WEATHER["function"]],
        function_call="none", max_tokens=8).choices[0]
    assert again.message.function_call is None and again.message.content


def test_tools_that_may_be_called_do_not_have_to_be(client, place):
    answer = client.chat.completions.create(
        model=place.model, messages=[{"role": "user", "content": "Say hello."}], tools=[WEATHER],
        tool_choice="auto", max_tokens=120, temperature=0)
    message = answer.choices[0].message
    assert message.content or message.tool_calls
    none = client.chat.completions.create(model=place.model, messages=ASKED, tools=[WEATHER],
                                          tool_choice="none", max_tokens=12, temperature=0)
    assert none.choices[0].message.tool_calls is None and none.choices[0].message.content


# As MCP servers, zod and pydantic write them; no grammar can say all of it.
SEARCH = {"type": "function", "function": {"name": "search", "parameters": {
    "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 10000},
        "code": {"type": "string", "pattern": "[A-Z]{2}\\d"},
        "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991},
        "weight": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.05},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "filter": {"$ref": "#/$defs/Filter"}, "anything": True},
    "required": ["text"], "additionalProperties": False,
    "$defs": {"Filter": {"type": "object", "nullable": True,
                         "patternProperties": {"^x-": {"not": {"type": "null"}}}}}}}}


def test_a_tool_may_have_any_schema(client, place):
    for choice in ("none", "auto", "required"):
        answer = client.chat.completions.create(
            model=place.model, messages=[{"role": "user", "content": "Search for foxes."}],
            tools=[SEARCH], tool_choice=choice, max_tokens=60, seed=2)
        message = answer.choices[0].message
        assert message.content or message.tool_calls
        assert (choice == "required") <= (message.content is None)


def test_a_strict_tool_that_cannot_be_kept_to_is_refused(client, place):
    strict = copy.deepcopy(SEARCH)
    strict["function"]["strict"] = True
    with pytest.raises(openai.BadRequestError, match="maxLength|uniqueItems|multipleOf"):
        client.chat.completions.create(model=place.model, messages=ASKED, tools=[strict],
                                       tool_choice="required", max_tokens=8)


def test_a_strict_schema_that_cannot_be_kept_to_is_refused_by_the_name_that_was_sent(client, place):
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    wanted = {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": schema}}
    with pytest.raises(openai.BadRequestError, match="uniqueItems") as refused:
        client.chat.completions.create(model=place.model, messages=ASKED, response_format=wanted,
                                       max_tokens=8)
    assert refused.value.param == "response_format"


class Judgement(pydantic.BaseModel):
    sure: float = pydantic.Field(ge=0, le=1)
    code: str = pydantic.Field(pattern=r"^[A-Z]{2}-\d{3}$")


def test_bounds_of_numbers_and_patterns_are_kept(client, place):
    for seed in range(4):
        answer = client.chat.completions.parse(
            model=place.model, messages=[{"role": "user", "content": "Judge a fox."}],
            response_format=Judgement, max_tokens=80, seed=seed, temperature=1.5)
        if answer.choices[0].finish_reason == "stop":
            assert isinstance(answer.choices[0].message.parsed, Judgement)


def test_beside_tools_an_answer_may_be_of_a_schema(client, place):
    for seed in range(4):
        answer = client.chat.completions.create(
            model=place.model, messages=ASKED, tools=[WEATHER], max_tokens=200, seed=seed,
            response_format={"type": "json_schema", "json_schema": {
                "name": "judgement", "strict": True, "schema": Judgement.model_json_schema()}})
        choice = answer.choices[0]
        if choice.message.tool_calls:
            assert choice.message.tool_calls[0].function.name == "get_weather"
        elif choice.finish_reason == "stop":
            Judgement.model_validate_json(choice.message.content)
        else:
            assert choice.message.content.lstrip().startswith("{")


def test_the_result_of_a_call_is_answered(client, place):
    call = {"id": "call_1", "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city":"Paris","unit":"celsius"}'}}
    messages = ASKED + [{"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees, sunny"}]
    answer = client.chat.completions.create(model=place.model, messages=messages, tools=[WEATHER],
                                            tool_choice="none", max_tokens=24, temperature=0)
    assert answer.choices[0].message.content

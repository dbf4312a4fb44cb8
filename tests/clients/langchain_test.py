"""LangChain's client for OpenAI's API."""

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from sanitized import bound


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two whole numbers."""
    return a * b


@pytest.fixture
def model(place):
    return ChatOpenAI(base_url=place.v1, api_key=place.key, model=place.model, max_tokens=24, seed=1,
                      temperature=0.5, timeout=bound(120), max_retries=0, stream_usage=True)


def test_it_chats_and_counts(model):
    answer = model.invoke([("system", "You are brief."), ("human", "Say hello.")])
    assert answer.content and answer.response_metadata["finish_reason"] in ("stop", "length")
    assert answer.usage_metadata["output_tokens"] > 0


def test_a_stream_adds_up_to_the_answer(model):
    pieces = list(model.stream("Tell me about trees."))
    whole = sum(pieces[1:], pieces[0])
    assert len(pieces) > 5
    assert whole.content == model.invoke("Tell me about trees.").content
    assert whole.usage_metadata["output_tokens"] > 0


def test_a_tool_is_called_and_its_result_goes_back(model):
    bound = model.bind_tools([multiply], tool_choice="any").bind(max_tokens=120, temperature=0)
    question = HumanMessage("What is 6 times 7?")
    answer = bound.invoke([question])
    call = answer.tool_calls[0]
    assert call["name"] == "multiply" and set(call["args"]) == {"a", "b"}
    result = ToolMessage(str(multiply.invoke(call["args"])), tool_call_id=call["id"])
    assert model.invoke([question, answer, result]).content


def test_a_prompt_that_is_too_long_is_an_overflow_of_the_context(model):
    with pytest.raises(ContextOverflowError):
        model.invoke("fox " * 4000)


def test_structured_output_is_of_the_schema(model):
    schema = {"title": "Animal", "type": "object", "properties": {
        "legs": {"type": "integer", "minimum": 0, "maximum": 8}}, "required": ["legs"],
        "additionalProperties": False}
    for method in ("json_schema", "function_calling"):
        said = model.bind(max_tokens=100).bound.with_structured_output(schema, method=method).invoke(
            "How many legs has a fox?")
        assert 0 <= said["legs"] <= 8, method

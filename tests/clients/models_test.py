"""Models by name, with OpenAI's and Anthropic's own clients: their lists, names with slashes, and which
one answers. A server with one model answers to any name, one with several to those that it has."""

import os
import pathlib

import anthropic
import openai
import pytest
from anthropic.types import ModelInfo

import served

ALIAS = "team/model:Q2"
HELLO = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A server with a second model, in a folder."""
    if not os.environ.get("OUTRIDER_DRAFT"):
        pytest.skip("OUTRIDER_DRAFT is not set; run.py sets it")
    folder = tmp_path_factory.mktemp("models")
    (folder / "second.gguf").symlink_to(pathlib.Path(os.environ["OUTRIDER_DRAFT"]).resolve())
    with served.from_environment("--alias", ALIAS, "--model-dir", folder) as running:
        yield running


@pytest.fixture
def openais(several):
    with openai.OpenAI(base_url=several.url + "/v1", api_key="none", max_retries=0) as made:
        yield made


@pytest.fixture
def anthropics(several):
    with anthropic.Anthropic(base_url=several.url, api_key="none", max_retries=0) as made:
        yield made


def test_a_model_is_retrieved_by_each_of_its_names(several, openais):
    listed = list(openais.models.list())
    assert [model.id for model in listed] == [several.model, "second"]
    for name in (several.model, ALIAS):  # the client writes %2F for the slash
        model = openais.models.retrieve(name)
        assert model.id == several.model and model.object == "model" and model.owned_by
    assert several.get("/v1/models/" + ALIAS) == several.get("/v1/models/" + several.model)
    with pytest.raises(openai.NotFoundError) as refusal:
        openais.models.retrieve("no-such-model")
    assert refusal.value.code == "model_not_found"


def test_anthropics_client_lists_and_retrieves_them(several, anthropics):
    listed = list(anthropics.models.list())
    assert [model.id for model in listed] == [several.model, "second"]
    for name in (several.model, ALIAS):
        model = anthropics.models.retrieve(name)
        assert model.id == several.model and model.type == "model" and model.display_name
        assert ModelInfo.model_validate(model.model_dump(mode="json")) == model
    with pytest.raises(anthropic.NotFoundError) as failure:
        anthropics.models.retrieve("no-such-model")
    assert failure.value.body["error"]["type"] == "not_found_error"


def test_of_several_models_an_unknown_one_is_not_found(openais, anthropics):
    for ask in (lambda: openais.chat.completions.create(model="gpt-17", **HELLO),
                lambda: openais.responses.create(model="gpt-17", input="Say hello.")):
        with pytest.raises(openai.NotFoundError) as refusal:
            ask()
        assert "gpt-17" in refusal.value.message and refusal.value.param == "model"
        assert refusal.value.code == "model_not_found"
    with pytest.raises(anthropic.NotFoundError) as failure:
        anthropics.messages.create(model="claude-17", **HELLO)
    assert failure.value.body["error"]["type"] == "not_found_error"


def test_a_model_whose_file_is_gone_is_the_servers_fault_and_no_unknown_name(tmp_path):
    if not os.environ.get("OUTRIDER_DRAFT"):
        pytest.skip("OUTRIDER_DRAFT is not set; run.py sets it")
    gone = tmp_path / "gone.gguf"
    gone.symlink_to(pathlib.Path(os.environ["OUTRIDER_DRAFT"]).resolve())
    with served.from_environment("--model-dir", tmp_path) as running:
        gone.unlink()
        with openai.OpenAI(base_url=running.url + "/v1", api_key="none", max_retries=0) as client:
            with pytest.raises(openai.InternalServerError) as failure:
                client.chat.completions.create(model="gone", **HELLO)
            assert failure.value.status_code == 500 and failure.value.type == "server_error"
            assert "gone.gguf" in failure.value.message and str(tmp_path) not in failure.value.message
            status = client.models.retrieve("gone").status
            assert status["state"] == "failed" and "gone.gguf" in status["error"]
            with pytest.raises(openai.NotFoundError):
                client.chat.completions.create(model="never-there", **HELLO)


def test_a_single_model_answers_to_any_name_and_says_who_it_is(client, place):
    answer = client.chat.completions.create(model="gpt-17", **HELLO)
    assert answer.model == place.model and answer.choices[0].message.content
    with anthropic.Anthropic(base_url=place.url, api_key=place.key, max_retries=0) as other:
        assert other.messages.create(model="claude-17", **HELLO).model == place.model

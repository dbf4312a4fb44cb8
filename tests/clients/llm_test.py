"""The command `llm`, told of the server by extra-openai-models.yaml."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from sanitized import bound


@pytest.fixture
def llm(place, tmp_path):
    models = [{"model_id": "outrider", "model_name": place.model, "api_base": place.v1,
               "supports_schema": True, "supports_tools": True, "aliases": ["o"]}]
    # JSON is YAML, too.
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps(models))
    environment = dict(os.environ, LLM_USER_PATH=str(tmp_path), OPENAI_API_KEY=place.key)
    program = pathlib.Path(sys.executable).parent / "llm"

    def run(*arguments, text=None):
        done = subprocess.run([program, *arguments], env=environment, input=text, text=True,
                              capture_output=True, check=False, timeout=bound(120))
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


def test_the_model_is_listed(llm):
    assert "outrider" in llm("models", "list")


def test_a_prompt_is_answered_streamed_or_not_and_goes_on(llm):
    options = ("-m", "o", "-o", "max_tokens", "8", "-o", "seed", "3", "-s", "Be brief.")
    streamed, whole = llm(*options, text="Say hello."), llm("--no-stream", *options, "Say hello.")
    assert streamed.strip() and streamed == whole
    assert llm("-c", "-o", "max_tokens", "8", "Go on.").strip()
    assert len(json.loads(llm("logs", "list", "--json"))) == 3


def test_a_schema_is_kept(llm):
    schema = {"type": "object", "properties": {"legs": {"type": "integer", "minimum": 0, "maximum": 8},
                                               "colour": {"enum": ["red", "brown"]}},
              "required": ["legs", "colour"], "additionalProperties": False}
    said = llm("-m", "o", "-o", "max_tokens", "60", "--schema", json.dumps(schema), "Invent a dog.")
    assert json.loads(said)["colour"] in ("red", "brown")

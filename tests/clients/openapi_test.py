"""schemathesis: every endpoint of /openapi.json, with bodies that keep to it and bodies that don't.

Answers must have a status and a content type that the description lists, keep to its schema, and be
no failure of the server's. 501 is none: it is the answer to what is not done here."""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import (content_type_conformance,
                                               response_schema_conformance,
                                               status_code_conformance)

from sanitized import bound

EXAMPLES = int(os.environ.get("OUTRIDER_CLIENTS_EXAMPLES", "12"))
SEED = int(os.environ.get("OUTRIDER_TEST_SEED", "1"))
# No answer may be long, whatever is asked.
FEW = {"max_tokens": 3, "max_completion_tokens": 3, "max_output_tokens": 3, "n_predict": 3, "n": 1,
       "n_choices": 1, "timeout_ms": 500}

load_all_checks()
description = schemathesis.openapi.from_url(
    os.environ.get("OUTRIDER_URL", "http://127.0.0.1:8080") + "/openapi.json")


def made_short(body):
    if not isinstance(body, dict):
        return body
    limited = dict(body)
    for name, most in FEW.items():
        value = limited.get(name)
        if type(value) in (int, float) and (value > most or value == -1):
            limited[name] = most
    for name in ("params", "input"):  # /rpc's
        if isinstance(limited.get(name), dict):
            limited[name] = made_short(limited[name])
    return limited


# What bounds an answer that the body does not bound: else it may fill the whole context.
BOUNDS = {"/v1/responses": "max_output_tokens", "/v1/chat/completions": "max_tokens",
          "/chat/completions": "max_tokens", "/v1/completions": "max_tokens",
          "/completion": "max_tokens", "/completions": "max_tokens", "/infill": "max_tokens"}


def bounded(body, path):
    body = made_short(body)
    bound = BOUNDS.get(path)
    if bound and isinstance(body, dict):
        if not any(type(body.get(name)) in (int, float) for name in FEW if name.startswith(("max", "n_p"))):
            body = {**body, bound: FEW[bound]}
    return body


def is_no_failure(context, response, case):
    assert response.status_code < 500 or response.status_code == 501, response.text


@description.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
          phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
def test_it_answers_as_it_is_described(case):
    # Not by the hook map_body: explicit examples do not pass it, and one of an answer without a bound
    # and with shift_keep never ended.
    case.body = bounded(case.body, case.operation.path)
    case.call_and_validate(timeout=bound(60), checks=[
        is_no_failure, status_code_conformance, content_type_conformance,
        response_schema_conformance])


# llama-server's (/completion, /infill) are described as objects only.
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/responses",
                                  "/v1/messages", "/v1/messages/count_tokens"])
def test_the_description_says_what_must_be_there(path):
    body = description[path]["POST"].definition.raw["requestBody"]["content"]["application/json"]
    assert set(body["schema"]["required"]) <= set(body["schema"]["properties"])
    assert body["schema"]["required"]

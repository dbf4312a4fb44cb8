"""What the clients' tests share. The server is that of the environment (run.py sets it): OUTRIDER_URL,
OUTRIDER_MODEL, OUTRIDER_KEY; for tests that start one of their own OUTRIDER_BINARY, OUTRIDER_TARGET
and OUTRIDER_DRAFT."""

import os
import pathlib
import shutil

import openai
import pytest

import served
from sanitized import bound

# The first answer of a busy machine may take long; no test asserts how long.
TIMEOUT_S = bound(120)


class Place:
    """Where the server is."""
    url = os.environ.get("OUTRIDER_URL", "http://127.0.0.1:8080").rstrip("/")
    model = os.environ.get("OUTRIDER_MODEL", "")
    key = os.environ.get("OUTRIDER_KEY") or "none-needed"
    v1 = url + "/v1"


@pytest.fixture(scope="session")
def place():
    return Place


@pytest.fixture(scope="session")
def client():
    """OpenAI's own client."""
    with openai.OpenAI(base_url=Place.v1, api_key=Place.key, timeout=TIMEOUT_S,
                       max_retries=0) as made:
        yield made


@pytest.fixture(scope="session")
def chat(client):
    """chat("Hello", temperature=0): an answer to one message, short unless told otherwise."""
    def ask(text, **options):
        options.setdefault("max_tokens", 24)
        return client.chat.completions.create(
            model=Place.model, messages=[{"role": "user", "content": text}], **options)
    return ask


@pytest.fixture(scope="session")
def small_server():
    """A server with a key, one slot and no queue: who comes second is refused."""
    server = served.from_environment("--slots", 1, "--max-queue", 0, key="sk-of-the-tests")
    if server is None:
        pytest.skip("OUTRIDER_BINARY is not set; run.py sets it")
    with server as running:
        yield running


@pytest.fixture
def small_client(small_server):
    with openai.OpenAI(base_url=small_server.url + "/v1", api_key=small_server.key,
                       timeout=TIMEOUT_S, max_retries=0) as made:
        yield made


@pytest.fixture(scope="session")
def node_folder():
    """Where npm's packages are, with our scripts beside them: that is where node looks for them."""
    folder = os.environ.get("OUTRIDER_CLIENTS_NODE")
    if not folder:
        pytest.skip("npm's packages are not there; run.py installs them")
    for script in (pathlib.Path(__file__).parent / "node").glob("*.mjs"):
        shutil.copy(script, folder)
    return pathlib.Path(folder)

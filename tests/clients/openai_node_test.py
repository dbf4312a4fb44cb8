"""OpenAI's client for node.js: node/openai.test.mjs, each of its tests as one here."""

import re
import subprocess

import pytest

from sanitized import bound

RESULT = re.compile(r"^(not )?ok \d+ - (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def results(node_folder):
    done = subprocess.run(["node", "--test", "--test-reporter=tap", "openai.test.mjs"],
                          cwd=node_folder, text=True, capture_output=True, check=False, 
                          timeout=bound(240))
    # Tests stand in the file's block in some versions of node, and beside it in others.
    found = {name: not bad for bad, name in RESULT.findall(re.sub(r"^ +", "", done.stdout, flags=re.M))}
    return found, done.stdout + done.stderr


def named_tests():
    import pathlib
    script = pathlib.Path(__file__).parent / "node" / "openai.test.mjs"
    return re.findall(r'^test\("(.*)",', script.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", named_tests())
def test_node(results, name):
    found, output = results
    assert found.get(name), output

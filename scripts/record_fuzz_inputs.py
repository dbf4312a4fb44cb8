#!/usr/bin/env python3
"""Writes what real clients send to `outrider serve` into fuzz/corpus, as inputs of the fuzz targets.

Usage: record_fuzz_inputs.py TARGET.gguf DRAFT.gguf [--build BUILD] [--folder FOLDER]
       record_fuzz_inputs.py --again [--folder FOLDER]

Runs the clients' tests (tests/clients) and the page's against a server that writes down each request
(recording_server.py), then takes what is new in them (fuzz_inputs.py). FOLDER (build/recorded) keeps what
was recorded, and --again takes it from there. Which tests pass does not matter here, but is said.
What earlier runs wrote to fuzz/corpus is replaced; files of other names stay. Look at the result
before it is committed: `git diff fuzz/corpus`."""

import argparse
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "clients")]
import fuzz_inputs  # noqa: E402
import installed  # noqa: E402
import run  # noqa: E402
import served  # noqa: E402

# The name of a client, and which tests are its own (pytest's -k). What schemathesis sends is not among
# them: it is made up as a fuzzer's inputs are.
CLIENTS = {
    "openai-python": "openai_chat_test or openai_errors_test or openai_forms_test or "
                     "test_openai_responses or test_a_model_is_retrieved",
    "openai-node": "openai_node_test",
    "langchain": "langchain_test",
    "llm": "llm_test",
    "anthropic": "test_anthropic or test_anthropics_client",
    "curl": "curl_test",
    "speed-bench": "speed_bench_test",
}
NAMES = (*CLIENTS, "page", "llama-tests")


def scratch(build, folder):
    """A build folder with a command that records; returns the journal."""
    journal = folder / "journal"
    place = folder / "build"
    place.mkdir(parents=True, exist_ok=True)
    for name in ("testing", "llama.cpp-source"):
        link = place / name
        link.unlink(missing_ok=True)
        link.symlink_to((build / name).resolve())
    command = [sys.executable, ROOT / "scripts" / "recording_server.py", build / "outrider", journal]
    program = place / "outrider"
    program.write_text("#!/bin/sh\nexec " + " ".join(shlex.quote(str(word)) for word in command) +
                       ' "$@"\n')
    program.chmod(0o755)
    return journal


def keep(journal, folder, client):
    """What was written since the last call is this client's."""
    kept = folder / f"{client}.jsonl"
    kept.unlink(missing_ok=True)
    if journal.exists():
        journal.rename(kept)


def record(given):
    folder = given.folder.resolve()
    journal = scratch(given.build.resolve(), folder)
    program = folder / "build" / "outrider"
    clients = ROOT / "build" / "clients"
    python = installed.python_packages(clients / "python")
    node = installed.node_packages(clients / "node")
    tests = run.Run(python, folder, [])
    environment = {"OUTRIDER_BINARY": str(program), "OUTRIDER_TARGET": str(given.target),
                   "OUTRIDER_DRAFT": str(given.draft), "OUTRIDER_CLIENTS_NODE": str(node)}
    journal.unlink(missing_ok=True)
    with served.Served(program, given.target, given.draft) as server:
        here = {**environment, "OUTRIDER_URL": server.url, "OUTRIDER_MODEL": server.model}
        for client, choice in CLIENTS.items():
            tests.tests(client, run.HERE, here, "-k", choice)
            keep(journal, folder, client)
    with served.Served(program, given.target, given.draft, "--width", "4") as server:
        tests.tests("page", run.PAGE, {"OUTRIDER_URL": server.url}, "-k", run.PAGE_TESTS)
        keep(journal, folder, "page")
    tests.table()
    subprocess.run([sys.executable, ROOT / "tests" / "clients" / "llama_server_tests.py",
                    folder / "build"], check=False, stdin=subprocess.DEVNULL,
                   env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    keep(journal, folder, "llama-tests")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=pathlib.Path, nargs="?")
    parser.add_argument("draft", type=pathlib.Path, nargs="?")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="with outrider, testing/outrider-tiny-model and llama.cpp-source")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "recorded")
    parser.add_argument("--corpus", type=pathlib.Path, default=ROOT / "fuzz" / "corpus")
    parser.add_argument("--again", action="store_true", help="record nothing")
    given = parser.parse_args()
    if not given.again:
        if not given.draft:
            parser.error("which models are to be served?")
        given.folder.mkdir(parents=True, exist_ok=True)
        record(given)
    requests = {client: fuzz_inputs.read(given.folder / f"{client}.jsonl") for client in NAMES}
    files = fuzz_inputs.files_of(requests)
    fuzz_inputs.write(files, given.corpus, NAMES)
    for client, found in requests.items():
        made = sum(pathlib.PurePath(name).name.startswith(client + "-") for name in files)
        print(f"{client:14} {len(found):5} requests, {made:3} inputs")


if __name__ == "__main__":
    main()

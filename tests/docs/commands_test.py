"""Every command of the documents runs, and every option that they name exists.

The commands run in a folder with the files that the documents speak of (target.gguf, prompts.jsonl,
...), so with a small model; OUTRIDER_MAX_TOKENS bounds what has no bound of its own. Run by
tests/clients/run.py, which sets OUTRIDER_BINARY, OUTRIDER_TARGET and OUTRIDER_DRAFT."""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request

import pytest

import blocks
import repeats

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "clients"))
from sanitized import bound  # noqa: E402

USERS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Measurements are repeated with what they name, which is not there; bugs are llama.cpp's.
NOT_FOR_USERS = {"bugs.md", "decisions.md",
                 *(file.name for file in USERS if file.name.startswith("benchmarks"))}
DOCUMENTS = [file for file in USERS if file.name not in NOT_FOR_USERS]
SECONDS = bound(300)  # a bound for a block, not a measure

# Options of other programs, which documents name in passing.
OTHERS = {
    "--prefix": "cmake --install", "--preset": "cmake", "--install": "cmake", "--build": "cmake",
    "--no-healthcheck": "docker run", "--cpus": "docker run",
    "--stop-timeout": "docker run",
    "--wrap": "the linker",
}
# Pages whose tables have another program's options in their first column.
TABLES_OF_OTHERS = {"llama-server.md"}


def without_names_of_ours():
    return {name: value for name, value in os.environ.items()
            if not name.startswith("OUTRIDER_") or name == "OUTRIDER_CACHE"}


@pytest.fixture(scope="session")
def binary():
    path = os.environ.get("OUTRIDER_BINARY")
    if not path:
        pytest.skip("OUTRIDER_BINARY is not set; tests/clients/run.py sets it")
    return pathlib.Path(path).resolve()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Place:
    """A folder with the files that a document's commands name, and the server that one started."""

    def __init__(self, folder, binary):
        self.folder, self.server, self.port = folder, None, free_port()
        (folder / "build").mkdir()
        (folder / "build" / "outrider").symlink_to(binary)
        (folder / "target.gguf").symlink_to(os.environ["OUTRIDER_TARGET"])
        (folder / "draft.gguf").symlink_to(os.environ["OUTRIDER_DRAFT"])
        (folder / "question.txt").write_text("What is a lighthouse for?")
        (folder / "rewrite-this.txt").write_text("Write this again: " + "The sea is calm. " * 20)
        with open(folder / "prompts.jsonl", "w", encoding="utf-8") as prompts:
            for text in ("Once upon a time", "def main():"):
                prompts.write(json.dumps({"prompt": text, "category": "test"}) + "\n")
        shutil.copy(folder / "prompts.jsonl", folder / "traces.jsonl")
        self.environment = without_names_of_ours() | {
            "PATH": f"{folder / 'build'}:{os.environ['PATH']}",
            "OUTRIDER_MAX_TOKENS": "24", "OUTRIDER_PORT": str(self.port), "OUTRIDER_CTX": "1024",
        }

    def script(self, text):
        return ["bash", "-euo", "pipefail", "-c",
                text.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}")]

    def run(self, text):
        done = subprocess.run(self.script(text), cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def start(self, text):
        self.end()
        self.port = free_port()  # now: another program may have taken the one before
        self.environment["OUTRIDER_PORT"] = str(self.port)
        with open(self.folder / "server.log", "w", encoding="utf-8") as log:
            self.server = subprocess.Popen(self.script("exec " + text), cwd=self.folder, stdout=log,
                                           env=self.environment, stdin=subprocess.DEVNULL,
                                           stderr=subprocess.STDOUT)
        end = time.monotonic() + SECONDS
        while not self.healthy():
            printed = (self.folder / "server.log").read_text()
            assert self.server.poll() is None, printed
            assert time.monotonic() < end, printed
            time.sleep(0.05)

    def healthy(self):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health",
                                        timeout=bound(60)):
                return True
        return False

    def end(self):
        if self.server is not None:
            self.server.send_signal(signal.SIGTERM)
            status, self.server = self.server.wait(bound(60)), None
            assert status == 0, (self.folder / "server.log").read_text()


@pytest.fixture(scope="module")
def places(tmp_path_factory, binary):
    made = {}

    def place_of(document):
        if document not in made:
            made[document] = Place(tmp_path_factory.mktemp(document.stem), binary)
        return made[document]

    yield place_of
    with contextlib.ExitStack() as ends:  # all of them, whatever becomes of one
        for place in made.values():
            ends.callback(place.end)


SCRIPTS = [block for file in DOCUMENTS for block in blocks.blocks_of(file)
           if block.language == "sh" and not block.skipped]


@pytest.mark.parametrize("block", SCRIPTS, ids=lambda block: block.name)
def test_a_documents_commands_run(block, places):
    place = places(block.file)
    if block.how == "server":
        place.start(block.text)
    else:
        assert block.how == "", f"{block.name}: 'sh {block.how}' means nothing here"
        place.run(block.text)


PROGRAMS = [block for file in DOCUMENTS for block in blocks.blocks_of(file)
            if block.language == "c" and "int main" in block.text]


@pytest.mark.skipif(bool(os.environ.get("OUTRIDER_SANITIZER")),
                    reason="a sanitized library needs a program that is sanitized, too")
@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: block.name)
def test_a_documents_c_program_answers(block, places, binary):
    place = places(block.file)
    (place.folder / "program.c").write_text(block.text)
    said = place.run(f"cc -std=c99 -Wall -Werror -I'{ROOT / 'include'}' -o program program.c "
                     f"'{binary.parent / 'liboutrider.so'}' -Wl,-rpath,'{binary.parent}' && ./program")
    assert json.loads(said.splitlines()[-1])["result"]["text"], said


def test_there_is_a_c_program():
    assert PROGRAMS


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_every_command_is_marked_as_one(file):
    for block in blocks.blocks_of(file):
        if block.language == "":
            assert not block.looks_like_commands(), f"{block.name}: mark it ```sh, so that it is run"
        if block.skipped:
            assert block.reason, f"{block.name}: 'skip: REASON'"


def test_a_command_that_is_not_marked_is_found(tmp_path):
    file = tmp_path / "some.md"
    file.write_text("```\nbuild/outrider run\n```\n\n```json\n{}\n```\n")
    assert [block.looks_like_commands() for block in blocks.blocks_of(file)] == [True, False]


@functools.cache
def options_of(binary):
    """Every option that the help of some command of ours lists."""
    def help_of(*command):
        return subprocess.run([*command, "--help"], capture_output=True, text=True, check=False,
                              env=without_names_of_ours(), timeout=bound(60)).stdout
    top = help_of(binary)
    commands = re.findall(r"^  ([a-z][a-z-]+) {2,}", top, re.MULTILINE)
    assert "run" in commands and "serve" in commands, top
    texts = [top]
    for command in commands:
        texts.append(help_of(binary, command))
        for inner in re.findall(r"^  ([a-z]+) {2,}", texts[-1], re.MULTILINE):
            texts.append(help_of(binary, command, inner))
    return {option for text in texts for option in blocks.OPTION.findall(text)}


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_every_option_that_is_named_exists(file, binary):
    named = blocks.options_in_text(file, first_cells=file.name not in TABLES_OF_OTHERS)
    unknown = {option: line for option, line in named.items()
               if option not in options_of(binary) and option not in OTHERS}
    assert not unknown, f"{file.name} names options that no command has: {unknown}"


def test_an_option_that_no_command_has_is_found(tmp_path, binary):
    file = tmp_path / "some.md"
    file.write_text("Use `--temp 0`, or `--no-such-option`.\n")
    unknown = set(blocks.options_in_text(file)) - options_of(binary)
    assert unknown == {"--no-such-option"}


CONFIGS = [block for file in DOCUMENTS for block in blocks.blocks_of(file)
           if block.language == "toml"]
# Fields of a table of one model that are no options.
OF_A_MODEL = {"aliases"}


@pytest.mark.parametrize("block", CONFIGS, ids=lambda block: block.name)
def test_a_documents_config_file_has_fields_that_exist(block, binary):
    config = tomllib.loads(block.text)
    assert set(config) <= {"serve", "models"}
    for table in [config.get("serve", {}), *config.get("models", {}).values()]:
        for field, value in table.items():
            assert not isinstance(value, dict), f"{field} is a table"
            assert f"--{field}" in options_of(binary) or field in OF_A_MODEL, field


def test_there_is_a_config_file():
    assert CONFIGS


def test_the_version_is_the_same_everywhere(binary):
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True,
                          env=without_names_of_ours(), timeout=bound(60)).stdout
    version = re.search(r"\d+\.\d+\.\d+", said)[0]
    assert f"\n## {version} - " in (ROOT / "CHANGELOG.md").read_text()
    for name in ("package.json", "package-lock.json"):
        assert json.loads((ROOT / "node" / name).read_text())["version"] == version
    # Before 1.0 a minor version may change anything, so both numbers are in the library's name.
    soversion = re.match(r"0\.\d+|[1-9]\d*", version)[0]
    for name in ("python/outrider/_library.py", "node/library.js", "node/README.md",
                 "examples/python_ctypes.py"):
        named = re.findall(r"liboutrider\.so\.(\d[\d.]*)", (ROOT / name).read_text())
        assert set(named) == {soversion}, name


# Scripts of ours that a command of ./dev runs, and what they take from each other.
RUN_BY_DEV = {"./dev bench compare": "bench/compare_peers.py",
              "./dev bench workers": "bench/workers_bench.py"}
COMMON_OPTIONS = "bench/subjects.py"


def script_of(command):
    """The script of ours that a command runs, "" for none."""
    run = re.search(r"python3 ((?:bench|scripts)/\w+\.py)", command)
    return run[1] if run else next((script for begin, script in RUN_BY_DEV.items()
                                    if command.startswith(begin)), "")


def unknown_in(command, binary):
    """What a command names that is not there: files of ours, programs that a build makes, options."""
    unknown = {path for path in re.findall(r"(?:bench|scripts|tests)/[\w/]+\.(?:py|jsonl|sh)", command)
               if not (ROOT / path).exists()}
    unknown |= {name for name in re.findall(r"build/bench/bench_(\w+)", command)
                if not (ROOT / "bench" / f"{name}_bench.cc").exists()}
    unknown |= {name for name in re.findall(r"build/testing/([\w-]+)", command)
                if not (ROOT / "testing/tools" / f"{name.replace('-', '_')}.cc").exists()}
    for one in command.split(" && "):
        script = script_of(one)
        if one.startswith("build/") and re.match(r"build/(?:avx2/)?outrider ", one):
            unknown |= set(blocks.OPTION.findall(one)) - options_of(binary)
        elif script and (ROOT / script).exists():
            taken = (ROOT / script).read_text() + (ROOT / COMMON_OPTIONS).read_text()
            unknown |= {option for option in blocks.OPTION.findall(one) if f'"{option}"' not in taken}
    return unknown


REPEATED = [part for file in sorted((ROOT / "docs").glob("benchmarks*.md"))
            for part in repeats.parts_of(file) if part.commands]


@pytest.mark.parametrize("part", REPEATED, ids=lambda part: part.name)
def test_what_repeats_a_figure_exists(part, binary):
    for command in part.commands:
        assert not unknown_in(command, binary), command


def test_a_command_that_repeats_nothing_is_found(binary):
    command = "build/outrider run --no-such-option; bench/none.py build/bench/bench_none"
    assert unknown_in(command, binary) == {"--no-such-option", "bench/none.py", "none"}
    command = "build/testing/outrider-none a.gguf && build/outrider run --no-such-option"
    assert unknown_in(command, binary) == {"outrider-none", "--no-such-option"}
    for command in ("python3 bench/throughput.py --target a --no-such-option",
                    "./dev bench compare --prompts a --no-such-option"):
        assert unknown_in(command, binary) == {"--no-such-option"}

#!/usr/bin/env python3
"""Tests of what ./dev runs for long: sanitizers, soaks, and what is left out where time is short
(tests/dev/dev_case.py)."""

import pathlib
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "dev"))
from dev_case import NINJA, PYTHON, ROOT, DevCase  # noqa: E402 (the line above says where)


class Soak(DevCase):
    PROGRAM = """#!/bin/sh
case "$*" in *--gtest_list_tests*) printf "$(cat "$FAKE_ROOT/tests")"; exit 0 ;; esac
[ ! -e "$FAKE_ROOT/sleeps" ] || { echo begun; sleep 30; }
echo "  a request beside slow connections, ms  $OUTRIDER_SOAK.25, wanted: below 2000"
exit $(cat "$FAKE_ROOT/status")
"""
    # What takes long is left out: building, qemu, the tests themselves.
    FAKES = """
ROOT=$PWD FAILED=0 RANDOM=1
say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
. scripts/dev/build.sh
. scripts/dev/test.sh
. scripts/dev/soak.sh
cmd_build() { :; }
build_sanitized_replay() { :; }
soak_arm() { :; }
run_tests() { PASSED=$((PASSED + 7)); }
FUZZ_TARGETS=()
SOAK_TESTS=('http_test ServerReliability* 1')
cmd_soak 0
"""

    def setUp(self):
        super().setUp()
        self.env["GIT_CEILING_DIRECTORIES"] = str(self.dir)
        program = self.checkout / "build" / "tests" / "http_test"
        program.parent.mkdir(parents=True)
        program.write_text(self.PROGRAM)
        program.chmod(0o755)

    def git(self, *arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        return subprocess.run(["git", *who, *arguments], cwd=self.checkout, env=self.env, text=True,
                              check=True, capture_output=True).stdout.strip()

    def say_status(self, status):
        (self.dir / "status").write_text(str(status))
        (self.dir / "tests").write_text("ServerReliability.\\n  SlowClients\\n")

    def soak(self, status):
        """Exit status, and the lines of the file of figures."""
        self.say_status(status)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.FAKES], cwd=self.checkout,
                              env=self.env, text=True, check=False, capture_output=True)
        figures = self.checkout / "build" / "soak" / "figures.txt"
        self.assertTrue(figures.is_file(), done.stderr)
        self.assertIn("the figures are in build/soak/figures.txt", done.stderr)
        return done.returncode, figures.read_text().splitlines()

    def test_the_figures_are_in_one_file_with_day_commit_and_seed(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "first")
        code, lines = self.soak(0)
        self.assertEqual(code, 0, lines)
        commit = self.git("rev-parse", "--short", "HEAD")
        self.assertRegex(lines[0], rf"^\./dev soak, 20\d\d-\d\d-\d\d, {commit}, with changes, on \d+ cores")
        self.assertRegex(lines[2], r"^a round with OUTRIDER_TEST_SEED=\d+$")
        self.assertEqual(lines[3:6], ["  tests: 7 passed, 0 failed", "", "ServerReliability*"])
        self.assertEqual(lines[6], "  a request beside slow connections, ms  1.25, wanted: below 2000")
        self.assertRegex(lines[7], r"^  passed, \d+ s$")
        self.assertEqual(len(lines), 8, "and nothing of an earlier soak")

    def test_what_failed_is_told_in_it_and_counts(self):
        code, _ = self.soak(0)
        self.assertEqual(code, 0)
        code, lines = self.soak(3)
        self.assertEqual(code, 1, lines)
        self.assertIn("no commit is known", lines[0])
        self.assertRegex(lines[7], r"^  failed with status 3, \d+ s$")
        self.assertEqual(len(lines), 8, "and nothing of an earlier soak")

    def test_a_part_without_tests_ends_it_instead_of_passing(self):
        self.say_status(0)
        (self.dir / "tests").write_text("")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.FAKES], cwd=self.checkout,
                              env=self.env, text=True, check=False, capture_output=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("soak: http_test has no test 'ServerReliability*'", done.stderr)

    def test_ctrl_c_ends_all_of_it_and_is_no_failure(self):
        self.say_status(0)
        (self.dir / "sleeps").touch()
        figures = self.checkout / "build" / "soak" / "figures.txt"
        begin = time.monotonic()
        with subprocess.Popen(["bash", "-euo", "pipefail", "-c", self.FAKES], cwd=self.checkout,
                              env=self.env, text=True, stderr=subprocess.PIPE,
                              start_new_session=True) as soak:
            while "begun" not in (figures.read_text() if figures.is_file() else ""):
                self.assertLess(time.monotonic() - begin, 20, "it does not begin")
                time.sleep(0.05)
            os.killpg(soak.pid, signal.SIGINT)
            soak.communicate(timeout=20)
        self.assertEqual(soak.returncode, 130)
        self.assertIn("  interrupted, ", figures.read_text())
        self.assertNotIn("failed", figures.read_text().split("ServerReliability*")[1])


class Fuzz(DevCase):
    """What becomes of a fuzzer's status."""

    SCRIPT = """
ROOT=$PWD FAILED=0
. scripts/dev/build.sh
. scripts/dev/fuzz.sh
fuzz_one gbnf 1
fuzz_one toml 1
exit "$FAILED"
"""

    def fuzz(self, status):
        program = self.checkout / "build" / "fuzz" / "fuzz" / "fuzz_gbnf"
        program.parent.mkdir(parents=True, exist_ok=True)
        for name, code in (("fuzz_gbnf", status), ("fuzz_toml", 0)):
            (program.parent / name).write_text(f"#!/bin/sh\nexit {code}\n")
            (program.parent / name).chmod(0o755)
        return subprocess.run(["bash", "-euo", "pipefail", "-c", self.SCRIPT], cwd=self.checkout,
                              env=self.env, text=True, check=False, capture_output=True)

    def test_ctrl_c_is_no_finding_and_the_next_target_is_not_begun(self):
        done = self.fuzz(72)  # libFuzzer's at SIGINT
        self.assertEqual(done.returncode, 130, done.stderr)
        self.assertIn(", interrupted\n", done.stdout)
        self.assertNotIn("FOUND SOMETHING", done.stdout)
        self.assertNotIn("toml", done.stdout)

    def test_any_other_status_is_a_finding_and_the_others_go_on(self):
        done = self.fuzz(77)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("FOUND SOMETHING: build/fuzz/found/gbnf.log\n", done.stdout)
        self.assertIn("toml", done.stdout)

    def test_every_layer_that_a_target_needs_is_among_the_first_that_are_sanitized(self):
        pattern = "".join(re.findall(r"^EXPOSED\+?='(.*)'$",
                                     (ROOT / "scripts/dev/test.sh").read_text(), re.MULTILINE))
        layers = set()
        for listed in re.findall(r"^outrider_fuzz_target\([^)]*\bLAYERS ([^)]*)\)",
                                 (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE):
            layers |= set(re.split(r"\b(?:SOURCES|THIRD_PARTY)\b", listed)[0].split())
        self.assertGreater(len(layers), 5)
        # No bytes of strangers are read by these themselves, or they are the user's own cache's; the
        # last two are test support and all of llama.
        own = {"base", "kernels", "plan", "llama/exactness", "testing_gguf", "llama"}
        for layer in sorted(layers - own):
            self.assertRegex(layer, rf"^({pattern})$")


class Minutes(DevCase):
    """Where CI's time is short, a part of the sanitized tests."""

    def setUp(self):
        super().setUp()
        self.plant(self.cache / "models")

    def sanitized(self, **environment):
        """What ./dev test said, and what its two runs of sanitized tests asked for."""
        (self.dir / "tested").unlink(missing_ok=True)
        code, _, output = self.dev("test", **environment)
        self.assertEqual(code, 0, output)
        asked = (self.dir / "tested").read_text().splitlines()
        return output, [line for line in asked if "--preset asan" in line]

    def test_without_a_limit_and_with_enough_all_are_run_once(self):
        for environment in ({}, {"OUTRIDER_TEST_MINUTES": "80"}):
            output, (exposed, rest) = self.sanitized(**environment)
            layers = re.search(r" -R \^\((api\|\S+)\)/ ", exposed).group(1)
            self.assertTrue(rest.endswith(f"|^({layers})/"), rest)
            self.assertNotIn(" -R ", rest)
            self.assertNotIn("OUTRIDER_TEST_MINUTES", output)

    def test_where_the_rest_would_not_fit_it_is_left_out_and_that_is_said(self):
        script = """ROOT=$PWD SECONDS=0
. scripts/dev/build.sh
. scripts/dev/test.sh
say() { printf '%s\n' "$*"; }
part() { :; }
need_build() { :; }
configure() { :; }
exposed_tests() { :; }
uncompiled() { echo 0; }
build_targets() { :; }
run_tests() { say "tests: $*"; }
test_sanitized 0 1000  # seconds: the release build, its tests
"""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.checkout, text=True,
                              env={**self.env, "OUTRIDER_TEST_MINUTES": "1"}, check=False,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("tests: "), 1)
        self.assertIn("tests: asan -R ^(api|capi|catalog|draft/", done.stdout)
        self.assertIn("|fuzz)/", done.stdout)
        self.assertIn("the others would not have fitted (OUTRIDER_TEST_MINUTES)", done.stdout)

    def test_where_the_release_build_took_longer_than_what_is_left_nothing_is_and_that_is_said(self):
        self.fake("ninja", NINJA.replace("exit 0", 'case "$*" in *-j*) sleep 2 ;; esac; exit 0'))
        (self.dir / "tested").unlink(missing_ok=True)
        code, _, output = self.dev("test", OUTRIDER_TEST_MINUTES="0")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"nothing was tested with sanitizers: \d+ of 0 minutes")
        self.assertNotIn("--preset asan", (self.dir / "tested").read_text())

    def test_the_rest_fits_by_what_its_part_took_and_the_release_build_s_tests(self):
        # Seconds left, for the files compiled, their number, those to come, the tests so far, the
        # release's.
        for left, built, made, unmade, tested, release, fits in (
                (0, 0, 0, 0, 0, 0, True), (-1, 0, 0, 0, 0, 0, False),
                (50, 100, 200, 100, 0, 0, True), (49, 100, 200, 100, 0, 0, False),
                (210, 0, 0, 5, 40, 100, True), (209, 0, 0, 5, 40, 100, False),
                (1440, 1020, 250, 238, 500, 1007, False)):  # a Zen 1 whose cache had the release build
            script = f"source scripts/dev/test.sh; rest_fits {left} {built} {made} {unmade} {tested} {release}"
            code = subprocess.run(["bash", "-c", script], cwd=self.checkout, check=False).returncode
            self.assertEqual(code == 0, fits, (left, built, made, unmade, tested, release))


    def test_what_is_yet_to_be_compiled_is_counted_as_it_is_compiled(self):
        script = """ROOT=$PWD; . scripts/dev/build.sh; . scripts/dev/test.sh; uncompiled asan
mkdir -p build/asan/folder; touch build/asan/folder/a.o; uncompiled asan"""
        self.fake("ninja", "#!/bin/sh\nprintf '%s: R\\n' all folder/a.o b.o libb.a folder/b.o\n")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.checkout, text=True,
                              env=self.env, check=False, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, "3\n2\n"), done.stderr)


class Sanitize(DevCase):
    ASKING = 'tests/clients/run.py*) echo "$@" >>"$FAKE_ROOT/asked"; exit 77'

    def setUp(self):
        super().setUp()
        self.plant(self.cache / "models")
        self.fake("python3", PYTHON.replace("tests/clients/run.py*) exit 77", self.ASKING))

    def asked(self):
        file = self.dir / "asked"
        return file.read_text() if file.exists() else ""

    def test_clients_meet_the_sanitized_command(self):
        for kind, preset in (("address", "asan"), ("thread", "tsan")):
            code, _, output = self.dev("sanitize", kind)
            self.assertEqual(code, 0, output)
            self.assertIn(f"--binary {self.checkout}/build/{preset}/outrider ", self.asked())

    def test_clients_alone_are_a_failure_where_they_cannot_be_had(self):
        code, _, output = self.dev("sanitize", "address", "clients")
        self.assertEqual(code, 1)
        self.assertIn("nothing was tested", output)
        self.assertIn("build/asan/outrider", self.asked())

    def test_another_word_is_refused_before_anything_is_built(self):
        code, _, output = self.dev("sanitize", "address", "client")
        self.assertEqual(code, 1)
        self.assertTrue(output.endswith("give clients, folders of src, or nothing"), output)
        self.assertEqual(self.asked(), "")

    # As the targets are listed. What is built is written down.
    LAYERS = NINJA.replace("exit 0", r"""case "$*" in
  *"-t targets"*) printf 'tests/%s_test: R\n' base engine http http_llama llama_http serve ;;
  *) echo "$@" >>"$FAKE_ROOT/built" ;;
esac; exit 0""")

    def test_of_some_layers_the_tests_alone_are_built_and_run_with_their_rooms(self):
        self.fake("ninja", self.LAYERS)
        code, _, output = self.dev("sanitize", "thread", "engine", "http")
        self.assertEqual(code, 0, output)
        built = (self.dir / "built").read_text()
        self.assertIn(" tests/engine_test tests/http_test tests/http_llama_test\n", built)
        self.assertIn("/build/tsan ", built)
        (tested,) = (self.dir / "tested").read_text().splitlines()
        self.assertIn("--preset tsan ", tested)
        pattern = re.compile(tested.split(" -R ")[1])
        for name, runs in (("engine/A.B", True), ("http/A.B", True), ("http/llama/A.B", True),
                           ("serve/A.B", False), ("llama/http/A.B", False)):
            self.assertEqual(bool(pattern.search(name)), runs, name)
        self.assertEqual(self.asked(), "", "no clients")

    def test_what_is_no_layer_or_has_no_tests_is_refused(self):
        self.fake("ninja", self.LAYERS)
        for word in ("engines", "../src/engine", "src/engine", "clients"):
            code, _, output = self.dev("sanitize", "thread", "engine", word)
            self.assertEqual(code, 1, word)
            self.assertIn(f"'{word}' is no part of the tests", output)
        code, _, output = self.dev("sanitize", "thread", "json")
        self.assertEqual(code, 1)
        self.assertIn("there are no tests in src: json", output)
        self.assertFalse((self.dir / "tested").exists())


if __name__ == "__main__":
    unittest.main()

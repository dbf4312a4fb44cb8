#!/usr/bin/env python3
"""Tests of ./dev in a copy of the checkout, with a home, a cache and registries of their own: what it
prints, what it says when nothing can be fetched, and that no command opens anything outside the
checkout, the cache and the system. Compiling and the tests themselves are faked; CMake is real."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = {"smollm2": "SmolLM2-135M-Instruct-Q4_1.gguf", "smollm2_q4_0": "smollm2-q4_0.gguf",
          "draft_q4_k_s": "draft-q4_k_s.gguf", "draft_q3_k_s": "draft-q3_k_s.gguf",
          "draft_q2_k": "draft-q2_k.gguf", "standin": "standin-4x-q4_0.gguf",
          "gemma": "gemma-3-270m-q4_k_m.gguf"}

# Our builds do nothing; those with which CMake tries the compiler are real.
NINJA = """#!/bin/sh
case $2 in "$FAKE_ROOT"/checkout/build*) case $1 in -C) exit 0 ;; esac ;; esac
exec "$REAL_NINJA" "$@"
"""
CTEST = """#!/bin/sh
while [ "$1" != --output-junit ]; do shift; done
echo '<testsuite tests="2" failures="0" disabled="0" skipped="0"></testsuite>' >"$2"
"""
FAILING_NPM = "#!/bin/sh\necho 'npm error code EAI_AGAIN' >&2\nexit 1\n"
# Says its version, and finds fault with what it is asked to check where there is a file "unformatted".
CLANG_FORMAT = """#!/bin/sh
[ "$1" != --version ] || echo 'Debian clang-format version 14.0.6'
[ "$1" != --dry-run ] || [ ! -e "$FAKE_ROOT/unformatted" ]
"""
PYTHON = """#!/bin/sh
case "$*" in
  "-m pip download"*) echo 'ERROR: no way there' >&2; exit 1 ;;
  tests/clients/run.py*) exit 77 ;;  # it needs a server
  tests/clients/llama_server_tests.py*) exit 77 ;;  # likewise
  scripts/test_python.py*|scripts/test_node.py*) exit 77 ;;  # they need a library
esac
exec "$REAL_PYTHON" "$@"
"""


def tools_there():
    return all(shutil.which(name) for name in ("bash", "cmake", "ninja", "git", "cc"))


@unittest.skipUnless(sys.platform == "linux" and tools_there(), "needs Linux and what a build needs")
class DevCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name).resolve()
        self.checkout, self.cache = self.dir / "checkout", self.dir / "cache"
        self.home = self.dir / "home"
        shutil.copytree(ROOT, self.checkout, symlinks=True,
                        ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
        for name in ("cache/models", "tmp", "bin", "home/.cache/outrider/models"):
            (self.dir / name).mkdir(parents=True)
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith(("OUTRIDER_", "GIT_", "XDG_", "CCACHE_", "npm_", "NPM_"))
                    and key not in ("CI", "LD_PRELOAD")}
        self.env.update(HOME=str(self.home), TMPDIR=str(self.dir / "tmp"),
                        CCACHE_DIR=str(self.dir / "ccache"), OUTRIDER_CACHE=str(self.cache),
                        PATH=f"{self.dir / 'bin'}:{os.environ['PATH']}",
                        REAL_NINJA=shutil.which("ninja"), REAL_PYTHON=sys.executable,
                        FAKE_ROOT=str(self.dir), OUTRIDER_CMAKE_ARGS="-DOUTRIDER_LLAMA=OFF")
        # A machine that has everything already, and no way to install more.
        for name in ("apt-get", "sudo"):
            self.fake(name, "#!/bin/sh\nexit 1\n")
        self.fake("ninja", NINJA)
        self.fake("ctest", CTEST)
        self.fake("npm", FAILING_NPM)
        self.fake("python3", PYTHON)
        self.fake("clang-format-14", CLANG_FORMAT)
        self.fake("shellcheck", "#!/bin/sh\nexit 0\n")

    def fake(self, name, script):
        path = self.dir / "bin" / name
        path.write_text(script)
        path.chmod(0o755)

    def plant(self, folder, names=tuple(MODELS)):
        for name in names:
            (folder / MODELS[name]).write_text("GGUF")

    def dev(self, *arguments, **environment):
        """Exit status, standard output, and both outputs in one line."""
        result = subprocess.run(["./dev", *arguments], cwd=self.checkout, text=True, check=False,
                                env={**self.env, **environment}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return result.returncode, result.stdout, " ".join((result.stdout + result.stderr).split())


class Models(DevCase):
    def test_every_name_of_the_contract_is_printed(self):
        self.plant(self.cache / "models")
        expected = [f"{name}={self.cache}/models/{file}" for name, file in MODELS.items()]
        for arguments in ((), ("--all",)):
            code, printed, output = self.dev("models", *arguments)
            self.assertEqual((code, printed.splitlines()), (0, expected), output)

    def test_a_name_that_is_not_one_is_refused_with_all_that_are(self):
        code, _, output = self.dev("models", "llama")
        self.assertEqual(code, 1)
        self.assertIn("no model 'llama'; give " + " ".join(MODELS), output)


class Setup(DevCase):
    APT = """#!/bin/sh
echo "$@" >>"$FAKE_ROOT/apt"
rm -f "$FAKE_ROOT/bin/cmake"  # what it installs is the real one
"""

    def apt(self):
        file = self.dir / "apt"
        return file.read_text() if file.exists() else ""

    def setUp(self):
        super().setUp()
        self.fake("id", "#!/bin/sh\necho 0\n")
        self.fake("apt-get", self.APT)
        _, _, output = self.dev("setup")
        if self.apt() and os.environ.get("CI") != "true":  # which has installed all of it
            self.skipTest(f"something is missing here: {output}")

    def test_where_all_is_there_nothing_is_installed_or_printed(self):
        for _ in range(2):
            code, _, output = self.dev("setup")
            self.assertEqual((code, output, self.apt()), (0, "", ""))

    def test_what_is_missing_or_too_old_is_installed_and_nothing_else(self):
        self.fake("cmake", "#!/bin/sh\necho cmake version 3.18.4\n")
        code, _, output = self.dev("setup")
        self.assertEqual((code, output), (0, "./dev: installing cmake"))
        self.assertTrue(self.apt().endswith("install -y --no-install-recommends cmake\n"), self.apt())
        self.assertEqual(len(self.apt().splitlines()), 1)

    def test_what_cannot_be_installed_is_named_with_the_command_for_it(self):
        self.fake("cmake", "#!/bin/sh\necho cmake version 3.18.4\n")
        self.fake("apt-get", "#!/bin/sh\nexit 1\n")
        code, _, output = self.dev("setup")
        self.assertEqual(code, 1)
        self.assertIn("CMake must be 3.25 or newer", output)
        self.assertIn("missing: cmake.", output)
        self.assertTrue(output.endswith("apt-get install cmake"), output)


    # Knows no clang-format-14, as Debian 13: then it installs nothing of what it is asked for.
    APT_OF_ANOTHER_DEBIAN = """#!/bin/sh
echo "$@" >>"$FAKE_ROOT/apt"
case "$*" in *clang-format-14*) exit 100 ;; esac
"""

    def test_where_there_is_no_clang_format_14_all_else_is_installed_and_only_ci_fails(self):
        for name in ("clang-format-14", "clang-format"):
            self.fake(name, "#!/bin/sh\necho clang-format version 16.0.6\n")
        for environment, code in (({}, 0), ({"CI": "true"}, 1)):
            (self.dir / "apt").unlink(missing_ok=True)
            self.fake("apt-get", self.APT_OF_ANOTHER_DEBIAN)
            status, _, output = self.dev("setup", "--test", **environment)
            if "clang-format 14" not in output and "missing:" in output:
                self.skipTest(f"something else is missing here: {output}")
            self.assertEqual(status, code, output)
            asked = [line for line in self.apt().splitlines() if "clang-format-14" in line]
            self.assertTrue(asked, self.apt())
            for line in asked:
                self.assertTrue(line.endswith("--no-install-recommends clang-format-14"), line)
            self.assertEqual("going on without the check of the style" in output, code == 0, output)
            self.assertEqual("run it on Debian 12" in output, code == 1, output)


class Package(DevCase):
    PARTS = ("package_wheel", "test_wheel", "package_npm", "test_npm", "package_deb", "test_processors",
             "test_deb")

    def parts(self, what):
        """What `./dev package WHAT` does, part by part."""
        fakes = "".join(f"{part}() {{ echo {part}; }}\n" for part in self.PARTS)
        script = f"ROOT=$PWD; id() {{ echo 0; }}; . scripts/dev/package.sh\n{fakes}cmd_package {what}"
        done = subprocess.run(["bash", "-euc", script], cwd=self.checkout, env=self.env, text=True,
                              capture_output=True, check=True)
        return [line for line in done.stdout.splitlines() if line in self.PARTS]

    def test_a_package_for_node_js_is_never_made_of_an_old_wheel(self):
        self.assertEqual(self.parts("npm"), ["package_wheel", "package_npm", "test_npm"])
        self.assertEqual(self.parts("wheel"), ["package_wheel", "test_wheel"])
        self.assertEqual(self.parts("deb"), ["package_deb", "test_processors", "test_deb"])
        self.assertEqual(self.parts("all"), list(self.PARTS))


class WithoutANetwork(DevCase):
    def setUp(self):
        super().setUp()
        del self.env["OUTRIDER_CMAKE_ARGS"]

    def test_both_commands_name_all_that_is_missing_and_where_it_would_go(self):
        for command in ("demo", "test"):
            code, _, output = self.dev(command)
            self.assertEqual(code, 1, output)
            for part in ("is there a network?", "OUTRIDER_LLAMA_PACKAGE=FILE.tgz",
                         f"the model smollm2: put it at '{self.cache}/models/Smol", "EAI_AGAIN"):
                self.assertIn(part, output)
            self.assertEqual("the model gemma: put it at" in output, command == "test", output)

    def test_tests_that_need_models_fail_for_ci_and_are_left_out_with_a_word_elsewhere(self):
        self.env["OUTRIDER_CMAKE_ARGS"] = "-DOUTRIDER_LLAMA=OFF"
        self.plant(self.cache / "models", [name for name in MODELS if name != "gemma"])
        code, _, output = self.dev("test", CI="true")
        self.assertEqual(code, 1)
        self.assertIn("the tests labelled 'model' need the models", output)
        self.assertNotIn("the model smollm2", output)
        code, _, output = self.dev("test")
        self.assertEqual(code, 0, output)
        self.assertIn("the model gemma: put it at", output)
        self.assertTrue(output.endswith("4 passed, 0 failed") or "were not run" in output, output)


class Style(DevCase):
    def setUp(self):
        super().setUp()
        self.plant(self.cache / "models")

    def test_what_is_not_formatted_is_a_failed_test_and_the_others_are_run(self):
        (self.dir / "unformatted").touch()
        for command in (("test",), ("lint", "--quick")):
            code, _, output = self.dev(*command)
            self.assertEqual(code, 1, output)
            self.assertIn("lint", output)
            self.assertEqual("4 passed, 1 failed" in output, command == ("test",), output)
        (self.dir / "unformatted").unlink()
        for command in (("test",), ("lint", "--quick")):
            self.assertEqual(self.dev(*command)[0], 0)

    def test_another_clang_format_is_not_asked_and_ci_insists_on_the_right_one(self):
        for name in ("clang-format-14", "clang-format"):
            self.fake(name, "#!/bin/sh\necho clang-format version 16.0.6\n")
        code, _, output = self.dev("test")
        self.assertEqual(code, 0, output)
        self.assertIn("apt-get install clang-format-14", output)
        self.assertIn("going on without the check of the style", output)
        code, _, output = self.dev("test", CI="true")
        self.assertEqual(code, 1)
        self.assertIn("the style must be checked", output)


class Soak(DevCase):
    PROGRAM = """#!/bin/sh
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
cmd_build() { :; }
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

    def soak(self, status):
        """Exit status, and the lines of the file of figures."""
        (self.dir / "status").write_text(str(status))
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
        self.assertTrue(output.endswith("give clients, or nothing"), output)
        self.assertEqual(self.asked(), "")


class Opens(DevCase):
    COMMANDS = (["help"], ["models"], ["build", "core"], ["test"], ["sanitize", "address"],
                ["lint", "--quick"])

    def setUp(self):
        super().setUp()
        self.plant(self.cache / "models")
        # What an earlier checkout may have left: nothing of it may be used.
        self.plant(self.home / ".cache" / "outrider" / "models")
        library = self.dir / "opens.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "dev" / "opens.c",
                        "-ldl"], check=True)
        self.env.update(LD_PRELOAD=str(library), OUTRIDER_OPENS=str(self.dir / "opens"))

    def outside(self):
        """What was opened that is neither in our folder, but for the home, nor of the system."""
        system = {pathlib.Path(p) for p in ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/proc",
                                            "/sys", "/dev", "/run", "/var/lib/dpkg")}
        system.add(pathlib.Path(sysconfig.get_path("stdlib")).parent)
        for name in ("cmake", "ninja", "git", "cc", "ccache", "python3"):
            program = shutil.which(name, path=os.environ["PATH"])
            if program and len(pathlib.Path(program).resolve().parts) > 3:
                system.add(pathlib.Path(program).resolve().parent.parent)
        found = set()
        for line in (self.dir / "opens").read_text(errors="replace").splitlines():
            program, _, name = line.partition("\t")
            path = pathlib.Path(name)
            ours = path.is_relative_to(self.dir) and not path.is_relative_to(self.home)
            if name.startswith("/") and not ours and not any(path.is_relative_to(s)
                                                              for s in system):
                found.add(f"{program}: {name}")
        return found

    def test_no_command_opens_anything_outside_the_checkout_the_cache_and_the_system(self):
        for command in self.COMMANDS:
            (self.dir / "opens").write_text("")
            code, _, output = self.dev(*command)
            self.assertEqual(code, 0, f"{command}: {output}")
            self.assertIn(str(self.checkout), (self.dir / "opens").read_text(), command)
            self.assertEqual(self.outside(), set(), command)

    def test_control_what_lies_elsewhere_is_noticed(self):
        left = self.home / ".cache" / "outrider" / "models" / MODELS["gemma"]
        for reader in (["cat", left], [sys.executable, "-c", f"open('{left}')"],
                       ["bash", "-c", f"read -r line <'{left}'"]):
            (self.dir / "opens").write_text("")
            subprocess.run([str(word) for word in reader], env=self.env, check=False,
                           stdout=subprocess.DEVNULL)
            self.assertEqual(len(self.outside()), 1, reader)


if __name__ == "__main__":
    unittest.main()

"""A copy of the checkout in which ./dev is tested, with a home, a cache and registries of its own.
Compiling and the tests themselves are faked; CMake is real."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
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
echo "$@" >>"$FAKE_ROOT/tested"
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

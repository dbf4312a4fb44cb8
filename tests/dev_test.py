#!/usr/bin/env python3
"""Tests of ./dev in a copy of the checkout (tests/dev/dev_case.py): what it prints, what it says when
nothing can be fetched, and that no command opens anything outside the checkout, the cache and the
system."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "dev"))
from dev_case import MODELS, ROOT, DevCase  # noqa: E402 (the line above says where)


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


class Names(DevCase):
    # Knows no chromium, as Ubuntu: then it installs nothing of what it is asked for.
    APT_OF_UBUNTU = """#!/bin/sh
echo "$@" >>"$FAKE_ROOT/apt"
env >"$FAKE_ROOT/environment"
case "$*" in *chromium*) exit 100 ;; esac
touch "$FAKE_ROOT/installed"
"""
    # On a machine where chromium and zsh alone are missing.
    FAKES = """
say() { printf '%s\\n' "$*" >&2; }
die() { say "$*"; exit 1; }
. scripts/dev/setup.sh
have_chromium() { false; }
eval "real_$(declare -f wanting)"
wanting() {
  real_wanting "$1" | grep -x chromium || true
  [[ $1 != shells || -e $FAKE_ROOT/installed ]] || echo zsh
}
need_build() { :; }
need_style() { :; }
"""

    def run_setup(self, script, **environment):
        self.fake("apt-get", self.APT_OF_UBUNTU)
        for name in ("apt", "installed"):
            (self.dir / name).unlink(missing_ok=True)
        done = subprocess.run(["bash", "-euc", self.FAKES + script], cwd=self.checkout, text=True,
                              env={**self.env, **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False)
        return done.returncode, (self.dir / "apt").read_text().splitlines(), done.stderr

    def test_where_there_is_no_chromium_all_else_is_installed_and_only_ci_fails(self):
        self.fake("id", "#!/bin/sh\necho 0\n")
        for arguments in ("--test", "--all"):
            for environment, expected in (({}, 0), ({"CI": "true"}, 1)):
                code, asked, said = self.run_setup(f"cmd_setup {arguments}", **environment)
                self.assertEqual(code, expected, said)
                self.assertTrue((self.dir / "installed").exists(), asked)
                self.assertTrue(any("zsh" in line for line in asked), asked)
                self.assertFalse([line for line in asked if "chromium" in line and "zsh" in line])
                self.assertIn("going on without the tests of the page in Chromium", said)
                self.assertEqual("the page must be tested by CI" in said, expected == 1, said)

    def test_sudo_does_not_keep_the_proxy_from_apt(self):
        self.fake("id", "#!/bin/sh\necho 1000\n")
        self.fake("sudo", '#!/bin/sh\n[ "$1" != -n ] || exit 0\n'
                          'exec env -i PATH="$PATH" FAKE_ROOT="$FAKE_ROOT" "$@"\n')
        for name in ("http_proxy", "no_proxy"):
            self.env.pop(name, None)
        code, _, said = self.run_setup("install_packages zsh", https_proxy="http://proxy.test:3128")
        self.assertEqual(code, 0, said)
        environment = (self.dir / "environment").read_text().splitlines()
        self.assertIn("https_proxy=http://proxy.test:3128", environment)
        self.assertFalse([line for line in environment if line.startswith("no_proxy")])


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
        self.assertTrue(output.endswith("6 passed, 0 failed") or "were not run" in output, output)


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
            self.assertEqual("6 passed, 1 failed" in output, command == ("test",), output)
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

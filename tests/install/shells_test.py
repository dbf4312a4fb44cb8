#!/usr/bin/env python3
"""What `outrider completion` and `outrider man` print, tried in the shells and by man's own checks.

Usage: shells_test.py OUTRIDER [UNITTEST ARGUMENTS]. A shell that is not here is skipped."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

OUTRIDER = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
CI = os.environ.get("CI") == "true"
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("OUTRIDER_")}


def printed(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def commands():
    section = printed(OUTRIDER, "--help").split("Commands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z-]+)", section, re.MULTILINE)


def options(command):
    """The long options of its --help, but for those that stand in the texts below them."""
    return re.findall(r"^  (?:-\w, |    )(--[a-z0-9-]+)", printed(OUTRIDER, command, "--help"),
                      re.MULTILINE)


def needs(program):
    """A test that is skipped without the program, but not in CI, which installs it."""
    return unittest.skipUnless(CI or shutil.which(program), f"there is no {program}")


class Completion(unittest.TestCase):
    """The cases that every shell must get right."""

    def complete(self, *words):
        """What the shell offers for the last of the words."""
        raise NotImplementedError

    def check(self):
        self.assertEqual(set(self.complete("")), set(commands()))
        self.assertEqual(self.complete("cal"), ["calibrate"])
        self.assertEqual(self.complete("run", "--rule", ""), ["block", "coupled", "rejection"])
        self.assertEqual(self.complete("run", "--rule", "cou"), ["coupled"])
        self.assertEqual(self.complete("serve", "--kernels", ""), ["auto", "stock"])
        self.assertEqual(self.complete("ngram", "me"), ["merge"])
        self.assertEqual(self.complete("completion", ""), ["bash", "fish", "zsh"])
        self.assertEqual(self.complete("run", "--seed", ""), [])
        self.assertEqual(self.complete("run", "--json", "--rul"), ["--rule"])
        for command in commands():
            missing = set(options(command)) - set(self.complete(command, "--"))
            self.assertEqual(missing, set(), command)
        self.assertNotIn("--slots", self.complete("run", "--"))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "model.gguf").touch()
            (pathlib.Path(folder) / "folder").mkdir()
            self.folder = folder
            self.assertEqual(self.complete("run", "-m", "mo"), ["model.gguf"])
            self.assertEqual([name.rstrip("/") for name in
                              self.complete("serve", "--prompt-cache", "")], ["folder"])


@needs("bash")
class Bash(Completion):
    folder = None

    # What readline does with COMP_WORDS, and with -o default where the function has nothing.
    PROGRAM = """
      compopt() { [[ $1 == +o && $2 == default ]] && fallback=; return 0; }
      source <("$0" completion bash)
      COMP_WORDS=(outrider "$@") COMP_CWORD=$# fallback=yes
      _outrider outrider "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
      if [[ ${#COMPREPLY[@]} == 0 && $fallback ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
      fi
      printf '%s\\n' "${COMPREPLY[@]}"
    """

    def complete(self, *words):
        return sorted(set(printed("bash", "-c", self.PROGRAM, OUTRIDER, *words,
                                  cwd=self.folder).split()))

    def test_completes(self):
        self.check()

    def test_values_behind_an_equals_sign(self):
        self.assertEqual(self.complete("run", "--rule", "=", "re"), ["rejection"])
        self.assertEqual(self.complete("run", "--rule", "="), ["block", "coupled", "rejection"])
        self.assertEqual(self.complete("run", "--color", "=", "al"), ["always"])

    def test_a_value_that_may_be_left_out_is_not_asked_for(self):
        self.assertNotIn("always", self.complete("run", "--color", ""))


@needs("fish")
class Fish(Completion):
    folder = None

    def complete(self, *words):
        line = " ".join(["outrider", *words])
        out = printed("fish", "--no-config", "-c", f"'{OUTRIDER}' completion fish | source; "
                      f"complete -C '{line}'", cwd=self.folder)
        return sorted({entry.split("\t")[0] for entry in out.splitlines()})

    def test_completes(self):
        self.check()


@needs("zsh")
class Zsh(unittest.TestCase):
    # The shell's own completion in a pseudo-terminal of its own: lists what Tab would.
    PROGRAM = """
      zmodload zsh/zpty
      zpty shell zsh -f
      zpty -w shell "PS1= PS2=; autoload -Uz compinit; compinit -u -d $1/dump; source $1/_outrider"
      zpty -w shell "zstyle ':completion:*' list-grouped false; zstyle ':completion:*' format ''"
      zpty -w shell "compadd() { local -a found; builtin compadd -O found \\"\\$@\\"; print -rl -- FOUND-\\$^found-DNUOF; }"
      zpty -w shell "echo READY-\\$((1+1))"
      zpty -r -m shell out '*READY-2*'
      zpty -n -w shell "$2"$'\\t'
      zpty -n -w shell $'\\C-u'"echo DONE-\\$((1+1))"$'\\n'
      zpty -r -m shell out '*DONE-2*'
      print -r -- $out
      zpty -d shell
    """

    def complete(self, *words):
        # A shell that is not yet at its prompt takes the key for text: on a busy machine, again.
        for _ in range(10):
            found = self.complete_once(*words)
            if found:
                return found
        return []

    def complete_once(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "_outrider"
            script.write_text(printed(OUTRIDER, "completion", "zsh"))
            out = printed("zsh", "-f", "-c", self.PROGRAM, "zsh", folder,
                          " ".join(["outrider", *words]), timeout=60)
        return sorted(set(re.findall(r"FOUND-(.*?)-DNUOF", out)))

    def test_is_read_without_an_error(self):
        printed("zsh", "-n", "/dev/stdin", input=printed(OUTRIDER, "completion", "zsh"))

    def test_offers_choices_and_options(self):
        self.assertEqual(self.complete("run", "--rule", ""), ["block", "coupled", "rejection"])
        self.assertEqual(self.complete("cal"), ["calibrate"])
        self.assertEqual(self.complete("run", "--json", "--rul"), ["--rule"])
        self.assertLessEqual(set(options("run")),
                             {name.rstrip("=") for name in self.complete("run", "--")})


class Manual(unittest.TestCase):
    def test_every_option_of_every_command_is_in_it(self):
        page = printed(OUTRIDER, "man").replace("\\-", "-")
        for command in commands():
            self.assertIn(f".SS outrider {command}", page)
            for option in options(command):
                self.assertIn(f"\\fB{option}\\fR", page)
        self.assertIn("\\fB--json\\fR\n", page)
        self.assertIn("\\fB--color\\fR[=\\fINAME\\fR]\n", page)

    @needs("mandoc")
    def test_has_no_mistake_that_mandoc_knows(self):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], text=True, check=False,
                              input=printed(OUTRIDER, "man"), stdout=subprocess.PIPE)
        wrong = [line for line in done.stdout.splitlines() if "missing date" not in line]
        self.assertEqual(wrong, [])

    def test_a_setting_of_the_user_does_not_change_it(self):
        page = printed(OUTRIDER, "man")
        done = subprocess.run([OUTRIDER, "man"], text=True, check=True, stdout=subprocess.PIPE,
                              env={**ENVIRONMENT, "OUTRIDER_TEMP": "0", "HOME": "/nowhere"})
        self.assertEqual(done.stdout, page)


class Usage(unittest.TestCase):
    def test_a_shell_that_is_not_known_is_refused_with_those_that_are(self):
        for arguments in ([], ["tcsh"]):
            done = subprocess.run([OUTRIDER, "completion", *arguments], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("give bash, zsh or fish", done.stderr)


if __name__ == "__main__":
    del Completion
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])

#!/usr/bin/env python3
"""Tests of the build's own logic, without a network: how llama.cpp's source arrives
(cmake/llama_source.cmake, with a tiny package instead of the real one) and what is done on a
processor whose AMX faults (cmake/check_cpu.cmake, with a faked check), which commit is said
(cmake/build_commit.cmake), which packages of Debian a program with our libraries needs
(cmake/packaging.cmake)."""

import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

CMAKE_DIR = pathlib.Path(__file__).resolve().parent.parent / "cmake"


def run(*command, cwd=None, env=None):
    return subprocess.run([str(word) for word in command], cwd=cwd, env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


class CMakeCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name).resolve()
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith(("OUTRIDER_", "GIT_"))}
        self.env["OUTRIDER_CACHE"] = str(self.dir / "cache")
        self.env["CMAKE_GENERATOR"] = "Ninja"  # make need not be installed

    def project(self, text):
        (self.dir / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\n"
            f'list(APPEND CMAKE_MODULE_PATH "{CMAKE_DIR}")\n' + text)

    def configure(self, *arguments, build="build"):
        shutil.rmtree(self.dir / build, ignore_errors=True)
        result = run("cmake", "-S", self.dir, "-B", self.dir / build, *arguments, env=self.env)
        return result.returncode, " ".join(result.stdout.split())  # CMake breaks long lines


@unittest.skipUnless(shutil.which("git"), "needs git")
class LlamaSource(CMakeCase):
    def setUp(self):
        super().setUp()
        repo = self.dir / "repo"
        git = ("git", "-C", repo, "-c", "user.name=t", "-c", "user.email=t@t")
        (repo / "include").mkdir(parents=True)
        (repo / "include" / "llama.h").write_text("// tiny\n")
        run("git", "init", "--quiet", repo)
        run(*git, "add", ".")
        run(*git, "commit", "--quiet", "-m", "tiny")
        self.commit = run(*git, "rev-parse", "HEAD").stdout.strip()
        bundle = self.dir / "package" / "llama" / "gitRelease.bundle"
        bundle.parent.mkdir(parents=True)
        run(*git, "bundle", "create", bundle, "HEAD")
        self.package = self.dir / "tiny.tgz"
        with tarfile.open(self.package, "w:gz") as tar:
            tar.add(bundle, "package/llama/gitRelease.bundle")
        self.sha512 = hashlib.sha512(self.package.read_bytes()).hexdigest()
        self.source = self.dir / "cache" / f"llama.cpp-{self.commit}"
        self.write_project(self.commit, self.sha512)

    def write_project(self, commit, sha512):
        self.project("project(x LANGUAGES NONE)\ninclude(llama_source)\n"
                     f"set(OUTRIDER_LLAMA_COMMIT {commit})\n"
                     f"set(OUTRIDER_LLAMA_SHA512 {sha512})\n"
                     "outrider_llama_source(dir)\nmessage(STATUS \"got ${dir}\")\n"
                     "outrider_llama_commit(\"${dir}\" is)\nmessage(STATUS \"is [${is}]\")\n")

    def fake_npm(self, script):
        folder = self.dir / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "npm").write_text("#!/bin/sh\n" + script)
        (folder / "npm").chmod(0o755)
        self.env["PATH"] = f"{folder}:{self.env['PATH']}"

    def cached(self):
        """What is in the cache, but for the lock."""
        return sorted(p.name for p in (self.dir / "cache").glob("*") if p.suffix != ".lock")

    def test_a_package_given_as_a_file_is_checked_and_unpacked(self):
        self.env["OUTRIDER_LLAMA_PACKAGE"] = str(self.package)
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        self.assertIn(f"got {self.source}", output)
        self.assertTrue((self.source / "include" / "llama.h").is_file())
        self.assertEqual(self.cached(), [self.source.name])

    def test_npm_is_asked_once_and_then_the_cache_is_used(self):
        self.fake_npm(f'cp "{self.package}" .; echo x >> "{self.dir}/asked"\n')
        for _ in range(2):
            code, output = self.configure()
            self.assertEqual(code, 0, output)
        self.assertEqual((self.dir / "asked").read_text(), "x\n")

    def test_two_configures_at_once_fetch_once_and_both_succeed(self):
        self.fake_npm(f'sleep 1; cp "{self.package}" .; echo x >> "{self.dir}/asked"\n')
        both = [subprocess.Popen(["cmake", "-S", self.dir, "-B", self.dir / f"build{i}"],
                                 env=self.env, stdout=subprocess.DEVNULL) for i in range(2)]
        self.assertEqual([process.wait() for process in both], [0, 0])
        self.assertEqual((self.dir / "asked").read_text(), "x\n")
        self.assertEqual(self.cached(), [self.source.name])

    def test_a_wrong_hash_is_refused_and_both_hashes_are_named(self):
        wrong = self.dir / "wrong.tgz"
        wrong.write_bytes(self.package.read_bytes() + b"x")
        self.env["OUTRIDER_LLAMA_PACKAGE"] = str(wrong)
        code, output = self.configure()
        self.assertNotEqual(code, 0)
        self.assertIn(self.sha512, output)
        self.assertIn(hashlib.sha512(wrong.read_bytes()).hexdigest(), output)
        self.assertEqual(self.cached(), [])

    def test_a_bundle_at_another_commit_is_refused(self):
        other = "0" * 40
        self.write_project(other, self.sha512)
        self.env["OUTRIDER_LLAMA_PACKAGE"] = str(self.package)
        code, output = self.configure()
        self.assertNotEqual(code, 0)
        self.assertIn(other, output)
        self.assertIn(self.commit, output)
        self.assertEqual(self.cached(), [])

    def test_without_a_network_the_other_ways_are_named(self):
        self.fake_npm("echo 'npm error code EAI_AGAIN' >&2; exit 1\n")
        code, output = self.configure()
        self.assertNotEqual(code, 0)
        for part in ("EAI_AGAIN", "OUTRIDER_LLAMA_PACKAGE", "OUTRIDER_LLAMA_SOURCE_DIR"):
            self.assertIn(part, output)
        self.assertEqual(self.cached(), [])

    def test_a_missing_package_file_is_named(self):
        self.env["OUTRIDER_LLAMA_PACKAGE"] = "/no/such.tgz"
        code, output = self.configure()
        self.assertNotEqual(code, 0)
        self.assertIn("'/no/such.tgz'", output)

    def test_a_changed_checkout_in_the_cache_is_replaced_and_kept(self):
        self.env["OUTRIDER_LLAMA_PACKAGE"] = str(self.package)
        self.configure()
        (self.source / "include" / "llama.h").write_text("// changed\n")
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        self.assertIn("it has been changed", output)
        self.assertEqual((self.source / "include" / "llama.h").read_text(), "// tiny\n")
        self.assertEqual(len(list((self.dir / "cache").glob("replaced-*"))), 1)

    def test_what_an_interrupted_fetch_left_is_removed(self):
        (self.dir / "cache" / "fetch-old").mkdir(parents=True)
        self.env["OUTRIDER_LLAMA_PACKAGE"] = str(self.package)
        self.configure()
        self.assertEqual(self.cached(), [self.source.name])

    def test_ones_own_checkout_is_used_and_its_commit_is_told(self):
        own = f"-DOUTRIDER_LLAMA_SOURCE_DIR={self.dir / 'repo'}"
        code, output = self.configure(own)
        self.assertEqual(code, 0, output)
        self.assertIn(f"got {self.dir / 'repo'}", output)
        self.assertIn("at the pinned commit " + self.commit, output)
        self.write_project("0" * 40, self.sha512)
        code, output = self.configure(own)
        self.assertEqual(code, 0, output)
        self.assertIn("it is at commit " + self.commit, output)
        self.assertIn(f"is [{self.commit}]", output)
        (self.dir / "repo" / "include" / "llama.h").write_text("// changed\n")
        self.assertIn(f"is [{self.commit}-changed]", self.configure(own)[1])

    def test_a_copy_inside_another_checkout_is_not_taken_for_that_checkout(self):
        copy = self.dir / "repo" / "vendor" / "llama.cpp"
        shutil.copytree(self.dir / "repo" / "include", copy / "include")
        own = f"-DOUTRIDER_LLAMA_SOURCE_DIR={copy}"
        code, output = self.configure(own)
        self.assertEqual(code, 0, output)
        self.assertIn("it is no git checkout", output)
        self.assertIn("is [unknown]", output)
        run("git", "init", "--quiet", copy)  # that has one of its own
        run("git", "-C", copy, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet",
            "--allow-empty", "-m", "tiny")
        self.assertNotIn("unknown", self.configure(own)[1])

    def test_a_folder_that_is_not_llama_is_refused(self):
        code, output = self.configure(f"-DOUTRIDER_LLAMA_SOURCE_DIR={self.dir}")
        self.assertNotEqual(code, 0)
        self.assertIn("not a llama.cpp source folder", output)


@unittest.skipUnless(platform.machine() in ("x86_64", "AMD64"), "AMX is an x86 extension")
class AmxCheck(CMakeCase):
    ADVERTISED = "-DOUTRIDER_AMX_CHECK_FLAGS=-D__AMX_TILE__=1;"
    NO_AMX = "-mno-amx-tile;-mno-amx-int8;-mno-amx-bf16"

    def setUp(self):
        super().setUp()
        self.project("project(x LANGUAGES C CXX)\nset(OUTRIDER_LLAMA ON)\n"
                     "add_library(outrider_flags INTERFACE)\ninclude(check_cpu)\n"
                     "get_directory_property(all COMPILE_OPTIONS)\n"
                     "message(STATUS \"ours [${OUTRIDER_MACHINE_FLAGS}] all [${all}]\")\n")

    def test_amx_that_faults_when_executed_is_left_out_for_us_and_for_ggml(self):
        code, output = self.configure(self.ADVERTISED + "-DOUTRIDER_CHECK_FAULTS")
        self.assertEqual(code, 0, output)
        self.assertIn("advertised, but fails when executed", output)
        self.assertIn(f"ours [-march=native;{self.NO_AMX}]", output)
        self.assertIn(f"all [$<$<COMPILE_LANGUAGE:C,CXX>:{self.NO_AMX}>]", output)

    def test_amx_that_works_is_kept(self):
        code, output = self.configure(self.ADVERTISED + "-DOUTRIDER_CHECK_WORKS")
        self.assertEqual(code, 0, output)
        self.assertIn("advertised, and works", output)
        self.assertIn("ours [-march=native] all []", output)

    def test_the_verdict_is_remembered_until_the_processor_changes(self):
        faults = self.ADVERTISED + "-DOUTRIDER_CHECK_FAULTS"
        self.configure(faults)
        again = run("cmake", self.dir / "build", faults, env=self.env).stdout
        self.assertNotIn("AMX:", again)
        self.assertIn(self.NO_AMX, again)
        works = run("cmake", self.dir / "build", self.ADVERTISED + "-DOUTRIDER_CHECK_WORKS",
                    env=self.env).stdout
        self.assertIn("advertised, and works", works)
        self.assertNotIn("-mno-amx", works)

    def test_off_leaves_it_out_without_a_check_and_on_keeps_it(self):
        code, output = self.configure("-DOUTRIDER_AMX=off")
        self.assertEqual(code, 0, output)
        self.assertIn(f"ours [-march=native;{self.NO_AMX}]", output)
        code, output = self.configure("-DOUTRIDER_AMX=on",
                                      self.ADVERTISED + "-DOUTRIDER_CHECK_FAULTS")
        self.assertEqual(code, 0, output)
        self.assertIn("ours [-march=native] all []", output)

    def test_another_word_is_refused(self):
        code, output = self.configure("-DOUTRIDER_AMX=maybe")
        self.assertNotEqual(code, 0)
        self.assertIn("give auto, on or off", output)

    def test_without_native_tuning_nothing_is_checked(self):
        code, output = self.configure("-DGGML_NATIVE=OFF")
        self.assertEqual(code, 0, output)
        self.assertNotIn("AMX:", output)
        self.assertIn("ours [] all []", output)


class Shlibs(CMakeCase):
    def shlibs(self, version):
        """What programs that link the libraries of VERSION need of Debian."""
        self.project(f"project(tiny VERSION {version} LANGUAGES C)\n"
                     "include(c_library)\ninclude(packaging)\n"
                     "outrider_shlibs(\"${PROJECT_BINARY_DIR}/shlibs\")\n")
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        return (self.dir / "build" / "shlibs").read_text().splitlines()

    def test_a_program_asks_for_no_package_with_libraries_of_another_name(self):
        for version, soversion, following in (("0.1.0", "0.1", "0.2"), ("0.9.3", "0.9", "0.10"),
                                              ("1.0.0", "1", "2"), ("9.4.1", "9", "10")):
            needed = f"outrider (>= {version}), outrider (<< {following}~)"
            self.assertEqual(self.shlibs(version), [f"lib{name} {soversion} {needed}"
                                                    for name in ("outrider", "rpcserver")])


class Deb(CMakeCase):
    OURS = ("project(outrider VERSION 0.1.0 LANGUAGES C)\ninclude(c_library)\ninclude(packaging)\n"
            "outrider_deb()\n")

    def package_name(self):
        config = (self.dir / "build" / "CPackConfig.cmake").read_text()
        return re.search(r'set\(CPACK_PACKAGE_NAME "(.*)"\)', config).group(1)

    def test_a_project_that_contains_ours_keeps_its_own_package(self):
        (self.dir / "inner").mkdir()
        (self.dir / "inner" / "CMakeLists.txt").write_text(self.OURS)
        self.project("project(app VERSION 2.0.0 LANGUAGES C)\nset(CPACK_PACKAGE_NAME app)\n"
                     "include(CPack)\nadd_subdirectory(inner)\n")
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        self.assertNotIn("CMake Warning", output)
        self.assertEqual(self.package_name(), "app")

    def test_control_by_itself_ours_is_made(self):
        (self.dir / "packaging").symlink_to(CMAKE_DIR.parent / "packaging")
        self.project(self.OURS)
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        self.assertEqual(self.package_name(), "outrider")


@unittest.skipUnless(shutil.which("git"), "needs git")
class BuildCommit(CMakeCase):
    def setUp(self):
        super().setUp()
        self.source = self.dir / "checkout"
        (self.source / "src").mkdir(parents=True)
        (self.source / "docs").mkdir()
        (self.source / "src" / "a.cc").write_text("// a\n")
        (self.source / "docs" / "a.md").write_text("a\n")
        self.git("init", "--quiet")
        self.commit_all()

    def git(self, *arguments):
        result = run("git", "-C", self.source, "-c", "user.name=t", "-c", "user.email=t@t", *arguments,
                     env=self.env)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout.strip()

    def commit_all(self):
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "-m", "tiny")

    def written(self, source=None, git=shutil.which("git")):
        """The file that is compiled."""
        made = self.dir / "build_commit.cc"
        result = run("cmake", f"-DGIT={git}", f"-DSOURCE={source or self.source}", f"-DOUTPUT={made}",
                     "-P", CMAKE_DIR / "build_commit.cmake", env=self.env)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.printed = " ".join(result.stdout.split())
        return made

    def said(self, **options):
        return self.written(**options).read_text().split('return "')[1].split('"')[0]

    def test_a_checkout_says_its_commit_also_to_a_hook_of_another_one(self):
        head = self.git("rev-parse", "--short=12", "HEAD")
        self.assertEqual((self.said(), self.printed), (head, ""))
        self.env.update(GIT_DIR=str(self.dir / "none"), GIT_INDEX_FILE=str(self.dir / "none"))
        self.assertEqual(self.said(), head)

    def test_what_is_compiled_and_is_not_of_the_commit_is_said(self):
        head = self.git("rev-parse", "--short=12", "HEAD")
        (self.source / "docs" / "a.md").write_text("b\n")
        (self.source / "notes").write_text("nobody compiles them\n")
        self.assertEqual(self.said(), head)
        (self.source / "src" / "b.cc").write_text("// b\n")
        self.assertEqual(self.said(), f"{head}-modified")
        self.commit_all()
        self.assertNotIn("modified", self.said())
        (self.source / "src" / "a.cc").write_text("// b\n")
        self.assertIn("-modified", self.said())

    def test_whose_configuration_of_git_it_is_changes_nothing(self):
        head = self.git("rev-parse", "HEAD")[:12]
        self.git("config", "core.abbrev", "40")
        self.git("config", "status.showUntrackedFiles", "no")
        self.assertEqual(self.said(), head)
        (self.source / "src" / "b.cc").write_text("// b\n")
        self.assertEqual(self.said(), f"{head}-modified")

    def test_what_is_no_checkout_of_its_own_says_none(self):
        inside = self.source / "src"  # unpacked in somebody's checkout
        for options in ({"source": inside}, {"source": self.dir}, {"git": ""}):
            self.assertEqual((self.said(**options), self.printed), ("", ""))

    def test_a_checkout_of_which_git_says_nothing_is_warned_of(self):
        self.env["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"  # as in a container, of a folder from outside
        self.assertEqual(self.said(), "")
        self.assertIn("is a checkout, but git does not say of which commit", self.printed)
        self.assertIn("dubious ownership", self.printed)

    def test_the_file_is_written_for_another_answer_only(self):
        before = self.written().stat().st_mtime_ns
        self.assertEqual(self.written().stat().st_mtime_ns, before)
        self.commit_all()
        self.assertGreater(self.written().stat().st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Installs a built tree to a folder of its own and embeds what is there: by find_package, by
pkg-config (shared and static), with nothing exported but the C functions.

Usage: check.py BUILD_DIR. Exit 0: all is well."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False, **options)
    if result.returncode != 0:
        sys.exit(f"check.py: {' '.join(map(str, command))} failed:\n{result.stdout}")
    return result.stdout


def exported(library, dynamic):
    """The names that LIBRARY defines for others."""
    lines = run("nm", "--defined-only", "--extern-only", *(["-D"] if dynamic else []),
                library).splitlines()
    return {line.split()[-1] for line in lines if len(line.split()) == 3}


def expect(right, what):
    if not right:
        sys.exit(f"check.py: not so: {what}")


def check_names(lib):
    functions = {"outrider_version", "outrider_create", "outrider_destroy", "outrider_call",
                 "outrider_free", "outrider_subscribe", "outrider_set_log"}
    found = exported(lib / "liboutrider.so", dynamic=True)
    expect(found == functions, f"the shared library exports the functions only, not {found}")
    if (lib / "liboutrider.a").exists():
        found = exported(lib / "liboutrider.a", dynamic=False)
        expect(found == functions, f"the static library has the functions only, not {found}")


def check_cmake(prefix, scratch, env):
    run("cmake", "-S", HERE, "-B", scratch / "cmake", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", scratch / "cmake")
    programs = [scratch / "cmake" / name for name in ("with_shared", "with_static")]
    for program in programs:
        if program.exists():
            expect(": fine" in run(program, env=env), f"{program.name} runs")
    return len([program for program in programs if program.exists()])


def check_pkg_config(prefix, lib, scratch, env):
    if not shutil.which("pkg-config"):
        print("check.py: pkg-config is not installed; not tried")
        return
    env = {**env, "PKG_CONFIG_PATH": str(lib / "pkgconfig")}
    program = scratch / "with_pkg_config"
    flags = run("pkg-config", "--cflags", "--libs", "outrider", env=env).split()
    includes = [pathlib.Path(flag[2:]).resolve() for flag in flags if flag.startswith("-I")]
    expect(prefix / "include" in includes, f"the flags name the prefix: {flags}")
    run("cc", "-std=c99", "-o", program, HERE / "program.c", *flags)
    expect(": fine" in run(program, env=env), "with pkg-config, shared")
    if not (lib / "liboutrider.a").exists():
        return
    flags = run("pkg-config", "--cflags", "--libs", "--static", "outrider", env=env).split()
    flags = [str(lib / "liboutrider.a") if flag == "-loutrider" else flag for flag in flags]
    run("cc", "-std=c99", "-o", program, HERE / "program.c", *flags)
    expect(": fine" in run(program, env=env), "with pkg-config, static")


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder).resolve()
        prefix = scratch / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)
        lib = next(prefix.rglob("liboutrider.so")).parent
        expect((prefix / "include" / "outrider.h").exists(), "the header is installed")
        expect(not any(prefix.rglob("*llama*")), "nothing of llama.cpp is installed")
        env = {**os.environ, "LD_LIBRARY_PATH": str(lib)}
        check_names(lib)
        programs = check_cmake(prefix, scratch, env)
        check_pkg_config(prefix, lib, scratch, env)
        print(f"check.py: installed, and embedded in {programs} ways by CMake")


main()

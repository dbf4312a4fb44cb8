#!/usr/bin/env python3
"""Installs a built tree to a folder of its own, moves that, and embeds what is there: by find_package,
by pkg-config (shared and static), with nothing exported but the C functions. The installed command
serves its page and a model in a process of its own.

Usage: check.py BUILD_DIR. Exit 0: all is well."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "clients"))

import served  # noqa: E402

# The libraries and the functions that they offer, nothing else.
LIBRARIES = {
    "outrider": {"outrider_version", "outrider_create", "outrider_destroy", "outrider_call",
                 "outrider_free", "outrider_subscribe", "outrider_set_log"},
    "rpcserver": {"init", "init_async", "tokenize", "poll_system_status", "get_completion",
                  "async_completion_init", "async_completion_poll", "async_completion_cancel",
                  "deinit", "rpc_free"},
}


VERSION = re.search(r"^project\(outrider VERSION ([\d.]+)", (HERE.parents[1] / "CMakeLists.txt")
                    .read_text(), re.MULTILINE).group(1)

PAGES = ("share/man/man1/outrider.1", "share/bash-completion/completions/outrider",
         "share/zsh/site-functions/_outrider", "share/fish/vendor_completions.d/outrider.fish")


# What is compiled in, by others.
OTHERS = ("llama.cpp and ggml", "nlohmann/json", "cpp-httplib", "tinyBLAS", "CLI11", "toml++")


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


def check_names(lib, name):
    functions = LIBRARIES[name]
    found = exported(lib / f"lib{name}.so", dynamic=True)
    expect(found == functions, f"lib{name}.so exports the functions only, not {found}")
    if (lib / f"lib{name}.a").exists():
        found = exported(lib / f"lib{name}.a", dynamic=False)
        expect(found == functions, f"lib{name}.a has the functions only, not {found}")


def check_soname(lib, name, version):
    """What programs that link lib/NAME look for: both numbers of 0.1.0, since 0.2 may change anything."""
    soversion = re.match(r"0\.\d+|[1-9]\d*", version)[0]
    said = run("readelf", "-d", lib / f"lib{name}.so")
    expect(f"soname: [lib{name}.so.{soversion}]" in said, f"lib{name}.so.{soversion} is its name: {said}")
    expect((lib / f"lib{name}.so.{soversion}").exists(), f"lib{name}.so.{soversion} is there")


def check_pages(prefix, lib):
    """The manual page and the completions, and no path of the folder that they were installed to."""
    for page in PAGES:
        expect("outrider" in (prefix / page).read_text(), f"{page} is installed")
    expect(not any(prefix.rglob("*.service")), "a unit is no part of what can be moved")
    for file in (file for file in lib.rglob("*") if file.suffix in (".cmake", ".pc")):
        expect(str(prefix.parent) not in file.read_text(), f"{file.name} can be moved")


def check_notices(prefix):
    """The licences of what is compiled in, and with ours in the file that Debian wants."""
    folder = next(prefix.rglob("THIRD_PARTY")).parent
    ours = (HERE.parents[1] / "LICENSE").read_text()
    expect((folder / "copyright").read_text().startswith(ours), "our licence is installed")
    for name in ("THIRD_PARTY", "copyright"):
        text = (folder / name).read_text()
        for other in OTHERS:
            expect(f"\n{other}" in text, f"{name} has the licence of {other}")
        expect(text.count("Permission is hereby granted") >= 5, f"{name} has whole licences")


def check_cmake(prefix, scratch, env, models):
    configure = ("cmake", "-G", "Ninja", "-S", HERE, f"-DCMAKE_PREFIX_PATH={prefix}")
    major, minor = VERSION.split(".")[:2]
    for other in (f"{major}.{int(minor) + 1}", f"{int(major) + 1}.0"):
        asked = subprocess.run([*configure, "-B", scratch / "other", f"-DASKED={other}"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        expect(asked.returncode != 0 and VERSION in asked.stdout, f"{other} is another version")
    run(*configure, "-B", scratch / "cmake", f"-DASKED={major}.{minor}")
    run("cmake", "--build", scratch / "cmake")
    programs = [scratch / "cmake" / f"{name}_{kind}"
                for name in LIBRARIES for kind in ("shared", "static")]
    for program in programs:
        if program.exists():
            expect(": fine" in run(program, env=env), f"{program.name} runs")
    run(scratch / "cmake" / "example_c_poll", *models, "16", env=env)
    return len([program for program in programs if program.exists()]) + 1


def check_pkg_config(name, prefix, lib, scratch, env):
    if not shutil.which("pkg-config"):
        print("check.py: pkg-config is not installed; not tried")
        return
    env = {**env, "PKG_CONFIG_PATH": str(lib / "pkgconfig")}
    program = scratch / f"{name}_with_pkg_config"
    source = HERE / f"{name}_program.c"
    flags = run("pkg-config", "--cflags", "--libs", name, env=env).split()
    includes = [pathlib.Path(flag[2:]).resolve() for flag in flags if flag.startswith("-I")]
    expect(prefix / "include" in includes, f"the flags name the prefix: {flags}")
    run("cc", "-std=c99", "-o", program, source, *flags)
    expect(": fine" in run(program, env=env), f"{name} with pkg-config, shared")
    archive = lib / f"lib{name}.a"
    if not archive.exists():
        return
    flags = run("pkg-config", "--cflags", "--libs", "--static", name, env=env).split()
    flags = [str(archive) if flag == f"-l{name}" else flag for flag in flags]
    run("cc", "-std=c99", "-o", program, source, *flags)
    expect(": fine" in run(program, env=env), f"{name} with pkg-config, static")


def check_command(prefix, model):
    """Away from the folder that it was built in."""
    command = prefix / "bin" / "outrider"
    if not command.exists():
        print("check.py: the command was not built; not tried")
        return
    with served.Served(command, model, None, "--isolate") as server:
        page = server.get("/")
        files = re.findall(r'(?:src|href)="([^"#:]+)"', page)
        expect("app.js" in files, f"the page names its files: {files}")
        for name in files:
            expect(len(server.get(f"/{name}")) > 0, f"{name} is served")


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder).resolve()
        run("cmake", "--install", build, "--prefix", scratch / "installed")
        prefix = (scratch / "installed").rename(scratch / "moved")
        lib = next(prefix.rglob("liboutrider.so")).parent
        expect(not any(prefix.rglob("*llama*")), "nothing of llama.cpp is installed")
        check_pages(prefix, lib)
        check_notices(prefix)
        env = {**os.environ, "LD_LIBRARY_PATH": str(lib), "OUTRIDER_CACHE": str(scratch / "cache"),
               "OUTRIDER_PROBE_BUDGET_MS": "300", "OMP_WAIT_POLICY": "passive"}
        command = prefix / "bin" / "outrider"
        # What the build has found; the command and the libraries say it.
        commit = re.search(r'return "(.*)";', (build / "commit" / "build_commit.cc").read_text())[1]
        env["EXPECTED_COMMIT"] = f'"commit":"{commit}"' if commit else '"commit":null'
        if command.exists():
            said = run(command, "--version").splitlines()[0]
            expect(said == f"outrider {VERSION}" + (f" (commit {commit})" if commit else ""),
                   f"the command says its commit, {commit}, not '{said}'")
        models = [build / "tests" / f"tiny-{role}.gguf" for role in ("target", "draft")]
        for name in LIBRARIES:
            expect((prefix / "include" / f"{name}.h").exists(), f"{name}.h is installed")
            check_names(lib, name)
            if sys.platform == "linux":
                check_soname(lib, name, VERSION)
            check_pkg_config(name, prefix, lib, scratch, env)
        check_command(prefix, models[0])
        programs = check_cmake(prefix, scratch, env, models)
        print(f"check.py: installed, and embedded in {programs} ways by CMake")


main()

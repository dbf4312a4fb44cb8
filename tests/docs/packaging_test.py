"""What packages name beside what the command really needs. Run as commands_test.py."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What every Debian has, or what comes with a package that is named.
ALWAYS_THERE = {"libc6", "libgcc-s1", "zlib1g"}


def packages_needed_by(program):
    """Of Debian, by the libraries that the dynamic linker finds."""
    found = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    packages = set()
    for path in re.findall(r"=> (/\S+)", found):
        for name in (path, os.path.realpath(path)):
            owner = subprocess.run(["dpkg", "-S", name.replace("/lib/", "*/lib/", 1)],
                                   capture_output=True, text=True)
            packages |= set(re.findall(r"^([\w.+-]+)(?::\w+)?:", owner.stdout, re.MULTILINE))
    return packages


def depends_of(packages):
    """With all that they need."""
    found = subprocess.run(["apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests",
                            "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances",
                            *sorted(packages)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^(\w[\w.+-]*)", found, re.MULTILINE))


@pytest.mark.skipif(bool(os.environ.get("OUTRIDER_SANITIZER")),
                    reason="a sanitizer's libraries are in no package of ours")
@pytest.mark.skipif(not (shutil.which("dpkg") and shutil.which("apt-cache")), reason="no Debian")
def test_the_image_has_the_libraries_that_the_command_links():
    dockerfile = (ROOT / "packaging/Dockerfile").read_text()
    last_stage = dockerfile.split("\nFROM ")[-1]
    install = re.search(r"apt-get install ((?:.*\\\n)*.*)", last_stage).group(1).split("&&")[0]
    installed = {word for word in install.replace("\\\n", " ").split() if not word.startswith("-")}
    needed = packages_needed_by(os.environ["OUTRIDER_BINARY"])
    assert {"libc6", "libstdc++6"} <= needed
    assert needed <= depends_of(installed) | ALWAYS_THERE, "packaging/Dockerfile lacks some"


def test_the_image_runs_as_a_user_that_is_told_by_its_number():
    dockerfile = (ROOT / "packaging/Dockerfile").read_text()
    user = re.search(r"^USER (\d+)$", dockerfile, re.MULTILINE)
    assert user, "Kubernetes refuses a name with runAsNonRoot"
    assert f"--uid {user.group(1)} " in dockerfile


def test_the_unit_waits_for_the_network():
    unit = (ROOT / "packaging/outrider.service").read_text().splitlines()
    for line in ("Wants=network-online.target", "After=network-online.target"):
        assert line in unit


def test_a_target_that_is_ended_for_want_of_memory_does_not_end_the_unit():
    unit = (ROOT / "packaging/outrider.service").read_text()
    service = unit.split("\n[Service]\n")[1].split("\n[Install]\n")[0].splitlines()
    assert "OOMPolicy=continue" in service, "systemd's default ends all that is left"


def test_the_server_has_time_to_write_its_prompt_cache_when_it_is_stopped():
    unit = (ROOT / "packaging/outrider.service").read_text()
    drain = 8  # the default of --drain
    writing = 2048 / 25  # seconds for the default of --prompt-cache-mib, on a disk with 25 MiB/s
    waits = int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE).group(1))
    assert waits >= drain + writing
    for document, grace in (("packaging/Dockerfile", r"--stop-timeout (\d+)"),
                            ("packaging/Dockerfile", r"terminationGracePeriodSeconds: (\d+)"),
                            ("docs/server.md", r"--stop-timeout (\d+)"),
                            ("docs/server.md", r"terminationGracePeriodSeconds: (\d+)")):
        told = re.search(grace, (ROOT / document).read_text())
        assert told and int(told.group(1)) == waits, f"{document}: {grace}"


def test_what_was_compiled_is_kept_also_where_a_job_fails():
    """actions/cache saves in runs alone that end well; the commit after a failed one needs it most."""
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    assert "actions/cache@" not in workflow
    jobs = re.split(r"^  (?=[a-z]+:$)", workflow.split("\njobs:\n")[1], flags=re.MULTILINE)
    with_cache = [job for job in jobs if "actions/cache/restore@" in job]
    assert len(with_cache) == 3
    for job in with_cache:
        save = job.split("actions/cache/save@")[1]
        assert "if: always()" in save.split("- ")[0]
        assert len(set(re.findall(r"^ +key: (.*)$", job, re.MULTILINE))) == 1


def test_nothing_that_was_built_gets_into_the_image():
    assert "build" in (ROOT / ".dockerignore").read_text().splitlines()

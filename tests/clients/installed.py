"""The clients, from their registries into a folder: pinned, and kept until a pin changes."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 600


class Unavailable(Exception):
    """A client cannot be had here; the message says why."""


def of(*files):
    """What an installation was made of."""
    text = hashlib.sha256(f"{sys.version} {sys.prefix}".encode())
    for file in files:
        text.update((HERE / file).read_bytes())
    return text.hexdigest()


def is_current(stamp, content):
    return stamp.exists() and stamp.read_text() == content


def attempt(what, command, **options):
    """Tries again where it failed: a registry may be away for a moment."""
    for pause_s in (10, 30, None):
        try:
            return attempt_once(what, command, **options)
        except Unavailable as failure:
            if pause_s is None:
                raise
            print(f"{failure}\nagain in {pause_s} s", file=sys.stderr)
            time.sleep(pause_s)


def attempt_once(what, command, **options):
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, check=False, timeout=TIMEOUT_S, **options)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} took longer than {TIMEOUT_S // 60} minutes") from None
    if done.returncode != 0:
        last = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise Unavailable(f"{what} failed (is there a network?):\n{last}")


def python_packages(folder, requirements=HERE / "requirements.txt",
                    constraints=HERE / "constraints.txt"):
    """The Python of a virtual environment in `folder` that has the `requirements`."""
    python, stamp = folder / "bin" / "python", folder / "installed"
    content = of(requirements, constraints)
    if is_current(stamp, content):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.EnvBuilder(with_pip=True, symlinks=True).create(folder)
    except (subprocess.CalledProcessError, OSError) as failure:
        raise Unavailable(f"python3 makes no virtual environment ({failure}); on Debian: "
                          "apt-get install python3-venv") from None
    attempt("pip install", [python, "-m", "pip", "install", "--quiet", "--no-input",
                            "--disable-pip-version-check", "--only-binary", ":all:",
                            "-r", requirements, "-c", constraints])
    stamp.write_text(content)
    return python


def node_packages(folder, source=HERE / "node"):
    """`folder`, with the packages of package.json of `source` in it."""
    stamp = folder / "installed"
    files = [source / name for name in ("package.json", "package-lock.json")]
    content = of(*files)
    if is_current(stamp, content):
        return folder
    if not shutil.which("node") or not shutil.which("npm"):
        raise Unavailable("there is no node or no npm; on Debian: apt-get install nodejs npm")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in files:
        shutil.copy(file, folder)
    attempt("npm ci", ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder,
            env=dict(os.environ, npm_config_update_notifier="false"))
    stamp.write_text(content)
    return folder

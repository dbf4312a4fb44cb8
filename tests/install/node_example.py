#!/usr/bin/env python3
"""Installs examples/node_ffi's package into a folder and runs the example there.

Usage: node_example.py FOLDER TARGET.gguf DRAFT.gguf [TOKENS]. Exit 77 (skipped) where there is no
node, no npm, or no way to the package; else the example's."""

import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "node_ffi"


def main():
    folder = pathlib.Path(sys.argv[1])
    if not shutil.which("node") or not shutil.which("npm"):
        print("node_example.py: there is no node or no npm; './dev test' installs them")
        return SKIPPED
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "outrider.js"):
        shutil.copy(EXAMPLE / name, folder / name)
    if not (folder / "node_modules" / "koffi").exists():
        try:
            installed = subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], cwd=folder,
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                timeout=120)
            reason = installed.stdout if installed.returncode != 0 else ""
        except subprocess.TimeoutExpired:
            reason = "it took longer than two minutes"
        if reason:
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            print(f"node_example.py: npm could not install the package: {reason}")
            return SKIPPED
    return subprocess.run(["node", "outrider.js", *sys.argv[2:]], cwd=folder,
                          check=False).returncode


sys.exit(main())

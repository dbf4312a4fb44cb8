#!/usr/bin/env python3
"""Adds to a wheel's THIRD_PARTY the licences of the libraries that auditwheel put into it: what their
Debian packages say, and the texts of Debian's common licences that those refer to.

Usage: bundled_notices.py WHEEL [ROOT]
ROOT is where the system that the libraries came from is (/). Exit 1, with a sentence, and the wheel as
it was, where a library's licence is not found."""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import zipfile

LINE = "=" * 80
# libcrypto-6f1c7f21.so.3: auditwheel's name for libcrypto.so.3.
BUNDLED = re.compile(r"[^/]+\.libs/(.+)-[0-9a-f]{8}(\.so[.0-9]*)$")
COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9+-]+(?:\.[0-9]+)?)")


def section(name, text):
    return f"\n{LINE}\n{name}\n{LINE}\n{text.strip()}\n"


def package_of(library, root):
    found = subprocess.run(["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "--search",
                            f"*/{library}"], text=True, capture_output=True, check=False).stdout
    if not found:
        sys.exit(f"bundled_notices.py: no Debian package has {library}, so its licence is not known")
    return found.split(":")[0]


def read(path, what):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        sys.exit(f"bundled_notices.py: {what}: {error}")


def notices(libraries, root):
    """The text for LIBRARIES, each package once."""
    packages = {}
    for library in sorted(libraries):
        packages.setdefault(package_of(library, root), []).append(library)
    text, common = "", {}
    for package, names in packages.items():
        copyright_file = root / "usr/share/doc" / package / "copyright"
        said = read(copyright_file, f"the licence of {', '.join(names)}")
        text += section(f"{', '.join(names)}, of Debian's {package}", said)
        for name in COMMON.findall(said):
            file = root / "usr/share/common-licenses" / name
            common.setdefault(file.resolve(), file)
    for file in common.values():
        text += section(file.name, read(file, f"the licence {file.name}"))
    return text


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def main(wheel, root="/"):
    with zipfile.ZipFile(wheel) as old:
        entries = {info.filename: (info, old.read(info)) for info in old.infolist()}
    own = next((name for name in entries if name.endswith(".dist-info/licenses/THIRD_PARTY")), None)
    if own is None:
        sys.exit(f"bundled_notices.py: {wheel} has no THIRD_PARTY; cmake/packaging.cmake installs it")
    libraries = {"".join(match.groups()) for match in map(BUNDLED.match, entries) if match}
    record = own.split("/")[0] + "/RECORD"
    text = entries[own][1] + notices(libraries, pathlib.Path(root)).encode()
    lines = entries[record][1].decode().splitlines()
    lines = [record_line(own, text) if line.startswith(own + ",") else line for line in lines]
    entries[own] = (entries[own][0], text)
    entries[record] = (entries[record][0], ("\n".join(lines) + "\n").encode())
    with zipfile.ZipFile(f"{wheel}.new", "w") as new:
        for info, data in entries.values():
            new.writestr(info, data, zipfile.ZIP_DEFLATED)
    os.replace(f"{wheel}.new", wheel)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.split("\n\n")[1])
    main(*sys.argv[1:])

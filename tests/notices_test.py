#!/usr/bin/env python3
"""Tests of scripts/bundled_notices.py on a wheel and a Debian that are made up here, and of
cmake/write_notices.cmake where a licence is missing."""

import base64
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INFO = "outrider-0.1.0.dist-info"
APACHE = "the complete text is in `/usr/share/common-licenses/Apache-2.0'."


def record(entries):
    lines = []
    for name, text in entries.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(text.encode())}")
    return "\n".join([*lines, f"{INFO}/RECORD,,"]) + "\n"


@unittest.skipUnless(shutil.which("dpkg-query"), "needs dpkg-query")
class BundledLibraries(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.wheel = self.root / "outrider.whl"
        (self.root / "var/lib/dpkg/info").mkdir(parents=True)
        (self.root / "var/lib/dpkg/status").write_text("".join(
            f"Package: {name}\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\n"
            f"Maintainer: nobody <n@localhost>\nDescription: none\n\n" for name in ("libssl3", "libedit2")))
        self.package("libssl3", ("libssl.so.3", "libcrypto.so.3"), "By the OpenSSL authors: " + APACHE)
        self.package("libedit2", ("libedit.so.2.0.70",), "By the Regents")
        (self.root / "usr/share/common-licenses").mkdir()
        (self.root / "usr/share/common-licenses/Apache-2.0").write_text("TERMS AND CONDITIONS")
        self.make("libssl-0123abcd.so.3", "libcrypto-4567cdef.so.3", "libedit-89abcdef.so.2.0.70")

    def package(self, name, libraries, text):
        info = self.root / "var/lib/dpkg/info"
        (info / f"{name}.list").write_text("".join(f"/usr/lib/{library}\n" for library in libraries))
        (self.root / "usr/share/doc" / name).mkdir(parents=True)
        (self.root / "usr/share/doc" / name / "copyright").write_text(text)

    def make(self, *libraries):
        entries = {"outrider/__init__.py": "", f"{INFO}/licenses/THIRD_PARTY": "llama.cpp: MIT\n"}
        entries |= {f"outrider.libs/{name}": "ELF" for name in libraries}
        with zipfile.ZipFile(self.wheel, "w") as wheel:
            for name, text in entries.items():
                wheel.writestr(name, text)
            wheel.writestr(f"{INFO}/RECORD", record(entries))

    def add(self):
        return subprocess.run([sys.executable, ROOT / "scripts/bundled_notices.py", self.wheel, self.root],
                              text=True, capture_output=True, check=False)

    def contents(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            return {name: wheel.read(name).decode() for name in wheel.namelist()}

    def test_every_library_is_named_with_its_licence_and_what_that_refers_to(self):
        done = self.add()
        self.assertEqual(done.returncode, 0, done.stderr)
        entries = self.contents()
        text = entries[f"{INFO}/licenses/THIRD_PARTY"]
        self.assertTrue(text.startswith("llama.cpp: MIT\n"), text)
        for part in ("libcrypto.so.3, libssl.so.3, of Debian's libssl3", "OpenSSL authors",
                     "libedit.so.2.0.70, of Debian's libedit2", "By the Regents", "TERMS AND CONDITIONS"):
            self.assertEqual(text.count(part), 1, f"{part}\n{text}")
        kept = entries.pop(f"{INFO}/RECORD")
        self.assertEqual(kept, record(entries))

    def test_a_library_whose_licence_is_not_known_leaves_the_wheel_as_it_was(self):
        (self.root / "usr/share/doc/libedit2/copyright").unlink()
        before = self.wheel.read_bytes()
        for made, reason in (((), "libedit2/copyright"), (("libnobody-01234567.so.1",), "libnobody.so.1")):
            if made:
                self.make(*made)
                before = self.wheel.read_bytes()
            done = self.add()
            self.assertEqual(done.returncode, 1)
            self.assertIn(reason, done.stderr)
            self.assertEqual(self.wheel.read_bytes(), before)


@unittest.skipUnless(shutil.which("cmake"), "needs cmake")
class CompiledIn(unittest.TestCase):
    def write(self, source, notices):
        return subprocess.run(["cmake", f"-DOUTRIDER_NOTICES={notices}", f"-DLLAMA={source}",
                               f"-DOURS={ROOT / 'packaging/licences'}", "-P",
                               ROOT / "cmake/write_notices.cmake"], text=True, capture_output=True,
                              check=False)

    def test_a_licence_that_is_missing_is_named_and_what_else_the_source_carries_is_taken(self):
        files = ("LICENSE", "ggml/src/ggml-cpu/llamafile/sgemm.cpp", "licenses/LICENSE-jsonhpp",
                 "vendor/cpp-httplib/LICENSE", "vendor/hash/xxhash/LICENSE")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder)
            for file in files:
                (source / file).parent.mkdir(parents=True, exist_ok=True)
                (source / file).write_text(f"// Copyright of {file}; all [of] it\n\ncode\n")
            done = self.write(source, source / "NOTICES")
            self.assertEqual(done.returncode, 0, done.stderr)
            text = (source / "NOTICES").read_text()
            for file in files:
                self.assertIn(f"Copyright of {file}; all [of] it", text)
            for file in files[:4]:
                kept = (source / file).read_text()
                (source / file).unlink()
                done = self.write(source, source / "NOTICES")
                self.assertNotEqual(done.returncode, 0, file)
                self.assertIn("cannot write the notices of third parties", done.stderr)
                (source / file).write_text(kept)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""When the hash of the sources that compute (cmake/source_hash.cmake) is another one: what is kept of
a model is kept for a hash, so a change that it overlooks would have what older kernels computed taken
for this build's. With a project of a few tiny files."""

import re
import shutil
import unittest

from build_test import CMAKE_DIR, CMakeCase, run


class HashedFolders(unittest.TestCase):
    def test_what_computes_measures_and_probes_is_hashed(self):
        root = CMAKE_DIR.parent
        call = re.search(r"outrider_hash_sources\(([^)]*)\)", (root / "CMakeLists.txt").read_text())
        folders = {root / name for name in call[1].split()[1:]}
        for name in ("packed.cc", "kernel_products.cc", "llama_model.cc", "probe.cc",
                     "measure_costs.cc"):
            found = list((root / "src").rglob(name))
            self.assertEqual(len(found), 1, name)
            self.assertIn(found[0].parent, folders)


class SourceHash(CMakeCase):
    def setUp(self):
        super().setUp()
        self.folder = self.dir / "src" / "kernels"
        for path in ("src/kernels/a.cc", "src/kernels/a.h", "src/kernels/a_test.cc",
                     "src/kernels/room/b.cc", "docs/a.md", "cmake/instruction_sets.cmake",
                     "cmake/amx_intrinsics.h"):
            (self.dir / path).parent.mkdir(parents=True, exist_ok=True)
            (self.dir / path).write_text("// a\n")
        self.project("project(x LANGUAGES NONE)\ninclude(source_hash)\nadd_custom_target(y ALL)\n"
                     "outrider_hash_sources(y src/kernels)\noutrider_hash_sources(none src/kernels)\n")
        code, output = self.configure()
        self.assertEqual(code, 0, output)

    def made(self):
        result = run("cmake", "--build", self.dir / "build", env=self.env)
        self.assertEqual(result.returncode, 0, result.stdout)
        return self.dir / "build" / "source_hash" / "source_hash.cc"

    def said(self):
        return re.search(r'return "([0-9a-f]{16})";', self.made().read_text())[1]

    def write(self, path):
        """Other bytes, later than what was made: a file system's clock goes in steps."""
        made = self.dir / "build" / "source_hash" / "source_hash.cc"
        before = made.stat().st_mtime_ns
        while (self.dir / path).stat().st_mtime_ns <= before:
            (self.dir / path).write_text("// b\n")

    def test_each_change_of_what_computes_is_another_hash_and_nothing_else_is(self):
        first = self.said()
        written = self.made().stat().st_mtime_ns
        for path in ("docs/a.md", "src/kernels/a_test.cc", "src/kernels/room/b.cc"):
            (self.dir / path).write_text("// b\n")
        self.assertEqual((self.said(), self.made().stat().st_mtime_ns), (first, written))
        hashes = [first]
        self.write("src/kernels/a.cc")
        hashes.append(self.said())
        self.write("src/kernels/a.h")
        hashes.append(self.said())
        (self.folder / "new.h").write_text("// a\n")
        hashes.append(self.said())
        (self.folder / "new.h").rename(self.folder / "newer.h")
        hashes.append(self.said())
        (self.folder / "a.cc").unlink()
        hashes.append(self.said())
        self.write("cmake/instruction_sets.cmake")
        hashes.append(self.said())
        self.assertEqual(len(set(hashes)), 7, hashes)

    def test_the_same_sources_elsewhere_have_the_same_hash(self):
        first = self.said()
        before, self.dir = self.dir, self.dir / "elsewhere"
        for name in ("src", "cmake"):
            shutil.copytree(before / name, self.dir / name)
        shutil.copy(before / "CMakeLists.txt", self.dir)
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        self.assertEqual(self.said(), first)

    def test_what_computes_here_is_hashed(self):
        lists = (CMAKE_DIR.parent / "CMakeLists.txt").read_text()
        folders = re.search(r"outrider_hash_sources\(outrider_llama_exactness([^)]*)\)", lists)[1].split()
        for folder in folders:
            self.assertTrue(list((CMAKE_DIR.parent / folder).glob("*.cc")), folder)
        for folder in ("src/kernels", "src/llama", "src/llama/kernels", "src/llama/model"):
            self.assertIn(folder, folders)


if __name__ == "__main__":
    unittest.main()

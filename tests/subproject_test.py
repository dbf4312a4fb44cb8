#!/usr/bin/env python3
"""Tests of Outrider inside another project's CMake build (docs/library.md), without llama.cpp: that
the project keeps its own modules, its build type and a llama.cpp of its own, and gets C++20 with our
layers. One file is compiled; the layers themselves are not."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# It says nothing of C++'s version.
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES C CXX)
list(APPEND CMAKE_MODULE_PATH "${PROJECT_SOURCE_DIR}/cmake")
%s
add_subdirectory("${OUTRIDER}" outrider EXCLUDE_FROM_ALL)
include(options)
message(STATUS "included [${INCLUDED}], build type [${CMAKE_BUILD_TYPE}]")
add_library(app OBJECT app.cc)
target_link_libraries(app PRIVATE outrider_draft outrider_verify)
foreach(layer llama_base llama backend capi)
  if(TARGET outrider_${layer})
    message(SEND_ERROR "outrider_${layer} is there")
  endif()
endforeach()
"""

SOURCE = """#include "draft/draft_chain.h"
#include "verify/coupled.h"

static_assert(__cplusplus >= 202002L);
"""

# As llama.cpp's own CMake names what is ours, too.
LLAMA = """add_library(llama INTERFACE)
add_library(llama-common INTERFACE)
add_library(cpp-httplib INTERFACE)
add_library(vendor::cpp-httplib ALIAS cpp-httplib)"""


@unittest.skipUnless(shutil.which("ninja"), "needs ninja")
class Subproject(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name).resolve()
        (self.dir / "cmake").mkdir()
        (self.dir / "cmake" / "options.cmake").write_text("list(APPEND INCLUDED app)\n")
        (self.dir / "app.cc").write_text(SOURCE)

    def cmake(self, *arguments):
        result = subprocess.run(["cmake", *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)
        return " ".join(result.stdout.split())  # CMake breaks long lines

    def configure(self, *arguments, before=""):
        (self.dir / "CMakeLists.txt").write_text(PROJECT % before)
        return self.cmake("-G", "Ninja", "-S", self.dir, "-B", self.dir / "build",
                          f"-DOUTRIDER={ROOT}", *arguments)

    def test_a_project_with_an_options_module_and_without_a_standard_compiles_our_headers(self):
        output = self.configure("-DOUTRIDER_LLAMA=OFF")
        self.assertIn("included [app], build type []", output)
        self.assertNotIn("CMake Warning", output)
        cache = (self.dir / "build" / "CMakeCache.txt").read_text()
        self.assertRegex(cache, r"(?m)^CMAKE_BUILD_TYPE:STRING=$")
        self.assertIn("OUTRIDER_LLAMA:BOOL=OFF", cache, "our options were read")
        ninja = (self.dir / "build" / "build.ninja").read_text()
        [compiled] = set(re.findall(r"^build (CMakeFiles/app\.dir/app\.cc\.[a-z]+):", ninja,
                                    re.MULTILINE))
        self.cmake("--build", self.dir / "build", "--target", compiled)

    def test_a_project_with_a_llama_cpp_of_its_own_keeps_it_and_is_told(self):
        output = self.configure(before=LLAMA)
        self.assertIn("llama.cpp: this build has one already", output)
        self.assertIn("OUTRIDER_LLAMA=OFF says so without a warning", output)

    def test_where_ours_is_off_no_layer_is_built_on_the_projects_llama_cpp(self):
        output = self.configure(before="set(OUTRIDER_LLAMA OFF)\n" + LLAMA)
        self.assertNotIn("this build has one already", output)
        self.assertIn("Layer http/connection: left out", output)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""What a program has to be linked with beside a static library of ours (cmake/c_library.cmake), where
llama.cpp has found a GPU's libraries in its own folder. Needs no GPU: the libraries are names."""

import unittest

from build_test import CMakeCase

GGML = """
find_package(Threads REQUIRED)
add_library(OpenMP::OpenMP_C INTERFACE IMPORTED)
add_library(ggml STATIC ggml.c)
target_link_libraries(ggml PRIVATE Gpu::run Threads::Threads OpenMP::OpenMP_C m)
"""

FIND_GPU = """
add_library(Gpu::run UNKNOWN IMPORTED)
set_target_properties(Gpu::run PROPERTIES IMPORTED_CONFIGURATIONS RELEASE
  IMPORTED_LOCATION_RELEASE /opt/gpu/lib/libgpu.so INTERFACE_LINK_LIBRARIES Gpu::driver)
add_library(Gpu::driver SHARED IMPORTED)
set_target_properties(Gpu::driver PROPERTIES IMPORTED_LOCATION /opt/gpu/lib/libdriver.so.1)
set(Gpu_FOUND ON)
"""

PROJECT = """
project(x VERSION 0.1.0 LANGUAGES C CXX)
include(c_library)
include(llama_source)
list(APPEND CMAKE_MODULE_PATH "${PROJECT_SOURCE_DIR}/ggml")
outrider_add_llama(ggml)
add_library(outrider_commit OBJECT ggml/ggml.c)
add_library(layer STATIC ggml/ggml.c)
target_link_libraries(layer ggml)
outrider_link_closure(layer archives system unknown)
outrider_static_c_library(tiny f "${archives}" "${unknown}")
message(STATUS "archives [${archives}] system [${system}] unknown [${unknown}]")
"""


class LinkClosure(CMakeCase):
    def closure(self, finding):
        """What is said of a layer that is linked with a ggml which begins with FINDING."""
        ggml = self.dir / "ggml"
        ggml.mkdir()
        (ggml / "ggml.c").write_text("int x;\n")
        (ggml / "FindGpu.cmake").write_text(FIND_GPU)
        (ggml / "CMakeLists.txt").write_text(finding + GGML)
        self.project(PROJECT)
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        return output

    def test_what_ggml_has_found_is_linked_with_the_static_library(self):
        output = self.closure("find_package(Gpu)\n")
        self.assertIn("archives [layer;ggml] system [-lstdc++;", output)
        for flag in ("/opt/gpu/lib/libgpu.so", "/opt/gpu/lib/libdriver.so.1", "-lgomp", "-lm"):
            self.assertIn(f";{flag};", output)
        self.assertIn("unknown []", output)
        self.assertNotIn("is not made", output)

    def test_where_that_is_not_known_no_static_library_is_made_and_the_name_is_said(self):
        output = self.closure("include(FindGpu.cmake)\n")  # for its own folder alone
        self.assertIn("libtiny.a is not made", output)
        self.assertIn("unknown [Gpu::run]", output)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Tests of check_layers.py: each makes a small tree, with or without a forbidden arrow."""

import base64
import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import check_layers  # noqa: E402

TABLE = """
outrider_layer(base)
outrider_layer(tree   LINKS base                     TESTED_WITH testing)
outrider_layer(model  LINKS tree                     TESTED_WITH testing)
outrider_layer(json   THIRD_PARTY nlohmann)
outrider_layer(llama  LINKS model THIRD_PARTY llama  TESTED_WITH testing_gguf)
outrider_layer(lab    LINKS model)
outrider_tool(tools   LINKS llama json lab THIRD_PARTY cli11 LAB_FILES bench
              ROOMS_ABOVE talk ROOMS_BELOW words)
outrider_testing(testing LINKS model llama THIRD_PARTY llama cli11 gtest
                 GGUF_FILES gguf_* tiny_*)
"""

ROOMS = """
outrider_layer(base)
outrider_layer(nest/eggs LINKS base)
outrider_layer(nest/birds LINKS nest/eggs THIRD_PARTY nlohmann)
outrider_layer(nest   LINKS nest/birds)
outrider_layer(farm   LINKS nest/eggs)
outrider_tool(tools   LINKS farm nest)
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("CMakeLists.txt", TABLE)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def errors(self):
        checker = check_layers.Checker(self.root)
        checker.run()
        return checker.errors

    def assert_one_error(self, *parts):
        errors = self.errors()
        self.assertEqual(len(errors), 1, errors)
        for part in parts:
            self.assertIn(part, errors[0])

    def test_an_allowed_tree_passes(self):
        self.write("src/tree/a.h", '#include <vector>\n#include "base/b.h"\n#include "tree/c.h"\n')
        self.write("src/tree/a_test.cc", '#include "testing/fake.h"\n#include <gtest/gtest.h>\n')
        self.write("src/llama/l.cc", '#include "llama.h"\n#include "sampling.h"\n#include <ggml.h>\n')
        self.write("src/llama/l_test.cc", '#include "testing/tiny_gguf.h"\n')
        self.write("src/json/j.cc", "#include <nlohmann/json.hpp>\n")
        self.write("tools/t.cc", '#include <CLI/CLI.hpp>\n#include "tools/u.h"\n#include "llama/l.h"\n')
        self.write("testing/tiny_gguf.cc", '#include "gguf.h"\n#include "testing/tiny_gguf.h"\n')
        self.write("testing/tools/widen.cc", '#include "testing/tiny_gguf.h"\n#include <CLI/CLI.hpp>\n')
        self.write("tests/x_test.cc", '#include "tree/a.h"\n#include "testing/tiny_gguf.h"\n'
                                      '#include "tests/pair.h"\n')
        self.assertEqual(self.errors(), [])

    def test_an_arrow_reached_through_another_layer_is_allowed(self):
        self.write("src/model/m.cc", '#include "base/b.h"\n')
        self.assertEqual(self.errors(), [])

    def test_an_upward_arrow_fails_with_file_line_and_the_allowed_list(self):
        self.write("src/tree/a.cc", '\n#include "model/m.h"\n')
        self.assert_one_error("src/tree/a.cc:2:", "layer model", "allowed: base, tree")

    def test_the_lab_is_included_by_the_files_of_the_command_that_are_named(self):
        self.write("tools/bench.cc", '#include "lab/run.h"\n')
        self.assertEqual(self.errors(), [])
        self.write("tools/serve.cc", '#include "lab/run.h"\n')
        self.assert_one_error("tools/serve.cc:1: ", 'layer lab ("lab/run.h")')

    def test_the_rooms_of_a_tool_lie_above_or_below_its_folder(self):
        self.write("tools/talk/t.cc", '#include "tools/a.h"\n#include "tools/talk/b.h"\n'
                                      '#include "tools/words/w.h"\n')
        self.write("tools/a.cc", '#include "tools/words/w.h"\n')
        self.write("tools/words/w_test.cc", '#include "tools/a.h"\n')
        self.assertEqual(self.errors(), [])
        self.write("tools/a.cc", '#include "tools/talk/b.h"\n')
        self.assert_one_error("tools/a.cc:1: ", "a room above")
        self.write("tools/a.cc", "")
        self.write("tools/words/w.cc", '#include "tools/a.h"\n')
        self.assert_one_error("tools/words/w.cc:1: ", "above this room")
        self.write("tools/words/w.cc", '#include "tools/talk/b.h"\n')
        self.assert_one_error("tools/words/w.cc:1: ", "a room above")
        self.write("tools/words/w.cc", "")
        self.write("tools/other/o.cc", "")
        self.assert_one_error("tools/other/o.cc:1: ", "the room other is not in the table")

    def test_a_sideways_arrow_fails(self):
        self.write("src/tree/a.cc", '#  include "json/j.h"\n')
        self.assert_one_error("src/tree/a.cc:1:", "layer json")

    def test_llama_headers_outside_the_adapter_fail_however_they_are_written(self):
        for header in ('"llama.h"', "<llama.h>", "<ggml-backend.h>", '"gguf.h"', '"common.h"',
                       "<jinja/value.h>"):
            self.write("src/model/m.cc", f"#include {header}\n")
            self.assert_one_error("src/model/m.cc:1:", header.strip('<>"'))

    def test_llama_headers_in_tools_and_integration_tests_fail(self):
        self.write("tools/t.cc", '#include "llama.h"\n')
        self.assert_one_error("tools/t.cc:1:")
        self.write("tools/t.cc", "")
        self.write("tests/x_test.cc", '#include "llama.h"\n')
        self.assert_one_error("tests/x_test.cc:1:")

    def test_a_third_party_of_another_layer_fails(self):
        self.write("src/model/m.cc", "#include <nlohmann/json.hpp>\n")
        self.assert_one_error("src/model/m.cc:1:", "nlohmann")

    def test_shipped_code_may_not_include_testing(self):
        self.write("src/tree/a.cc", '#include "testing/fake.h"\n')
        self.assert_one_error("src/tree/a.cc:1:", "test support")
        self.write("src/tree/a.cc", "")
        self.write("tools/t.cc", '#include "testing/fake.h"\n')
        self.assert_one_error("tools/t.cc:1:", "test support")

    def test_nothing_but_tests_includes_tests(self):
        self.write("testing/fake.cc", '#include "tests/pair.h"\n')
        self.assert_one_error("testing/fake.cc:1:", "layer tests")

    def test_shipped_code_may_not_include_gtest(self):
        self.write("src/tree/a.cc", "#include <gtest/gtest.h>\n")
        self.assert_one_error("gtest")

    def test_a_test_obeys_its_layers_arrows_too(self):
        self.write("src/tree/a_test.cc", '#include "llama/l.h"\n')
        self.assert_one_error("src/tree/a_test.cc:1:", "layer llama")

    def test_a_layer_that_is_tested_without_gguf_may_not_include_gguf_helpers(self):
        self.write("src/tree/a_test.cc", '#include "testing/tiny_gguf.h"\n')
        self.assert_one_error("needs llama.cpp")

    def test_a_layer_that_is_tested_without_testing_may_not_include_it(self):
        self.write("src/base/b_test.cc", '#include "testing/fake.h"\n')
        self.assert_one_error("test support")

    def test_plain_test_support_may_not_need_llama(self):
        self.write("testing/fake.cc", '#include "llama.h"\n#include "llama/l.h"\n'
                                      '#include "testing/gguf_file.h"\n')
        self.assertEqual(len(self.errors()), 3)

    def test_a_folder_outside_the_table_fails(self):
        self.write("src/misc/x.h", "")
        self.assert_one_error("src/misc/x.h:1:", "not in the table")

    def test_a_relative_include_fails(self):
        self.write("src/tree/a.cc", '#include "b.h"\n')
        self.assert_one_error("no path from src/")

    def test_a_room_is_included_by_who_links_it_or_the_layer_around_it(self):
        self.write("CMakeLists.txt", ROOMS)
        self.write("src/nest/eggs/e.h", '#include "base/b.h"\n#include "nest/eggs/f.h"\n')
        self.write("src/nest/birds/b.h", '#include "nest/eggs/e.h"\n')
        self.write("src/nest/n.cc", '#include "nest/birds/b.h"\n#include "nest/eggs/e.h"\n')
        self.write("src/farm/f.cc", '#include "nest/eggs/e.h"\n')
        self.write("tools/t.cc", '#include "nest/n.h"\n#include "nest/birds/b.h"\n')
        self.assertEqual(self.errors(), [])

    def test_a_room_may_not_include_a_room_that_it_does_not_link(self):
        self.write("CMakeLists.txt", ROOMS)
        self.write("src/nest/eggs/e.h", '#include "nest/birds/b.h"\n')
        self.assert_one_error("src/nest/eggs/e.h:1:", "layer nest/birds", "allowed: base, nest/eggs)")

    def test_a_room_may_not_include_the_layer_around_it(self):
        self.write("CMakeLists.txt", ROOMS)
        self.write("src/nest/birds/b.cc", '\n#include "nest/n.h"\n')
        self.assert_one_error("src/nest/birds/b.cc:2:", "layer nest (")

    def test_who_links_a_room_may_not_include_its_neighbours(self):
        self.write("CMakeLists.txt", ROOMS)
        for path, layer in (("nest/birds/b.h", "nest/birds"), ("nest/n.h", "nest")):
            self.write("src/farm/f.cc", f'#include "{path}"\n')
            self.assert_one_error("src/farm/f.cc:1:", f"layer {layer} (")

    def test_a_rooms_third_party_is_its_own(self):
        self.write("CMakeLists.txt", ROOMS)
        self.write("src/nest/birds/b.cc", "#include <nlohmann/json.hpp>\n")
        self.assertEqual(self.errors(), [])
        self.write("src/nest/n.cc", "#include <nlohmann/json.hpp>\n")
        self.assert_one_error("src/nest/n.cc:1:", "nlohmann")

    def test_a_folder_in_a_layer_is_no_part_of_it_without_a_row(self):
        self.write("CMakeLists.txt", ROOMS)
        self.write("src/nest/twigs/t.h", "")
        self.assert_one_error("src/nest/twigs/t.h:1:", "not in the table")
        self.write("src/nest/twigs/t.h", "")
        self.write("src/nest/eggs/more/m.h", "")
        self.assertEqual(len(self.errors()), 2)

    def test_only_tests_may_include_a_layer_that_they_are_tested_with(self):
        self.write("CMakeLists.txt", ROOMS)
        self.write("src/nest/eggs/e_test.cc", '#include "nest/birds/b.h"\n')
        self.assert_one_error("layer nest/birds")
        self.write("CMakeLists.txt", ROOMS.replace("eggs LINKS base", "eggs LINKS base "
                                                   "TESTED_WITH testing nest/birds"))
        self.assertEqual(self.errors(), [])
        self.write("src/nest/eggs/e.cc", '#include "nest/birds/b.h"\n')
        self.assert_one_error("src/nest/eggs/e.cc:1:", "layer nest/birds")

    def test_a_table_that_tests_with_an_unknown_layer_fails(self):
        self.write("CMakeLists.txt", "outrider_layer(a/b TESTED_WITH testing a/c)\n")
        self.assert_one_error("a/b is tested with a/c")

    def test_plain_test_support_may_not_need_a_room_of_llama(self):
        self.write("CMakeLists.txt", "outrider_layer(llama/files)\n"
                                     "outrider_layer(llama LINKS llama/files)\n"
                                     "outrider_testing(testing LINKS llama)\n")
        self.write("testing/fake.cc", '#include "llama/files/f.h"\n')
        self.assert_one_error("layer llama/files")

    def test_a_cycle_or_an_unknown_name_in_the_table_fails(self):
        self.write("CMakeLists.txt", "outrider_layer(a LINKS b)\nouttrider(x)\n"
                                     "outrider_layer(b LINKS a THIRD_PARTY boost)\n")
        errors = self.errors()
        self.assertEqual(len(errors), 2, errors)
        self.assertIn("CMakeLists.txt:1: a links b", errors[0])
        self.assertIn("CMakeLists.txt:3: no third party 'boost'", errors[1])

    def test_an_empty_table_fails(self):
        self.write("CMakeLists.txt", "project(x)\n")
        self.assertEqual(len(self.errors()), 1)

    def test_a_file_of_more_than_400_lines_fails(self):
        for path in ("src/tree/a.cc", "src/http/page/a.js", "tests/a_test.py", "scripts/dev/a.sh",
                     "python/outrider/a.py", "node/a.js", "tools/a.py", "bench/a.py"):
            with self.subTest(path):
                self.write(path, "\n" * 400)
                self.assertEqual(self.errors(), [])
                self.write(path, "\n" * 401)
                self.assert_one_error(f"{path}:401: 401 lines", "at most 400")
                self.write(path, "")

    def test_what_tools_have_put_there_may_be_longer(self):
        self.write("node/node_modules/koffi/index.js", "\n" * 401)
        self.assertEqual(self.errors(), [])

    def test_a_function_of_more_than_70_lines_fails_wherever_it_stands(self):
        body = "  f();\n" * 69
        for head in ("void g() {", "class A {\n void g() {", "A::A(int x)\n    : a_{x}, b_(x) {",
                     "namespace a {\nstatic T h() noexcept {", "TEST(Suite, Name) {"):
            with self.subTest(head):
                self.write("src/tree/t.cc", head + "\n" + body + "}\n")
                self.assert_one_error("src/tree/t.cc:", "a function of 7", "at most 70")
                self.write("src/tree/t.cc", head + "\n" + body[:-14] + "}\n")
                self.assertEqual(self.errors(), [])

    def test_what_is_no_function_may_be_longer(self):
        rows = "  {1, ')', \"{\"},  // }\n" * 80
        self.write("src/tree/t.cc", "constexpr Row kRows[] = {\n" + rows + "};\n"
                   "struct Many {\n" + "  int f() { return 1; }\n" * 80 + "};\n"
                   'const char* t = R"(' + "void f() {\n" * 80 + ')";\n'
                   "#define M(x) do { \\\n  x; \\\n" + "  x; \\\n" * 80 + "  } while (false)\n")
        self.assertEqual(self.errors(), [])

    def test_a_lambda_is_part_of_its_function(self):
        text = "void g() {\n  h([&] {\n" + "    f();\n" * 70 + "  });\n}\nint x() { return 1; }\n"
        self.assertEqual(check_layers.functions(text), [(1, 74), (75, 1)])

    def unused(self):
        checker = check_layers.Checker(self.root, whole=True)
        checker.run()
        return checker.errors

    def test_an_arrow_that_no_file_needs_fails(self):
        self.write("CMakeLists.txt", ROOMS)
        self.write("src/nest/birds/b.cc", '#include <nlohmann/json.hpp>\n#include "nest/eggs/e.h"\n')
        self.assertEqual(self.unused(), [], "rows without files wait for them")
        self.write("src/nest/n.cc", "")
        self.assertEqual(self.unused(), [], "a room is linked for those who link what is around it")
        self.write("src/farm/f.cc", '#include "base/b.h"\n')
        self.assertEqual(self.unused(), [], "what eggs lead to")
        self.write("src/farm/f.cc", "")
        self.assertEqual(self.unused(), ["CMakeLists.txt:1: farm links nest/eggs, and no file of it "
                                         "includes anything from base, nest/eggs"])
        self.write("src/farm/f_test.cc", '#include "nest/eggs/e.h"\n')
        self.assertEqual(self.unused(), [], "its test needs it")

    def test_a_third_party_whose_headers_nobody_includes_fails(self):
        self.write("src/json/j.cc", "")
        self.write("src/llama/l.cc", '#include "model/m.h"\n')
        self.assertEqual(self.unused(), ["CMakeLists.txt:1: json has the third party nlohmann, and "
                                         "no file of it includes its headers"])
        self.write("src/json/j.h", "#include <nlohmann/json.hpp>\n")
        self.assertEqual(self.unused(), [])

    def test_the_command_fails_on_a_forbidden_arrow_and_on_wrong_usage(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            self.assertEqual(check_layers.main([str(self.root)]), 0)
            self.assertEqual(check_layers.main(["--what"]), 2)
            self.assertEqual(check_layers.main([str(self.root / "nowhere")]), 2)
            self.write("src/base/b.h", '#include "tree/a.h"\n')
            self.assertEqual(check_layers.main([str(self.root)]), 1)
        self.assertIn("src/base/b.h:1:", out.getvalue())


class TheRealTable(unittest.TestCase):
    def setUp(self):
        self.rows, self.problems = check_layers.read_table(
            (HERE.parent / "CMakeLists.txt").read_text())

    def test_it_is_well_formed(self):
        self.assertEqual(self.problems, [])

    def test_only_the_adapter_and_testing_have_llama(self):
        users = [r.name for r in self.rows.values() if "llama" in r.lists["THIRD_PARTY"]]
        self.assertEqual({name.split("/")[0] for name in users}, {"llama", "testing"})

    def test_what_needs_no_llama_in_the_adapter_does_not_reach_it(self):
        for room in ("llama/cells", "llama/probe"):
            for name in check_layers.reach(self.rows, room):
                self.assertEqual(self.rows[name].lists["THIRD_PARTY"], [], f"{room}: {name}")

    def test_only_the_backend_what_stands_on_it_the_machine_and_testing_reach_the_adapter(self):
        users = [name for name in self.rows if name.split("/")[0] != "llama"
                 and any(n.split("/")[0] == "llama" for n in check_layers.reach(self.rows, name))]
        self.assertEqual(users, ["backend", "capi", "rpcserver", "machine", "lab", "tools", "testing"])

    def test_no_row_links_testing(self):
        for row in self.rows.values():
            self.assertNotIn("testing", row.lists["LINKS"])


class ThePin(unittest.TestCase):
    def test_the_hash_is_the_registrys_integrity_in_hex(self):
        text = (HERE.parent / "cmake" / "llama_source.cmake").read_text()
        integrity = re.search(r"sha512-([A-Za-z0-9+/=]+)", text).group(1)
        pinned = re.search(r"OUTRIDER_LLAMA_SHA512 (\w+)", text).group(1)
        self.assertEqual(base64.b64decode(integrity).hex(), pinned)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Tests of scripts/draw_layers.py, and that docs/layers.md is what it writes."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]
sys.dont_write_bytecode = True
import check_layers  # noqa: E402
import draw_layers  # noqa: E402

TABLE = """
outrider_layer(base)
outrider_layer(nest/eggs  LINKS base)
outrider_layer(nest/birds LINKS nest/eggs base)
outrider_layer(nest   LINKS nest/birds nest/eggs)
outrider_layer(farm   LINKS nest/eggs base)
outrider_tool(tools   LINKS farm nest base)
outrider_testing(testing LINKS tools)
"""


class DrawLayers(unittest.TestCase):
    def setUp(self):
        rows, problems = check_layers.read_table(TABLE)
        self.assertEqual(problems, [])
        self.links = draw_layers.links_of(rows)
        self.page = draw_layers.page(rows)

    def test_an_arrow_that_a_longer_way_replaces_is_left_out(self):
        self.assertEqual(draw_layers.reduced({"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}),
                         {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()})

    def test_a_diamond_keeps_its_four_arrows(self):
        links = {"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}
        self.assertEqual(draw_layers.reduced(links), links)

    def test_rooms_are_one_node_among_all_layers(self):
        self.assertEqual(draw_layers.collapsed(self.links),
                         {"base": set(), "nest": {"base"}, "farm": {"nest", "base"},
                          "tools": {"farm", "nest", "base"}})
        drawn = draw_layers.overview(self.links, ["nest"])
        self.assertIn('nest[["nest"]]', drawn)
        self.assertEqual([line.strip() for line in drawn.splitlines() if "-->" in line],
                         ["tools --> farm", "farm --> nest", "nest --> base"])

    def test_rooms_are_drawn_in_a_box_with_what_they_link_outside(self):
        drawn = draw_layers.rooms(self.links, "nest")
        box = drawn[drawn.index("subgraph"):drawn.index("  end")]
        for room in ("nest", "nest_eggs", "nest_birds"):
            self.assertIn(f"    {room}[", box)
        self.assertNotIn("base", box)
        self.assertEqual([line.strip() for line in drawn.splitlines() if "-->" in line],
                         ["nest --> nest_birds", "nest_birds --> nest_eggs", "nest_eggs --> base"])
        self.assertIn("`nest` by `tools`; `nest/eggs` by `farm`.", drawn)

    def test_test_support_is_left_out(self):
        self.assertNotIn("testing[", self.page)

    def test_every_layer_and_room_of_the_real_table_is_drawn(self):
        rows, _ = check_layers.read_table((ROOT / "CMakeLists.txt").read_text())
        text = draw_layers.page(rows)
        for name, row in rows.items():
            self.assertEqual(f'"{name}"' in text, row.kind != "testing", name)

    def test_the_page_of_this_tree_is_current(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(draw_layers.main(["--check"]), 0, out.getvalue())

    def test_a_page_that_is_old_or_missing_fails_and_is_written(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            page = pathlib.Path(folder) / "layers.md"
            self.assertEqual(draw_layers.main(["--check"], page), 1)
            page.write_text("# Layers\n")
            self.assertEqual(draw_layers.main(["--check"], page), 1)
            self.assertEqual(draw_layers.main([], page), 0)
            self.assertEqual(draw_layers.main(["--check"], page), 0)

    def test_wrong_usage(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(draw_layers.main(["--what"]), 2)


if __name__ == "__main__":
    unittest.main()

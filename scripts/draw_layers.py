#!/usr/bin/env python3
"""Draws the layers: writes docs/layers.md from the table in CMakeLists.txt.

  scripts/draw_layers.py           writes it
  scripts/draw_layers.py --check   fails where it is not what the table says

An arrow leads from a layer to one that it links. It is left out where a longer way leads there
(transitive reduction), so what a layer may include is all that its arrows reach. Test support
(testing) is left out. Tested by tests/draw_layers_test.py.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import check_layers  # noqa: E402

PAGE = ROOT / "docs/layers.md"
HEAD = """# Layers
Made by `scripts/draw_layers.py` of the table in `CMakeLists.txt`; do not edit. [Design](design.md#layers) says what each layer is.

An arrow leads from a layer to one that it links. Where a longer way leads there it is left out, so a layer may include all that its arrows reach. Test support (`testing`) is left out.
"""

WITH_ROOMS = """Those with a double line have rooms, which are drawn below. An arrow from or to one of them may be of a single room.
"""


def outer(name):
    """The layer that a room is in, or the layer itself."""
    return name.partition("/")[0]


def links_of(rows):
    """{layer or room: what it links}, without test support."""
    return {row.name: set(row.lists["LINKS"]) for row in rows.values() if row.kind != "testing"}


def collapsed(links):
    """The same between layers, whatever their rooms."""
    layers = {}
    for name, targets in links.items():
        layers.setdefault(outer(name), set()).update(outer(target) for target in targets)
    return {name: targets - {name} for name, targets in layers.items()}


def reach(links, name):
    """All that NAME's arrows lead to."""
    found, todo = set(), list(links.get(name, ()))
    while todo:
        current = todo.pop()
        if current not in found:
            found.add(current)
            todo += links.get(current, ())
    return found


def reduced(links):
    """Without the arrows that a longer way replaces."""
    reached = {name: reach(links, name) for name in links}
    return {name: {target for target in targets
                   if not any(target in reached.get(other, ()) for other in targets - {target})}
            for name, targets in links.items()}


def node(name, shape="[{}]"):
    return name.replace("/", "_") + shape.format(f'"{name}"')


def arrows(links, names):
    return [f"  {name.replace('/', '_')} --> {target.replace('/', '_')}"
            for name in names for target in sorted(links[name])]


def diagram(lines):
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def overview(links, with_rooms):
    """All layers, those with rooms as one node with a double line."""
    layers = collapsed(links)
    order = list(reversed(layers))  # what is used lies below
    lines = ["  " + node(name, "[[{}]]" if name in with_rooms else "[{}]") for name in order]
    return diagram(lines + arrows(reduced(layers), order))


def rooms(links, layer):
    """The rooms of LAYER in a box, and the layers outside that they link, with round ends."""
    inside = [name for name in reversed(links) if outer(name) == layer]
    shown = {name: targets for name, targets in reduced(links).items() if name in inside}
    outside = sorted({target for targets in shown.values() for target in targets} - set(inside))
    lines = [f'  subgraph rooms ["src/{layer}"]', *("    " + node(name) for name in inside), "  end",
             *("  " + node(name, "([{}])") for name in outside)]
    users = {name: [user for user in links if outer(user) != layer and name in links[user]]
             for name in inside}
    used = "; ".join(f"`{name}` by {', '.join(f'`{user}`' for user in who)}"
                     for name, who in users.items() if who)
    return diagram(lines + arrows(shown, inside)) + f"\n\nLinked from outside: {used}."


def page(rows):
    links = links_of(rows)
    with_rooms = [layer for layer in dict.fromkeys(map(outer, links))
                  if any(name.startswith(layer + "/") for name in links)]
    parts = [HEAD, "## All layers\n" + WITH_ROOMS,
             overview(links, with_rooms)]
    for layer in with_rooms:
        parts += [f"\n## The rooms of `src/{layer}`\nRound: layers outside.\n", rooms(links, layer)]
    return "\n".join(parts) + "\n"


def main(arguments, target=PAGE):
    if arguments not in ([], ["--check"]):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    rows, problems = check_layers.read_table((ROOT / "CMakeLists.txt").read_text())
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    text = page(rows)
    if not arguments:
        target.write_text(text)
    elif not target.is_file() or target.read_text() != text:
        print(f"{target}: not what CMakeLists.txt says; run scripts/draw_layers.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

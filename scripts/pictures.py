#!/usr/bin/env python3
"""Makes the documents' pictures anew: docs/page.png (the page, one prompt with speculation off and
on) and docs/terminal.svg (`outrider run --color`).

Usage: build/clients/python/bin/python scripts/pictures.py --target T.gguf --draft D.gguf
`./dev clients` installs what it needs (playwright, rich, Chromium). Nothing else should be running:
the pictures show speeds."""

import argparse
import io
import os
import pathlib
import pty
import shutil
import subprocess
import sys

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))
import served  # noqa: E402  (the tests' helper: a server as a process)

CODE = "Write a Python class for a stack, with push, pop and peek."
TOKENS = 160
# rich's own frame, without the font that it would fetch from the network.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: arial; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


def on_a_terminal(command):
    """What the command prints on a terminal, colours included."""
    printed = io.BytesIO()

    def read(descriptor):
        data = os.read(descriptor, 65536)
        printed.write(data)
        return data

    os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40")
    status = pty.spawn(command, read)
    if status != 0:
        sys.exit(f"pictures.py: {command[0]} ended with status {status}")
    lines = printed.getvalue().decode().replace("\r\n", "\n").split("\n")
    return "\n".join(line.rsplit("\r", 1)[-1] for line in lines)  # a line of progress: its last state


def terminal_picture(given, path):
    options = ["-p", CODE, "--chat", "-n", str(TOKENS), "--temp", "0", "--color", "--stats"]
    text = on_a_terminal([str(given.binary), "run", "-m", str(given.target), "-d", str(given.draft),
                          *options])
    console = Console(width=120, record=True, file=io.StringIO(), force_terminal=True)
    console.print(Text(f'$ outrider run -m target.gguf -d draft.gguf -p "{CODE}" --chat --color --stats',
                       style="bold"))
    console.print(Text.from_ansi(text.strip("\n")))
    console.save_svg(str(path), title="outrider", theme=SVG_EXPORT_THEME, code_format=FRAME)


def page_picture(given, path):
    with served.Served(given.binary, given.target, given.draft) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(300_000)
        page.add_init_script("localStorage.setItem('outrider.settings', "
                             f"""'{{"max_tokens": "{TOKENS}", "temperature": "0"}}')""")
        page.goto(server.url)
        page.wait_for_selector("#model-state.ready")
        page.click("#view-compare")
        page.select_option("#compare-order", "in turn")
        page.fill("#prompt", CODE)
        page.press("#prompt", "Enter")
        page.wait_for_selector(".verdict:is(.same, .differs, .open)")
        page.screenshot(path=str(path))
        browser.close()
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--output", str(path), str(path)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "outrider")
    parser.add_argument("--target", type=pathlib.Path, required=True)
    parser.add_argument("--draft", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "docs")
    given = parser.parse_args()
    terminal_picture(given, given.folder / "terminal.svg")
    page_picture(given, given.folder / "page.png")


if __name__ == "__main__":
    main()

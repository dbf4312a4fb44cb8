#!/usr/bin/env python3
"""README's plot: Outrider's speed in those of llama-server's best setting, one bar a measurement.

    bench/gain_plot.py docs/gain.svg "one text, temperature 0=1.95" "16 requests at once=3.8"

Each figure is measured by bench/compare_peers.py or bench/throughput.py (docs/benchmarks.md).
"""
import html
import sys

LEFT, RIGHT, ROW, TOP = 250, 60, 34, 46
WIDTH = 760
INK, GRID, OURS, THEIRS = "#57606a", "#d0d7de", "#1f6feb", "#8c959f"


def text(x, y, words, anchor="start", weight="normal", fill=INK):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{fill}">{html.escape(words)}</text>')


def plot(rows):
    most = max(value for _, value in rows)
    scale = (WIDTH - LEFT - RIGHT) / max(most, 1.0)
    height = TOP + ROW * len(rows) + 34
    one = LEFT + scale
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             'font-family="system-ui, sans-serif" font-size="14">',
             f'<title>{html.escape("Outrider beside the best setting of llama-server")}</title>',
             f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             text(LEFT, 24, "tokens a second, llama-server's best setting = 1", weight="bold")]
    for i in range(2, int(most) + 1):
        x = LEFT + i * scale
        parts.append(f'<path d="M{x:.1f} {TOP}V{height - 30}" stroke="{GRID}"/>')
        parts.append(text(x, height - 12, str(i), "middle"))
    for i, (label, value) in enumerate(rows):
        y = TOP + ROW * i
        parts.append(text(LEFT - 10, y + 21, label, "end"))
        parts.append(f'<rect x="{LEFT}" y="{y + 6}" width="{value * scale:.1f}" height="22" rx="3" '
                     f'fill="{OURS}"/>')
        parts.append(text(LEFT + value * scale + 8, y + 22, f"{value:.2f}", weight="bold"))
    parts.append(f'<path d="M{one:.1f} {TOP - 6}V{height - 30}" stroke="{THEIRS}" '
                 'stroke-width="2" stroke-dasharray="5 4"/>')
    parts.append(text(one, height - 12, "llama-server", "middle"))
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    if len(sys.argv) < 3 or not all("=" in row for row in sys.argv[2:]):
        sys.exit(__doc__)
    rows = [(label, float(value)) for label, _, value in
            (row.rpartition("=") for row in sys.argv[2:])]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(plot(rows))


if __name__ == "__main__":
    main()

"""What bench/compare_peers.py makes of its results: ratios, their intervals, and the tables.

Results are {(category, temperature): {subject: [one of each round and prompt]}}; a subject's name is
its setting. Tested by tests/bench_subjects_test.py.
"""
import math
import statistics

WANTED = 0.05  # the interval of a ratio, each way: what is called sure (docs/benchmarks.md)


def median(results):
    return statistics.median(r["tps"] for r in results)


def rate(results):
    drafted = sum(r["drafted"] for r in results)
    return f" ({sum(r['accepted'] for r in results)}/{drafted})" if drafted else ""


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(v) for v in values))


def spread(ours, peer):
    """The ratio of each round alone, least and greatest, as " (0.97-1.12)"."""
    rounds = sorted({r["round"] for r in ours})
    if len(rounds) < 2:
        return ""
    ratios = [median([r for r in ours if r["round"] == k]) /
              median([r for r in peer if r["round"] == k]) for k in rounds]
    return f" ({min(ratios):.2f}-{max(ratios):.2f})"


def best_of(cell, peers):
    return max(peers, key=lambda n: median(cell[n]))


def student(freedom):
    """Of the t distribution, for 95 %; beyond the table to 1 %."""
    few = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    return few[freedom - 1] if freedom <= len(few) else 1.96 + 2.4 / freedom + 3.0 / freedom ** 2


def interval(results, temperature, ours, peers):
    """Ours / best peer, the geometric mean of all prompts, and half of the width of its 95 % interval as
    a logarithm: for these prompts, by how much a prompt's rounds differ. (How much prompts differ is in
    the table.) Without a text of that temperature it is (nan, inf)."""
    means, squares, freedom, variance = [], 0.0, 0, 0.0
    for (_, t), cell in results.items():
        if t != temperature:
            continue
        best = best_of(cell, peers)
        prompts = {}
        for a, b in zip(cell[ours], cell[best]):
            prompts.setdefault(a["prompt"], []).append(math.log(a["tps"] / b["tps"]))
        for logs in prompts.values():
            means.append(statistics.mean(logs))
            squares += sum((x - means[-1]) ** 2 for x in logs)
            freedom += len(logs) - 1
            variance += 1.0 / len(logs)
    if not means:
        return math.nan, math.inf
    mean = math.exp(statistics.mean(means))
    if freedom < 1:
        return mean, math.inf
    return mean, student(freedom) * math.sqrt(variance * squares / freedom) / len(means)


def over_prompts(results, temperature, ours, peers):
    """Ours / the best peer of its category over single prompts, each the mean of its rounds: geometric
    mean, its 95 % interval by how much prompts differ, and the least. None with fewer than two."""
    logs = {}
    for (category, t), cell in results.items():
        if t != temperature:
            continue
        for a, b in zip(cell[ours], cell[best_of(cell, peers)]):
            logs.setdefault((category, a["prompt"]), []).append(math.log(a["tps"] / b["tps"]))
    means = [statistics.mean(rounds) for rounds in logs.values()]
    if len(means) < 2:
        return None
    mean, freedom = statistics.mean(means), len(means) - 1
    half = student(freedom) * statistics.stdev(means) / math.sqrt(len(means))
    return [math.exp(x) for x in (mean, mean - half, mean + half, min(means))]


def sureness(mean, half):
    """How sure the ratio over all rounds is, half of the width of its interval a logarithm."""
    said = f"Over all rounds of these prompts, ours / best peer: {mean:.3f}"
    if half < 1:
        said += f", 95 %: {mean * math.exp(-half):.3f} to {mean * math.exp(half):.3f}"
    if half < WANTED:
        return said
    return said + f"; not known to {WANTED:.0%}: give more --rounds, or --until {WANTED}"


def print_tables(results, peers, ours):
    """One table a temperature; what is compared is the first of `ours` that is not plain."""
    best_ours = next((n for n in ours if n != "plain"), None)
    for temperature in dict.fromkeys(t for _, t in results):
        ratios = {"its plain": [], "best peer": [], "plain": [], "best peer, processor time": []}
        print(f"\nTemperature {temperature}\n")
        print("| prompts | " + " | ".join([f"llama-server {n}" for n in peers] +
                                          [f"Outrider {n}" for n in ours]) +
              " | best peer | ours / best peer | ours / our plain | same text |")
        print("| --- " * (len(peers) + len(ours) + 5) + "|")
        for (category, t), cell in results.items():
            if t != temperature:
                continue
            columns = [f"{median(cell[n]):.1f}{rate(cell[n])}" for n in peers + ours]
            best = best_of(cell, peers) if peers else None
            row = [category] + columns + [best or ""]
            ours_tps = median(cell[best_ours]) if best_ours else 0.0
            if best and best_ours:
                ratios["best peer"].append(ours_tps / median(cell[best]))
                cpu = [[r["cpu_ms"] for r in cell[n] if r.get("cpu_ms")] for n in (best_ours, best)]
                if cpu[0] and cpu[1]:
                    ratios["best peer, processor time"].append(
                        statistics.median(cpu[1]) / statistics.median(cpu[0]))
            row.append(f"{ratios['best peer'][-1]:.2f}{spread(cell[best_ours], cell[best])}"
                       if best and best_ours else "")
            same = ""
            if "plain" in ours and best_ours:
                ratios["its plain"].append(ours_tps / median(cell["plain"]))
                same = all(a["text"] == b["text"]
                           for n in ours for a, b in zip(cell["plain"], cell[n]))
                same = "yes" if same else "NO"
            row.append(f"{ratios['its plain'][-1]:.2f}" if same else "")
            if "plain" in ours and "none" in peers:
                ratios["plain"].append(median(cell["plain"]) / median(cell["none"]))
            print("| " + " | ".join(row + [same]) + " |")
        for name, values in ratios.items():
            if values:
                what = "our plain / llama-server's plain" if name == "plain" else f"ours / {name}"
                print(f"\nGeometric mean of {what}: {geometric_mean(values):.3f} "
                      f"(least {min(values):.2f})")
        if peers and best_ours:
            mean, half = interval(results, temperature, best_ours, peers)
            print("\n" + sureness(mean, half))
            prompts = over_prompts(results, temperature, best_ours, peers)
            if prompts:
                print(f"\nOver single prompts, ours / best peer: {prompts[0]:.3f}, 95 %: "
                      f"{prompts[1]:.3f} to {prompts[2]:.3f} (least {prompts[3]:.2f})")

# SPDX-License-Identifier: Apache-2.0
"""What a run of bench/run.py found, as Markdown and as plots: python3 bench/report.py RESULT.json writes them beside it."""

import json
import os
import statistics
import sys

import plot as growth_plot
from common import figure, markdown

# Of the plot: (measure, title, what of a pair is drawn)
PANELS = [
    ("connections", "New TLS connections, share of direct", "ratio"),
    ("requests", "HTTP requests, share of direct", "ratio"),
    ("download", "Download, share of direct", "ratio"),
    ("upload", "Upload, share of direct", "ratio"),
    ("connections", "CPU µs per connection (less is better)", "cpu"),
    ("download", "CPU s per GB down (less is better)", "cpu_gb"),
]
LABELS, BAR_LEFT, BAR_WIDTH, ROW, PANEL_GAP = 130, 140, 280, 17, 34
CUT = 4  # times the median of a panel
OWN, OTHER = "#1f6f8b", "#b9c4c9"


def ratios(pairs):
    return [own["value"] / direct["value"] for own, direct in pairs if own["value"] and direct["value"]]


def values(pairs, key="value"):
    return [own[key] for own, _ in pairs if own["value"] and own.get(key) is not None]


def spread(found, digits=2):
    return f"{statistics.median(found):.{digits}f} [{min(found):.{digits}f}–{max(found):.{digits}f}]" if found else "–"


def added(pairs, key):
    """Milliseconds more than directly, in each pair."""
    return [(own[key] - direct[key]) / 1000 for own, direct in pairs if own["value"] and direct["value"]]


def failures(pairs):
    return sum(own["failed"] for own, _ in pairs)


def in_kernel(pairs):
    """Which part of its CPU time a peer was in the kernel, over all rounds."""
    found = [own["ticks"] for own, _ in pairs if own["value"] and own.get("ticks")]
    total = sum(map(sum, found))
    return f"{sum(kernel for _, kernel in found) / total:.0%}" if total else "–"


def of_machine(runs, share, digits):
    """[CPU of the whole machine for each, how busy its CPUs were, which share of direct they would be enough for], over all rounds."""
    spent = {key: sum(one["machine"][key] for one in runs) for key in ("all", "busy", "stolen")}
    if not spent["busy"] or not share:
        return ["–"] * 3
    busy = spent["busy"] / (spent["all"] - spent["stolen"])
    return [f"{spent['busy'] / sum(one['done'] for one in runs):.{digits}f}", f"{busy:.0%}", f"{share / busy:.2f}"]


def measure_table(measure):
    digits = 0 if measure["unit"] == "per s" else 2
    times = any("p50" in own for pairs in measure["peers"].values() for own, _ in pairs)
    heads = ["", measure["unit"], "of direct [least–most]", f"CPU, {measure['cpu_unit']}", "of it in the kernel",
             f"CPU of the whole machine, {measure['cpu_unit']}", "CPUs busy", "of direct at most"]
    heads += ["added ms, p50", "added ms, p99"] if times else []
    rows = []
    direct = [pair[1] for pairs in measure["peers"].values() for pair in pairs if pair[1]["value"]]
    rows.append(["direct", figure([one["value"] for one in direct], digits), "1", "–", "–", *of_machine(direct, 1, digits),
                 *([f"{statistics.median(one[key] for one in direct) / 1000:.2f} in all" for key in ("p50", "p99")]
                   if times else [])])
    for title, pairs in measure["peers"].items():
        good, shares = values(pairs), ratios(pairs)
        row = [title, figure(good, digits) if good else "failed", spread(shares),
               figure(values(pairs, "cpu"), digits) if good else "–", in_kernel(pairs),
               *of_machine([own for own, _ in pairs if own["value"]], statistics.median(shares) if shares else 0, digits)]
        if times:
            row += [spread(added(pairs, key)) for key in ("p50", "p99")]
        if failures(pairs):
            row[1] += f", {failures(pairs)} failed"
        rows.append(row)
    return markdown(measure["title"], heads, rows)


def stolen(measures):
    """Which part of all CPUs' time the hypervisor took, while something was measured."""
    spent = [one["machine"] for measure in measures.values() for pairs in measure["peers"].values() for pair in pairs for one in pair
             if one["value"]]
    return sum(one["stolen"] for one in spent) / sum(one["all"] for one in spent) if spent else 0


def memory_table(memory):
    rows = []
    for title, found in memory.items():
        row = [title, found["idle"]]
        for key in ("tunnels", "most", "stalled"):
            count, kb = (found.get(key) or [0, 0])[:2]
            end = " (no more)" if key == "most" and found.get(key, [0, 0, False])[2] else ""
            row += [f"{count}{end}: {kb}" if count else "–", f"{(kb - found['idle']) / count:.1f}" if count else "–"]
        rows.append([*row, (found.get("stalled") or [0, 0, "–"])[2]])
    return markdown("Memory (PSS, KB) of all processes of each, and the kernel's buffers",
                    ["", "without tunnels", "idle tunnels", "each", "as many as it took", "each", "clients that don't read",
                     "each", "TCP buffers on the machine for those, KB"], rows)


def drops_table(rounds):
    rows = []
    for title in rounds[0]:
        row = [title, figure([row[title]["value"] for row in rounds], 0)]
        own = [row[title] for row in rounds if "counted" in row[title]]
        rows.append(row + ([sum(one[key] for one in own) for key in ("sent", "counted", "overflowed")] if own else [""] * 3))
    return markdown("Datagrams that nobody may send", ["", "sent per s", "sent", "on record as dropped", "lost in the kernel's queues"], rows)


def summary_table(result):
    measures = result["measures"]
    columns = [("connections", "connections", "ratio"), ("connections_jobs", "connections by jobs side by side", "ratio"),
               ("connections", "CPU µs each", "cpu"), ("requests", "requests", "ratio"), ("requests_jobs", "requests by jobs side by side", "ratio"),
               ("download", "download", "ratio"), ("upload", "upload", "ratio"), ("download", "CPU s per GB", "cpu_gb")]
    rows = []
    for title, note in result["peers"].items():
        if title == "direct":
            continue
        row = [f"{title} ({note['note']})"]
        for key, _, what in columns:
            pairs = measures.get(key, {}).get("peers", {}).get(title, [])
            found = drawn(pairs, what)
            digits = 0 if what == "cpu" else 2
            row.append(spread(found, digits) if found else "–")
        memory = result.get("memory", {}).get(title, {}).get("tunnels")
        rows.append([*row, f"{memory[1] / 1024:.1f}" if memory and memory[0] == 1000 else "–"])
    return markdown("In short: medians as shares of the direct path [least–most]",
                    ["", *[head for _, head, _ in columns], "MB with 1000 idle tunnels"], rows)


def drawn(pairs, what):
    if what == "ratio":
        return ratios(pairs)
    return values(pairs, "cpu")


# ---- the plot ----

def text(x, y, words, anchor="start", size=11, weight="normal"):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="#222">{words}</text>')


def panel(x, y, title, bars):
    """`bars`: [(label, figures)]. What is far longer than most of them is cut off: its figure says how long it is."""
    parts = [text(x, y, title, weight="bold", size=12)]
    middles = sorted(statistics.median(found) for _, found in bars)
    most = min(middles[-1] * 1.1, CUT * middles[len(middles) // 2])
    scale = BAR_WIDTH / most
    for i, (label, found) in enumerate(bars):
        top = y + 8 + i * ROW
        middle = statistics.median(found)
        left = x + BAR_LEFT
        right = min(max(found), most) * scale
        parts += [text(x + LABELS, top + 11, label, "end"),
                  f'<rect x="{left}" y="{top + 2}" width="{max(1, min(middle, most) * scale):.1f}" height="{ROW - 5}" '
                  f'fill="{OWN if label == "netgate" else OTHER}"/>',
                  text(left + right + 5, top + 11, f"{middle:.2f}" if most < 100 else f"{middle:.0f}", size=10)]
        if min(found) < most:
            parts.append(f'<path d="M{left + min(found) * scale:.1f} {top + ROW / 2 - 0.5}H{left + right:.1f}" stroke="#333" '
                         'stroke-width="1.2"/>')
    return parts


def plot(result):
    """SVG: medians as bars, from the least to the most as a line."""
    parts, heights = [], [40, 40]
    for i, (key, title, what) in enumerate(PANELS):
        found = result["measures"].get(key, {}).get("peers", {})
        bars = [(label, figures) for label, pairs in found.items() if (figures := drawn(pairs, what))]
        if not bars:
            continue
        column = i % 2
        parts += panel(20 + column * 500, heights[column], title, bars)
        heights[column] += len(bars) * ROW + PANEL_GAP
    about = result["machine"]
    parts.append(text(20, 16, f"{about['netgate']}, {about['cpus']} CPUs ({about['cpu']}), Linux {about['kernel']}, {result['date']}",
                      size=10))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1020 {max(heights)}" font-family="sans-serif">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def markdown_of(result):
    machine = result["machine"]
    parts = [f"## {result['date']}: {machine['netgate']}\n",
             f"{machine['cpus']} CPUs ({machine['cpu']}), Linux {machine['kernel']}, {machine['congestion_control']}, load "
             f"{machine['load']} at the start; {result['rounds']} rounds, {result['seconds']} s were meant for all of it.\n",
             *[f"- {title}: {peer['version']}; {peer['note']}" for title, peer in result["peers"].items()], ""]
    if result["absent"]:
        parts.append(f"Not on this machine: {', '.join(result['absent'])}.\n")
    if result.get("measures"):
        parts.append(f"While it was compared, the hypervisor had {stolen(result['measures']):.1%} of the CPUs' time for others.\n")
        parts += [summary_table(result), *[measure_table(one) for one in result["measures"].values()]]
    if result.get("memory"):
        parts.append(memory_table(result["memory"]))
    if result.get("drops"):
        parts.append(drops_table(result["drops"]))
    parts += [markdown(*one) for one in result.get("tables", [])]
    return "\n".join(parts)


def write(path):
    """The files beside RESULT.json; returns the Markdown."""
    with open(path) as file:
        result = json.load(file)
    base = os.path.splitext(path)[0]
    page = markdown_of(result)
    with open(f"{base}.md", "w") as out:
        out.write(page)
    if result.get("measures"):
        with open(f"{base}.svg", "w") as out:
            out.write(plot(result))
    if result.get("growth"):
        with open(f"{base}.growth.svg", "w") as out:
            out.write(growth_plot.growth(result))
    return page


if __name__ == "__main__":
    print(write(sys.argv[1]))

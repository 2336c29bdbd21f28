# SPDX-License-Identifier: Apache-2.0
"""Curves of bench/growth.py as SVG, a panel each.

Heights are from zero up, so that what is flat looks flat; with both axes by powers of ten, what grows as its cause does is a straight line.
"""

import math
import statistics
from xml.sax.saxutils import escape

COLUMNS, WIDTH, HEIGHT = 2, 400, 170  # of a panel's area
LEFT, RIGHT, TOP, BOTTOM = 64, 36, 46, 46  # around it
HEAD = 30
TICKS, TICKS_ACROSS = 4, 7
COLORS = ["#1f6f8b", "#c2571a", "#5b8c3a"]


def text(x, y, words, anchor="start", size=11, color="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}">{escape(str(words))}</text>'


def nice(most, ticks):
    """A step of 1, 2 or 5 times a power of ten, of which about so many reach `most`."""
    rough = most / ticks
    power = 10 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough)


def short(number):
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{sign}"
    return f"{number:.3g}"


class Axis:
    """From figures to places on one of the two axes."""

    def __init__(self, least, most, start, length, log=False):
        self._log, self._start, self._length = log, start, length
        self._least, self._most = (math.log10(least), math.log10(most)) if log else (least, most)
        if self._most == self._least:
            self._most += 1

    def __call__(self, figure):
        figure = math.log10(figure) if self._log else figure
        return self._start + (figure - self._least) / (self._most - self._least) * self._length


def powers(figures, start, length):
    """An axis by powers of ten, and its ticks."""
    ticks = range(math.floor(math.log10(min(figures))), math.ceil(math.log10(max(figures))) + 1)
    return Axis(10 ** ticks[0], 10 ** ticks[-1], start, length, log=True), [10 ** power for power in ticks]


def x_axis(left, curves):
    places = [x for points in curves["curves"].values() for x, _ in points]
    if curves["log"]:
        return powers(places, left, WIDTH)
    step = max(1, nice(max(places), TICKS_ACROSS))
    return Axis(0, max(places), left, WIDTH), [step * i for i in range(int(max(places) // step) + 1)]


def y_axis(top, curves):
    figures = [figure for points in curves["curves"].values() for _, some in points for figure in some]
    if curves["log"] == "both":
        return powers(figures, top + HEIGHT, -HEIGHT)
    step = nice(max(figures) or 1, TICKS)
    lines = math.ceil((max(figures) or 1) / step)
    return Axis(0, lines * step, top + HEIGHT, -HEIGHT), [step * i for i in range(lines + 1)]


def curve(points, color, x, y):
    """Medians as a line, the middle half of the figures as a bar at each."""
    parts, line = [], []
    for place, figures in points:
        low, middle, high = statistics.quantiles(figures, n=4, method="inclusive") if len(figures) > 1 else (figures[0],) * 3
        line.append(f"{x(place):.1f},{y(middle):.1f}")
        parts.append(f'<circle cx="{x(place):.1f}" cy="{y(middle):.1f}" r="2.6" fill="{color}"/>')
        if high > low:
            parts.append(f'<path d="M{x(place):.1f} {y(low):.1f}V{y(high):.1f}" stroke="{color}" stroke-width="1.2"/>')
    return [f'<polyline points="{" ".join(line)}" fill="none" stroke="{color}" stroke-width="1.6"/>', *parts]


def panel(left, top, curves):
    parts = [text(left, top - 26, f"{curves['title']}: {curves['unit']}", size=13)]
    (x, x_ticks), (y, y_ticks) = x_axis(left, curves), y_axis(top, curves)
    for tick in y_ticks:
        parts.append(f'<path d="M{left} {y(tick):.1f}h{WIDTH}" stroke="#ddd" stroke-width="{1.6 if tick == y_ticks[0] else 0.8}"/>')
        parts.append(text(left - 6, y(tick) + 4, short(tick), "end", 10))
    for tick in x_ticks:
        parts.append(f'<path d="M{x(tick):.1f} {top + HEIGHT}v4" stroke="#888"/>')
        parts.append(text(x(tick), top + HEIGHT + 16, short(tick), "middle", 10))
    parts.append(text(left + WIDTH / 2, top + HEIGHT + 32, curves["x"], "middle", 11, "#555"))
    at = left + 6
    for (name, points), color in zip(curves["curves"].items(), COLORS):
        if len(curves["curves"]) > 1:
            parts += [f'<path d="M{at} {top - 12}h14" stroke="{color}" stroke-width="2.5"/>', text(at + 18, top - 8, name, size=10)]
            at += 34 + 6 * len(name)
        parts += curve(points, color, x, y)
    return parts


def growth(result):
    """The whole picture."""
    shown = [curves for curves in result["growth"] if curves["curves"]]
    across, down = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    about = result["machine"]
    parts = [text(16, 18, f"{about['netgate']}, {about['cpus']} CPUs ({about['cpu']}), Linux {about['kernel']}, {result['date']}", size=10)]
    for i, curves in enumerate(shown):
        parts += panel(i % COLUMNS * across + LEFT, HEAD + i // COLUMNS * down + TOP, curves)
    high = HEAD + math.ceil(len(shown) / COLUMNS) * down
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * across} {high}" font-family="sans-serif">\n'
            '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")

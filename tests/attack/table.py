# SPDX-License-Identifier: Apache-2.0
"""The table of the attacks: technique, what became of it in each mode, how many packets left the host."""

import os
import re

from lab.lab import TOP

DOCUMENT = os.path.join(TOP, "docs", "threat-model.md")
BEGIN, END = "<!-- attacks: begin -->\n", "<!-- attacks: end -->\n"
HEAD = "| Technique | A bare command | Root in its own namespace | Packets that left |\n|---|---|---|---|\n"


class Rows:
    def __init__(self):
        self._rows = {}  # technique → {mode: [texts]}
        self._escaped = {}

    def add(self, technique, mode, text, escaped):
        """`escaped`: a number of packets, which is 0 or the test fails; or why there is none."""
        texts = self._rows.setdefault(technique, {}).setdefault(mode, [])
        if text not in texts:
            texts.append(text)
        self._escaped[technique] = escaped

    def __len__(self):
        return len(self._rows)

    def markdown(self):
        lines = []
        for technique in sorted(self._rows, key=str.casefold):
            modes = self._rows[technique]
            cells = [", ".join(modes.get(mode, ["–"])) for mode in ("bare", "root")]
            lines.append(f"| {technique} | {cells[0]} | {cells[1]} | {self._escaped[technique]} |\n")
        return HEAD + "".join(lines)


ROWS = Rows()


def documented():
    """The table in the document."""
    with open(DOCUMENT, encoding="utf-8") as text:
        return re.search(f"{BEGIN}(.*?){END}", text.read(), re.DOTALL)[1]


def write():
    with open(DOCUMENT, encoding="utf-8") as text:
        head, rest = text.read().split(BEGIN)
    with open(DOCUMENT, "w", encoding="utf-8") as out:
        out.write(head + BEGIN + ROWS.markdown() + END + rest.split(END)[1])

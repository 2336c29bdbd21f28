#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs instrumented tests and says which branches they reach.

    cov.py DIR FOLDER... -- PROGRAM...

DIR gets the counters, and in DIR/unreached a line for each branch of a file of
FOLDER that no program took: "file:line:column: never true: the source line".
The table on stdout has the shares of lines and branches that were reached. A fuzz target
(its name begins with fuzz_) runs through its corpus once, the scenarios through theirs. Called by `make cov`.
"""

import glob
import json
import os
import subprocess
import sys


def arguments(program):
    name = os.path.basename(program)
    if name == "scenarios":
        return sorted(glob.glob("tests/scenarios/*.txt"))
    if name.startswith("fuzz_"):
        return ["-runs=0", "-verbosity=0", "tests/fuzz/corpus/" + name]
    return []


def run(program, out):
    """The path of the program's counters."""
    raw = os.path.join(out, "raw", os.path.basename(program))
    done = subprocess.run([program, *arguments(program)], env={**os.environ, "LLVM_PROFILE_FILE": raw}, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.stdout.buffer.write(done.stdout[-2000:])
        sys.exit(f"cov.py: {program} failed")
    return raw


def tool(name):
    """The tool of the same LLVM as clang: in its folder, else by its name."""
    said = subprocess.run([os.environ.get("CLANG", "clang"), f"-print-prog-name={name}"], check=True, text=True,
                          stdout=subprocess.PIPE)
    return said.stdout.strip()


def branches(data):
    """{(line, column): [true, false]}: how often. A branch in a macro counts once for each place that uses it."""
    found = {}
    for line, column, _, _, true, false, *_ in data["branches"]:
        counts = found.setdefault((line, column), [0, 0])
        counts[0] += true
        counts[1] += false
    return found


def report(files, out):
    total = [0, 0, 0, 0]
    print(f"{'file':<32} {'lines':>6} {'branches':>9} {'unreached':>10}")
    with open(os.path.join(out, "unreached"), "w", encoding="utf-8") as f:
        for path, data in files:
            with open(path, encoding="utf-8") as source:
                text = source.read().split("\n")
            here = branches(data)
            missed = [(at, word) for at, counts in sorted(here.items())
                      for word, n in zip(("true", "false"), counts) if n == 0]
            for (line, column), word in missed:
                f.write(f"{path}:{line}:{column}: never {word}: {text[line - 1].strip()}\n")
            lines = data["summary"]["lines"]
            counts = [lines["count"], lines["covered"], 2 * len(here), 2 * len(here) - len(missed)]
            total = [a + b for a, b in zip(total, counts)]
            show(path, counts)
    show("all", total)
    print(f"the branches that nothing took: {out}/unreached")


def show(name, counts):
    lines, lines_reached, taken, taken_reached = counts
    print(f"{name:<32} {share(lines_reached, lines):>6} {share(taken_reached, taken):>9} {taken - taken_reached:>10}")


def share(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


def main():
    out, *rest = sys.argv[1:]
    at = rest.index("--")
    folders, programs = rest[:at], rest[at + 1:]
    os.makedirs(os.path.join(out, "raw"), exist_ok=True)
    raws = [run(program, out) for program in programs]
    merged = os.path.join(out, "merged")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", merged, *raws], check=True)
    objects = [word for program in programs[1:] for word in ("-object", program)]
    export = subprocess.run([tool("llvm-cov"), "export", f"-instr-profile={merged}", programs[0], *objects, *folders],
                            check=True, stdout=subprocess.PIPE)
    here = os.getcwd() + "/"
    files = [(data["filename"].replace(here, ""), data) for data in json.loads(export.stdout)["data"][0]["files"]]
    report(sorted(f for f in files if f[0].endswith(".c")), out)


if __name__ == "__main__":
    main()

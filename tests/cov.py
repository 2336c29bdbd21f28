#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs instrumented tests and says which branches they reach.

    cov.py DIR FOLDER... -- PROGRAM...

DIR gets the counters. Stdout has the shares of lines and branches that were reached, and then
a line for each branch of a file of FOLDER that no program took and that has no reason not to be:
"file:line:column: never true: the source line"; then the exit status is 1. Reasons are in
tests/cov.accepted: file:function: how many of its branches: why. A line there that is out of date is an error, too.
A fuzz target (its name begins with fuzz_) runs through its corpus once, the scenarios through theirs.
Called by `make cov`.
"""

import glob
import json
import os
import re
import subprocess
import sys

ACCEPTED = "tests/cov.accepted"


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


def functions(exported):
    """{path: [(first line, name)]}, sorted."""
    found = {}
    for function in exported["functions"]:
        name = function["name"].rpartition(":")[2]  # a static one has its file's name before it
        found.setdefault(function["filenames"][0], set()).add((function["regions"][0][0], name))
    return {path: sorted(names) for path, names in found.items()}


def report(files):
    """Prints the table. Returns {"file:function": [what is said of a branch of it that nothing took]}."""
    total = [0, 0, 0, 0]
    unreached = {}
    print(f"{'file':<32} {'lines':>6} {'branches':>9} {'unreached':>10}")
    for path, data, names in files:
        with open(path, encoding="utf-8") as source:
            text = source.read().split("\n")
        here = branches(data)
        missed = [(at, word) for at, counts in sorted(here.items())
                  for word, n in zip(("true", "false"), counts) if n == 0]
        for (line, column), word in missed:
            function = [name for first, name in names if first <= line][-1]
            unreached.setdefault(f"{path}:{function}", []).append(
                f"{path}:{line}:{column}: never {word}: {text[line - 1].strip()}")
        lines = data["summary"]["lines"]
        counts = [lines["count"], lines["covered"], 2 * len(here), 2 * len(here) - len(missed)]
        total = [a + b for a, b in zip(total, counts)]
        show(path, counts)
    show("all", total)
    return unreached


def accepted():
    """{"file:function": how many of its branches need not be reached}."""
    found = {}
    with open(ACCEPTED, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("#"):
                continue
            match = re.fullmatch(r"(\S+\.c:\w+): (\d+): \S.*\n", line)
            if not match or match[1] in found:
                sys.exit(f"{ACCEPTED}:{number}: not \"file:function: number: why\", or a function for the second time")
            found[match[1]] = int(match[2])
    return found


def judge(unreached):
    """Prints what has no reason and what is out of date. Returns the exit status."""
    reasons = accepted()
    bad = 0
    for where, branches_there in unreached.items():
        if len(branches_there) > reasons.get(where, 0):
            bad = 1
            print(*branches_there, sep="\n")
    for where, n in reasons.items():
        if len(unreached.get(where, [])) < n:
            bad = 1
            print(f"{ACCEPTED}: {where}: {len(unreached.get(where, []))} are unreached, not {n}")
    print(f"{sum(map(len, unreached.values()))} branches that nothing takes; {ACCEPTED} has reasons for {sum(reasons.values())}")
    return bad


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
    exported = json.loads(export.stdout)["data"][0]
    names = functions(exported)
    files = [(data["filename"].replace(here, ""), data, names.get(data["filename"])) for data in exported["files"]]
    sys.exit(judge(report(sorted(f for f in files if f[0].endswith(".c")))))


if __name__ == "__main__":
    main()

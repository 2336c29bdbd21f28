# SPDX-License-Identifier: Apache-2.0
"""How many instructions of netgate's own code its hot paths take, counted by callgrind, against those on file.

A path runs FEW times and MANY times; the difference is what one costs, without start and end. Only code of base/, rules/ and
proxy/ counts: the test's network and the libraries, which choose other code on other processors, do not. So the figure is the same
on a busy machine and an idle one, and depends on the compiler alone: those of another one are printed, and not compared.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ON_FILE = os.path.join(TOP, "bench", "instructions.json")
PATHS = {"connection": "a new TLS connection, from accept to close", "relay": "16 KB relayed in a tunnel",
         "request": "a judged request on a connection that stays, and its response"}
FEW, MANY = 4, 20
TURNS = "loop_settle"  # of tests/scenario: only within it does netgate run; the test's own use of base/ is outside
TOLERANCE = 0.1
ROW = re.compile(r" *([\d,]+) \([ \d.]+%\) +(?:base|rules|proxy)/[^ ]+:")


def own_instructions(program, path, times, folder):
    """Those of a whole run that are netgate's own."""
    out = os.path.join(folder, f"{path}.{times}")
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect={TURNS}", f"--callgrind-out-file={out}", program, path, str(times)],
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{program} {path} {times} failed:\n{done.stderr}")
    rows = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", out], capture_output=True, text=True,
                          check=True, timeout=600).stdout.splitlines()
    found = [int(match[1].replace(",", "")) for match in map(ROW.match, rows) if match]
    if not found:
        sys.exit(f"callgrind shows none of netgate's functions: {program} has no line numbers (-g)?")
    return sum(found)


def count(program):
    """{path: instructions of one}."""
    with tempfile.TemporaryDirectory() as folder:
        return {path: round((own_instructions(program, path, MANY, folder) - own_instructions(program, path, FEW, folder))
                            / (MANY - FEW)) for path in PATHS}


def compiler():
    """What the figures depend on."""
    cc = os.environ.get("CC", "gcc")
    version = subprocess.run([cc, "-dumpfullversion"], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    machine = subprocess.run([cc, "-dumpmachine"], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    return f"{os.path.basename(cc)} {version}, {machine}, {os.environ.get('CFLAGS', '-O2 -g')}"


def judge(counted, known):
    """Prints each path's figures; returns the paths that are too far from those on file."""
    far = []
    for path, meaning in PATHS.items():
        change = counted[path] / known[path] - 1
        print(f"{path:12}{counted[path]:8} instructions, {change:+.1%} of the {known[path]} on file: {meaning}")
        if abs(change) > TOLERANCE:
            far.append(path)
    return far


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the figures on file")
    options = parser.parse_args()
    counted = count(os.path.join(TOP, os.environ.get("BUILD", "build"), "bench", "hot_paths"))
    if options.write:
        with open(ON_FILE, "w") as out:
            json.dump({"compiler": compiler(), "instructions": counted}, out, indent=1)
            out.write("\n")
    with open(ON_FILE) as file:
        known = json.load(file)
    if known["compiler"] != compiler():
        print(f"Not compared: those on file are of {known['compiler']}, these of {compiler()}.")
        print(json.dumps(counted))
        return
    far = judge(counted, known["instructions"])
    if far:
        sys.exit(f"More than {TOLERANCE:.0%} from what is on file: {', '.join(far)}. When that is meant, or better: "
                 "make instructions INSTRUCTIONS=--write, and say why in the commit.")


if __name__ == "__main__":
    main()

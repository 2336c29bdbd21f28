# SPDX-License-Identifier: Apache-2.0
"""All measurements, one after the other, in about the time that is given; a JSON file, a page and plots of them in bench/results."""

import argparse
import contextlib
import glob
import json
import os
import time

import common
import compare
import growth
import report
import start

FULL_SECONDS, QUICK_SECONDS = 720, 80
# Of the time: what each part gets.
SHARES = {"compare": 0.45, "memory": 0.2, "drops": 0.02, "start": 0.08, "growth": 0.25}
ROUNDS, QUICK_ROUNDS = 9, 3
QUICK_BELOW = 400  # seconds
STARTS_A_SECOND = 2  # a round of every way to start something, and traces of some


def describe(classes):
    return {kind.title: {"note": kind.note, "version": kind.version_text() if kind.program else "this build's"}
            for kind in classes}


def measure(options, result):
    parts = options.only or list(SHARES)
    rounds, quick = result["rounds"], options.seconds < QUICK_BELOW
    classes, result["absent"] = compare.chosen(options.peers)
    result["peers"] = describe(classes)

    @contextlib.contextmanager
    def part(name):
        """The seconds that it has, and how long it took."""
        began = time.monotonic()
        yield options.seconds * SHARES[name]
        result["took"][name] = round(time.monotonic() - began)
        print(f"{name}: {result['took'][name]} s", flush=True)

    if "start" in parts:
        with part("start") as seconds:
            many = max(3, int(seconds * STARTS_A_SECOND))
            start.run(many, max(3, many // 10))
    if parts == ["start"]:
        return
    with common.Bench() as bench:
        if "compare" in parts:
            with part("compare") as seconds:
                result["measures"] = compare.compare(bench, classes, seconds, rounds)
        if "memory" in parts:
            with part("memory") as seconds:
                result["memory"] = compare.memory(bench, classes, seconds)
        if "drops" in parts:
            with part("drops") as seconds:
                result["drops"] = compare.drops(bench, classes, seconds, rounds)
        if "growth" in parts:
            with part("growth") as seconds:
                result["growth"] = growth.run(bench, classes, seconds, rounds, quick)


def save(result, folder):
    """Writes the files, and prints the page."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, time.strftime("%Y%m%dT%H%M%SZ.json", time.gmtime()))
    with open(path, "w") as out:
        json.dump(result, out, indent=1)
        out.write("\n")
    print("\n" + report.write(path))
    owner = os.stat(common.TOP)
    for name in [folder, *glob.glob(f"{os.path.splitext(path)[0]}.*")]:
        os.chown(name, owner.st_uid, owner.st_gid)  # it runs under sudo
    print(f"{sum(result['took'].values())} s; {path}, and .md, .svg and .growth.svg beside it")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=FULL_SECONDS, help="for all of it; above, it takes starts and stops")
    parser.add_argument("--quick", action="store_const", const=QUICK_SECONDS, dest="seconds", help="a first impression")
    parser.add_argument("--only", nargs="+", choices=SHARES, help="these parts, in the time that they have of the whole")
    parser.add_argument("--peers", nargs="+", metavar="NAME", help="those whose names begin so")
    parser.add_argument("--results", default=os.path.join(common.TOP, "bench", "results"))
    options = parser.parse_args()
    build = os.path.join(common.TOP, os.environ.get("BUILD", "build"))
    result = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "machine": common.machine(build),
              "seconds": options.seconds, "rounds": ROUNDS if options.seconds >= QUICK_BELOW else QUICK_ROUNDS, "took": {}}
    try:
        measure(options, result)
    finally:  # what is there is worth a page, also when something went wrong later
        result["tables"] = common.TABLES
        save(result, options.results)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What grows with what: sandboxes on one machine, tunnels that are open, names in a policy."""

import contextlib
import os
import re
import statistics
import subprocess
import time

from common import HOST, TOP, OrderFailed, family, figure, memory_kb, table
from compare import MANY, MEASURES, Contestant

SANDBOXES = [1, 10, 50, 100, 200]
TUNNELS = [0, 1000, 3000, 6000]
NAMES = [1, 100, 10_000, 1_000_000]
NAMES_QUICKLY = NAMES[:-1]
POLICY = re.compile(r" *(\d+) names: read (\d+) ms, build (\d+) ms .*?, (\d+) KB, hit (\d+) ns .*, miss (\d+) ns")


# ---- sandboxes ----

def available_kb():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))


def start_one(lab, stack):
    """Starts a sandbox whose command waits. Returns it and the ms until the command ran."""
    begun = time.monotonic()
    running = stack.enter_context(lab.start(["-q", "--allow", HOST], ["sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE,
                                            stderr=None))
    if running.process.stdout.readline() != b"ready\n":
        raise RuntimeError("a sandbox did not start")
    return running, (time.monotonic() - begun) * 1000


def proportional_kb(running):
    """Of all its processes but the command and those on the way to netgate."""
    total = 0
    for one in running:
        for pid in family(one.process.pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as comm:
                total += memory_kb(pid).get("Pss", 0) if comm.read().strip() in ("netgate", "sandbox-net") else 0
    return total


def sandboxes(bench, seconds):
    """So many at the same time; ends early when the time is over."""
    rows, running, times = [], [], []
    end, before = time.monotonic() + seconds, available_kb()
    with contextlib.ExitStack() as stack:
        for count in SANDBOXES:
            while len(running) < count and time.monotonic() < end:
                one, took = start_one(bench.lab, stack)
                running.append(one)
                times.append(took)
            if len(running) < count:
                break
            rows.append([count, figure(times[-max(1, min(10, count)):]), f"{proportional_kb(running) / count:.0f}",
                         f"{(before - available_kb()) / count:.0f}"])
    table("Sandboxes at the same time, each with a netgate of its own",
          ["sandboxes", "start of the last ten, ms", "PSS of each, KB", "memory of the machine for each, KB"], rows)


# ---- open tunnels ----

def tunnels(bench, classes, seconds, rounds):
    """How fast new connections are while so many others are open and idle."""
    kinds = {kind.title: kind for kind in classes if kind.title in ("netgate", "direct")}
    measure = next(measure for measure in MEASURES if measure.key == "connections")
    slice_s, rows, opened = seconds / (len(TUNNELS) * rounds * 2), [], 0
    with contextlib.ExitStack() as stack:
        both = {title: Contestant(bench, kind) for title, kind in kinds.items()}
        for one in both.values():
            stack.callback(one.close)
            one.start()
        for count in TUNNELS:
            try:
                if count > opened:
                    both["netgate"].client.tell(f"hold {HOST} {count - opened} {MANY}")
            except OrderFailed:
                break
            opened = count
            pairs = [[both[title].run(measure, slice_s) for title in ("netgate", "direct")] for _ in range(rounds)]
            own, ratios = [one for one, _ in pairs], [one["value"] / other["value"] for one, other in pairs if other["value"]]
            rows.append([count, figure([one["value"] for one in own], 0), f"{statistics.median(ratios):.2f}",
                         figure([one["cpu"] for one in own if one["value"]], 0)])
    table(f"New connections of netgate's, {MANY} at once, while idle tunnels are open",
          ["open tunnels", "per s", "of direct", "CPU, µs each"], rows)


# ---- names ----

def names(quick):
    """build/bench/policy_bench."""
    program = os.path.join(TOP, os.environ.get("BUILD", "build"), "bench", "policy_bench")
    done = subprocess.run([program, *map(str, NAMES_QUICKLY if quick else NAMES)], capture_output=True, text=True, check=True,
                          timeout=600)
    rows = [POLICY.match(line).groups() for line in done.stdout.splitlines()]
    table("Names in a policy", ["names", "read, ms", "build, ms", "memory, KB", "look-up, found, ns", "look-up, not found, ns"], rows)


def run(bench, classes, seconds, rounds, quick):
    names(quick)
    tunnels(bench, classes, seconds * 0.2, rounds)
    sandboxes(bench, seconds * 0.5)

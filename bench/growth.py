# SPDX-License-Identifier: Apache-2.0
"""What grows with what: names in a policy, records, open tunnels, jobs full of them, sandboxes on one machine.

Each part prints a table and returns curves for the plot (plot.py): {"title", "x", "unit", "log", "curves": {name: [[x, [figures]], …]}}.
`log`: True for an x axis by powers of ten, "both" for both axes.
"""

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import time

from common import HOST, MORE_SERVERS, SERVER, TOP, Client, OrderFailed, cpu_ns, family, figure, memory_kb, name, table, tune_client
from compare import BROKEN, MANY, MEASURES, Contestant, hold
from lab.run import read_log

NAMES = [1, 100, 10_000, 100_000, 1_000_000]
NAMES_QUICKLY = NAMES[:-1]
POLICY = re.compile(r" *(\d+) names: read (\d+) ms, build (\d+) ms .*?, (\d+) KB, hit (\d+) ns .*, miss (\d+) ns")
RATES = [1, 100, 1000, 10_000, 30_000, 100_000, 0]  # records a second; 0: as fast as it goes
TUNNELS = [0, 1000, 3000, 6000, 9000]
HOLD_TRIES = 3  # on a busy machine one may take too long
JOBS = 3  # each full of tunnels
JOB_TUNNELS_MAX = 20_000  # more than any has descriptors for, here
SANDBOXES = [1, 10, 50, 100, 200, 400, 600, 800, 1000]
LAST = 10  # of those that were started
WORKERS = 2  # sandboxes that work while one is measured
LATENCY_MS = 300
ENDING = 0.35  # of the time for sandboxes: what their end takes


def curves(title, x, unit, log=False, **found):
    """found: {name: [[x, figures], …]}; a name's underscores are blanks."""
    return {"title": title, "x": x, "unit": unit, "log": log,
            "curves": {key.replace("_", " "): points for key, points in found.items() if points}}


def helper(program, *args):
    path = os.path.join(TOP, os.environ.get("BUILD", "build"), "bench", program)
    return subprocess.run([path, *map(str, args)], capture_output=True, text=True, check=True, timeout=600).stdout


# ---- names ----

def names(quick):
    """build/bench/policy_bench."""
    rows = [[int(cell) for cell in POLICY.match(line).groups()]
            for line in helper("policy_bench", *(NAMES_QUICKLY if quick else NAMES)).splitlines()]
    table("Names in a policy", ["names", "read, CPU ms", "build, CPU ms", "memory, KB", "look-up, found, CPU ns",
                                "look-up, not found, CPU ns"], rows)

    def points(column, scale=1):
        return [[row[0], [row[column] * scale]] for row in rows]
    load = [[row[0], [max(1, row[1] + row[2]) / 1000]] for row in rows]
    return [curves("Loading a policy", "names", "CPU s", log="both", read_and_build=load),
            curves("Memory of a policy", "names", "MB", log="both", memory=points(3, 1 / 1024)),
            curves("Look-up in a policy", "names", "CPU ns", log=True, found=points(4), not_found=points(5))]


# ---- records ----

def records(bench, seconds):
    """build/bench/audit_bench: what one record costs, at so many a second."""
    path, rows, cost = os.path.join(bench.lab.folder, "records.jsonl"), [], []
    for rate in RATES:
        found = json.loads(helper("audit_bench", path, rate, int(seconds * 1000 / len(RATES))))
        with open(path, "rb") as log:
            lines = sum(1 for _ in log)
        os.unlink(path)
        each, per_s = found["cpu_ns"] / 1000 / found["records"], found["records"] * 1e9 / found["ns"]
        rows.append([rate or "as fast as it goes", f"{per_s:.0f}", found["records"] + found["lost"] - lines, f"{each:.1f}",
                     f"{found['cpu_ns'] / found['ns']:.2f}", f"{found['bytes'] / found['ns'] * 1000:.1f}"])
        cost.append([per_s, [found["cpu_ns"] / found["ns"]]])
    table("Records of one log", ["asked for, per s", "written, per s", "lost", "CPU, µs each", "CPUs", "MB per s"], rows)
    return [curves("Records of one log", "records a second", "CPUs", all=sorted(cost))]


def real_records(bench, kind, seconds):
    """Requests of a sandbox, each with its record, as fast as they go."""
    one = Contestant(bench, kind)
    try:
        one.start()
        before = one.peer.cpu_ns()
        answer = one.client.tell(f"requests {HOST} {int(seconds * 1000)} {MANY}")
        cpu = one.peer.cpu_ns() - before
    finally:
        one.close()
    log = read_log(one.peer.running.log)
    own = sum(record["type"] == "decision" and record.get("proto") == "http" for record in log)
    table("Requests of one sandbox, each with a record of its own, as fast as they go",
          ["requests per s", "records per s, of all kinds", "requests without a record", "holes in seq", "CPU, µs per request"],
          [[f"{answer['done'] * 1e9 / answer['ns']:.0f}", f"{len(log) * 1e9 / answer['ns']:.0f}", max(0, answer["done"] - own),
            log[-1]["seq"] + 1 - len(log) if log[0]["seq"] == 0 else log[-1]["seq"] - len(log),
            f"{cpu / 1000 / answer['done']:.0f}"]])


# ---- open tunnels ----

def tunnels(bench, classes, seconds, rounds):
    """How fast new connections are while so many others are open and idle."""
    kinds = {kind.title: kind for kind in classes if kind.title in ("netgate", "direct")}
    measure = next(measure for measure in MEASURES if measure.key == "connections")
    slice_s, rows, opened = seconds / (len(TUNNELS) * rounds * 2), [], 0
    rate, cpu, memory = [], [], []
    with contextlib.ExitStack() as stack:
        both = {title: Contestant(bench, kind) for title, kind in kinds.items()}
        for one in both.values():
            stack.callback(one.close)
            one.start()
        own = both["netgate"]
        for count in TUNNELS:
            for _ in range(HOLD_TRIES):
                opened += hold(own, count - opened, seconds)[0]
            if opened < count:
                break
            pairs = [[both[title].run(measure, slice_s) for title in ("netgate", "direct")] for _ in range(rounds)]
            ratios = [one["value"] / other["value"] for one, other in pairs if one["value"] and other["value"]]
            rate.append([count, ratios])
            cpu.append([count, [one["cpu"] for one, _ in pairs if one["value"]]])
            memory.append([count, [own.peer.pss_kb() / 1024]])
            rows.append([count, figure([one["value"] for one, _ in pairs], 0), f"{statistics.median(ratios):.2f}",
                         figure(cpu[-1][1], 0), f"{memory[-1][1][0]:.1f}"])
    table(f"New connections of netgate's, {MANY} at once, while idle tunnels are open",
          ["open tunnels", "per s", "of direct", "CPU, µs each", "PSS, MB"], rows)
    return [curves("A new connection beside open tunnels", "open tunnels", "CPU µs", a_connection=cpu),
            curves("New connections beside open tunnels", "open tunnels", "share of direct", connections=rate),
            curves("Memory with open tunnels", "open tunnels", "MB", memory=memory)]


# ---- sandboxes ----

def available_kb():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))


class Sandbox:
    """One whose command is the client of the measurements, with a netgate of its own."""

    def __init__(self, bench, workspace, address=SERVER):
        begun = time.monotonic()
        self.running = bench.lab.start(
            ["-q", "--resolver", address, "--allow", HOST], ["sh", "-c", f'set -- $(getent ahostsv4 {HOST}) && exec ./client "$1"'],
            workspace=workspace, stdin=subprocess.PIPE, stderr=None)
        self.process = self.running.process
        try:
            self.client = Client(self.process)
        except BaseException:
            self.running.kill()
            raise
        self.ms = (time.monotonic() - begun) * 1000
        self.cpu_ms = self._cpu_ms()

    def own_pids(self):
        """Of netgate and its helpers: neither the command nor those on the way to netgate."""
        return [pid for pid in family(self.process.pid) if self._name(pid) in ("netgate", "netgate-finder", "sandbox-net")]

    @staticmethod
    def _name(pid):
        with contextlib.suppress(OSError):
            return name(pid)

    def _cpu_ms(self):
        """Of all that its start took, those that ended already included."""
        total = 0
        for pid in family(self.process.pid):
            total += cpu_ns(pid) / 1e6
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
                total += sum(map(int, stat.read().rpartition(")")[2].split()[13:15])) * 1000 / os.sysconf("SC_CLK_TCK")
        return total

    def pss_kb(self):
        total = 0
        for pid in self.own_pids():
            with contextlib.suppress(OSError):
                total += memory_kb(pid).get("Pss", 0)
        return total


@contextlib.contextmanager
def started(bench):
    """A list for sandboxes, which end together, and their workspace."""
    workspace, running = bench.lab.workspace(), []
    shutil.copy(bench.helper("client"), workspace)
    try:
        yield workspace, running
    finally:
        for one in running:
            with contextlib.suppress(OSError):
                one.process.stdin.close()
        for one in running:
            try:
                one.process.wait(timeout=60)
                one.process.stdout.close()
            except subprocess.TimeoutExpired:
                one.running.kill()


def latency(one, workers):
    """µs of a connection after the other, from connect to the first byte, while others work or none does: (p50, p99)."""
    for each in (one, *workers):
        tune_client(each.process.pid)
    work = f"hellos {HOST} {LATENCY_MS + 100} 1"
    for worker in workers:
        worker.client.begin(work)
    try:
        answer = one.client.tell(f"hellos {HOST} {LATENCY_MS} 1")
    finally:
        for worker in workers:
            worker.client.end(work)
    return answer["p50_us"], answer["p99_us"]


def sandboxes(bench, seconds):
    """So many at the same time; ends early when the time is over."""
    rows, found = [], {key: [] for key in ("start", "cpu", "pss", "machine", "idle", "working")}
    end, before = time.monotonic() + seconds * (1 - ENDING), available_kb()
    with started(bench) as (workspace, running):
        for count in SANDBOXES:
            while len(running) < count and time.monotonic() < end:
                running.append(Sandbox(bench, workspace))
            if len(running) < count:
                break
            last = running[-min(LAST, count):]
            idle = latency(running[0], [])
            working = latency(running[0], running[-WORKERS:]) if count > WORKERS else None
            pss, machine = statistics.mean(one.pss_kb() for one in last), max(0, before - available_kb()) / count
            found["start"].append([count, [one.ms for one in last]])
            found["cpu"].append([count, [one.cpu_ms for one in last]])
            found["pss"].append([count, [pss / 1024]])
            if count >= LAST:  # what else happens on the machine is not much beside so many
                found["machine"].append([count, [machine / 1024]])
            found["idle"].append([count, [idle[0]]])
            if working:
                found["working"].append([count, [working[0]]])
            rows.append([count, figure(found["start"][-1][1]), figure(found["cpu"][-1][1]), f"{pss:.0f}", f"{machine:.0f}",
                         "{} / {}".format(*idle), "{} / {}".format(*working) if working else "–"])
    table("Sandboxes at the same time, each with a netgate of its own",
          ["sandboxes", "start of the last ten, ms", "CPU of that, ms", "PSS of each, KB", "memory of the machine for each, KB",
           "a connection of one, the others idle: p50 / p99 µs", f"while {WORKERS} work"], rows)
    return [curves("Start of a sandbox beside others", "sandboxes", "ms", elapsed=found["start"], CPU=found["cpu"]),
            curves("Memory of a sandbox", "sandboxes", "MB each", PSS=found["pss"], of_the_machine=found["machine"]),
            curves("A connection of one sandbox", "sandboxes", "µs, median", others_idle=found["idle"],
                   **{f"{WORKERS}_others_work": found["working"]})]


# ---- jobs full of tunnels ----

def jobs(bench, seconds):
    """Several netgates side by side, each with as many tunnels as its descriptors allow."""
    rows, total, sums = [], 0, []
    end, before = time.monotonic() + seconds, available_kb()
    with started(bench) as (workspace, running):
        for number, address in enumerate(MORE_SERVERS[:JOBS], 1):
            bench.start_server(address)
            running.append(Sandbox(bench, workspace, address))
            opened, refused = hold(running[-1], JOB_TUNNELS_MAX, max(1, end - time.monotonic()))
            total += opened
            pss = sum(one.pss_kb() for one in running)
            rows.append([number, f"{opened}{'' if refused else ', in the time there was'}", total, f"{pss / 1024:.1f}",
                         f"{pss / max(1, total):.2f}", f"{(before - available_kb()) / max(1, total):.1f}"])
            sums.append([number, [total]])
    table("Jobs side by side, each with as many tunnels as it takes",
          ["jobs", "tunnels of the last", "of all", "PSS of all, MB", "PSS a tunnel, KB", "memory of the machine a tunnel, KB"], rows)
    return [curves("Tunnels of jobs side by side", "jobs", "open tunnels", all=sums)]


def run(bench, classes, seconds, rounds, quick):
    """All of it. Returns the curves."""
    own = next((kind for kind in classes if kind.title == "netgate"), None)
    found = names(quick) + records(bench, seconds * 0.05)
    if own:
        real_records(bench, own, seconds * 0.02)
        for part, args in ((tunnels, (classes, seconds * 0.13, rounds)), (jobs, (seconds * 0.15,)), (sandboxes, (seconds * 0.6,))):
            try:
                found += part(bench, *args)
            except (OrderFailed, *BROKEN) as error:
                print(f"  {part.__name__} is left out: {error}", flush=True)
    return found

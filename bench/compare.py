# SPDX-License-Identifier: Apache-2.0
"""netgate beside its peers: connections, requests, bytes, look-ups, each paired with the same thing without a proxy."""

import contextlib
import dataclasses
import random
import subprocess
import time

from common import HOST, SERVER, OrderFailed, machine_cpu, memory_kernel_kb, queues_overflowed, tell_all
from lab.run import read_log
from peers import all_peers

MANY = 32  # connections at once
JOBS = 2  # side by side: as many as nginx has processes here
REFUSED = "other.test"  # resolves as HOST does, and nobody allows it
TUNNELS = 1000
TUNNELS_MAX = 9000  # two descriptors each, of 20000
CLOSED_PORT = 5001

# A peer that does not start, or ends, is left out; the others go on.
BROKEN = (RuntimeError, OSError, subprocess.SubprocessError)


@dataclasses.dataclass
class Measure:
    key: str
    title: str
    kind: str  # of Peer.kinds
    order: str  # with {host}, {ms}, {bytes}, {resolver}
    unit: str
    cpu_unit: str
    start_bytes: int = 0  # of the first transfer; later ones take as long as the others' orders
    times: bool = False  # it says how long one took
    jobs: int = 1  # each is a client, and all get the order at the same time


MEASURES = [
    Measure("connections_1", "New TLS connections, one after the other", "tls", "hellos {host} {ms} 1", "per s",
            "µs each", times=True),
    Measure("connections", f"New TLS connections, {MANY} at once", "tls", f"hellos {{host}} {{ms}} {MANY}", "per s",
            "µs each", times=True),
    Measure("connections_jobs", f"New TLS connections, {MANY} at once, by {JOBS} jobs", "tls",
            f"hellos {{host}} {{ms}} {MANY // JOBS}", "per s", "µs each", times=True, jobs=JOBS),
    Measure("requests", f"HTTP requests on {MANY} connections that stay", "http", f"requests {{host}} {{ms}} {MANY}", "per s",
            "µs each", times=True),
    Measure("requests_jobs", f"HTTP requests on {MANY} connections that stay, by {JOBS} jobs", "http",
            f"requests {{host}} {{ms}} {MANY // JOBS}", "per s", "µs each", times=True, jobs=JOBS),
    Measure("download", "Download in a tunnel", "tls", "tls-get {host} {bytes}", "Gbit/s", "s per GB", 4_000_000),
    Measure("upload", "Upload in a tunnel", "tls", "tls-put {host} {bytes}", "Gbit/s", "s per GB", 4_000_000),
    Measure("http_download", "Download as the body of a response", "http", "http-get {host} {bytes}", "Gbit/s", "s per GB",
            4_000_000),
    Measure("http_upload", "Upload as the body of a request", "http", "http-put {host} {bytes}", "Gbit/s", "s per GB", 4_000_000),
    Measure("dns", "Answers of the name server", "dns", "dns {host} {ms} 16 {resolver}", "per s", "µs each"),
]


class Contestant:
    """A peer that runs, or one for each job, the jobs' clients, and how much the first moves in a second."""

    def __init__(self, bench, kind, jobs=1):
        self.kind, self.title, self._jobs = kind, kind.title, jobs
        self._place = bench.place(kind.title)
        self.peers = [kind(self._place) for _ in range(jobs if kind.per_job else 1)]
        self.clients = []
        self.speed = {}  # bytes a second, by measure

    @property
    def peer(self):
        return self.peers[0]

    @property
    def client(self):
        return self.clients[0]

    def start(self):
        for peer in self.peers:
            peer.start()
            for _ in range(self._jobs // len(self.peers)):
                self.clients.append(peer.client())
                if self.kind.judges:
                    self._check_refusal(self.clients[-1])

    def _check_refusal(self, client):
        """One whose configuration lets everything through would be no peer."""
        try:
            client.tell(f"hellos {REFUSED} 20 1")
        except OrderFailed as error:
            if error.answer:
                return
            raise
        raise RuntimeError(f"{self.title} lets through what it should refuse")

    def stop(self):
        while self.clients:
            self.clients.pop().close()
        for peer in self.peers:
            peer.stop()

    def close(self):
        """Its place is gone, too: there are not so many."""
        self.stop()
        self._place.close()

    def _spent(self):
        """So far: (nanoseconds of its processes, [ticks in user space, in the kernel])."""
        return (sum(peer.cpu_ns() for peer in self.peers),
                [sum(each) for each in zip(*(peer.ticks() for peer in self.peers))])

    def run(self, measure, seconds):
        """One order. Returns {"value", "cpu", …}; value 0 when it failed."""
        amount = max(1_000_000, int(self.speed.get(measure.key, 0) * seconds)) if measure.key in self.speed else measure.start_bytes
        order = measure.order.format(host=HOST, ms=max(20, int(seconds * 1000)), bytes=amount,
                                     resolver=self.peer.resolver() if measure.kind == "dns" else "")
        (cpu, ticks), machine = self._spent(), machine_cpu()
        try:
            answer = tell_all(self.clients[:measure.jobs], order)
        except OrderFailed:
            return {"value": 0, "cpu": None, "failed": 1}
        machine = {key: now - machine[key] for key, now in machine_cpu().items()}
        cpu_now, ticks_now = self._spent()
        done = amount / 1e9 if measure.start_bytes else answer["done"] / 1e6  # GB, or millions
        found = {"cpu": (cpu_now - cpu) / 1e9 / done, "ticks": [now - then for now, then in zip(ticks_now, ticks)],
                 "done": done, "machine": machine}
        if measure.start_bytes:
            self.speed[measure.key] = amount * 1e9 / answer["ns"]
            return found | {"value": amount * 8 / answer["ns"], "failed": 0}
        found |= {"value": answer["done"] * 1e9 / answer["ns"], "failed": answer["failed"]}
        return found | ({"p50": answer["p50_us"], "p99": answer["p99_us"]} if measure.times else {})


def pairs(contestants, direct, measure, seconds, rounds):
    """{title: [(own, direct's), …]}, a pair a round; each round in another order."""
    takers = [one for one in contestants if measure.kind in one.kind.kinds]
    found = {one.title: [] for one in takers}
    if measure.start_bytes:  # the first says how much the others move
        for one in [direct, *takers]:
            one.run(measure, seconds)
            one.run(measure, min(seconds, 0.1))
    for _ in range(rounds):
        random.shuffle(takers)
        for one in takers:
            both = [one, direct]
            random.shuffle(both)
            results = {id(each): each.run(measure, seconds) for each in both}
            found[one.title].append((results[id(one)], results[id(direct)]))
    return found


def compare(bench, classes, seconds, rounds):
    """Everything in MEASURES, in about so many seconds. Returns {key: …} for the report."""
    direct_class = next(kind for kind in classes if kind.title == "direct")
    others = [kind for kind in classes if kind is not direct_class]
    orders = sum(2 * rounds for measure in MEASURES for kind in others if measure.kind in kind.kinds)
    found = {}
    with contextlib.ExitStack() as stack:
        def begin(kind):
            one = Contestant(bench, kind, JOBS)
            stack.callback(one.close)
            one.start()
            return one

        direct, contestants = begin(direct_class), []
        for kind in others:
            try:
                contestants.append(begin(kind))
            except BROKEN as error:
                print(f"  {kind.title} is left out: {error}", flush=True)
        for measure in MEASURES:
            results = pairs(contestants, direct, measure, seconds / orders, rounds)
            found[measure.key] = {
                "title": measure.title, "unit": measure.unit, "cpu_unit": measure.cpu_unit,
                "peers": {kind.title: results[kind.title] for kind in others if kind.title in results}}
            print(f"  {measure.title}: done", flush=True)
    return found


# ---- memory ----

def hold(contestant, count, seconds, order="hold"):
    """Opens up to `count` more tunnels, for at most so long. Returns how many there are, and whether one failed."""
    opened, end = 0, time.monotonic() + seconds
    while opened < count and time.monotonic() < end:
        piece = min(500, count - opened)
        try:
            contestant.client.tell(f"{order} {HOST} {piece} {MANY}")
        except OrderFailed as error:
            return opened + (error.answer or {}).get("done", 0), True
        opened += piece
    return opened, False


def memory_of(bench, kind, seconds):
    """A fresh one: KB of PSS without tunnels, with idle ones, and with clients that do not read what they asked for."""
    one = Contestant(bench, kind)
    found = {}
    try:
        one.start()
        found["idle"] = one.peer.pss_kb()
        count, failed = hold(one, TUNNELS, seconds / 3)
        found["tunnels"] = [count, one.peer.pss_kb()]
        if not failed:
            more, failed = hold(one, TUNNELS_MAX - count, seconds / 3)
            found["most"] = [count + more, one.peer.pss_kb(), failed]
        one.stop()
        one.start()
        kernel = memory_kernel_kb()
        count, _ = hold(one, TUNNELS, seconds / 3, "stall")
        found["stalled"] = [count, one.peer.pss_kb(), memory_kernel_kb() - kernel]
    finally:
        one.close()
    return found


def memory(bench, classes, seconds):
    found = {}
    takers = [kind for kind in classes if kind.title != "direct"]
    for kind in takers:
        try:
            found[kind.title] = memory_of(bench, kind, seconds / len(takers))
            print(f"  memory of {kind.title}: done", flush=True)
        except BROKEN as error:
            print(f"  memory of {kind.title} is left out: {error}", flush=True)
    return found


# ---- packets that are not let through ----

def drops(bench, classes, seconds, rounds):
    """Datagrams to a port where nothing is allowed: how many go out a second, and how many the log counts. Rounds of direct and netgate."""
    found = []
    for _ in range(rounds):
        row = {}
        for kind in classes:
            if "flood" not in kind.kinds:
                continue
            one = Contestant(bench, kind)
            try:
                one.start()
                before, overflowed = one.peer.cpu_ns(), queues_overflowed()
                answer = one.client.tell(f"flood {SERVER} {int(seconds * 500 / rounds)} {CLOSED_PORT}")
                cpu = one.peer.cpu_ns() - before
            finally:
                one.close()
            row[kind.title] = {"value": answer["done"] * 1e9 / answer["ns"], "cpu": cpu / 1000 / answer["done"]}
            if kind.title == "netgate":
                records = read_log(one.peer.running.log)
                row[kind.title] |= {"sent": answer["done"], "overflowed": queues_overflowed() - overflowed, "end": records[-1],
                                    "counted": sum(record["count"] for record in records
                                                   if record["type"] == "drop" and record["reason"] == "udp")}
        found.append(row)
    return found


def chosen(only):
    """The peers that are on this machine (all, or those whose titles begin so; direct always), and which are not."""
    kinds = [kind for kind in all_peers()
             if not only or kind.title == "direct" or any(kind.title.lower().startswith(word.lower()) for word in only)]
    return [kind for kind in kinds if kind.is_there()], [kind.title for kind in kinds if not kind.is_there()]

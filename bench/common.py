# SPDX-License-Identifier: Apache-2.0
"""What the measurements share: the lab, the C helpers in it, statistics, tables."""

import contextlib
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests"))
sys.dont_write_bytecode = True

from lab import Lab  # noqa: E402
from lab.ns import NetNS  # noqa: E402

HOST = "bench.test"
SERVER = "203.0.114.99"
RAW_PORT = 9000
# The routed client's link, beside those of the lab's hosts.
ROUTED_NET, ROUTED_HERE, ROUTED_HOST = "203.0.114.8/30", "203.0.114.10", "203.0.114.9"


# ---- figures ----

def quartiles(values):
    """(first quartile, median, third quartile)."""
    if len(values) < 2:
        return (values[0],) * 3
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def figure(values, digits=1):
    """The median, and between which values the middle half of the rounds lies."""
    low, middle, high = quartiles(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def table(title, heads, rows):
    """Prints Markdown; the first column is text, the others are figures."""
    print(f"\n### {title}\n")
    for row in (heads, ["---"] + ["--:"] * (len(heads) - 1), *rows):
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()


def about(lab):
    """What the figures depend on."""
    with open("/proc/loadavg") as load, open("/proc/sys/net/ipv4/tcp_congestion_control") as control:
        others, control = load.read().split()[0], control.read().strip()
    version = subprocess.run([os.path.join(lab.build, "netgate"), "--version"], capture_output=True, text=True,
                             check=True, timeout=60).stdout.strip()
    print(f"{version}, Linux {os.uname().release}, {len(os.sched_getaffinity(0))} CPUs, load {others} before the start, "
          f"{control}; median (and quartiles) of the rounds")


# ---- processes ----

def cpu_ns(pid):
    """Nanoseconds on a CPU, the work of the network stack that it was interrupted for included."""
    with open(f"/proc/{pid}/schedstat") as stat:
        return int(stat.read().split()[0])


def user_share(pid):
    """Of its CPU time, the part that was its own code's."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return user / max(1, user + system)


def memory_kb(pid):
    """{"Rss": KB, "Pss": KB, …} of smaps_rollup."""
    with open(f"/proc/{pid}/smaps_rollup") as lines:
        return {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB\n")}


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as text:
        return [int(child) for child in text.read().split()]


def name(pid):
    with open(f"/proc/{pid}/comm") as text:
        return text.read().strip()


class Client:
    """bench/client.c: takes orders; in the sandbox or in a namespace."""

    def __init__(self, process):
        self._process = process
        self.tell(None)

    def tell(self, order):
        """Its answer; raises when what was ordered did not work."""
        if order:
            self._process.stdin.write(order.encode() + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the client ended at: {order or 'its start'}")
        answer = json.loads(line)
        if not answer["ok"]:
            raise RuntimeError(f"{order}: did not work: {answer}")
        return answer

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)


class Bench:
    """The lab with a server in C, whose name is HOST, and a client's namespace that is routed to it through the host."""

    def __init__(self):
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            self.lab = self._stack.enter_context(Lab())
            self.helpers = os.path.join(self.lab.build, "bench")
            about(self.lab)
            self._start_server()
            self._route()
            self._keep = self._stack.pop_all()
        return self

    def __exit__(self, *_):
        self._keep.close()

    def _start_server(self):
        self.lab.inet.ip(f"addr add {SERVER}/32 dev lo")
        server = subprocess.Popen(
            self.lab.inet.command(os.path.join(self.helpers, "server"), SERVER, "80", "443", str(RAW_PORT)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._stack.callback(server.wait)
        self._stack.callback(server.stdin.close)
        if server.stdout.readline() != b"ready\n":
            raise RuntimeError("the server did not start")
        server.stdout.close()

    def _route(self):
        self.routed = NetNS()
        self._stack.callback(self.routed.close)
        host = self.lab.host.net
        host.ip(f"link add routed type veth peer name eth0 netns {self.routed.path}",
                f"addr add {ROUTED_HOST}/30 dev routed", "link set routed up")
        self.routed.ip(f"addr add {ROUTED_HERE}/30 dev eth0", "link set eth0 up",
                       f"route add default via {ROUTED_HOST}")
        self.lab.inet.ip(f"route add {ROUTED_NET} via 203.0.114.2")
        host.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")

    def routed_client(self):
        """A Client without netgate."""
        process = subprocess.Popen(self.routed.command(os.path.join(self.helpers, "client"), SERVER),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        client = Client(process)
        self._keep.callback(client.close)
        return client

    @contextlib.contextmanager
    def sandboxed(self, *args, user=None):
        """A Client in a sandbox whose name server is bench's, and the proxy's pid."""
        workspace = self.lab.workspace(user)
        shutil.copy(os.path.join(self.helpers, "client"), workspace)
        script = f'set -- $(getent ahostsv4 {HOST}) && exec ./client "$1"'
        with self.lab.start(["-q", "--resolver", SERVER, *args], ["sh", "-c", script], user=user, workspace=workspace,
                            stdin=subprocess.PIPE, stderr=None) as running:
            client = Client(running.process)
            proxies = [child for child in children(running.process.pid) if name(child) == "netgate"]
            if len(proxies) != 1:
                raise RuntimeError(f"{len(proxies)} children of netgate are called so; one is the proxy")
            yield client, proxies[0]
            client.close()


def interleaved(rounds, *ways):
    """Calls every way in each round, each round in another order."""
    orders = itertools.cycle(itertools.permutations(ways))
    for _ in range(rounds):
        for way in next(orders):
            way()

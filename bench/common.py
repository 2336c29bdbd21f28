# SPDX-License-Identifier: Apache-2.0
"""What the measurements share: the lab, the C helpers in it, statistics, tables."""

import contextlib
import itertools
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests"))
sys.dont_write_bytecode = True

from lab import Lab  # noqa: E402
from lab.ns import NetNS  # noqa: E402

HOST = "bench.test"
SERVER = "203.0.114.99"
MORE_SERVERS = [f"203.0.114.{number}" for number in range(100, 108)]  # each like it, with the same names
RAW_PORT = 9000
PLACES_NET = "203.0.115"  # of the links between clients and gates
DESCRIPTORS = 65536  # as many as a process may have, if it may have so many


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


def markdown(title, heads, rows):
    """A table; the first column is text, the others are figures."""
    lines = [f"### {title}", ""]
    for row in (heads, ["---"] + ["--:"] * (len(heads) - 1), *rows):
        lines.append("| " + " | ".join(str(cell) for cell in row) + " |")
    return "\n".join(lines) + "\n"


TABLES = []  # all that table() printed: (title, heads, rows)


def table(title, heads, rows):
    """Prints it, and keeps it for the run's page."""
    TABLES.append((title, heads, rows))
    print("\n" + markdown(title, heads, rows), end="", flush=True)


def machine(build):
    """What the figures depend on."""
    with open("/proc/loadavg") as load, open("/proc/sys/net/ipv4/tcp_congestion_control") as control:
        others, control = load.read().split()[0], control.read().strip()
    with open("/proc/cpuinfo") as cpus:
        model = next((line.partition(":")[2].strip() for line in cpus if line.startswith("model name")), os.uname().machine)
    version = subprocess.run([os.path.join(build, "netgate"), "--version"], capture_output=True, text=True, check=True,
                             timeout=60).stdout.strip()
    return {"netgate": version, "kernel": os.uname().release, "cpu": model, "cpus": len(os.sched_getaffinity(0)),
            "load": float(others), "congestion_control": control}


def about(build):
    """Prints that."""
    it = machine(build)
    print(f"{it['netgate']}, Linux {it['kernel']}, {it['cpus']} CPUs, load {it['load']} before the start, "
          f"{it['congestion_control']}; median (and quartiles) of the rounds")


# ---- processes ----

def cpu_ns(pid):
    """Nanoseconds on a CPU of all its threads, also those that ended, with the work of the network stack that they were interrupted for."""
    with contextlib.suppress(OSError):
        return time.clock_gettime_ns((~pid << 3) | 2)  # CPUCLOCK_SCHED of another process: clock_getcpuclockid(3)
    return 0


def machine_cpu():
    """{"all", "busy", "stolen"}: seconds of all CPUs so far, from no certain start. What the hypervisor has stolen is not busy.

    Busy is what was not idle: ticks only sample what a CPU does, while the kernel times how long one is idle (unless it runs with nohz=off).
    Interrupts on an idle CPU are in it, which no process has in its time.
    """
    with open("/proc/stat") as stat:
        idle, iowait, _, _, stolen = (int(word) / os.sysconf("SC_CLK_TCK") for word in stat.readline().split()[4:9])
    total = time.monotonic() * os.cpu_count()
    return {"all": total, "busy": total - idle - iowait - stolen, "stolen": stolen}


def ticks(pid):
    """(in user space, in the kernel): ticks of a CPU that found it there. Few of them say nothing."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        words = stat.read().rpartition(")")[2].split()
        return int(words[11]), int(words[12])
    return 0, 0


def memory_kb(pid):
    """{"Rss": KB, "Pss": KB, …} of smaps_rollup."""
    with open(f"/proc/{pid}/smaps_rollup") as lines:
        return {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB\n")}


def memory_kernel_kb():
    """KB that the kernel holds for the buffers of all TCP sockets on this machine."""
    with open("/proc/net/sockstat") as lines:
        words = next(line.split() for line in lines if line.startswith("TCP:"))
    return int(words[words.index("mem") + 1]) * resource.getpagesize() // 1024


def queues_overflowed():
    """Packets that the kernel has dropped so far because the queue of a CPU was full, on the whole machine."""
    with open("/proc/net/softnet_stat") as lines:
        return sum(int(line.split()[1], 16) for line in lines)


def name(pid):
    with open(f"/proc/{pid}/comm") as text:
        return text.read().strip()


def family(pid):
    """The process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as text:
                    found += [int(child) for child in text.read().split()]
    return found


class OrderFailed(RuntimeError):
    """What was ordered did not work. `answer`: what the client says of it, or None when it is gone."""

    def __init__(self, order, answer=None):
        super().__init__(f"{order or 'start'}: {answer or 'the client ended'}")
        self.answer = answer


class Client:
    """bench/client.c: takes orders; in the sandbox or in a namespace."""

    def __init__(self, process):
        self._process = process
        self.tell(None)

    def tell(self, order):
        """Its answer; raises OrderFailed when what was ordered did not work."""
        if order:
            self.begin(order)
        return self.end(order)

    def begin(self, order):
        """Does not wait for the answer: end() does."""
        self._process.stdin.write(order.encode() + b"\n")
        self._process.stdin.flush()

    def end(self, order):
        line = self._process.stdout.readline()
        if not line:
            raise OrderFailed(order)
        answer = json.loads(line)
        if not answer["ok"]:
            raise OrderFailed(order, answer)
        return answer

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


def tell_all(clients, order):
    """The same order to all at once. Returns what they did together, with the times of the slowest; raises as Client.tell does."""
    answers, failure = [], None
    for client in clients:
        client.begin(order)
    for client in clients:
        try:
            answers.append(client.end(order))
        except OrderFailed as error:  # the others' answers must not be those to the next order
            failure = error
    if failure:
        raise failure
    return {key: (sum if key in ("done", "failed") else max)(answer[key] for answer in answers) for key in answers[0]}


class Place:
    """A client's namespace and a gate that it is routed through: client – veth – gate – veth – internet.

    The gate is a host of the lab's, one for each peer, so that no peer's rules are another's.
    """

    def __init__(self, bench, label, number):
        self.bench, self.lab, self.label = bench, bench.lab, label
        self._closers = contextlib.ExitStack()
        with self._closers as closers:
            self.host = self.lab.add_host(f"b{number}")
            closers.callback(self.host.close)
            self.inside = NetNS()
            closers.callback(self.inside.close)
            self.address, self.client_address = (f"{PLACES_NET}.{4 * number + end}" for end in (1, 2))
            self.host.net.ip(f"link add cl0 type veth peer name eth0 netns {self.inside.path}",
                             f"addr add {self.address}/30 dev cl0", "link set cl0 up")
            self.inside.ip(f"addr add {self.client_address}/30 dev eth0", "link set eth0 up",
                           f"route add default via {self.address}")
            self.lab.inet.ip(f"route add {self.client_address}/32 via 203.0.114.{self.host.number + 2}")
            tune(self.host.net.path, forward=True)
            tune(self.inside.path)
            self.folder = os.path.join(self.lab.folder, f"peer{number}")
            os.mkdir(self.folder)
            os.chmod(self.folder, 0o777)
            self._closers = closers.pop_all()

    def client(self, *args, net=None):
        """A Client with these arguments in the client's namespace, or in `net`."""
        return Client(subprocess.Popen((net or self.inside).command(self.bench.helper("client"), *args),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE))

    def close(self):
        self._closers.close()


def tune(netns, forward=False):
    """More ports than the default, used again as soon as TCP allows: a round makes thousands of connections.

    `netns`: a path. Without this, who connects spends its time on the search for a free port.
    """
    values = {"ipv4/ip_local_port_range": "1024 65535", "ipv4/tcp_tw_reuse": "1", "core/somaxconn": "8192"}
    if forward:
        values["ipv4/ip_forward"] = "1"
    script = " && ".join(f"echo {value} >/proc/sys/net/{key}" for key, value in values.items())
    subprocess.run(["nsenter", f"--net={netns}", "sh", "-c", script], check=True, timeout=60)


def tune_client(pid):
    """The namespace of a client that this process, or a descendant of its, has started."""
    client = next(child for child in family(pid) if name(child) == "client")
    tune(f"/proc/{client}/ns/net")


class Bench:
    """The lab with a server in C, whose name is HOST, and places for what is measured."""

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self._numbers = itertools.count()

    def __enter__(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        with self._stack:
            self.lab = self._stack.enter_context(Lab())
            about(self.lab.build)
            tune(self.lab.inet.path)
            tune(self.lab.host.net.path)
            self.start_server(SERVER)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def helper(self, program):
        """A C helper, where everybody can read it."""
        path = os.path.join(self.lab.programs(), program)
        if not os.path.exists(path):
            shutil.copy(os.path.join(self.lab.build, "bench", program), path)
        return path

    def start_server(self, address):
        """A server and name server at an address of the internet's."""
        self.lab.inet.ip(f"addr add {address}/32 dev lo")
        server = subprocess.Popen(self.lab.inet.command(self.helper("server"), address, "80", "443", str(RAW_PORT)),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._stack.callback(server.wait)
        self._stack.callback(server.stdin.close)
        if server.stdout.readline() != b"ready\n":
            raise RuntimeError("the server did not start")
        server.stdout.close()

    def place(self, label):
        place = Place(self, label, next(self._numbers))
        self._stack.callback(place.close)
        return place

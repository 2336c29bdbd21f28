# SPDX-License-Identifier: Apache-2.0
"""Every way to start a sandbox, and what must hold for each: one list of kinds, one of cells, and a table of both at the end of the run.

Two sandboxes of each kind are started, one after the other. The first tries everything, for a while beside a neighbour, and is killed then; of the second,
netgate is.
"""

import contextlib
import functools
import glob
import os
import re
import socket
import subprocess

import pytest

from lab import METADATA, UDP_ECHO, read_log, v4, v6, wait_for
from lab.machine import Console, Machine
from lab.runtimes import CA, GATED, KINDS as RUNTIMES, Policies, networks

POLICY = "version: 1\nallow: [ok.test]\n"
SYN = 2
HELLO = "hello from ok.test\n"
PORT = 8000
# Who listens as NetNS.listening() does, but inside: a sandbox may have a network stack of its own.
LISTENER = ("import select, socket as s; tcp = s.create_server((str(), {port}), family=s.AF_INET6, dualstack_ipv6=True); "
            "udp = s.socket(s.AF_INET6, s.SOCK_DGRAM); udp.bind((str(), {port})); print(1, flush=True); "
            "print(len(select.select([tcp, udp], [], [])[0]), flush=True)").format(port=PORT)
LOOP = 'echo GUEST-READY; while read -r line; do eval "$line" 2>&1; echo "GUEST-DONE $?"; done'


# The kinds: each yields a Subject

class Subject:
    """A sandbox. `sh`: runs a line of shell in it, (exit status, output); `records`: those of its gate; `processes`: those of its netgate;
    `kill`: ends the sandbox by force; `alive`: whether it runs; `nothing_left`: waits until that holds; `host`: where netgate runs."""

    def __init__(self, sh, records, processes, kill, alive, nothing_left, host):
        self.sh, self.records, self.processes, self.kill, self.alive = sh, records, processes, kill, alive
        self.nothing_left, self.host = nothing_left, host


def own(lab, running, victim):
    """One that netgate itself has started, with a shell on its standard input and output; `victim`: the process that ends with it."""
    console = Console(running.process.stdin, running.process.stdout)
    links = lab.host.net.run("ip", "-o", "link")

    def pids(name):
        return [pid for pid, comm in running.processes().items() if comm.startswith(name)]

    def nothing_left():
        wait_for(lambda: not running.processes(), "the end of every process")
        assert lab.host.net.run("ip", "-o", "link") == links
    return Subject(console.ask, lambda: read_log(running.log), lambda: pids("netgate"), lambda: os.kill(pids(victim)[0], 9),
                   lambda: bool(pids(victim)), nothing_left, lab.host)


@contextlib.contextmanager
def bare(lab, _images, user=None):
    with lab.start(["--allow", "ok.test"], ["sh", "-c", LOOP], user=user, stdin=subprocess.PIPE) as running:
        yield own(lab, running, "sandbox-net")


def bare_rootless(lab, images):
    return bare(lab, images, lab.user)


@contextlib.contextmanager
def qemu(lab, images):
    machine, workspace = Machine(images), lab.workspace()
    command = machine.command(machine.initramfs(workspace, [lab.ca_file]), "tap0")
    with lab.start(["--tap", "tap0", "--read", machine.kernel, "--allow", "ok.test"], command, workspace=workspace,
                   stdin=subprocess.PIPE) as running:
        subject = own(lab, running, "qemu")
        for line in ("ip link set eth0 up; ip addr add 10.200.0.2/30 dev eth0; ip route add default via 10.200.0.1",
                     "ip addr add fd6e:6574:6761:7465::2/64 dev eth0; ip -6 route add default via fd6e:6574:6761:7465::1",
                     "while ip -6 addr show dev eth0 | grep -q tentative; do sleep 1; done",
                     f"echo nameserver 10.200.0.1 >/etc/resolv.conf; export CURL_CA_BUNDLE={lab.ca_file}"):
            assert subject.sh(line)[0] == 0
        yield subject


def in_box(gated, box):
    def sh(line):
        done = box.exec(["sh", "-c", line])
        return done.returncode, done.stdout + done.stderr
    return Subject(sh, functools.partial(gated.records, box), lambda: list(gated.processes()), lambda: os.kill(box.pid, 9), box.alive,
                   gated.nothing_left, gated.site.host)


@contextlib.contextmanager
def gated(kind, lab, images):
    prefix = f"{lab.user.name}/" if kind == "rootless" else ""
    raw = {"process": {"capabilities": {name: ["CAP_NET_RAW"] for name in ("bounding", "effective", "permitted")}}}
    with GATED[kind](lab, images, Policies(lab, {prefix + "permit.yaml": POLICY})) as it:
        @contextlib.contextmanager
        def start():
            changes = raw if kind in ("runc", "crun", "gvisor") else {}
            with it.start_client(ask={"allow": "ok.test"}, **changes) as box:
                yield in_box(it, box)
        yield start


class Networked:
    """A runtime's own containers in a network of netgate's; the parts of lab.runtimes.Gated that in_box() needs."""

    def __init__(self, lab, runtime):
        self.lab, self.site, self.logs = lab, runtime.site, lab.workspace()
        self.links = lambda: {line.split()[1] for line in self.site.host.net.run("ip", "-o", "link").splitlines()}
        self.before = self.links()

    def records(self, _box):
        return [record for path in glob.glob(os.path.join(self.logs, "*.jsonl")) for record in read_log(path)]

    def processes(self):
        found = []
        for pid in self.site.cgroup.processes():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as comm:
                if comm.read().startswith("netgate"):
                    found.append(pid)
        return found

    def nothing_left(self):
        wait_for(lambda: not self.processes(), "the end of netgate")
        wait_for(lambda: self.links() <= self.before, "the host's own interfaces, and no others")


@contextlib.contextmanager
def podman_cni(lab, images):
    with RUNTIMES["podman"](lab, images) as podman:
        network = Networked(lab, podman)
        networks.podman_cni(lab, podman, f"{network.logs}/log.jsonl")

        @contextlib.contextmanager
        def start():
            with podman.start(["sleep", "1000"], images.debian(), networks.NAME, ["--dns=10.200.0.1", f"--volume={lab.ca_file}:{CA}:ro"]) as box:
                yield in_box(network, box)
        yield start


@contextlib.contextmanager
def docker_network(lab, images):
    with RUNTIMES["docker"](lab, images) as docker:
        network = Networked(lab, docker)

        @contextlib.contextmanager
        def start():
            with docker.start(["sleep", "1000"], images.debian(), networks.NAME, [f"--volume={lab.ca_file}:{CA}:ro"]) as box:
                yield in_box(network, box)
        with networks.docker_network(lab, docker, network.logs):
            yield start


@contextlib.contextmanager
def each(start, lab, images):
    yield functools.partial(start, lab, images)


KINDS = {
    "bare": functools.partial(each, bare),
    "bare, rootless": functools.partial(each, bare_rootless),
    "docker network": docker_network,
    "docker runtime": functools.partial(gated, "docker"),
    "podman hook": functools.partial(gated, "podman"),
    "podman hook, rootless": functools.partial(gated, "rootless"),
    "podman CNI": podman_cni,
    "runc": functools.partial(gated, "runc"),
    "crun": functools.partial(gated, "crun"),
    "gVisor": functools.partial(gated, "gvisor"),
    "docker, gVisor": functools.partial(gated, "docker-gvisor"),
    "QEMU": functools.partial(each, qemu),
}


# The cells: what is tried in a sandbox. Each returns a few words for the table, and fails when what it expects is not so.

def recorded(subject, kind, **fields):
    """The record of what was just tried."""
    def found():
        return [record for record in subject.records() if record["type"] == kind
                and all(record.get(key) == value for key, value in fields.items())]
    return wait_for(found, f"a record of {kind} with {fields}")[0]


def allowed_https(lab, subject):
    status, out = subject.sh("curl -sS -m 100 https://ok.test/hello")
    assert (status, out) == (0, HELLO), out
    recorded(subject, "decision", proto="tls", host="ok.test", verdict="allow")
    return "hello"


def denied(subject, address, **fields):
    status, out = subject.sh(f"curl -sS -m 100 --resolve 'bad.test:443:{address}' https://bad.test/hello")
    assert status == 35 and "access denied" in out, out
    return recorded(subject, "decision", proto="tls", host="bad.test", verdict="deny", **fields)["reason"]


def denied_https(lab, subject):
    return denied(subject, v4("web"), dst=f"{v4('web')}:443")


def ipv6(lab, subject):
    return denied(subject, f"[{v6('web')}]", dst=f"[{v6('web')}]:443")


def denied_dns(lab, subject):
    status, out = subject.sh("curl -sS -m 100 http://secret.bad.test/")
    assert status == 6, out
    assert not [query for query in lab.dns.queries if "bad.test" in str(query)]
    return recorded(subject, "decision", door="dns", host="secret.bad.test", verdict="deny")["reason"]


def udp(lab, subject):
    status, out = subject.sh(f"curl -sS -m 2 tftp://{v4('raw')}:{UDP_ECHO}/x")
    assert status != 0, out
    assert not lab.raw.seen
    return recorded(subject, "drop", proto="udp")["reason"]


def icmp(lab, subject):
    status, out = subject.sh(f"ping -c 1 -W 1 {v4('web')}")
    assert status != 0 and " 0% packet loss" not in out, out
    if "permitted" in out:  # a sandbox without the capability may not even try
        return "EPERM"
    return recorded(subject, "drop", proto="icmp")["reason"]


def metadata(lab, subject):
    status, out = subject.sh(f"curl -sS -m 100 -o /dev/null -w '%{{http_code}}' http://{METADATA}/latest/meta-data/")
    assert (status, out) == (0, "403"), out
    assert not lab.metadata.requests
    return recorded(subject, "decision", dst=f"{METADATA}:80", verdict="deny")["reason"]


def addresses(shown):
    """Those in the output of ip(8), as they are in a URL."""
    return [f"[{address}]" if ":" in address else address for address in re.findall(r"inet6? ([0-9a-f.:]+)/", shown) if address[:4] != "fe80"]


@contextlib.contextmanager
def listening(subject):
    """Who listens in a sandbox as NetNS.listening() does on a host."""
    status, heard = subject.sh("mktemp")
    assert status == 0, heard
    heard = heard.strip()

    def lines():
        return subject.sh(f"cat {heard}")[1].split()
    subject.sh(f"python3 -c '{LISTENER}' >{heard} 2>&1 </dev/null &")
    wait_for(lambda: lines() == ["1"], "a listener in the sandbox")
    yield lambda: len(lines()) > 1
    subject.sh(f"rm {heard}")


def host_and_neighbour(subject, start):
    """As root: nothing gets to an address of the host's, or of another sandbox's, which `start` starts on the same host."""
    show = "ip addr show dev eth0"
    own = addresses(subject.sh(show)[1])
    with subject.host.net.listening(PORT) as came, start() as neighbour, listening(neighbour) as came_there:
        hosts, neighbours = addresses(subject.host.net.run(*show.split())), addresses(neighbour.sh(show)[1])
        assert len(own) == len(hosts) == len(neighbours) == 2, (own, hosts, neighbours)
        # Gates give the same two addresses to all their sandboxes, but for docker's networks: there is no other way to name a neighbour.
        others = [address for address in hosts + neighbours if address not in own]
        for address in hosts + neighbours:
            # Docker leaves lo without IPv6, so there a container that asks for its own address hears nothing.
            out = subject.sh(f"curl -s -m 5 -o /dev/null -w '%{{http_code}}' http://{address}:{PORT}/")[1]
            assert out in ("000", "403"), out
        status, out = subject.sh("curl -s -Z -m 2 " + " ".join(f"tftp://{address}:{PORT}/x" for address in hosts + neighbours))
        assert status != 0, out
        for address in others:
            recorded(subject, "decision", dst=f"{address}:{PORT}", verdict="deny")
            recorded(subject, "drop", proto="udp", dst=address.strip("[]"), port=PORT)
        assert not came() and not came_there()
        # They would have heard.
        with subject.host.net.inside():
            socket.create_connection((hosts[0], PORT)).close()
        neighbour.sh(f"curl -sS -m 100 http://{neighbours[0]}:{PORT}/")
        wait_for(lambda: came() and came_there(), "one who came")
    return "denied"


def what_left(lab, capture):
    """Everything that came from the host was for ok.test, or asked the name server for it."""
    own_packets = {("tcp", v4("web"), 443), ("tcp", v6("web"), 443), ("udp", v4("dns"), 53), ("udp", v6("dns"), 53)}
    assert capture.destinations() <= own_packets, capture.destinations() - own_packets
    assert {query.name for query in lab.dns.queries} <= {"ok.test"}
    return "ok.test"


def killed_sandbox(subject):
    subject.kill()
    subject.nothing_left()
    assert subject.records()[-1]["type"] == "end", subject.records()
    return "nothing left"


def killed_netgate(lab, subject):
    """It goes on without a network, or ends with netgate."""
    assert subject.sh("curl -sS -m 100 https://ok.test/hello")[0] == 0
    lab.reset()
    with lab.capture(subject.host) as capture:
        for pid in subject.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        wait_for(lambda: not subject.processes(), "the end of netgate")
        try:
            for url in (f"http://{v4('web')}/", f"http://[{v6('web')}]/", "https://ok.test/hello", f"tftp://{v4('raw')}:{UDP_ECHO}/x"):
                status, out = subject.sh(f"curl -sS -m 2 {url}")
                assert status != 0 and "hello" not in out, out
            outcome = "no way out"
        except (AssertionError, BrokenPipeError):
            wait_for(lambda: not subject.alive(), "the end of the sandbox")
            outcome = "ended too"
    # The kernel may still end the connection of before.
    begun = [packet for packet in capture.packets if packet.proto != "tcp" or packet.flags & SYN]
    assert not begun and not lab.web.requests and not lab.raw.seen, begun
    return outcome


TRIED = {"allowed https": allowed_https, "denied https": denied_https, "denied DNS": denied_dns, "UDP": udp, "ICMP": icmp, "metadata": metadata,
         "IPv6": ipv6}
CELLS = [*TRIED, "host, neighbour", "what left", "killed sandbox", "killed netgate"]


class Cells(dict):
    """Outcomes by the names in CELLS: text, or the exception."""

    def fill(self, name, function, *args):
        try:
            self[name] = function(*args)
        except Exception as error:  # shown where the cell is looked at
            self[name] = error


def measure(lab, images, kind):
    cells = Cells()
    lab.reset()
    try:
        with KINDS[kind](lab, images) as start:
            with start() as subject, lab.capture(subject.host) as capture:
                for name, function in TRIED.items():
                    cells.fill(name, function, lab, subject)
                # A second virtual machine would take longer than all else, and be no other neighbour.
                neighbour = start if kind != "QEMU" else functools.partial(bare, lab, images)
                cells.fill("host, neighbour", host_and_neighbour, subject, neighbour)
                capture.stop()
                cells.fill("what left", what_left, lab, capture)
                cells.fill("killed sandbox", killed_sandbox, subject)
            with start() as subject:
                cells.fill("killed netgate", killed_netgate, lab, subject)
    except Exception as error:
        cells = Cells(dict.fromkeys(CELLS, error)) | cells
    return cells


@pytest.fixture(scope="module")
def matrix(whole_lab, images, tables):
    """matrix(kind): its cells, measured when first asked for."""
    found = {}
    tables.append(("Sandboxes, and what holds for each", ["", *CELLS], lambda: [
        [kind, *(cell if isinstance(cell, str) else "FAILED" for cell in (cells[name] for name in CELLS))] for kind, cells in found.items()]))

    def get(kind):
        if kind not in found:
            found[kind] = measure(whole_lab, images, kind)
        return found[kind]
    return get


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", KINDS)
def test_cell(matrix, kind, cell):
    outcome = matrix(kind)[cell]
    if isinstance(outcome, Exception):
        raise outcome
    assert outcome

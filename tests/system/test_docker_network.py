# SPDX-License-Identifier: Apache-2.0
"""The network driver for docker, with a real dockerd: what containers of such a network reach, and what is left of them."""

import contextlib
import glob
import json
import os
import signal
import subprocess

import pytest

from lab import read_log, v4, wait_for
from lab.attached import vsock_works
from lab.runtimes import CA, Docker, compose

SUBNET = "172.30.5"
SOCKET = "run/docker/plugins/netgate.sock"


class Driver:
    """dockerd with the driver beside it, and a network or more. Logs of gates are in `logs`."""

    def __init__(self, lab, images, name, **more):
        self.lab, self.images = lab, images
        self.docker = Docker(lab, images, name=name, **more)
        self.site = self.docker.site
        self.logs = os.path.join(self.docker.folder, "logs")
        os.mkdir(self.logs)
        self.process = None

    def start(self):
        """Waits until it serves."""
        with open(os.path.join(self.docker.folder, "driver.log"), "ab") as log:
            self.process = self.site.start([self.program("sandbox-net"), "docker-driver", "--state", os.path.join(self.docker.folder, "state")],
                                           stdout=log, stderr=log)
        wait_for(self._serves, "the driver's socket")

    def _serves(self):
        assert self.process.poll() is None, self.said()
        done = self.site.run(["curl", "-s", "--unix-socket", "/" + SOCKET, "-d", "{}", "http://x/Plugin.Activate"])
        return "NetworkDriver" in done.stdout

    def said(self):
        with open(os.path.join(self.docker.folder, "driver.log"), errors="replace") as log:
            return log.read()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def program(self, name):
        return os.path.join(self.lab.programs(), name)

    def attached(self):
        done = self.site.run([self.program("sandbox-net"), "ls", "--json"], check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def network(self, name, *options, **more):
        """Makes one whose containers' logs have its name; returns CompletedProcess."""
        words = [word for option in (f"log={self.logs}", f"name={name}", *options) for word in ("--opt", option)]
        subnet = more.get("words", [f"--subnet={SUBNET}.0/24"])
        return self.docker.client("network", "create", "--driver=netgate", *words, *subnet, name)

    def records(self, name, kind=None):
        """Of all containers of a network, or of one."""
        found = [record for path in glob.glob(os.path.join(self.logs, f"{name}-*.jsonl")) for record in read_log(path)]
        return [record for record in found if kind in (None, record["type"])]

    def run(self, argv, network, options=(), debian=False):
        image = self.images.debian() if debian else None
        trust = [f"--volume={self.lab.ca_file}:{CA}:ro"] if debian else []
        return self.docker.run(argv, image=image, network=network, options=[*trust, *options])

    def links(self):
        """Of the host: those that wait to be moved, or were left."""
        done = self.site.run(["ip", "-o", "link"], check=True)
        return [line for line in done.stdout.splitlines() if ": ng" in line]

    def no_gate(self):
        """Waits until there is none: of one that ends, the kernel takes the link away in its own time."""
        wait_for(lambda: self.attached() == [] and self.links() == [], "the end of all gates")
        return True

    def nothing_left(self):
        self.no_gate()
        assert self.docker.containers() == []

    def close(self):
        if self.process and self.process.poll() is None:
            self.end()


@pytest.fixture(scope="module")
def whole_driver(whole_lab, images):
    driver = Driver(whole_lab, images, "docker-net")
    with contextlib.closing(driver), driver.docker:
        driver.start()
        yield driver


@pytest.fixture
def driver(lab, whole_driver):
    """Each test leaves no network behind, and no gate."""
    yield whole_driver
    names = whole_driver.docker.client("network", "ls", "--filter=driver=netgate", "--format={{.Name}}", check=True).stdout.split()
    for name in names:
        whole_driver.docker.client("network", "rm", name, check=True)
    whole_driver.nothing_left()
    for path in glob.glob(os.path.join(whole_driver.logs, "*")):
        os.unlink(path)


def made(done):
    assert done.returncode == 0, done
    return done


def interfaces(box):
    return [line.split(":")[1].split("@")[0].strip() for line in box.exec(["ip", "-o", "link"]).stdout.splitlines()]


def left_with_lo(box):
    wait_for(lambda: interfaces(box) == ["lo"], "a container with lo only")
    return True


# What it is for

def test_allowed_and_denied(lab, driver):
    """By name, with docker's own name server in resolv.conf; and nothing else."""
    made(driver.network("job42", "allow=ok.test, other.test:443"))
    script = ("grep -q 127.0.0.11 /etc/resolv.conf && curl -sS https://ok.test/hello && curl -sS https://other.test/hello"
              f"; curl -sS https://bad.test/; curl -sS --resolve bad.test:443:{v4('web')} https://bad.test/"
              f"; curl -sS -m 60 http://{v4('web')}/; curl -sS http://other.test/; true")
    with lab.capture(driver.site.host) as capture:
        done = driver.run(["sh", "-c", script], "job42", debian=True)
    assert done.stdout.startswith("hello from ok.test\nhello from other.test\n") and done.stdout.count("hello") == 2, done
    assert set(lab.web.hellos) == {"ok.test", "other.test"}
    assert {query.name for query in lab.dns.queries} == {"ok.test", "other.test"}
    assert capture.packets
    wait_for(lambda: driver.records("job42", "end"), "the end record")
    (start,), (end,) = driver.records("job42", "start"), driver.records("job42", "end")
    assert start["attached"] == f"docker network job42 endpoint {start['sandbox'].rpartition('-')[2]}" and "netns" not in start
    # The gate is there before the container's profile is.
    assert any("AF_VSOCK works" in note and "it is not known here" in note for note in start.get("notes", [])) == vsock_works(), start
    assert end["ended"] in ("detached", "link_deleted"), end  # docker takes the link out before it deletes the endpoint
    assert (end["allowed"], end["denied"] >= 2, end["lost"]) == (2, True, 0), end
    assert {record["reason"] for record in driver.records("job42", "decision") if record["verdict"] == "deny"} \
        == {"not_allowed", "no_name", "port_not_allowed"}


def test_which_process(driver):
    made(driver.network("job42", "allow=ok.test"))
    with driver.docker.start(["sleep", "1000"], network="job42") as box:
        wait_for(driver.attached, "the end of the look at the container")
        fetch = ["sh", "-c", f"wget -q -O - http://{v4('web')}/; wget -q -O - http://ok.test/hello"]
        # Again where a busy machine has no answer in two seconds.
        wait_for(lambda: box.exec(fetch).stdout == "hello from ok.test\n" and
                 any(record.get("exe", "").endswith("busybox") for record in driver.records("job42", "process")), "a record of the process")


def test_udp_and_icmp_are_on_record(lab, driver):
    made(driver.network("job42", "allow=raw.test"))
    script = ("import socket, subprocess; s = socket.socket(type=socket.SOCK_DGRAM)\n"
              f"s.connect(('{v4('raw')}', 5000)); s.send(b'x')\n"
              f"subprocess.run(['ping', '-c', '1', '-W', '1', '{v4('web')}'])\n")
    with lab.capture(driver.site.host) as capture:
        driver.run(["python3", "-c", script], "job42", debian=True)
    assert capture.packets == []
    wait_for(lambda: driver.records("job42", "end"), "the end record")
    reasons = {(record["reason"], record["dst"]) for record in driver.records("job42", "drop")}
    assert ("udp", v4("raw")) in reasons and ("icmp", v4("web")) in reasons, reasons


def test_containers_are_isolated(driver):
    """Two of one network: an attempt to reach the other is refused at once, and on record."""
    made(driver.network("job42", "allow=ok.test"))
    serve = ["sh", "-c", "echo secret >/tmp/f; exec httpd -f -p 8000 -h /tmp"]
    with driver.docker.start(serve, network="job42") as one, driver.docker.start(["sleep", "1000"], network="job42") as two:
        address = driver.docker.client("inspect", "--format={{.NetworkSettings.Networks.job42.IPAddress}}", one.id, check=True).stdout.strip()
        wait_for(lambda: one.exec(["wget", "-q", "-O", "-", f"http://{address}:8000/f"]).stdout == "secret\n", "the server")
        assert "secret" not in two.exec(["wget", "-q", "-O", "-", f"http://{address}:8000/f"]).stdout
        assert two.exec(["wget", "-q", "-O", "-", f"http://{SUBNET}.200:8000/f"]).returncode != 0
        assert two.exec(["ping", "-c", "1", "-W", "1", address]).returncode != 0
        assert len(driver.attached()) == 2
        wait_for(lambda: driver.records("job42", "drop"), "a record of the ping")
    denied = {record["dst"] for record in driver.records("job42", "decision") if record["verdict"] == "deny"}
    assert {f"{address}:8000", f"{SUBNET}.200:8000"} <= denied, denied


def test_compose(driver):
    """The example of docs/docker.md."""
    config = compose.example("docker.md")
    config["networks"]["gated"]["driver_opts"]["log"] = driver.logs
    names = "api.example.com pypi.org x.pythonhosted.org example.com"
    done = compose.run(driver.docker, config, "job", f"for name in {names}; do nslookup $name; done; ip -o link show eth0")
    assert done.returncode == 0 and "02:00:00:00:00:02" in done.stdout, done
    wait_for(lambda: driver.records("job", "end"), "the end record")
    verdicts = {record["host"]: record["verdict"] for record in driver.records("job", "decision")}
    assert verdicts == dict.fromkeys(names.split()[:3], "allow") | {"example.com": "deny"}


def test_options_of_one_container(driver):
    """They take the place of the network's."""
    made(driver.network("job42", "allow=ok.test"))
    fetch = ["sh", "-c", "wget -q -O - http://ok.test/hello; wget -q -O - http://other.test/hello"]
    assert driver.run(fetch, "job42").stdout == "hello from ok.test\n"
    done = driver.run(fetch, "name=job42,driver-opt=allow=other.test bad.test,driver-opt=name=special")
    assert done.stdout == "hello from other.test\n", done
    assert driver.records("special", "start")


def test_policy_and_limits(lab, driver):
    policy = os.path.join(lab.workspace(), "policy.yaml")
    with open(policy, "w") as out:
        out.write("version: 1\nallow: [ok.test, other.test]\ndeny: [other.test]\n")
    made(driver.network("job42", f"policy={policy}", "options=--max-names 1 --deny=bad.test"))
    done = driver.run(["sh", "-c", "wget -q -O - http://ok.test/hello; wget -q -O - http://other.test/hello"], "job42")
    assert done.stdout == "hello from ok.test\n", done
    assert driver.records("job42", "start")[0]["limits"] == {"names": "1"}


def test_ipv6_network(driver):
    words = ["--ipv6", "--subnet=fd00:77::/64", "--gateway=fd00:77::1", "--subnet=172.30.0.0/24", "--gateway=172.30.0.254"]
    made(driver.network("job42", "allow=ok.test", words=words))
    done = driver.run(["sh", "-c", "ip -o addr; ip -6 route; wget -q -O - http://ok.test/hello"], "job42")
    assert "fd00:77::2/64" in done.stdout and "172.30.0.1/24" in done.stdout and "default via fd00:77::1" in done.stdout, done
    assert done.stdout.endswith("hello from ok.test\n") and "fe80" not in done.stdout


def test_front_doors(driver):
    made(driver.network("job42", "allow=ok.test"))
    done = driver.run(["sh", "-c", f"curl -sS -x http://{SUBNET}.1:3128 https://ok.test/hello; curl -sS -x socks5h://{SUBNET}.1:1080 http://ok.test/hello"],
                      "job42", debian=True)
    assert done.stdout == "hello from ok.test\n" * 2, done


# What is refused

def test_network_that_is_refused(driver):
    for words, says in ((["--opt=alow=ok.test"], "option \"alow\" is unknown"), (["--opt=allow="], "option \"allow\" is there and empty"),
                        (["--opt=allow=ok.test", "--opt=policy= "], "option \"policy\" is there and empty"), (["--ipam-driver=null"], "no IPv4 subnet")):
        done = driver.docker.client("network", "create", "--driver=netgate", *words, "job42")
        assert done.returncode != 0 and says in done.stderr, done


WRONG = [("allow=ok.test:notaport", "notaport"), ("allow=http://ok.test", "http://ok.test"), ("policy=/nonexistent.yaml", "/nonexistent.yaml"),
         ("options=--no-such-option", "no-such-option"), ("options=--max-names 5 --job=other", "--job=other"),
         ("accept-risk=all", "accept-risk"), ("name=a b", "name: ")]


@pytest.mark.parametrize("option, says", WRONG, ids=str)
def test_options_that_are_refused(driver, option, says):
    """When the network is made: there is none then, nor a file of it, nor a log."""
    kept = lambda: sorted(os.listdir(os.path.join(driver.docker.folder, "state")))
    before = kept()
    done = driver.network("job42", option)
    assert done.returncode != 0 and says in done.stderr, done
    assert kept() == before and os.listdir(driver.logs) == [] and driver.no_gate()
    made(driver.network("job42", "allow=ok.test"))
    assert len(kept()) == len(before) + 1 and os.listdir(driver.logs) == [] and driver.no_gate()


@pytest.mark.parametrize("network, options, says", [
    *(("name=job42,driver-opt=" + option, [], says) for option, says in WRONG),
    ("job42", ["--publish=8000:80"], "ports can't be published"),
    ("job42", ["--mac-address=02:00:00:00:00:09"], "MAC address"),
], ids=str)
def test_container_that_is_refused(driver, network, options, says):
    """It does not start, and the reason is there."""
    made(driver.network("job42", "allow=ok.test"))
    done = driver.run(["echo", "it runs"], network, options)
    assert done.returncode != 0 and says in done.stderr and "it runs" not in done.stdout, done
    assert driver.no_gate()


def test_empty_option_of_a_container(driver):
    """It would take the place of what the network allows, and its policy would be left."""
    made(driver.network("job42", "allow=ok.test"))
    done = driver.run(["echo", "it runs"], "name=job42,driver-opt=allow=")
    assert done.returncode != 0 and "is there and empty" in done.stderr and "it runs" not in done.stdout, done
    assert driver.no_gate()


def test_network_of_the_gates_own_range(driver):
    made(driver.network("job42", "allow=ok.test", words=["--subnet=198.18.0.0/24"]))
    done = driver.run(["true"], "job42")
    assert done.returncode != 0 and "choose another --subnet" in done.stderr, done


def test_container_with_net_admin(driver):
    """Seen as soon as its program has begun, which is the end of it."""
    made(driver.network("job42", "allow=ok.test"))
    assert driver.run(["sleep", "1000"], "job42", ["--cap-add=NET_ADMIN"]).returncode == 137
    wait_for(lambda: "CAP_NET_ADMIN" in driver.said(), "the reason")
    wait_for(lambda: driver.records("job42", "end"), "the end record")
    assert driver.records("job42", "end")[0]["ended"] == "attach_failed"
    made(driver.network("risky", "allow=ok.test", "accept-risk=net-admin", words=["--subnet=172.30.6.0/24"]))
    with driver.docker.start(["sleep", "1000"], network="risky", options=["--cap-add=NET_ADMIN"]) as box:
        wait_for(driver.attached, "the end of the look at the container")
        assert box.exec(["wget", "-q", "-O", "-", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
    assert driver.records("risky", "start")[0]["accepted"] == ["net-admin"]


# What a container with CAP_NET_ADMIN may try first, and then the proof that nobody asks for it any more.
HIDING = """
import ctypes, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def flush():
    "Deletes every table of rules."
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    message = lambda kind, flags, family, seq, extra: struct.pack("=IHHIIBBH", 20, kind, flags, seq, 0, family, 0, socket.htons(extra))
    for family in (1, 2, 3):  # inet, ip, arp
        sock.send(message(16, 1, 0, 1, 10) + message(10 << 8 | 2, 5, family, 2, 0) + message(17, 1, 0, 3, 10))
        assert struct.unpack("=i", sock.recv(4096)[16:20])[0] == 0

def drop():
    "Gives up every capability, for good."
    for number in range(64):
        libc.prctl(24, number, 0, 0, 0)
    assert libc.capset(struct.pack("=Ii", 0x20080522, 0), bytes(24)) == 0

def ask(name):
    query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\\0\\0\\1\\0\\1"
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.settimeout(3)
    try:
        sock.sendto(query, ("127.0.0.11", 53))
        sock.recv(4096)
    except OSError:
        pass

for step in sys.argv[1:]:
    globals()[step]()
end = time.monotonic() + 30
while "eth0" in open("/proc/self/net/dev").read() and time.monotonic() < end:
    time.sleep(.01)
if "flush" not in sys.argv:
    try:
        flush()
    except (AssertionError, PermissionError):
        pass
ask("leak.bad.test")
print("the gate is there" if "eth0" in open("/proc/self/net/dev").read() else "lo only")
"""

# Leaves the network namespace as the first thing, for as long as somebody may look.
HIDDEN = """exec 3</proc/self/ns/net; exec /busybox unshare -n /busybox sh -c 'sleep 2; exec /busybox nsenter -n/proc/self/fd/3 "$0" "$@"' "$0" "$@" """


def bound(source, target):
    return f"--mount=type=bind,readonly,source={source},target={target}"


@pytest.mark.parametrize("steps", [["hidden"], ["flush", "drop"], ["flush"], []], ids="-".join)
def test_net_admin_that_hides(lab, loopback, steps):
    """Who could change the rules is killed, whatever his processes look like when they have begun; and what he asks docker's name server goes nowhere."""
    argv, options = ["python3", "-ISc", HIDING], ["--dns=192.0.2.1", "--cap-add=NET_ADMIN"]
    if steps == ["hidden"]:
        argv, steps = ["/busybox", "sh", "-c", HIDDEN, *argv], []
        options += ["--cap-add=SYS_ADMIN", bound(os.path.join(loopback.images.busybox().rootfs, "bin/busybox"), "/busybox")]
    with gated(loopback):
        done = loopback.run([*argv, *steps], "gated", options, debian=True)
        assert (done.returncode, done.stdout) == (137, ""), done
        wait_for(lambda: loopback.records("gated", "end"), "the end record")
        assert loopback.records("gated", "end")[0]["ended"] == "attach_failed" and loopback.records("gated", "decision") == []
    assert lab.dns.queries == []


@pytest.mark.parametrize("name", ["runc:[2:INIT]", "runc:[1:CHILD]"])
def test_net_admin_by_the_runtimes_name(driver, name):
    made(driver.network("job42", "allow=ok.test"))
    python = os.path.join(driver.images.debian().rootfs, "usr/bin/python3")
    done = driver.run([f"/{name}", "-c", HIDING], "job42", ["--cap-add=NET_ADMIN", bound(python, f"/{name}")], debian=True)
    assert (done.returncode, done.stdout) == (137, ""), done
    wait_for(lambda: "CAP_NET_ADMIN" in driver.said(), "the reason")


def test_net_admin_in_a_user_namespace(lab, images):
    """It has no say over the gate, but over its own rules."""
    driver = Driver(lab, images, "docker-userns", config={"userns-remap": "remap"})
    for name, line in (("passwd", "remap:x:99000:99000::/:/bin/false"), ("group", "remap:x:99000:"), ("subuid", "remap:300000:65536"),
                       ("subgid", "remap:300000:65536")):
        copy = os.path.join(driver.docker.folder, name)
        with open(f"/etc/{name}") as original, open(copy, "w") as out:
            out.write(original.read() + line + "\n")
        driver.site.run(["mount", "--bind", copy, f"/etc/{name}"], check=True)
    os.chmod(lab.folder, 0o755)
    with contextlib.closing(driver), driver.docker:
        driver.start()
        made(driver.network("job42", "allow=ok.test"))
        assert driver.run(["wget", "-q", "-O", "-", "http://ok.test/hello"], "job42").stdout == "hello from ok.test\n"
        done = driver.run(["python3", "-c", HIDING], "job42", ["--cap-add=NET_ADMIN"], debian=True)
        assert (done.returncode, done.stdout) == (137, ""), done
        wait_for(lambda: "CAP_NET_ADMIN" in driver.said(), "the reason")
        made(driver.docker.client("network", "rm", "job42"))


def trying(path):
    return ["sh", "-c", f"while :; do wget -q -O /dev/null http://{v4('web')}{path}; sleep .1; done"]


TRYING = trying("/hello")


def made_of_two(driver, network, *options):
    """A container of a gated network and another one (None: no other), which tries all the time to get out by it; not started yet."""
    client = driver.docker.client
    ident = made(client("create", "--network=gated", *options, driver.docker.add(driver.images.busybox()), *TRYING)).stdout.strip()
    if network:
        made(client("network", "connect", network, ident))
    return ident


def running(driver, ident):
    return made(driver.docker.client("inspect", "--format={{.State.Running}}", ident)).stdout == "true\n"


@contextlib.contextmanager
def another_network(driver, name):
    client = driver.docker.client
    if name != "bridge":
        made(client("network", "create", name))
    try:
        yield
    finally:
        if name != "bridge":
            made(client("network", "rm", name))


@pytest.mark.parametrize("name", ["bridge", "a-web", "z-web"])
@pytest.mark.parametrize("options", [[], ["--cap-add=NET_ADMIN"]], ids=str)
def test_container_with_another_network(lab, driver, name, options):
    """A gate is no gate beside another way out, whichever docker makes first: it does not start, until it has one network."""
    made(driver.network("gated", "allow=ok.test"))
    client = driver.docker.client
    with another_network(driver, name):
        with driver.docker.start(trying("/alone"), network=name):
            wait_for(lambda: lab.web.seen("/alone"), "the way by the other network alone")
        ident = made_of_two(driver, name, *options)
        try:
            assert client("start", ident).returncode != 0
            assert not running(driver, ident) and lab.web.seen("/hello") == []
            wait_for(lambda: driver.records("gated", "end"), "the end of the gate")
            assert driver.records("gated", "end")[0]["ended"] == "attach_failed"
            if not options:
                made(client("network", "disconnect", name, ident))
                made(client("start", ident))
                wait_for(lambda: driver.records("gated", "decision"), "a request at the gate")
                assert running(driver, ident) and lab.web.seen("/hello") == []
        finally:
            client("rm", "--force", ident)


def test_accepted_risk_with_another_network(lab, driver):
    made(driver.network("gated", "allow=ok.test", "accept-risk=net-admin"))
    ident = made_of_two(driver, "bridge", "--cap-add=NET_ADMIN")
    try:
        assert driver.docker.client("start", ident).returncode != 0
        assert not running(driver, ident) and lab.web.requests == []
    finally:
        driver.docker.client("rm", "--force", ident)


@pytest.mark.parametrize("name", ["bridge", "a-web"])
def test_started_anew_with_a_network_that_was_connected(lab, driver, name):
    """Docker keeps the network that it could not connect, for the next start."""
    client = driver.docker.client
    made(driver.network("gated", "allow=ok.test"))
    with another_network(driver, name), driver.docker.start(TRYING, network="gated", options=["--restart=always"]) as box:
        wait_for(driver.attached, "the gate")
        assert client("network", "connect", name, box.id).returncode != 0
        wait_for(lambda: driver.records("gated", "end"), "the end of the gate")
        assert client("restart", "--time=0", box.id).returncode != 0
        assert not running(driver, box.id) and lab.web.requests == []
        made(client("network", "disconnect", "--force", name, box.id))
        made(client("start", box.id))
        wait_for(driver.attached, "the gate")
    assert lab.web.requests == []


def test_container_that_runs_already(lab, driver):
    """It has had another network, and keeps it."""
    client = driver.docker.client
    made(driver.network("gated", "allow=ok.test"))
    with driver.docker.start(TRYING, network="bridge") as box:
        done = client("network", "connect", "gated", box.id)
        assert done.returncode != 0 and "connect it before it is started" in done.stderr, done
        assert driver.no_gate()
        lab.web.requests.clear()
        wait_for(lambda: lab.web.requests, "its own network")


def test_network_that_is_connected_later(driver):
    """Docker finds a default route in its way. Whatever it has made until then carries nothing, and ends the gate."""
    client = driver.docker.client
    made(driver.network("job42", "allow=ok.test"))
    made(client("network", "create", "--internal", "more"))
    ping = ["ping", "-c", "1", "-W", "1"]
    try:
        with driver.docker.start(["sleep", "1000"], network="job42") as box, \
             driver.docker.start(["sleep", "1000"], network="more") as one, \
             driver.docker.start(["sleep", "1000"], network="more") as other:
            address = made(client("inspect", "--format={{.NetworkSettings.Networks.more.IPAddress}}", one.id)).stdout.strip()
            wait_for(lambda: other.exec([*ping, address]).returncode == 0, "an answer")
            wait_for(driver.attached, "the gate")
            done = client("network", "connect", "more", box.id)
            assert done.returncode != 0 and "file exists" in done.stderr, done
            wait_for(lambda: interfaces(box) == ["lo", "eth1"], "the end of the gate's link")
            assert driver.records("job42", "interface")[0]["name"] == "eth1"
            assert driver.records("job42", "end")[0]["ended"] == "another_interface"
            assert box.exec([*ping, address]).returncode != 0
    finally:
        made(client("network", "rm", "more"))


# How it ends

def test_killed_netgate(driver):
    made(driver.network("job42", "allow=ok.test"))
    with driver.docker.start(["sleep", "1000"], network="job42") as box:
        wait_for(driver.attached, "the gate")
        os.kill(driver.attached()[0]["pid"], signal.SIGKILL)
        assert left_with_lo(box)
        assert box.exec(["wget", "-q", "-O", "-", "http://ok.test/"]).returncode != 0
        assert box.exec(["nslookup", "ok.test"]).returncode != 0


def test_stopped_and_started(driver):
    made(driver.network("job42", "allow=ok.test"))
    with driver.docker.start(["sleep", "1000"], network="job42") as box:
        wait_for(driver.attached, "the gate")
        made(driver.docker.client("stop", "--time=0", box.id))
        wait_for(lambda: driver.attached() == [], "the end of the gate")
        made(driver.docker.client("start", box.id))
        assert box.exec(["wget", "-q", "-O", "-", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
    assert len(driver.records("job42", "start")) == 2


def test_disconnected(driver):
    made(driver.network("job42", "allow=ok.test"))
    with driver.docker.start(["sleep", "1000"], network="job42") as box:
        wait_for(driver.attached, "the gate")
        made(driver.docker.client("network", "disconnect", "job42", box.id))
        assert left_with_lo(box)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_driver_started_anew(driver, number):
    """Gates go on without it, networks are known to the next one, and their containers' end is."""
    made(driver.network("job42", "allow=ok.test"))
    fetch = ["wget", "-q", "-O", "-", "http://ok.test/hello"]
    with driver.docker.start(["sleep", "1000"], network="job42") as box:
        wait_for(driver.attached, "the gate")
        driver.end(number)
        try:
            assert box.exec(fetch).stdout == "hello from ok.test\n"
            if number == signal.SIGKILL:
                done = driver.run(["echo", "it runs"], "job42")  # dockerd tries for 15 s
                assert done.returncode != 0 and "it runs" not in done.stdout, done
        finally:
            driver.start()
        assert driver.run(fetch, "job42").stdout == "hello from ok.test\n"
        assert box.exec(fetch).stdout == "hello from ok.test\n"
    wait_for(lambda: driver.attached() == [], "the end of the gate")


def test_container_that_ends_without_the_driver(driver):
    """Docker takes the link back to the host, and nobody tells the gate: it ends all the same, with the link."""
    made(driver.network("job42", "allow=ok.test"))
    with driver.docker.start(["sleep", "1000"], network="job42") as box:
        wait_for(driver.attached, "the gate")
        driver.end()
        try:
            os.kill(box.pid, signal.SIGKILL)
            wait_for(lambda: driver.attached() == [] and driver.links() == [], "the end of the gate", timeout=180)
            assert driver.records("job42", "end")[0]["ended"] in ("link_deleted", "sandbox_gone")
        finally:
            driver.start()


def test_one_driver_at_a_time(driver):
    done = driver.site.run([driver.program("sandbox-net"), "docker-driver", "--state", os.path.join(driver.docker.folder, "state")])
    assert done.returncode == 125 and "runs already" in done.stderr, done


def test_malformed_requests(driver):
    ask = lambda body, path="NetworkDriver.Join": driver.site.run(
        ["curl", "-s", "--unix-socket", "/" + SOCKET, "-d", body, f"http://x/{path}"], check=True).stdout
    assert "not a JSON object" in json.loads(ask("[1]"))["Err"]
    assert "not a JSON object" in json.loads(ask("{"))["Err"]
    assert "NetworkID" in json.loads(ask("{}"))["Err"]
    assert "unknown" in json.loads(ask('{"NetworkID": "a", "EndpointID": "b", "SandboxKey": "/x"}'))["Err"]
    assert "NetworkID" in json.loads(ask('{"NetworkID": "../a", "EndpointID": "b"}', "NetworkDriver.CreateEndpoint"))["Err"]
    assert "no such method" in json.loads(ask("{}", "NetworkDriver.Nothing"))["Err"]
    assert json.loads(ask('{"EndpointID": "b"}', "NetworkDriver.DeleteEndpoint")) == {}


# One that is worked on waits for the netgate of an endpoint, which answers only when the silent connections have had their time.
STALLING = """
import os, socket

def connect():
    sock = socket.socket(socket.AF_UNIX)
    sock.connect("/%s")  # with a timeout it would fail where the queue is full, and not wait
    sock.settimeout(120)
    return sock

def ask(head, body=b""):
    "The status; 0 where the connection was closed while this was sent."
    with connect() as sock:
        try:
            sock.sendall(b"POST /Plugin.Activate HTTP/1.1\\r\\nHost: x\\r\\n" + head + b"\\r\\n" + body)
            return int((sock.recv(4096) or b"- 0").split()[1])
        except (BrokenPipeError, ConnectionResetError):
            return 0

os.makedirs("/run/netgate", 0o700, exist_ok=True)
netgate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
netgate.bind("/run/netgate/docker-held.sock")
netgate.listen()
held = connect()
held.sendall(b'POST /NetworkDriver.DeleteEndpoint HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 22\\r\\n\\r\\n{"EndpointID": "held"}')
caller = netgate.accept()[0]
silent = [connect() for _ in range(200)]
begun = [b"P", b"POST /Plugin.Activate HTTP/1.1\\r\\n", b"POST /Plugin.Activate HTTP/1.1\\r\\nContent-Length: 9\\r\\n\\r\\n{"]
for number, sock in enumerate(silent[1:]):
    sock.sendall(begun[number %% len(begun)])
line, length, chunked = b"A: b\\r\\n", b"Content-Length: %%d\\r\\n", b"Transfer-Encoding: chunked\\r\\n"
print(ask(length %% 2, b"{}"), ask(1000 * line + length %% 2, b"{}"), ask(length %% 100000, b"{" + bytes(99999).replace(b"\\0", b" ")))
print(ask(10000 * line), ask(b"A: " + b"b" * 20000))
print(ask(length %% 1048577), ask(chunked, b"200000\\r\\n" + bytes(0x200000)), ask(chunked, b"0\\r\\n" + 10000 * line))
print({sock.recv(1) for sock in silent})
os.unlink("/run/netgate/docker-held.sock")
caller.close()
netgate.close()
print(held.recv(4096).split()[1].decode())
""" % SOCKET


def test_requests_that_stall_or_grow(driver):
    """They come to an end and hold nobody up; what is worked on may take longer than that."""
    done = driver.site.run(["python3", "-c", STALLING])
    assert done.returncode == 0, done
    good, headers, bodies, silent, held = done.stdout.splitlines()
    assert (good, silent, held) == ("200 200 200", "{b''}", "200"), done
    assert set(headers.split()) <= {"400", "0"} and set(bodies.split()) <= {"413", "0"}, done


# Docker's own name server

QUERY = """
import re, socket, struct, sys
name, patience = sys.argv[1], int(sys.argv[2])
query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\\0\\0\\1\\0\\1"
ports = {}
for kind in ("udp", "tcp"):
    for line in open(f"/proc/net/{kind}"):
        found = re.match(r" *\\d+: 0B00007F:([0-9A-F]{4})", line)
        if found:
            ports[kind] = int(found[1], 16)
print(sorted(ports))

def ask(what, to):
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.settimeout(patience)
    try:
        sock.sendto(query, to)
        print(what, sock.recv(4096)[3] & 15)
    except OSError as error:
        print(what, type(error).__name__)

ask("usual", ("127.0.0.11", 53))
ask("its port", ("127.0.0.11", ports["udp"]))
try:
    with socket.create_connection(("127.0.0.11", ports["tcp"]), patience) as sock:
        sock.sendall(struct.pack(">H", len(query)) + query)
        print("its TCP port", len(sock.recv(4096)))
except OSError as error:
    print("its TCP port", type(error).__name__)

# Behind the back of every output hook.
def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff

udp = struct.pack(">4H", 40000, ports["udp"], 8 + len(query), 0) + query
head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, bytes([127, 0, 0, 1]), bytes([127, 0, 0, 11]))
head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
packet = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
packet.bind(("lo", 0x800))
packet.send(bytes(12) + b"\\x08\\0" + head + udp)
print("done")
"""

# The way round every rule before address translation: a packet with the resolver's own address makes an entry in connection tracking, and
# a frame that looks like its answer is translated back to that address. What comes out on eth0 is the resolver's.
FORGED = """
import re, socket, struct, sys, time
gate, own, name = sys.argv[1:]

def port_of(kind):
    return [int(m[1], 16) for m in (re.match(r" *\\d+: 0B00007F:([0-9A-F]{4})", line) for line in open(f"/proc/net/{kind}")) if m][0]

def checksum(data):
    data += b"\\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff

def ip(source, to, payload, protocol):
    a, b = socket.inet_aton(source), socket.inet_aton(to)
    if protocol == 6:
        payload = payload[:16] + struct.pack(">H", checksum(a + b + struct.pack(">HH", 6, len(payload)) + payload)) + payload[18:]
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0, a, b)
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload

def udp(source, to, data):
    return struct.pack(">4H", source, to, 8 + len(data), 0) + data

def tcp(source, to, seq, ack, flags, data=b""):
    return struct.pack(">HHIIBBHHH", source, to, seq, ack, 0x50, flags, 60000, 0, 0) + data

query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\\0\\0\\1\\0\\1"
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # those that are sent, too
frames = {}
for link in ("lo", "eth0"):
    frames[link] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    frames[link].bind((link, 0x800))

def inject(packet, link="lo"):
    frames[link].send(bytes(12) + b"\\x08\\0" + packet)

def answered(protocol, ports, matches):
    "Whether a packet of the resolver's comes by, within a second."
    end = time.monotonic() + 1
    while (left := end - time.monotonic()) > 0:
        sniffer.settimeout(left)
        try:
            packet = sniffer.recv(4096)[14:].ljust(64, b"\\0")
        except TimeoutError:
            break
        if packet[9] == protocol and struct.unpack_from(">HH", packet, 20) == ports and matches(packet):
            return True
    return False

def to_query(packet):
    return packet[28:30] == query[:2] and packet[30] & 0x80

for link in ("lo", "eth0"):
    for there in (53, 9999):
        port = port_of("udp")
        raw.sendto(ip("127.0.0.11", gate, udp(port, there, b"x" * 12), 17), (gate, 0))
        inject(ip(gate, own, udp(there, port, query), 17), link)
        print("udp", link, there, answered(17, (port, there), to_query))
    port = port_of("tcp")
    raw.sendto(ip("127.0.0.11", gate, tcp(port, 0, 1, 0, 2), 6), (gate, 0))
    inject(ip(gate, own, tcp(0, port, 100, 0, 2), 6), link)
    print("tcp", link, answered(6, (port, 0), lambda packet: packet[33] == 0x12))
for to in (own, "127.0.0.11"):
    try:
        raw.sendto(ip(gate, to, udp(9999, port_of("udp"), query), 17), (to, 0))
    except PermissionError:
        pass
    print("raw", to, answered(17, (port_of("udp"), 9999), to_query))
"""


# A runtime that signals those who make gates: once docker has its answer and before there is a container, or when docker has moved the link there.
SIGNALLING = """#!/bin/sh
send() {{ pkill -{signal} -P "$(pgrep -d, -P "$(cat {pid})")"; }}
moved() {{ while ip -o link | grep -q ': ng'; do :; done; }}
for word; do
    [ "$word" != create ] || {when}
done
exec runc "$@"
"""
SIGNALS = {"stopped": ("STOP", "send"), "killed": ("KILL", "send"), "killed-later": ("KILL", "{ moved; send; } >/dev/null 2>&1 &")}


@contextlib.contextmanager
def host_with(lab, images, name, server, systemd=None, **more):
    """dockerd and the driver on a host with this name server in /etc/resolv.conf, and what systemd-resolved writes beside it."""
    driver = Driver(lab, images, name, **more)
    path = os.path.join(driver.docker.folder, "resolv.conf")
    with open(path, "w") as out:
        out.write(f"nameserver {server}\n")
    driver.site.run(["mount", "--bind", path, "/etc/resolv.conf"], check=True)
    if systemd:
        driver.site.run(["sh", "-c", f"mkdir -p /run/systemd/resolve && echo '{systemd}' >/run/systemd/resolve/resolv.conf"], check=True)
    lab.dns.listen(driver.site.host.net, server)
    with contextlib.closing(driver), driver.docker:
        driver.start()
        yield driver


@pytest.fixture(scope="module")
def loopback(whole_lab, images):
    """dockerd on a host whose own name server is on its loopback interface: there, docker's server asks from the host itself."""
    folder, runtimes = whole_lab.workspace(), {}
    pid = os.path.join(folder, "pid")
    for name, (number, when) in SIGNALS.items():
        script = os.path.join(folder, name)
        with open(script, "w") as out:
            out.write(SIGNALLING.format(signal=number, when=when, pid=pid))
        os.chmod(script, 0o755)
        runtimes[name] = {"path": script}
    with host_with(whole_lab, images, "docker-dns", "127.0.0.1", runtimes=runtimes) as driver:
        with open(pid, "w") as out:
            out.write(str(driver.process.pid))
        yield driver


def go_on(driver):
    """What was stopped."""
    driver.site.run(["sh", "-c", f"pkill -CONT -P $(pgrep -d, -P {driver.process.pid})"])


@contextlib.contextmanager
def gated(driver):
    made(driver.network("gated", "allow=ok.test"))
    try:
        yield
    finally:
        made(driver.docker.client("network", "rm", "gated"))
        driver.nothing_left()
        for path in glob.glob(os.path.join(driver.logs, "*")):
            os.unlink(path)


def refused(driver, *options):
    done = driver.run(["echo", "it runs"], "gated", options)
    assert done.returncode != 0 and "it runs" not in done.stdout, done
    assert driver.no_gate() and driver.records("gated") == []
    return done.stderr


@pytest.mark.parametrize("options", [[], ["--dns-search=bad.test"]], ids=str)
def test_name_server_on_the_hosts_loopback(loopback, options):
    """Docker's would ask it, from the host. What to do is said."""
    with gated(loopback):
        said = refused(loopback, *options)
        assert "127.0.0.1 (/etc/resolv.conf)" in said and "--dns" in said and "daemon.json" in said


def test_name_server_for_all_containers(lab, images):
    """Of dockerd's own configuration."""
    with host_with(lab, images, "docker-all", "127.0.0.1", config={"dns": ["192.0.2.1"]}) as driver, gated(driver):
        assert driver.run(["wget", "-q", "-O", "-", "http://ok.test/hello"], "gated").stdout == "hello from ok.test\n"


@pytest.mark.parametrize("systemd, says", [(f"nameserver {v4('dns')}", None), ("nameserver 127.0.0.1", "127.0.0.1 (/run/systemd/resolve/resolv.conf)"),
                                           (None, "127.0.0.53 (/etc/resolv.conf)")], ids=["real", "loopback", "missing"])
def test_systemd_resolved(lab, images, systemd, says):
    """Docker takes its other file, where the host's real servers are."""
    with host_with(lab, images, "docker-sd", "127.0.0.53", systemd) as driver, gated(driver):
        if says:
            assert says in refused(driver)
        else:
            assert driver.run(["wget", "-q", "-O", "-", "http://ok.test/hello"], "gated").stdout == "hello from ok.test\n"


@pytest.mark.parametrize("options", [[f"--dns={SUBNET}.1"], ["--dns=192.0.2.1", "--dns-search=bad.test"]], ids=str)
def test_dockers_name_server_is_out_of_the_way(lab, loopback, options):
    """Whichever way it is asked, no query leaves; names that are allowed resolve."""
    with gated(loopback):
        done = loopback.run(["sh", "-c", 'curl -sS https://ok.test/hello; python3 -c "$0" leak.bad.test 60'] + [QUERY], "gated", options, debian=True)
        assert done.stdout.splitlines() == ["hello from ok.test", "['tcp', 'udp']", "usual 3", "its port PermissionError",
                                            "its TCP port ConnectionRefusedError", "done"], done
        assert {query.name for query in lab.dns.queries} == {"ok.test"}
        assert any(record.get("host", record.get("raw_name")) == "leak.bad.test" for record in loopback.records("gated", "decision"))


def test_forged_answers(loopback):
    """A query that comes to docker's server as the answer to a packet of its own."""
    with gated(loopback):
        done = loopback.run(["python3", "-c", FORGED, f"{SUBNET}.1", f"{SUBNET}.2", "leak.bad.test"], "gated", ["--dns=192.0.2.1"], debian=True)
        assert done.returncode == 0 and "True" not in done.stdout and done.stdout.count("False") == 8, done
        assert "leak.bad.test" not in {record.get("host", record.get("raw_name")) for record in loopback.records("gated", "decision")}


@pytest.mark.parametrize("options, code", [([], 125), ([f"--dns={SUBNET}.1"], 0), (["--dns=192.0.2.1"], 0), (["--dns=127.0.0.1"], 0)], ids=str)
def test_first_query(lab, loopback, options, code):
    """A program that asks before docker's name server is out of its reach asks the gate, if anybody. Who would see to that is stopped here."""
    with gated(loopback):
        try:
            done = loopback.run(["python3", "-c", QUERY, "leak.bad.test", "1"], "gated", ["--runtime=stopped", *options], debian=True)
        finally:
            go_on(loopback)
        assert done.returncode == code, done
        assert lab.dns.queries == []


@pytest.mark.parametrize("runtime", ["killed", "killed-later"])
@pytest.mark.parametrize("network", [None, "bridge", "a-web"])
def test_who_makes_the_gate_is_killed(lab, loopback, runtime, network):
    """No container without a gate, with another network or not. With "killed-later", it may be complete already."""
    with gated(loopback), another_network(loopback, network or "bridge"):
        options = [f"--runtime={runtime}", "--dns=192.0.2.1"]
        ident = made_of_two(loopback, network, *options)
        loopback.docker.client("start", ident)
        try:
            wait_for(lambda: not running(loopback, ident) or loopback.records("gated", "decision"), "the end of the container, or a decision of its gate's")
            assert lab.web.requests == []
        finally:
            loopback.docker.client("rm", "--force", ident)


@pytest.mark.parametrize("network", ["bridge", "a-web"])
def test_who_makes_the_gate_is_late(lab, loopback, network):
    """A container whose program has begun without one is over as soon as somebody can see to it."""
    with gated(loopback), another_network(loopback, network):
        ident = made_of_two(loopback, network, "--runtime=stopped", "--dns=192.0.2.1")
        try:
            made(loopback.docker.client("start", ident))
            go_on(loopback)
            wait_for(lambda: not running(loopback, ident), "the end of the container")
        finally:
            go_on(loopback)
            loopback.docker.client("rm", "--force", ident)


def test_dockers_name_server_would_ask(lab, loopback):
    """Without a gate it does, so "nothing was seen" means something above."""
    client = loopback.docker.client
    made(client("network", "create", "--internal", "plain"))
    try:
        done = loopback.run(["python3", "-c", QUERY, "leak.bad.test", "60"], "plain", debian=True)
        assert "usual 3" in done.stdout, done
        assert {query.name for query in lab.dns.queries} == {"leak.bad.test"}
        assert len(lab.dns.queries) >= 3
    finally:
        made(client("network", "rm", "plain"))


def test_dockerd_started_anew(lab, images):
    """With the driver: a network's options outlive both."""
    driver = Driver(lab, images, "docker-again")
    with contextlib.closing(driver), driver.docker:
        driver.start()
        made(driver.network("job42", "allow=ok.test"))
        fetch = ["wget", "-q", "-O", "-", "http://ok.test/hello"]
        assert driver.run(fetch, "job42").stdout == "hello from ok.test\n"
        driver.docker.end()
        driver.end()
        driver.start()
        driver.docker.begin()
        assert driver.run(fetch, "job42").stdout == "hello from ok.test\n"
        made(driver.docker.client("network", "rm", "job42"))
        assert os.listdir(os.path.join(driver.docker.folder, "state")) == []

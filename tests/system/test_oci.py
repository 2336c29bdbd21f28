# SPDX-License-Identifier: Apache-2.0
"""Containers that get a gate while they are made: by docker's runtime, podman's hooks, and bundles of runc and crun."""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import textwrap

import pytest

from lab import v4, v6, wait_for
from lab.attached import Gate, vsock_works
from lab.lab import TOP
from lab.late import Late
from lab.ns import NetNS
from lab.runtimes import GATED, Policies, compose
from lab.runtimes.gated import HOOKS
from lab.runtimes.runtime import write
from lab.user import User

FILES = {"permit.yaml": 'version: 1\nallow: [ok.test, "*.wild.test:443"]\n',
         "stalled.yaml": "version: 1\nallow: ['raw.test:4999']\n",
         "default.yaml": "version: 1\nallow: [ok.test:80]\n",
         "named.yaml": "version: 1\nallow: [other.test]\n"}
KINDS = ["docker", "podman", "rootless", "runc", "crun"]
ENDED = ("sandbox_gone", "detached")  # whether the kernel has taken its network away or the runtime deletes it first
FETCH = ["wget", "-q", "-O", "-", "http://ok.test/hello"]
HELLO = "hello from ok.test\n"

# Calls that no container behind a gate needs; each prints the name of the error that it ends with.
CALLS = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
def outcome(name, *args):
    result = libc.syscall(*args)
    print(name, "made" if result >= 0 else errno.errorcode[ctypes.get_errno()])
outcome("vsock", 41, 40, 1, 0)
outcome("io_uring", 425, 8, ctypes.create_string_buffer(120))
outcome("add_key", 248, b"user", b"name", b"x", 1, -3)
outcome("keyctl", 250, 0, -3, 0)
outcome("unix", 41, 1, 1, 0)
"""

# The same by i386's own gate into the kernel, and by the call that keeps its arguments in memory.
I386 = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
	unsigned *args = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long result;
	args[0] = argc > 1 ? atoi(argv[1]) : 1;
	args[1] = 1;
	args[2] = 0;
	__asm__ volatile("int $0x80" : "=a"(result) : "0"(102L), "b"(1L), "c"(args) : "memory", "r8", "r9", "r10", "r11");
	printf("%d\n", (int)result);
	return 0;
}
"""


def policies(lab, kind):
    """Those of an ordinary user lie in a directory with that user's name."""
    prefix = f"{lab.user.name}/" if kind == "rootless" else ""
    return Policies(lab, {prefix + name: text for name, text in FILES.items()})


def directory(lab, gated):
    return os.path.join(gated.policies.path, lab.user.name) if gated.name == "rootless" else gated.policies.path


@pytest.fixture(scope="module")
def pool(whole_lab, images):
    """pool(kind): the runtime of this kind with its gates, started when first asked for."""
    started = {}
    with contextlib.ExitStack() as stack:
        def get(kind):
            if kind not in started:
                started[kind] = stack.enter_context(GATED[kind](whole_lab, images, policies(whole_lab, kind)))
            return started[kind]
        yield get


def clean(gated):
    """Whatever a test left, failed or not, goes; and of netgate nothing may stay."""
    for ident in gated.runtime.containers():
        gated.runtime.remove(type("", (), {"id": ident}))
    gated.nothing_left()


@pytest.fixture(params=KINDS)
def gated(request, lab, pool):
    yield pool(request.param)
    clean(pool(request.param))


@pytest.fixture
def docker(lab, pool):
    yield pool("docker")
    clean(pool("docker"))


@pytest.fixture
def podman(lab, pool):
    yield pool("podman")
    clean(pool("podman"))


@pytest.fixture
def rootless(lab, pool):
    yield pool("rootless")
    clean(pool("rootless"))


def refused(gated, says, **kwargs):
    """The container is not started, whoever asked reads why, and nothing is left."""
    done = gated.run(["echo", "it runs"], **kwargs)
    assert done.returncode != 0 and "it runs" not in done.stdout, done
    assert says in (done.stdout + done.stderr).replace('\\"', '"'), done
    gated.nothing_left()
    return done


# What it is for

def test_gate(lab, gated):
    """What is permitted is reached by name; the rest is denied; records name the container and its processes; the end is seen."""
    with gated.start_client(ask={"allow": "ok.test"}) as box:
        done = box.exec(["curl", "-sS", "https://ok.test/hello"])
        assert (done.returncode, done.stdout) == (0, HELLO), done
        whose = lambda: [record.get("exe") for record in gated.records(box, "process") if "conn" in record]
        for denied in range(1, 20):  # a busy machine may not look before a connection is over
            done = box.exec(["curl", "-sS", "--resolve", f"bad.test:443:{v4('web')}", "https://bad.test/hello"])
            assert done.returncode == 35 and "access denied" in done.stdout + done.stderr, done
            wait_for(lambda: len(whose()) > denied, "the records of processes")
            if "/usr/bin/curl" in whose():
                break
        assert "/usr/bin/curl" in whose()
        assert box.exec(["curl", "-sS", "https://bad.test/hello"]).returncode == 6
        assert lab.web.hellos == ["ok.test"]
        start = gated.records(box, "start")[0]
        # Nothing is said of the runtime's own process, which has no filter while the container is made. A bundle with the hook alone has none after.
        perhaps = gated.name == "rootless" and vsock_works()
        assert any("it is not known here" in note for note in start.get("notes", [])) == perhaps, start
        none = gated.name in ("runc", "crun") and vsock_works()
        assert any("no seccomp filter keeps" in note for note in start.get("notes", [])) == none, start
        assert box.id[:50] in start["attached"] and start["netns"] == os.stat(box.netns).st_ino, start
    wait_for(lambda: gated.records(box, "end"), "the end on record")
    end = gated.records(box, "end")[0]
    assert end["ended"] in ENDED and (end["allowed"], end["denied"]) == (1, denied), end
    gated.nothing_left()


def test_name_server(gated):
    """The gate's is there without anybody's doing, and can't be changed from inside."""
    done = gated.run(["sh", "-c", "cat /etc/resolv.conf; echo nameserver 192.0.2.1 >/etc/resolv.conf; cat /etc/resolv.conf"],
                     ask={"allow": "ok.test"})
    said = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert said == ["nameserver 10.200.0.1"] * 2, done


# What is asked for

def test_default_policy(gated):
    """Who asks for nothing gets default.yaml; podman's opt-in hook is not even called then, see below."""
    ask = {"policy": "default"} if gated.runtime.name == "gpodman" else {}
    assert gated.run(FETCH, ask=ask).stdout == HELLO
    done = gated.run(["wget", "-q", "-O", "-", "http://other.test/"], ask=ask)
    assert done.returncode != 0, done


def test_named_policy(gated):
    done = gated.run(["sh", "-c", "wget -q -O - http://other.test/; " + " ".join(FETCH)], ask={"policy": "named"})
    assert done.stdout == "hello from other.test\n" and done.returncode != 0, done


def test_list_of_entries(gated):
    for separator in (" ", "\t") if gated.runtime.name == "gpodman" else (" ", "\t", ",", " , "):  # podman makes two annotations of it
        done = gated.run(FETCH, ask={"allow": separator.join(["ok.test:80", "x.wild.test:443"]) + separator})
        assert done.stdout == HELLO, done


@pytest.mark.parametrize("ask, says", [
    ({"allow": "evil.test"}, '"evil.test" is not permitted'),
    ({"allow": "ok.test *!"}, "is not permitted"),
    ({"allow": "ok.test --allow=evil.test"}, "--allow=evil.test"),
    ({"allow": "0.0.0.0/0:443"}, "is not permitted"),
    ({"allow": " "}, "it has no entry"),
    ({"allow": "", "policy": "named"}, "is there and empty"),
    ({"policy": ""}, "is there and empty"),
    ({"job": ""}, "is there and empty"),
    ({"allow": "a " * 1000}, "too long"),
    ({"allow": "a" * 5000}, "more than 4095 bytes"),
    ({"policy": "missing"}, "there is no policy missing"),
    ({"policy": "../../etc/passwd"}, "can't be the name of a policy"),
    ({"policy": "--audit"}, "there is no policy --audit"),
    ({"policy": "named", "allow": "ok.test"}, '"ok.test" is not permitted'),
    ({"job": "nobody"}, "no container may join the job nobody"),
    ({"job": "a", "policy": "named"}, "a job has its policy"),
    ({"job": "../x"}, "can't be the name of a job"),
], ids=lambda value: None if isinstance(value, str) else " ".join(f"{key}={text[:24]}" for key, text in value.items()))
@pytest.mark.parametrize("kind", ["docker", "runc", "rootless"])
def test_beyond_what_is_permitted(lab, pool, kind, ask, says):
    refused(pool(kind), says, ask=ask)
    assert not lab.web.hellos


@pytest.mark.parametrize("kind", ["runc", "rootless"])
def test_mistyped_annotation(pool, kind):
    refused(pool(kind), "dev.netgate.alow is unknown; there are dev.netgate.allow", ask={"alow": "ok.test"})


def test_job(lab, gated):
    """Two containers under the policy and in the log of one netgate, which the administrator lets them join."""
    job = f"job{os.getpid()}"
    permission = os.path.relpath(os.path.join(directory(lab, gated), f"{job}.job"), gated.policies.path)
    gated.policies.write(permission, "")
    with joined(lab, gated, job) as gate:
        for _ in range(2):
            assert gated.run(["wget", "-q", "-O", "-", "http://other.test/"], ask={"job": job}).stdout == "hello from other.test\n"
        assert gated.run(FETCH, ask={"job": job}).returncode != 0
        wait_for(lambda: len([r for r in gate.records() if r["type"] == "end"]) == 3, "the ends of three sandboxes")
        wait_for(lambda: all("sandbox" not in entry for entry in gated.gates()), "the ends of three sandboxes")
        gated.policies.remove(permission)
        refused_join = gated.run(FETCH, ask={"job": job})
        assert refused_join.returncode != 0 and "no container may join" in refused_join.stdout + refused_join.stderr, refused_join


@contextlib.contextmanager
def joined(lab, gated, job):
    """A netgate that waits on the runtime's host."""
    with Gate(lab, ["--keep", "--allow", "other.test"], job=job, host=gated.site.host, mounts=gated.site.mounts) as gate:
        yield gate
        gate.running.process.terminate()
        assert gate.finish().rc == 0


# What is kept out

def test_root_inside(lab, gated):
    """As root: no address of the host's, of another container's, of the gate's but its name server, and nothing by another protocol."""
    host = next(address for address in gated.site.host.net.run("ip", "-o", "-4", "addr", "show", "eth0").split() if "/" in address)
    script = lab.script("""
        host, web4, web6 = sys.argv[1:]
        def how(family, kind, address, port, data=b"GET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n"):
            try:
                with socket.socket(family, kind) as sock:
                    sock.settimeout(20)
                    sock.connect((address, port))
                    sock.send(data)
                    got = sock.recv(100)
                    return got.decode().split("\\r\\n")[0] or "eof"
            except TimeoutError:
                return "timeout"
            except OSError as error:
                return type(error).__name__ if error.errno is None else __import__("errno").errorcode[error.errno]
        inet, inet6, stream, dgram = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM, socket.SOCK_DGRAM
        show(host=how(inet, stream, host, 8000), host_udp=how(inet, dgram, host, 123), gate=how(inet, stream, "10.200.0.1", 22),
             bridge=how(inet, stream, "172.17.0.1", 80), metadata=how(inet, stream, "169.254.169.254", 80),
             web=how(inet, stream, web4, 9), web6=how(inet6, stream, web6, 9), udp=how(inet, dgram, web4, 5000))
        """, host.split("/")[0], v4("web"), v6("web"))
    with gated.site.host.net.listening(8000) as came, gated.start_client(ask={"allow": "ok.test"}) as other, \
         gated.start_client(ask={"allow": "ok.test"}) as box, lab.capture(gated.site.host) as capture:
        assert other.alive()
        done = box.exec(["env", "PYTHONPATH=/work", *script])
        assert done.returncode == 0, done
        shown = json.loads(done.stdout)
        denied = dict.fromkeys(["metadata", "bridge"], "HTTP/1.1 403 Forbidden")
        assert {key: value for key, value in shown.items() if value not in ("ECONNRESET", "ECONNREFUSED")} == denied, shown
        assert not came(), "something reached the host"
        wait_for(lambda: gated.records(box, "drop"), "the dropped packets on record")
    assert not lab.metadata.requests and not lab.raw.seen
    assert not [packet for packet in capture.packets if packet.proto != "tcp" and packet.dport != 53], capture.destinations()


def test_killed_netgate(lab, gated):
    """The container goes on with lo, and with no way out."""
    with gated.start(ask={"allow": "ok.test"}) as box:
        assert box.exec(FETCH).stdout == HELLO
        for pid in gated.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        wait_for(lambda: "eth0" not in box.exec(["cat", "/proc/net/dev"]).stdout, "a container without eth0")
        done = box.exec(["wget", "-q", "-O", "-", f"http://{v4('web')}/"])
        assert done.returncode != 0 and "unreachable" in done.stdout + done.stderr, done
        assert box.alive() and not gated.processes()
        gated.site.run(["sh", "-c", "rm -f /run/netgate/*.sock /run/netgate/*.lock"])


def test_killed_container(gated):
    """Killed, not stopped: of its gate nothing is left."""
    with gated.start(ask={"allow": "ok.test"}) as box:
        assert gated.processes()
        os.kill(box.pid, 9)
        gated.nothing_left()
    assert gated.records(box)[-1]["ended"] in ENDED


# Takes what its buffer holds of each connection, and no more.
STALLED = """
import socket
server = socket.create_server(("%s", 4999))
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
kept = []
print("ready", flush=True)
while True:
    kept.append(server.accept())
""" % v4("raw")


@contextlib.contextmanager
def stalled(lab):
    with subprocess.Popen(lab.inet.command("python3", "-c", STALLED), stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout.readline() == b"ready\n"
            yield ["sh", "-c", "(cat /dev/zero | nc raw.test 4999) & sleep 1000"], {"policy": "stalled"}
        finally:
            server.kill()


def wait_until_full(gated, box):
    """Until what the container sends waits in its own network namespace."""
    seen = [0]

    def full():
        done = gated.site.run(["nsenter", f"--net={box.netns}", "cat", "/proc/net/tcp", "/proc/net/tcp6"])
        seen.append(sum(int(line.split()[4].split(":")[0], 16) for line in done.stdout.splitlines() if ":1387 " in line))
        return seen[-1] > 0 and seen[-1] == seen[-2]

    wait_for(full, "data that is not taken")


def test_container_with_unsent_data(lab, gated):
    """Its sockets outlive it by minutes, and with them its network namespace. The gate doesn't."""
    with stalled(lab) as (argv, ask):
        with gated.start(argv, ask=ask) as box:
            wait_until_full(gated, box)
        gated.nothing_left()
    assert gated.records(box)[-1]["ended"] in ENDED


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_container_with_unsent_data_started_anew(lab, pool, kind):
    gated = pool(kind)
    with stalled(lab) as (argv, ask), gated.start(argv, ask=ask) as box:
        wait_until_full(gated, box)
        done = gated.runtime.client("restart", "--time=0", box.id)
        assert done.returncode == 0, done
        wait_for(lambda: len(gated.records(box, "start")) == 2, "the gate of its next life")


def test_interface_that_comes_later(gated):
    """From outside: nothing gets over it, and the gate ends."""
    with gated.start(ask={"allow": "ok.test"}) as box:
        late = Late(gated.site.host, box.netns)
        with late.added():
            wait_for(lambda: gated.records(box, "end"), "the end of the gate")
            assert late.reached() == set()
        assert gated.records(box, "end")[0]["ended"] == "another_interface"
        assert [record["name"] for record in gated.records(box, "interface")] == ["later"]


def test_hook_that_fails(lab, gated):
    """Whatever goes wrong, the container doesn't start."""
    def broken(break_it, mend, says):
        break_it()
        try:
            refused(gated, says, ask={"allow": "ok.test"})
        finally:
            mend()

    assert gated.run(FETCH, ask={"allow": "ok.test"}).stdout == HELLO
    top = directory(lab, gated)
    netgate = os.path.join(lab.programs(), "netgate")
    broken(lambda: os.chmod(top, 0o777), lambda: os.chmod(top, 0o755), "can be written by others")
    broken(lambda: os.rename(top, top + "x"), lambda: os.rename(top + "x", top), f"there is no directory {top}")
    broken(lambda: os.rename(netgate, netgate + "x"), lambda: os.rename(netgate + "x", netgate), "netgate is missing")
    broken(lambda: os.mkdir(gated.log + ".d") or os.rename(gated.log, gated.log + ".d/log") or os.mkdir(gated.log),
           lambda: os.rmdir(gated.log) or os.rename(gated.log + ".d/log", gated.log) or os.rmdir(gated.log + ".d"), "cannot open the log")
    assert gated.run(FETCH, ask={"allow": "ok.test"}).stdout == HELLO


# docker

@pytest.mark.parametrize("options, network, says", [
    (["--privileged"], "none", "CAP_NET_ADMIN or CAP_SYS_ADMIN"),
    (["--cap-add=NET_ADMIN"], "none", "in a user namespace of its own; only the administrator may accept this"),
    (["--cap-add=SYS_ADMIN"], "none", "CAP_NET_ADMIN or CAP_SYS_ADMIN"),
    (["--cap-add=ALL", "--security-opt=no-new-privileges"], "none", "CAP_NET_ADMIN or CAP_SYS_ADMIN"),
    ([], "host", "is in the host's own network"),
    ([], "bridge", "eth0"),
])
def test_docker_refuses(docker, options, network, says):
    done = refused(docker, says, options=options, network=network)
    assert re.search(r"container [0-9a-f]{64}\b", done.stdout + done.stderr), "which one"


def test_docker_compose(docker):
    """The example of docs/containers.md, under the policy that stands there."""
    with open(os.path.join(TOP, "docs/containers.md"), encoding="utf-8") as document:
        (permit,) = re.findall(r"permit.yaml <<'END'\n(.*?)^    END$", document.read(), re.DOTALL | re.MULTILINE)
    docker.policies.write("permit.yaml", textwrap.dedent(permit))
    try:
        names = "api.example.com pypi.org x.pythonhosted.org example.com"
        done = compose.run(docker.runtime, compose.example("containers.md"), "job", f"for name in {names}; do nslookup $name; done; ip -o link show eth0")
    finally:
        docker.policies.write("permit.yaml", FILES["permit.yaml"])
    assert done.returncode == 0 and "02:00:00:00:00:02" in done.stdout, done
    verdicts = {record["host"]: record["verdict"] for record in docker.records(kind="decision") if record.get("host") in names.split()}
    assert verdicts == dict.fromkeys(names.split()[:3], "allow") | {"example.com": "deny"}


def test_docker_accepted_risk(lab, images):
    """The administrator may let such a container start; then it is on record."""
    with GATED["docker"](lab, images, policies(lab, "docker"), words=["--accept-risk", "net-admin"]) as docker:
        with docker.start(options=["--cap-add=NET_ADMIN"]) as box:
            assert docker.records(box, "start")[0]["accepted"] == ["net-admin"]
            assert box.exec(FETCH).stdout == HELLO


def test_docker_network_of_a_gated_container(docker):
    """Two containers can't have one gate."""
    with docker.start() as box:
        done = docker.run(["echo", "it runs"], network=f"container:{box.id}")
        assert done.returncode != 0 and "it runs" not in done.stdout and "eth0" in done.stderr, done


def test_docker_image_chooses_no_more_than_is_permitted(lab, images, docker):
    """What the image's own environment says is a choice like any other; who starts the container has the last word."""
    def build(name, *changes):
        with open(images.busybox().tar, "rb") as tar:
            docker.runtime.client("import", *(f"--change=ENV {change}" for change in changes), "-", name, stdin=tar, check=True)
        return lambda *options: docker.runtime.client("run", "--rm", "--network=none", "--runtime=netgate", *options, name, *FETCH)

    evil = build("evil", "NETGATE_ALLOW=evil.test")
    done = evil()
    assert done.returncode == 125 and '"evil.test" is not permitted' in done.stderr, done
    assert evil("--env=NETGATE_ALLOW=ok.test").stdout == HELLO
    assert build("named", "NETGATE_POLICY=named")().returncode == 1
    named = build("named", "NETGATE_POLICY=named")
    assert named("--env=NETGATE_POLICY").stdout == named("--env=NETGATE_POLICY=default").stdout == HELLO
    assert "is there and empty" in named("--env=NETGATE_POLICY=").stderr


def test_docker_policy_that_the_administrator_chose(docker):
    """A runtime of its own for a policy: what the container or its image asks for may narrow it, and not be another one."""
    run = lambda *options, argv=("wget", "-q", "-O", "-", "http://other.test/hello"): docker.runtime.run(
        [*argv], None, "none", ["--runtime=netgate-named", *options])
    assert run().stdout == run("--env=NETGATE_ALLOW=other.test:80").stdout == run("--env=NETGATE_POLICY=named").stdout == "hello from other.test\n"
    assert run(argv=FETCH).returncode == 1
    for choice in ("POLICY=default", "JOB=a"):
        done = run(f"--env=NETGATE_{choice}")
        assert done.returncode == 125 and "the administrator has chosen the policy named" in done.stderr, done
    done = run("--env=NETGATE_ALLOW=ok.test")
    assert done.returncode == 125 and 'named.yaml: "ok.test" is not permitted' in done.stderr.replace('\\"', '"'), done


def test_docker_exec(docker):
    """A process that is started later gets no more than the container has."""
    with docker.start(ask={"allow": "ok.test"}) as box:
        execute = lambda *words: docker.runtime.client("exec", *words)
        assert execute(box.id, *FETCH).stdout == HELLO
        assert execute("--user=65534", box.id, *FETCH).stdout == HELLO
        done = execute("--privileged", box.id, "ip", "link", "del", "eth0")
        assert done.returncode != 0 and "CAP_NET_ADMIN or CAP_SYS_ADMIN" in done.stdout + done.stderr, done
        assert execute(box.id, "ip", "link", "del", "eth0").returncode != 0
        assert execute(box.id, *FETCH).stdout == HELLO


@pytest.mark.parametrize("options", [["--user=65534:65534"], ["--read-only", "--tmpfs=/tmp", "--cap-drop=ALL"], ["--hostname=x", "--dns=192.0.2.1"],
                                     ["--security-opt=no-new-privileges", "--pids-limit=20"]], ids=" ".join)
def test_docker_options(docker, options):
    """What else a container is started with is none of the gate's business; another name server has no effect."""
    done = docker.run(FETCH, ask={"allow": "ok.test"}, options=options)
    assert done.stdout == HELLO, done


@pytest.mark.parametrize("kind, options", [("docker", []), ("docker", ["--security-opt=seccomp=unconfined"]), ("podman", []),
                                           ("podman", ["--security-opt=seccomp=unconfined"]), ("rootless", [])],
                         ids=lambda value: value if isinstance(value, str) else " ".join(value))
def test_calls_that_lead_past_the_gate(lab, pool, tmp_path, kind, options):
    """Refused whatever the container's own profile says, and also to i386's gate into the kernel; the rest works."""
    gated = pool(kind)
    with gated.start_client(*options, ask={"allow": "ok.test"}) as box:
        done = box.exec(["python3", "-c", CALLS])
        outcomes = dict(line.split() for line in done.stdout.splitlines())
        assert outcomes.pop("unix") == "made" and len(outcomes) == 4 and set(outcomes.values()) <= {"EPERM", "ENOSYS"}, done
        source, program = str(tmp_path / "i386.c"), "/tmp/i386"
        with open(source, "w") as out:
            out.write(I386)
        workspace = lab.workspace()
        done = subprocess.run([os.environ.get("CC", "cc"), "-O1", "-static", "-o", os.path.join(workspace, "i386"), source],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        with open(os.path.join(workspace, "i386"), "rb") as binary:
            gated.site.run([*cat(box), "sh", "-c", f"cat >{program} && chmod +x {program}"], stdin=binary, check=True)
        here = subprocess.run([os.path.join(workspace, "i386"), "1"], capture_output=True, text=True, timeout=60)
        there = box.exec([program, "40"])
        if here.returncode == 0 and int(here.stdout) > 0:  # this kernel has that gate
            assert there.returncode != 0 or int(there.stdout) < 0, there
    clean(gated)


def cat(box):
    """The words before a command that reads stdin in a box, as root of its mount namespace."""
    return ["nsenter", f"--target={box.pid}", "--mount", "--"]


# podman

def test_podman_opt_in(lab, podman):
    """Without an annotation it is a container like any other; with a network of its own none gets a gate."""
    done = podman.run(["cat", "/proc/net/dev"])
    assert done.returncode == 0 and "eth0" not in done.stdout, done
    refused(podman, "eth0; the gate must be its only network", ask={"policy": "default"}, network="podman")


def test_podman_always(lab, images):
    """The fail-closed variant: no container without a gate, whatever it asks for."""
    with GATED["podman"](lab, images, policies(lab, "podman"), variant="always") as podman:
        assert podman.run(FETCH).stdout == HELLO
        refused(podman, "eth0", network="podman")
        refused(podman, "in the host's own network", network="host")
        refused(podman, "CAP_NET_ADMIN", options=["--privileged"])
        podman.policies.remove("default.yaml")
        assert podman.run(FETCH).returncode == 1


@pytest.mark.parametrize("kind", ["podman", "rootless"])
def test_podman_always_without_its_program(lab, images, kind):
    """podman passes over a hook whose program is missing: who asks for no network has none then, neither the gate's nor another."""
    with GATED[kind](lab, images, policies(lab, kind), variant="always") as podman:
        def default_network(command):
            runtime = podman.runtime
            return runtime.client("run", "--rm", *runtime.defaults(), runtime.add(images.busybox()), *command)
        assert default_network(FETCH).stdout == HELLO
        os.rename(podman.program, podman.program + "x")
        try:
            done = default_network(["sh", "-c", f"cat /proc/net/dev; wget -q -O - http://{v4('web')}/"])
        finally:
            os.rename(podman.program + "x", podman.program)
        assert re.findall(r"^ *(\w+):", done.stdout, re.MULTILINE) == ["lo"] and done.returncode == 1, done


def test_podman_crun(lab, images):
    """The same with podman's other runtime. It keeps what a hook says to itself, unless an annotation of its own says where to."""
    with GATED["podman"](lab, images, policies(lab, "podman"), runtime="crun") as podman:
        assert podman.run(FETCH, ask={"allow": "ok.test"}).stdout == HELLO
        done = podman.run(["python3", "-c", CALLS], ask={"allow": "ok.test"}, image=images.debian())
        assert "unix made" in done.stdout and done.stdout.count(" made") == 1, done
        # An image's annotation by which crun takes another filter, in place of the whole profile: one that permits all.
        recipe = write(os.path.join(podman.runtime.folder, "Containerfile"), f"FROM {podman.runtime.add(images.debian())}\n")
        podman.runtime.client("build", "--isolation=chroot", "--format=oci", "--annotation=dev.netgate.allow=ok.test",
                              "--annotation=run.oci.seccomp_bpf_data=BgAAAAAA/38=", "--tag=unfiltered", f"--file={recipe}", lab.workspace(), check=True)
        done = podman.runtime.client("run", "--rm", "--network=none", *podman.runtime.defaults(), "unfiltered", "python3", "-c", CALLS)
        assert "unix made" in done.stdout and done.stdout.count(" made") == 1, done
        said = os.path.join(podman.runtime.folder, "said")
        options = [f"--annotation=run.oci.hooks.{stream}={said}" for stream in ("stdout", "stderr")]
        refused(podman, "error executing hook", ask={"allow": "evil.test"}, options=options)
        assert not os.path.exists(said)  # an image may have such an annotation, too
        with open(os.path.join(HOOKS, "opt-in", "netgate-precreate.json")) as text:
            podman.install("netgate-precreate.json", text.read().replace('"oci-precreate"', '"oci-precreate", "--permit-hook-output"'))
        refused(podman, "error executing hook", ask={"allow": "evil.test"}, options=options)
        with open(said) as text:
            assert '"evil.test" is not permitted' in text.read()


@pytest.mark.parametrize("choose", [None, "default"])
def test_podman_image_chooses_no_more_than_is_permitted(lab, images, choose):
    """Annotations of an image become the container's: a choice like any other, which whoever starts it and the administrator can take away."""
    words = [f"--choose={choose}"] if choose else []
    with GATED["podman"](lab, images, policies(lab, "podman"), words=words) as podman:
        recipe = write(os.path.join(podman.runtime.folder, "Containerfile"), f"FROM {podman.runtime.add(images.busybox())}\n")
        podman.runtime.client("build", "--isolation=chroot", "--format=oci", "--annotation=dev.netgate.policy=named", "--tag=chooser",
                              f"--file={recipe}", lab.workspace(), check=True)
        run = lambda *options: podman.runtime.client("run", "--rm", "--network=none", *podman.runtime.defaults(), *options, "chooser",
                                                     "wget", "-q", "-O", "-", "http://other.test/hello")
        if choose:
            done = run()
            assert done.returncode != 0 and "the administrator has chosen the policy default" in done.stderr, done
        else:
            assert run().stdout == "hello from other.test\n"
            assert run("--annotation=dev.netgate.policy=default").returncode == 1


# podman of an ordinary user

def request(gated, message, user):
    """What the service answers to a user's bytes. It may do so before it has them."""
    script = ("import contextlib, socket, sys\n"
              "with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:\n"
              "    sock.settimeout(100)\n"
              "    sock.connect('/run/netgate-service/socket')\n"
              "    with contextlib.suppress(BrokenPipeError):\n"
              "        sock.send(sys.stdin.buffer.read())\n"
              "    with contextlib.suppress(ConnectionResetError):\n"
              "        sys.stdout.buffer.write(sock.recv(4096))\n"
              "        sys.exit()\n"
              "    sys.stdout.buffer.write(sock.recv(4096))\n")
    done = gated.site.run(["/usr/bin/python3", "-c", script], user=user, input=message, text=False, errors=None, check=True)
    magic, was_refused = struct.unpack("II", done.stdout[:8])
    assert magic == MAGIC and was_refused, done
    return done.stdout[8:].split(b"\0")[0].decode()


MAGIC = 0x6E670202


def message(pid, ident=b"box", policy=b"", job=b"", allow=b"", magic=MAGIC, ended=0):
    return struct.pack("Ii72s72s72s4096s?B2x", magic, pid, ident, policy, job, allow, True, ended)


def test_service_down(rootless):
    """No container starts, and podman says why; when the service is there again, it does."""
    rootless.stop_service()
    try:
        # As it is after a boot: no file of the service's is there, either.
        for words in ("true", "rm /run/netgate-service/resolv.conf"):
            rootless.site.run(["sh", "-c", words], check=True)
            done = rootless.run(["echo", "it runs"], ask={"allow": "ok.test"})
            assert done.returncode != 0 and "it runs" not in done.stdout, done
            assert "needs root's service, sandbox-net oci-service" in done.stderr, done
    finally:
        rootless.start_service()
    assert rootless.run(FETCH, ask={"allow": "ok.test"}).stdout == HELLO


def test_service_needs_root(lab, rootless):
    done = rootless.site.run([rootless.program, "oci-service"], user=lab.user)
    assert done.returncode == 1 and "is root's" in done.stderr, done
    done = rootless.site.run([rootless.program, "oci-service"])
    assert done.returncode == 1 and "does the service run already?" in done.stderr, done


def test_service_permits_by_user(lab, rootless):
    """Only to users who have a directory, and to each what is in it."""
    other = User.__new__(User)
    other.name, other.uid, other.gid, other.home = "nobody", 65534, 65534, "/"
    with rootless.start(ask={"allow": "ok.test"}) as box:
        assert "permits nothing to user nobody" in request(rootless, message(box.pid), other)
    refused(rootless, '"other.test" is not permitted', ask={"allow": "other.test"})


def test_service_gates_only_the_users_own(lab, rootless, podman):
    """The kernel says whose a network namespace is: not root's, nor the host's, nor another user's."""
    with podman.start() as box:
        assert "does not belong to user" in request(rootless, message(box.pid), lab.user)
        assert "eth0" not in box.exec(["cat", "/proc/net/dev"]).stdout
    net = NetNS()
    with subprocess.Popen(net.command("sleep", "1000")) as sleeper:
        try:
            wait_for(lambda: os.readlink(f"/proc/{sleeper.pid}/ns/net") == os.readlink(net.path), "a process in there")
            assert "does not belong to user" in request(rootless, message(sleeper.pid), lab.user)
        finally:
            sleeper.kill()
            sleeper.wait()
            net.close()


@pytest.mark.parametrize("bytes_, says", [
    (b"x", "malformed"),
    (message(1000)[:-1], "malformed"),
    (message(1000) + b"x", "malformed"),
    (message(1000, magic=1), "malformed"), (message(1000, ended=2), "malformed"),
    (message(0), "malformed"), (message(1), "malformed"), (message(-1), "malformed"), (message(-(1 << 31)), "malformed"),
    (message(1000, ident=b""), "malformed"),
    (message(1000, ident=b"../../x"), "malformed"),
    (message(1000, ident=b"a\n\x1b[31m"), "malformed"),
    (message(1000, ident=b"x" * 72), "malformed"),
    (message((1 << 31) - 1), "there is no process"),
    (message(1000, policy=b"../named"), "can't be the name of a policy"),
    (message(1000, policy=b"x" * 72), "a text without an end"),
    (message(1000, job=b"x/y"), "can't be the name of a job"),
    (message(1000, job=b"x", allow=b"ok.test"), "a job has its policy"),
    (message(1000, allow=b"a" * 4096), "a text without an end"),
])
def test_service_hostile_requests(lab, rootless, bytes_, says):
    assert says in request(rootless, bytes_, lab.user)
    assert "\x1b" not in rootless.said()


def test_service_words_of_a_user_are_shown_as_text(lab, rootless):
    """What a user asks for is quoted in errors and in the service's own log: no control characters."""
    with rootless.start(ask={"allow": "ok.test"}) as box:
        said = request(rootless, message(box.pid, allow=b"\x1b[31mevil.test\x07"), lab.user)
    assert "\x1b" not in said + rootless.said() and "\x07" not in said + rootless.said(), said


def test_service_is_not_held_up(lab, rootless):
    """Silent connections of one user cost the others nothing, and him no more than his share."""
    with contextlib.ExitStack() as stack:
        script = ("import socket, sys\nsocks = []\n"
                  "for _ in range(8):\n"
                  "    socks.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)); socks[-1].connect('/run/netgate-service/socket')\n"
                  "socks[-1].settimeout(100); print(socks[-1].recv(4096)[8:].split(b'\\0')[0].decode(), flush=True); sys.stdin.read()\n")
        silent = subprocess.Popen(rootless.site.command(["/usr/bin/python3", "-c", script], user=lab.user), stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env=rootless.site.environment(lab.user))
        stack.callback(silent.wait)
        stack.callback(silent.kill)
        assert "busy with other containers" in silent.stdout.readline()
        other = User.__new__(User)
        other.name, other.uid, other.gid, other.home = "nobody", 65534, 65534, "/"
        assert "permits nothing" in request(rootless, message(os.getpid()), other)


# The runtime's command line, with a program in the other runtime's place that says what it was given

class Fake:
    """`oci-runtime` by hand, for a bundle."""

    def __init__(self, lab):
        self.lab, self.folder = lab, lab.workspace()
        self.bundle = os.path.join(self.folder, "bundle")
        os.mkdir(self.bundle)
        self.config = os.path.join(self.bundle, "config.json")
        self.write({"ociVersion": "1.0.0", "process": {"env": ["NETGATE_ALLOW=ok.test"], "capabilities": {}}, "linux": {}})
        self.program = write(os.path.join(self.folder, "runtime"), '#!/bin/sh\nprintf "%s\\n" "$@"\n', 0o755)

    def write(self, text, name="bundle/config.json"):
        return write(os.path.join(self.folder, name), text if isinstance(text, str) else json.dumps(text))

    def read(self):
        with open(self.config) as text:
            return json.load(text)

    def call(self, *words, options=()):
        program = os.path.join(self.lab.programs(), "sandbox-net")
        return self.lab.on_host(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && cd "$0" && exec "$@"', self.bundle,
                                 program, "oci-runtime", "--runtime", self.program, *options, "--", *words])


@pytest.fixture
def fake(lab):
    return Fake(lab)


@pytest.mark.parametrize("words", [
    ["create", "--bundle", "BUNDLE", "id"], ["create", "--bundle=BUNDLE", "id"], ["create", "-b", "BUNDLE", "id"],
    ["create", "id", "--bundle", "BUNDLE"], ["run", "--bundle", "/nonexistent", "-b", "BUNDLE", "id"], ["run", "id"],
    ["--root", "create", "--log", "LOG", "--log-format", "json", "--systemd-cgroup", "run", "--pid-file", "run", "id"],
    ["--cgroup-manager", "disabled", "run", "id"], ["--rootless=true", "run", "id"], ["--platform=ptrace", "-network=host", "run", "-d", "--preserve-fds", "3", "id"],
], ids=" ".join)
def test_runtime_prepares(fake, words):
    """However create and run are called; everything is passed on as it was."""
    words = [word.replace("BUNDLE", fake.bundle).replace("LOG", fake.folder + "/log") for word in words]
    done = fake.call(*words, options=["--permits", "/p", "--max-upload", "1MiB"])
    assert (done.returncode, done.stdout.splitlines()) == (0, words), done
    config = fake.read()
    (hook,) = config["hooks"]["createRuntime"]
    assert config["hooks"]["poststop"] == [hook]
    assert hook["args"] == ["sandbox-net", "oci-hook", "--permits", "/p", "--max-upload", "1MiB"] and os.path.isabs(hook["path"])
    assert config["annotations"] == {"dev.netgate.allow": "ok.test"}
    assert [mount["source"] for mount in config["mounts"]] == ["/run/netgate/resolv.conf"]
    assert config["linux"]["seccomp"]["syscalls"]


def test_annotation_and_environment(fake):
    """docker's annotations are from who starts the container, its environment perhaps from the image: the two are not mixed."""
    config = fake.read()
    config["process"]["env"] += ["NETGATE_POLICY=named"]
    fake.write({**config, "annotations": {"dev.netgate.allow": "other.test"}})
    assert fake.call("run", "id").returncode == 0
    assert fake.read()["annotations"] == {"dev.netgate.allow": "other.test"}


@pytest.mark.parametrize("name", ["NETGATE_ALLOW", "NETGATE_POLICY", "NETGATE_JOB"])
def test_empty_variable(fake, name):
    """As Compose makes it of one that is not set where it is called: not the whole policy, where a part of it was meant."""
    config = fake.read()
    fake.write({**config, "process": {"env": ["NETGATE_POLICY=named", f"{name}="]}})
    done = fake.call("run", "id")
    assert done.returncode == 1 and f"{name} is there and empty" in done.stderr, done


def test_refusal_is_in_the_system_log(lab):
    """One line, whatever is in it: some engines show nothing of what their hooks say."""
    script = """if True:
        import socket, subprocess, sys
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev"], check=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
            log.bind("/dev/log")
            log.settimeout(60)
            state = '{"id": "x", "pid": 2, "status": "\\\\u001b[31m\\\\n", "bundle": "/"}'
            done = subprocess.run([sys.argv[1], "oci-hook"], input=state.encode(), stderr=subprocess.PIPE)
            assert done.returncode == 1 and done.stderr.startswith(b'netgate: the container is "?[31m\\n" already'), done
            sys.stdout.buffer.write(log.recv(4096))
    """
    done = lab.on_host(["unshare", "--mount", "/usr/bin/python3", "-c", script, os.path.join(lab.programs(), "sandbox-net")])
    assert done.returncode == 0 and done.stdout.startswith("<27>") and "netgate[" in done.stdout, done
    assert done.stdout.endswith('the container is "?[31m " already; call this as a createRuntime hook'), done


@pytest.mark.parametrize("words", [[], ["--version"], ["state", "id"], ["start", "id"], ["delete", "--force", "id"], ["kill", "id", "9"], ["ps", "id"],
                                   ["exec", "id", "true"], ["exec", "--cap", "CAP_NET_RAW", "id", "true"],
                                   ["exec", "-t", "-e", "A=-c", "--cwd=/", "id", "mkdir", "-p", "--cap", "cap_net_admin"],
                                   ["exec", "--user", "--cap", "--", "-id", "-cCAP_NET_ADMIN"]], ids=" ".join)
def test_runtime_leaves_the_rest_alone(fake, words):
    before = fake.read()
    done = fake.call(*words)
    assert (done.returncode, done.stdout.split()) == (0, words), done
    assert fake.read() == before


@pytest.mark.parametrize("words, says", [
    (["restore", "id"], "can't be restored"),
    (["--new-option", "disabled", "create", "id"], "no option of a runtime's"),
    (["-root", "start", "create", "id"], "no option of a runtime's"),
    (["--rootless", "run", "state"], "or --rootless=true"), (["--rootless", "state", "run", "id"], "or --rootless=true"),
    (["swap", "id"], "no command of a runtime's"),
    (["create", "--bundle", "/nonexistent", "id"], "/nonexistent/config.json"),
    (["create", "-bundle", "BUNDLE", "id"], "-bundle: no option of a runtime's that is known here"),
    (["create", "-bundle=BUNDLE", "id"], "no option of a runtime's"),
    (["create", "-bBUNDLE", "id"], "no option of a runtime's"),
    (["create", "-b=BUNDLE", "id"], "no option of a runtime's"),
    (["run", "--bundl=BUNDLE", "id"], "no option of a runtime's"),
    (["run", "id", "-bundle", "BUNDLE"], "no option of a runtime's"),
    (["run", "id", "--bundle"], "--bundle needs a value"),
    (["create", "--bundle", "x" * 4090, "id"], "too long"),
    (["run", "--config", "other.json", "id"], "must be its bundle's config.json"),
    (["run", "-f", "other.json", "id"], "must be its bundle's config.json"),
    (["run", "-fother.json", "id"], "no option of a runtime's"),
    (["exec", "--process", "EVIL", "id"], "CAP_NET_ADMIN or CAP_SYS_ADMIN"),
    (["exec", "--process", "GOOD", "--process=EVIL", "id"], "CAP_NET_ADMIN or CAP_SYS_ADMIN"),
    (["exec", "--process", "EVIL", "-p", "GOOD", "id"], "CAP_NET_ADMIN or CAP_SYS_ADMIN"),
    (["exec", "-processEVIL", "id"], "no option of a runtime's"),
    (["exec", "-cap", "CAP_NET_ADMIN", "id"], "no option of a runtime's"),
    (["exec", "-cap=CAP_NET_ADMIN", "id"], "no option of a runtime's"),
    (["exec", "-c=CAP_NET_ADMIN", "id"], "no option of a runtime's"),
    (["exec", "--ca=CAP_NET_ADMIN", "id"], "no option of a runtime's"),
    (["exec", "-tcCAP_NET_ADMIN", "id"], "no option of a runtime's"),
    (["exec", "--process", "/nonexistent", "id"], "/nonexistent"),
    (["exec", "--cap=CAP_NET_ADMIN", "id", "sh"], "CAP_NET_ADMIN or CAP_SYS_ADMIN"),
    (["exec", "-c", "cap_sys_admin", "id", "sh"], "CAP_NET_ADMIN or CAP_SYS_ADMIN"),
    (["exec", "--cap", "CAP_CHOWN,CAP_NET_ADMIN", "id", "sh"], "--cap CAP_CHOWN,CAP_NET_ADMIN: not a capability"),
    (["exec", "--cap", "ALL", "id", "sh"], "ALL: not a capability"),
], ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None)
def test_runtime_refuses(fake, words, says):
    """Nothing is called, config.json is as it was, and the reason is where containerd looks for it."""
    fake.write({"capabilities": {"ambient": ["CAP_SYS_ADMIN"]}}, "EVIL")
    fake.write({"capabilities": {"bounding": ["CAP_CHOWN"]}}, "GOOD")
    for name in ("EVIL", "GOOD", "BUNDLE"):
        words = [word.replace(name, os.path.join(fake.folder, name)) for word in words]
    before, log = fake.read(), os.path.join(fake.folder, "log")
    done = fake.call("--log", log, *words)
    assert done.returncode == 1 and done.stdout == "" and says in done.stderr, done
    assert fake.read() == before
    with open(log) as text:
        line = json.loads(text.read())
    assert line["level"] == "error" and f"netgate: {line['msg'].removeprefix('netgate: ')}\n" == done.stderr, line


@pytest.mark.parametrize("text, says", [
    ("", "not JSON"), ("[]", "not a JSON object"), ("{}", 'no "linux"'), ('{"linux": [], "process": {}}', 'no "linux"'),
    ('{"linux": {}, "Linux": {"namespaces": []}}', "could be taken for"), ('{"linux": {}, "linux": {}}', "duplicate"),
    ('{"linux": {"seccomp": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"args": [{"valuetwo": 40}]}]}}}', "could be taken for"),
    ('{"linux": {}, "hooks": {"PostStop": []}}', "could be taken for"),
    ('{"linux": {"seccomp": []}}', "seccomp"), ('{"linux": {"seccomp": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": {}}}}', "seccomp"),
    ('{"linux": {}, "hooks": {"createRuntime": {}}}', "createRuntime"), ('{"linux": {}, "hooks": []}', "hooks"),
    ('{"linux": {}, "mounts": {}}', "mounts"), ('{"linux": {}, "annotations": []}', None), ("[" * 100000, "not JSON"),
    ('{"linux": {}, "process": {"env": ["NETGATE_ALLOW=a"]}, "annotations": []}', "annotations"),
], ids=lambda value: value[:60] if value else "fine")
def test_runtime_hostile_config(fake, text, says):
    """A file in another shape than the specification's starts nothing, and stays as it was."""
    fake.write(text)
    done = fake.call("create", "id")
    if says is None:
        assert done.returncode == 0, done
        return
    assert done.returncode == 1 and done.stdout == "" and says in done.stderr, done
    with open(fake.config) as now:
        assert now.read() == text


def test_runtime_help_and_its_own_errors(fake):
    for words in (["--help"], ["--help", "--", "create", "id"]):
        done = fake.lab.on_host([os.path.join(fake.lab.programs(), "sandbox-net"), "oci-runtime", *words])
        assert done.returncode == 0 and done.stdout.startswith("usage: "), done
    done = fake.lab.on_host([os.path.join(fake.lab.programs(), "sandbox-net"), "oci-runtime", "create", "id"])
    assert done.returncode == 1 and done.stderr.startswith("usage: "), done
    done = fake.call("create", "id", options=["--runtime", "/nonexistent"])
    assert done.returncode == 1 and "cannot run /nonexistent" in done.stderr, done

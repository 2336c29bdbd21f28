# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that others made: gates that wait, attaching, what is refused, and how it all ends."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time

import pytest

from lab import v4, wait_for
from lab.attached import Gate, Sandbox, attached, runtime, sandbox_net

FAILED = 125


def refused(lab, gate, sandbox, *args):
    """The reason for which a sandbox was not attached, which then is as it was."""
    before = sandbox.links()
    done = gate.attach(sandbox, *args)
    assert done.returncode == FAILED and done.stdout == "", done
    assert sandbox.links() == before
    return done.stderr


def processes(running, name="netgate"):
    return [pid for pid, comm in running.processes().items() if comm == name]


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def roles(gate):
    """keeper, session, proxy, finder of a gate with one sandbox."""
    running = gate.running
    wait_for(lambda: len(running.processes()) == 4, "four processes")
    keeper = running.process.pid
    (session,) = [pid for pid in processes(running) if parent(pid) == keeper]
    (proxy,) = [pid for pid in processes(running) if parent(pid) == session]
    (finder,) = processes(running, "netgate-finder")
    return {"keeper": keeper, "session": session, "proxy": proxy, "finder": finder}


# What it is for

def test_attached(lab, who):
    """A sandbox that was there reaches what is allowed, and nothing else; everything is on record under its name."""
    with attached(lab, ["ok.test"], user=who) as box:
        assert box.links() == ["lo", "eth0"]
        done = box.run(["curl", "-sS", "https://ok.test/hello"])
        assert (done.returncode, done.stdout) == (0, "hello from ok.test\n"), done
        assert box.run(["curl", "-sS", "--resolve", f"bad.test:80:{v4('web')}", "http://bad.test/"]).stdout.startswith("netgate: ")
        result = box.finish()
    assert result.rc == 0, result
    start, *_, end = result.records
    assert "command" not in start and start["attached"] == f"pid {box.sandbox.pid}", result
    assert (start["netns"], start["host_pid"]) == (box.sandbox.netns, box.sandbox.pid)
    assert start.get("accepted", []) == (["net-admin"] if who else [])
    assert end["type"] == "end" and end["ended"] == "sandbox_gone" and end["allowed"] == 1 and end["denied"] == 1, result
    assert "exit" not in end and end["syns"] == end["accepts"] == 2
    assert {record["sandbox"] for record in result.records} == {"box"}
    assert not box.gate.running.processes()
    assert lab.on_host([lab.programs() + "/netgate", "verify", result.log]).returncode == 0


def test_which_process(lab, who):
    """Found without holding the sandbox, though it is no child of what was attached: an allowed connection and a denied one."""
    with attached(lab, ["ok.test"], user=who) as box:
        (shown,) = box.python("""
            with tcp("ok.test", 80) as sock:
                sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
                status, _, _ = response(sock.makefile("rb"))
                time.sleep(0.3)
            ending(sys.argv[1], 9)
            show(pid=os.getpid(), status=status)
        """, v4("web"))
        assert shown["status"] == 200
        result = box.finish()
    decisions = result.of("decision", door="transparent")
    assert [decision["verdict"] for decision in decisions] == ["allow", "deny"], result
    for decision in decisions:
        record = result.one("process", conn=decision["conn"])
        assert (record["host_pid"], record["uid"], record["exe"]) == (shown["pid"], 0, os.path.realpath("/usr/bin/python3")), result
        assert record["cmdline"][:2] == ["/usr/bin/python3", "-c"]


def test_netns_path(lab):
    """By a path, which may be there before any process is."""
    name = f"lab-{os.getpid()}-{time.monotonic_ns()}"
    ip = lambda *words: lab.on_host(["ip", "netns", *words])
    assert ip("add", name).returncode == 0
    try:
        with Gate(lab, ["--allow", "ok.test"]) as gate:
            done = lab_attach(lab, gate, ["--netns", f"/run/netns/{name}"])
            assert done.returncode == 0, done
            assert "no process is in it yet" in done.stderr
            done = ip("exec", name, "curl", "-sS", "--proxy", "10.200.0.1:3128", "http://ok.test/hello")
            assert done.stdout == "hello from ok.test\n", done
            assert ip("del", name).returncode == 0
            result = gate.finish()
        start, *_, end = result.records
        assert (start["attached"], start["sandbox"], end["ended"]) == (f"netns /run/netns/{name}", name, "sandbox_gone"), result
        assert "host_pid" not in start and "no process is in it yet" in start["notes"][0]
    finally:
        ip("del", name)


def lab_attach(lab, gate, args, user=None):
    return sandbox_net(lab, ["attach", "--job", gate.job, *args], user)


# What is refused

def test_host_and_itself(lab):
    """Never the host's network, by whatever path; nor what is not a network namespace."""
    with Gate(lab) as gate:
        keeper = gate.running.process.pid
        for what in (["--pid", str(keeper)], ["--netns", f"/proc/{keeper}/ns/net"]):
            done = lab_attach(lab, gate, what)
            assert done.returncode == FAILED and "the host's own network" in done.stderr, done
        for path in ("/etc/passwd", f"/proc/{keeper}/ns/mnt", "/proc", "/nonexistent/netns"):
            assert lab_attach(lab, gate, ["--netns", path]).returncode == FAILED
        assert lab_attach(lab, gate, ["--pid", str(os.getpid())]).returncode == FAILED
        assert gate.records() == []


def change(sandbox, *lines):
    for line in lines:
        done = sandbox.run(["ip", *line.split()])
        assert done.returncode == 0, done


@pytest.mark.parametrize("lines,found", [
    (["link add dummy0 type veth peer name other0"], "it has another interface than lo: "),
    (["link add eth0 type veth peer name other0"], "it has another interface than lo: "),
    (["link set lo up", "addr add 10.1.1.1/32 dev lo", "link set lo name eth0"], "it has another interface than lo: eth0"),
    (["link set lo up", "link add x\033[31mx type veth peer name other0"], "it has another interface than lo: "),
], ids=["interface", "eth0", "lo-renamed", "escape"])
def test_other_network(lab, lines, found):
    with Sandbox(lab) as sandbox, Gate(lab) as gate:
        change(sandbox, *lines)
        said = refused(lab, gate, sandbox)
        assert found in said and "\033" not in said, said
        assert gate.records() == []


def test_routes(lab):
    """A route that leads nowhere is none."""
    with Sandbox(lab) as sandbox, Gate(lab) as gate:
        change(sandbox, "link set lo up", "route add 203.0.113.0/24 dev lo", "route add blackhole 203.0.114.0/24")
        assert gate.attach(sandbox).returncode == 0


def test_twice(lab, who):
    """A sandbox has one gate; and a name is one sandbox's."""
    with attached(lab, user=who) as box:
        risk = ["--accept-risk", "net-admin"]
        assert "it has a gate already" in refused(lab, box.gate, box.sandbox, "--name", "other", *risk)
        with Sandbox(lab, who) as second:
            assert "has a sandbox box already" in refused(lab, box.gate, second, "--name", "box", *risk)
        with Gate(lab, user=who) as other:
            assert "it has a gate already" in refused(lab, other, box.sandbox, *risk)
        assert box.links() == ["lo", "eth0"]


def test_process_that_is_gone(lab):
    with Sandbox(lab) as sandbox, Gate(lab) as gate:
        sandbox.close()
        done = gate.attach(sandbox)
        assert done.returncode == FAILED and f"there is no process {sandbox.pid}" in done.stderr, done
        assert "the number of a process" in lab_attach(lab, gate, ["--pid", "x"]).stderr
        assert gate.records() == []


# How it ends

@pytest.mark.parametrize("victim", ["keeper", "session", "proxy"])
def test_killed(lab, who, victim):
    """Whoever is killed: the sandbox is left with lo, and of netgate nothing."""
    with attached(lab, ["ok.test"], user=who) as box:
        os.kill(roles(box.gate)[victim], signal.SIGKILL)
        wait_for(lambda: box.links() == ["lo"], "a sandbox with lo only")
        wait_for(lambda: not box.gate.running.processes(), "the end of every process")
        result = box.gate.finish()
        assert result.rc == (-signal.SIGKILL if victim == "keeper" else FAILED), result
        if victim == "proxy":
            assert "sandbox box: the proxy was killed by signal 9" in result.err
            assert [record["type"] for record in result.records] == ["start"]
        else:
            assert result.records[-1]["ended"] == "killed", result
        assert box.sandbox.process.poll() is None


def test_two_sandboxes_one_job(lab, who):
    """Each has a gate and a chain of records of its own, in one file; the first one's end is not the other's."""
    risk = ["--accept-risk", "net-admin"]
    with Gate(lab, ["--allow", "ok.test"], who) as gate, Sandbox(lab, who) as one, Sandbox(lab, who) as two:
        for name, sandbox in (("one", one), ("two", two)):
            done = gate.attach(sandbox, "--name", name, *risk)
            assert done.returncode == 0, done
        threads = [sandbox.run(["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do curl -sS http://ok.test/hello; done"]) for sandbox in (one, two)]
        assert [done.stdout for done in threads] == ["hello from ok.test\n" * 8] * 2
        one.close()
        wait_for(lambda: [r for r in gate.records() if r["type"] == "end"], "the end of the first")
        assert two.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        two.close()
        result = gate.finish()
    assert result.rc == 0, result
    verified = lab.on_host([lab.programs() + "/netgate", "verify", result.log])
    assert verified.returncode == 0 and verified.stdout.count("OK ") == 2, verified.stdout
    for name in ("one", "two"):
        records = [record for record in result.records if record["sandbox"] == name]
        assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
        assert records[-1]["type"] == "end"

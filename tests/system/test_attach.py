# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that others made: gates that wait, attaching, what is refused, and how it all ends."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from lab import read_log, v4, wait_for
from lab.attached import GATE, Gate, Sandbox, attached, runtime, sandbox_net, vsock_works

FAILED = 125
RISK = ["--accept-risk", "net-admin"]


def refused(lab, gate, sandbox, *args):
    """The reason for which a sandbox was not attached, which then is as it was."""
    before = sandbox.links()
    done = gate.attach(sandbox, *args)
    assert done.returncode == FAILED and done.stdout == "", done
    assert sandbox.links() == before
    return done.stderr


def left_with_lo(*sandboxes):
    """The kernel takes the gate's namespace away a moment after its last socket is closed."""
    for sandbox in sandboxes:
        wait_for(lambda each=sandbox: each.links() == ["lo"], "a sandbox with lo only")
    return True


def processes(running, name="netgate"):
    return [pid for pid, comm in running.processes().items() if comm == name]


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def roles(gate):
    """keeper, session, proxy, finder of a gate with one sandbox."""
    running = gate.running
    # The finder is a netgate by name until it is at its work.
    wait_for(lambda: sorted(running.processes().values()) == ["netgate"] * 3 + ["netgate-finder"], "four processes")
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
    script = lab.script("""
        with tcp("ok.test", 80) as sock:
            sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
            show(pid=os.getpid(), status=response(sock.makefile("rb"))[0])
            sys.stdin.readline()
        for line in sys.stdin:
            show(end=ending(sys.argv[1], 9))
    """, v4("web"))
    with attached(lab, ["ok.test"], user=who) as box:
        with subprocess.Popen(box.sandbox.command(script, lab.workspace()), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=lab.environment()) as client:
            try:
                shown = json.loads(client.stdout.readline())
                whose = lambda: [record for record in box.records("process") if "conn" in record]
                wait_for(whose, "the record of the process")
                client.stdin.write(b"\n")
                for denied in range(1, 20):  # a busy machine may not look before a connection is reset
                    client.stdin.write(b"\n")
                    client.stdin.flush()
                    assert json.loads(client.stdout.readline()) == {"end": "reset"}
                    wait_for(lambda: len(whose()) > denied, "the record of the process")
                    if "unknown" not in whose()[-1]:
                        break
            finally:
                client.kill()
        assert shown["status"] == 200
        result = box.finish()
    decisions = result.of("decision", door="transparent")
    assert [decision["verdict"] for decision in decisions] == ["allow"] + ["deny"] * denied, result
    for decision in (decisions[0], decisions[-1]):
        record = result.one("process", conn=decision["conn"])
        assert (record["host_pid"], record["uid"], record["exe"]) == (shown["pid"], 0, os.path.realpath("/usr/bin/python3")), result
        assert record["cmdline"][:2] == ["/usr/bin/python3", "-c"]


def test_which_process_is_gone(lab):
    """The process that made the attempt is gone when it is looked for."""
    python = os.path.realpath("/usr/bin/python3")
    with attached(lab) as box:
        wait_for(lambda: box.gate.running.filtered("netgate-finder"), "the finder")
        finder = box.gate.running.filtered("netgate-finder")
        for n in range(1, 20):
            os.kill(finder, signal.SIGSTOP)
            (shown,) = box.python("show(pid=os.getpid(), end=ending(sys.argv[1], 9))", v4("web"))
            os.kill(finder, signal.SIGCONT)
            wait_for(lambda: len(box.records("process")) == n, "the record")
            record = box.records("process")[-1]
            if record.get("unknown") != "timeout":  # no answer in two seconds: the machine is busy
                break
    assert (record.get("host_pid"), record.get("exe"), record.get("uid")) == (shown["pid"], python, 0), record


def test_first_process_is_gone(lab, who):
    """The sandbox lives on with another process, and is found through that one."""
    with attached(lab, ["ok.test"], user=who) as box:
        script = lab.script("""
            show(pid=os.getpid())
            for line in sys.stdin:
                show(end=ending(sys.argv[1], 9))
        """, v4("web"))
        with subprocess.Popen(box.sandbox.command(script, lab.workspace()), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=lab.environment()) as other:
            try:
                pid = json.loads(other.stdout.readline())["pid"]
                box.sandbox.close()
                for n in range(1, 20):
                    other.stdin.write(b"\n")
                    other.stdin.flush()
                    assert json.loads(other.stdout.readline()) == {"end": "reset"}
                    wait_for(lambda: len(box.records("process")) == n, "the record of the process")
                    if box.records("process")[-1].get("unknown") not in ("gone", "timeout"):  # nobody had looked in time: the machine is busy
                        break
                assert box.records("process")[-1]["host_pid"] == pid
                assert not box.records("end")
            finally:
                other.kill()
        assert box.gate.finish().records[-1]["ended"] == "sandbox_gone"


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
        assert any("AF_VSOCK works" in note and "it is not known here" in note for note in start["notes"]) == vsock_works(), start
    finally:
        ip("del", name)


def test_netns_path_that_changes(lab, tmp_path):
    """Whoever may write to its folder puts a FIFO there: netgate does not wait for somebody to open it."""
    here, kept = tmp_path / "here", tmp_path / "kept"
    here.touch(), kept.touch()
    script = ('unshare --net="$1" true && mount --bind "$1" "$2" && echo ready && read word && umount -l "$1" && rm "$1" && mkfifo "$1" && '
              'nsenter --net="$2" ip link del eth0 && echo done && read word')
    # The mounts are in the lab's own namespace, in which netgate runs as well, and are gone with the shell's.
    with Gate(lab) as gate, subprocess.Popen(lab.host.command(["sh", "-c", script, "sh", here, kept]), stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE) as shell:
        try:
            assert shell.stdout.readline() == b"ready\n"
            done = lab_attach(lab, gate, ["--netns", str(here)])
            assert done.returncode == 0, done
            shell.stdin.write(b"go\n")
            shell.stdin.flush()
            assert shell.stdout.readline() == b"done\n"
            # ip(8) may still be in there, or not.
            assert gate.finish().records[-1]["ended"] in ("sandbox_gone", "link_deleted")
        finally:
            shell.stdin.close()
            shell.wait()
            lab.on_host(["umount", str(here)])
            lab.on_host(["umount", str(kept)])


def lab_attach(lab, gate, args, user=None):
    return sandbox_net(lab, ["attach", "--job", gate.job, *args], user)


def test_nobody_holds_it(lab, who):
    """No process of netgate's is in the sandbox or has a descriptor of it, also after it has looked into it."""
    with attached(lab, ["ok.test"], user=who) as box:
        box.run(["curl", "-sS", "http://ok.test/hello"])
        wait_for(lambda: box.records("process"), "a look into the sandbox")
        for pid in roles(box.gate).values():
            assert os.stat(f"/proc/{pid}/ns/net").st_ino != box.sandbox.netns
            assert f"net:[{box.sandbox.netns}]" not in [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]


TRACE = """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    for pid in map(int, sys.argv[1:]):
        # PTRACE_SEIZE; and what ptrace(2) would let be seen
        seized = libc.ptrace(0x4206, pid, None, None) == 0
        try:
            os.readlink(f"/proc/{pid}/ns/mnt")
            seized = True
        except PermissionError:
            pass
        show(pid=pid, seized=seized)
"""


def test_root_of_the_sandbox_and_netgates_processes(lab):
    """In an ordinary user's sandbox: sandbox-net and the finder join its user namespace, and its root can't trace them there."""
    user = lab.user
    log = os.path.join(lab.workspace(user), "log")
    os.mkfifo(log)
    os.chown(log, user.uid, user.gid)
    fifo = os.open(log, os.O_RDWR | os.O_NONBLOCK)
    try:
        with Sandbox(lab, user) as sandbox, Gate(lab, user=user, log=log) as gate:
            # With the log full, the start record waits, and sandbox-net for it.
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(fifo, bytes(4096))
            command = [lab.programs() + "/sandbox-net", "attach", "--job", gate.job, "--pid", str(sandbox.pid), *RISK]
            with subprocess.Popen(lab.host.command(command, user), stderr=subprocess.PIPE, env=lab.environment(None, user) | runtime(lab, user)) as attach:
                space = lambda pid: os.readlink(f"/proc/{pid}/ns/user")
                wait_for(lambda: space(attach.pid) == space(sandbox.pid), "sandbox-net in the user namespace")
                (seen,) = sandbox.python(TRACE, str(attach.pid))
                assert not seen["seized"]
                while attach.poll() is None:
                    with contextlib.suppress(BlockingIOError):
                        os.read(fifo, 65536)
                    time.sleep(0.01)
                assert attach.returncode == 0, attach.stderr.read()
            (seen,) = sandbox.python(TRACE, str(roles(gate)["finder"]))
            assert not seen["seized"]
    finally:
        os.close(fifo)


# What is refused

def test_host_and_itself(lab):
    """Never the host's network, by whatever path; nor what is not a network namespace."""
    with Gate(lab) as gate:
        keeper = gate.running.process.pid
        for what in (["--pid", str(keeper)], ["--netns", f"/proc/{keeper}/ns/net"]):
            done = lab_attach(lab, gate, what)
            assert done.returncode == FAILED and "is in the host's own network" in done.stderr and "--network none" in done.stderr, done
        for path in ("/etc/passwd", f"/proc/{keeper}/ns/mnt", "/proc", "/nonexistent/netns"):
            assert lab_attach(lab, gate, ["--netns", path]).returncode == FAILED
        assert lab_attach(lab, gate, ["--pid", str(os.getpid())]).returncode == FAILED
        assert gate.records() == []


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_which_engine_is_asked(lab, tmp_path, program):
    """That in /usr/bin, for PATH may lead elsewhere first; another one where it is not there."""
    for where in ("usual", "other"):
        (tmp_path / where).mkdir()
        path = tmp_path / where / program
        path.write_text(f"#!/bin/sh\necho {where} >&2\nexit 1\n")
        path.chmod(0o755)
    attach = [os.path.join(lab.programs(), "sandbox-net"), "attach", f"--{program}", "web", "--allow", "ok.test"]
    for instead, asked in ((tmp_path / "usual" / program, "usual"), ("/dev/null", "other")):
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", str(instead), f"/usr/bin/{program}", *attach], capture_output=True,
                              text=True, env=os.environ | {"PATH": f"{tmp_path}/other:{os.environ['PATH']}"})
        assert done.returncode == FAILED and done.stderr.startswith(f"{asked}\nsandbox-net: {program} does not tell "), done


def change(sandbox, *lines):
    for line in lines:
        done = sandbox.run(["ip", *line.split()])
        assert done.returncode == 0, done


@pytest.mark.parametrize("lines,found", [
    (["link add dummy0 type veth peer name other0"], "it has another interface than lo: "),
    (["link add eth0 type veth peer name other0"], "it has another interface than lo: "),
    (["link set lo up", "addr add 10.1.1.1/32 dev lo", "link set lo name eth0"], "it has another interface than lo: eth0"),
    (["link set lo up", "link add x\033[31mx type veth peer name other0"], "it has another interface than lo: "),
    (["link set lo up", "route add default dev lo"], "it has an IPv4 default route already: dev lo"),
    (["link set lo up", "-6 route add default dev lo"], "it has an IPv6 default route already: dev lo"),
    (["route add prohibit default"], "it has an IPv4 default route already: unreachable, blackhole or prohibit"),
    (["link set lo up", "-6 route add unreachable default metric 9"], "it has an IPv6 default route already: unreachable"),
    (["link set lo up", "-6 route add 2001:db8::/32 dev lo"], "it has a route in the gate's way: 2001:db8::/32, dev lo"),
    (["route add blackhole 198.18.7.0/24"], "it has a route in the gate's way: 198.18.7.0/24, unreachable, blackhole or prohibit"),
    (["link set lo up", "addr add 198.51.100.1/24 dev lo"],
     "it has a route in the gate's way: 198.51.100.0/24, dev lo, in table local, as an address of lo makes one"),
    (["link set lo up", "addr add 10.9.9.9/8 dev lo"], "it has a route in the gate's way: 10.0.0.0/8, dev lo, in table local"),
    (["link set lo up", "route add 10.200.0.1/32 dev lo"], "it has a route in the gate's way: 10.200.0.1/32, dev lo"),
], ids=["interface", "eth0", "lo-renamed", "escape", "default4", "default6", "prohibit4", "unreachable6", "proof6", "names", "address-of-lo",
        "wide-address", "gate"])
def test_other_network(lab, lines, found):
    with Sandbox(lab) as sandbox, Gate(lab) as gate:
        change(sandbox, *lines)
        said = refused(lab, gate, sandbox)
        assert found in said and "\033" not in said, said
        assert gate.records() == []


def test_routes(lab):
    """A route that leads nowhere or to lo is none, unless the gate would not work beside it; in a table that nobody asks, not even then."""
    with Sandbox(lab) as sandbox, Gate(lab, ["--allow", "ok.test"]) as gate:
        change(sandbox, "link set lo up", "route add 203.0.113.0/24 dev lo", "route add blackhole 203.0.114.0/24", "route add 10.0.0.0/8 dev lo",
               "addr add 192.0.2.1/32 dev lo", "route add 198.51.100.0/24 dev lo table 77",
               "route add unreachable default metric 9", "-6 route add unreachable default metric 2000")
        assert gate.attach(sandbox).returncode == 0
        assert sandbox.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"


def test_twice(lab, who):
    """A sandbox has one gate; and a name is one sandbox's."""
    with attached(lab, user=who) as box:
        assert "it has a gate already" in refused(lab, box.gate, box.sandbox, "--name", "other", *RISK)
        with Sandbox(lab, who) as second:
            assert "has a sandbox box already" in refused(lab, box.gate, second, "--name", "box", *RISK)
        with Gate(lab, user=who) as other:
            assert "it has a gate already" in refused(lab, other, box.sandbox, *RISK)
        assert box.links() == ["lo", "eth0"]


def test_at_once(lab, who):
    """Two attempts at the same sandbox: one of them has it, and the other leaves nothing."""
    with Sandbox(lab, who) as sandbox, Gate(lab, ["--allow", "ok.test"], who) as gate:
        command = [lab.programs() + "/sandbox-net", "attach", "--job", gate.job, "--pid", str(sandbox.pid), *RISK]
        both = [subprocess.Popen(lab.host.command([*command, "--name", name], who), stderr=subprocess.PIPE,
                                 env=lab.environment(None, who) | runtime(lab, who)) for name in ("one", "two")]
        said = [attach.communicate(timeout=60)[1] for attach in both]
        assert sorted(attach.returncode for attach in both) == [0, FAILED], said
        wait_for(lambda: len(gate.running.processes()) == 4, "the end of the other's session")
        assert sandbox.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"


def test_many(lab):
    """More callers at a time than have a place in the keeper."""
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(Sandbox(lab)) for _ in range(20)]
        gate = stack.enter_context(Gate(lab))
        command = [lab.programs() + "/sandbox-net", "attach", "--job", gate.job, "--pid"]
        calls = [subprocess.Popen(lab.host.command([*command, str(box.pid)]), stderr=subprocess.PIPE, env=lab.environment()) for box in boxes]
        said = [attach.communicate(timeout=120)[1] for attach in calls]
        assert [attach.returncode for attach in calls] == [0] * 20, said
        assert len([entry for entry in listed(lab) if entry["job"] == gate.job]) == 20
        assert sandbox_net(lab, ["detach", "--job", gate.job]).returncode == 0
        result = gate.finish()
        assert result.rc == 0 and len(result.of("end", ended="detached")) == 20
        left_with_lo(*boxes)


def test_process_that_is_gone(lab):
    with Sandbox(lab) as sandbox, Gate(lab) as gate:
        sandbox.close()
        done = gate.attach(sandbox)
        assert done.returncode == FAILED and f"there is no process {sandbox.pid}" in done.stderr, done
        assert '--pid: "x": not the number of a process' in lab_attach(lab, gate, ["--pid", "x"]).stderr
        assert gate.records() == []


NOT_ROOT = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.mark.parametrize("wrap,found", [
    ([], True), (NOT_ROOT, True), ([*NOT_ROOT, "--no-new-privs"], False),
    ([*NOT_ROOT, "--bounding-set=-net_admin,-sys_admin"], False), (["setpriv", "--bounding-set=-net_admin"], True),
    (["unshare", "--user", "--map-root-user"], False),
], ids=["root", "can-gain-it", "no-new-privs", "bounded", "sys-admin", "below"])
def test_risk(lab, wrap, found):
    """Network namespaces of the host's user namespace: the capabilities of the processes in it decide."""
    with Sandbox(lab, own_user=False, wrap=wrap) as sandbox, Gate(lab) as gate:
        if found:
            said = refused(lab, gate, sandbox)
            assert f"process {sandbox.pid} in it has, or can gain, CAP_NET_ADMIN" in said and "--accept-risk net-admin" in said
            assert gate.records() == []
        done = gate.attach(sandbox, *(RISK if found else []))
        assert done.returncode == 0, done
        assert ("it can change the gate's links and rules" in done.stderr) == found
        (start,) = gate.records()
        assert start.get("accepted") == (["net-admin"] if found else None)
        assert any("CAP_NET_ADMIN" in note for note in start.get("notes", [])) == found


def test_risk_of_a_process_from_outside(lab):
    """Root of the host in a sandbox whose own root has no say over the gate."""
    with Sandbox(lab) as sandbox, Gate(lab) as gate:
        enter = ["nsenter", f"--net=/proc/{sandbox.pid}/ns/net", "sh", "-c", "echo ready; exec sleep infinity"]
        with subprocess.Popen(lab.host.command(enter), stdout=subprocess.PIPE) as visitor:
            try:
                assert visitor.stdout.readline() == b"ready\n"
                assert f"process {visitor.pid} in it has, or can gain, CAP_NET_ADMIN" in refused(lab, gate, sandbox)
            finally:
                visitor.kill()
        assert gate.attach(sandbox).returncode == 0


@pytest.mark.parametrize("kind", ["threads", "crowd", "processes", "gone", "elsewhere", "elsewhere-threads"])
def test_risk_of_one_that_hides(lab, restless, kind):
    """A capable thread or process that ends all the time and goes on as its own child is not missed, at any try; nor is one whose first thread is not there."""
    for _ in range(8):
        with Sandbox(lab, own_user=False, wrap=[restless, kind]) as sandbox, Gate(lab) as gate:
            assert "in it has, or can gain, CAP_NET_ADMIN" in refused(lab, gate, sandbox)


def test_risk_of_a_user(lab):
    """An ordinary user's gate belongs to the sandbox's user namespace."""
    with Gate(lab, user=lab.user) as gate:
        with Sandbox(lab, lab.user) as sandbox:
            assert "CAP_NET_ADMIN" in refused(lab, gate, sandbox)
        with Sandbox(lab, lab.user, caps=False) as sandbox:
            assert gate.attach(sandbox).returncode == 0
            assert sandbox.links() == ["lo", "eth0"]


def test_the_background_has_no_descriptor_of_the_caller(lab):
    """A namespace would be kept for ever, and a pipe never read to its end."""
    log = os.path.join(lab.workspace(), "log.jsonl")
    with Sandbox(lab) as sandbox:
        network = os.open(f"/proc/{sandbox.pid}/ns/net", os.O_RDONLY)
        try:
            done = sandbox_net(lab, ["attach", "--allow", "ok.test", "--pid", str(sandbox.pid), "--log", log], pass_fds=[network])
        finally:
            os.close(network)
        assert done.returncode == 0, done
        (gate,) = [entry for entry in listed(lab) if entry["job"] == f"pid-{sandbox.pid}"]
        for process in (gate["netgate"], gate["pid"]):
            held = [os.readlink(f"/proc/{process}/fd/{fd}") for fd in os.listdir(f"/proc/{process}/fd")]
            assert f"net:[{sandbox.netns}]" not in held, held
    wait_for(lambda: read_log(log)[-1]["type"] == "end", "the end of the gate")


@pytest.fixture
def unreadable(lab):
    """sleep(1), which everybody may execute and root alone may read: the kernel hides the namespaces of such a process from all others."""
    path = os.path.join(lab.folder, "unreadable")
    shutil.copy(shutil.which("sleep"), path)
    os.chmod(path, 0o711)
    yield path
    os.unlink(path)


def test_risk_of_one_that_is_hidden(lab, unreadable):
    """One in another network is of no concern."""
    with Gate(lab, user=lab.user) as gate, Sandbox(lab, lab.user, caps=False) as sandbox:
        for network in (["--net"], []):
            enter = ["nsenter", f"--target={sandbox.pid}", "--user", *network, "--preserve-credentials", unreadable, "infinity"]
            with subprocess.Popen(lab.host.command(enter, lab.user)) as hidden:
                try:
                    wait_for(lambda: os.readlink(f"/proc/{hidden.pid}/exe") == unreadable, "the program")
                    if network:
                        assert f"process {hidden.pid} in it has, or can gain, CAP_NET_ADMIN" in refused(lab, gate, sandbox)
                    else:
                        assert gate.attach(sandbox).returncode == 0
                finally:
                    hidden.kill()


def test_risk_of_one_that_is_hidden_and_elsewhere(lab, restless):
    """Its first thread is in a third network, and another one in the sandbox's."""
    program = os.path.join(lab.workspace(), "restless")
    shutil.copy(restless, program)
    os.chmod(program, 0o711)
    with Gate(lab, user=lab.user) as gate, Sandbox(lab, lab.user, caps=False) as sandbox:
        enter = ["nsenter", f"--target={sandbox.pid}", "--user", "--net", "--preserve-credentials", program, "elsewhere"]
        with subprocess.Popen(lab.host.command(enter, lab.user), stdout=subprocess.PIPE) as hidden:
            try:
                assert hidden.stdout.readline() == b"ready\n"
                with open(f"/proc/{hidden.pid}/task/{hidden.pid}/children") as children:
                    (child,) = map(int, children.read().split())
                wait_for(lambda: os.stat(f"/proc/{child}/ns/net").st_ino != sandbox.netns, "its first thread elsewhere")
                assert f"process {child} in it has, or can gain, CAP_NET_ADMIN" in refused(lab, gate, sandbox)
            finally:
                hidden.kill()


def test_other_users(lab):
    """Root may attach a user's sandbox, a user only his own."""
    with Gate(lab) as gate, Sandbox(lab, lab.user) as sandbox:
        assert gate.attach(sandbox).returncode == 0  # no risk: root's gate is out of its reach
    with Gate(lab, user=lab.user) as gate, Sandbox(lab) as sandbox, Sandbox(lab, own_user=False) as container:
        said = refused(lab, gate, sandbox)
        assert "is not yours to attach; the user who started it can, and root: Permission denied" in said
        assert "is not yours to attach" in refused(lab, gate, container)
        assert gate.records() == []


def test_bubblewrap(lab, who):
    """bwrap --unshare-all, as people use it: nothing is to be accepted."""
    # Not all of /: bwrap fails when a mount below what it binds, of another program's, goes away meanwhile.
    files = [word for part in ("/usr", "/bin", "/lib", "/lib64") for word in ("--ro-bind", part, part)]
    command = ["bwrap", "--unshare-all", *files, "--dev", "/dev", "--proc", "/proc", "--info-fd", "1", "--",
               "sh", "-c", "echo ready >&2; exec sleep infinity"]
    with subprocess.Popen(lab.host.command(command, who), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=lab.environment(None, who)) as bwrap:
        try:
            child = json.loads(bwrap.stdout.read())["child-pid"]
            # Before that, it has capabilities that bwrap takes away.
            assert bwrap.stderr.readline() == b"ready\n"
            with Gate(lab, ["--allow", "ok.test"], who) as gate:
                done = lab_attach(lab, gate, ["--pid", str(child)], who)
                assert done.returncode == 0, done
                assert "accepted" not in gate.records()[0]
                os.kill(child, signal.SIGKILL)
                assert gate.finish().rc == 0
        finally:
            bwrap.kill()


def test_vsock(lab):
    """A note where AF_VSOCK works and no seccomp filter keeps a process from it."""
    with attached(lab) as box:
        notes = box.records("start")[0].get("notes", [])
        assert any("AF_VSOCK works" in note and "no seccomp filter keeps" in note for note in notes) == vsock_works(), notes


def test_error_comes_alone(lab):
    """What was noted about a sandbox is not said when it is not attached: it would look like the reason."""
    with Sandbox(lab) as sandbox:
        done = sandbox_net(lab, ["attach", "--pid", str(sandbox.pid), "--job", "there-is-none", *RISK])
        assert done.returncode == FAILED and done.stderr.count("\n") == 1 and "note:" not in done.stderr, done


def test_ipv6_switched_off(lab):
    """As docker leaves its containers' namespaces."""
    with Sandbox(lab) as sandbox:
        done = sandbox.run(["sh", "-c", "for all in all default lo; do echo 1 >/proc/sys/net/ipv6/conf/$all/disable_ipv6; done"])
        assert done.returncode == 0, done
        with attached(lab, ["ok.test"], sandbox=sandbox) as box:
            assert box.run(["curl", "-sS", "-6", "http://ok.test/hello"]).stdout == "hello from ok.test\n"


def caps_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"^CapBnd:\s*(\w+)", status.read(), re.M)[1], 16)


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_container(lab, runtimes, engine):
    """As people start it, by its name; one that has ended is none."""
    runtime, resolv = runtimes[engine], os.path.join(lab.workspace(), "resolv.conf")
    with open(resolv, "w") as out:
        out.write(f"nameserver {GATE}\n")
    dns = {"docker": ["--dns", GATE], "podman": ["-v", f"{resolv}:/etc/resolv.conf:ro"]}
    env = lab.environment() | runtime.environment()
    net = lambda *args: runtime.site.run([lab.programs() + "/sandbox-net", *args], env=env)
    with runtime.start(["sleep", "1000"], options=["--name", "web", *dns[engine]]) as box:
        log = os.path.join(runtime.site.folder, "web.jsonl")
        done = net("attach", f"--{engine}", "web", "--allow", "ok.test", "--log", log)
        assert done.returncode == 0, done
        assert f"{engine} web is attached to job web as web" in done.stderr
        assert box.exec(["wget", "-q", "-O", "-", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        assert box.exec(["wget", "-q", "-O", "-", "http://bad.test/"]).returncode != 0
        assert json.loads(net("ls", "--json").stdout)["attached"] == f"{engine} web"
        box.kill()
        wait_for(lambda: net("ls", "--json").stdout == "", "the end of the gate")
        # The kernel may be done with it before the engine is.
        wait_for(lambda: runtime.client("inspect", "--format={{.State.Running}}", "web", check=True).stdout == "false\n", "the engine to know")
        done = net("attach", f"--{engine}", "web", "--allow", "ok.test")
        assert done.returncode == FAILED and "container web is not running" in done.stderr, done
    for wrong in ("nonexistent", "--help", ""):
        assert net("attach", f"--{engine}", wrong, "--allow", "ok.test").returncode == FAILED
    records = read_log(log)
    assert (records[0]["attached"], records[0]["sandbox"], records[-1]["ended"]) == (f"{engine} web", "web", "sandbox_gone"), records
    assert {record["verdict"] for record in records if record.get("host") == "bad.test"} == {"deny"}
    assert records[0]["host_pid"] == box.pid and "accepted" not in records[0]
    # It has a filter, which the engine's own profile makes: whether that keeps it from AF_VSOCK, it does not say.
    assert any("AF_VSOCK works" in note and "it is not known here" in note for note in records[0].get("notes", [])) == vsock_works(), records


@pytest.mark.parametrize("engine,option", [("docker", "--cap-add=NET_ADMIN"), ("docker", "--cap-add=cap_sys_admin"), ("podman", "--cap-add=NET_ADMIN"),
                                           ("podman", "--cap-add=ALL"), ("podman", "--privileged")])
def test_container_that_hides_its_capabilities(lab, runtimes, images, engine, option):
    """No process in it has any, but whatever is started in it later has (exec, a health check): its engine says so."""
    runtime, env = runtimes[engine], lab.environment() | runtimes[engine].environment()
    attach = [os.path.join(lab.programs(), "sandbox-net"), "attach", f"--{engine}", "hider"]
    less = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "sleep", "1000"]
    with runtime.start(less, image=images.debian(), options=["--name", "hider", option]) as box:
        wait_for(lambda: caps_of(box.pid) == 0, "a process without capabilities")
        done = runtime.site.run([*attach, "--allow", "ok.test"], env=env)
        assert done.returncode == FAILED and "started in it later (exec, a health check) has, or can gain, CAP_NET_ADMIN" in done.stderr, done
        assert runtime.site.run([*attach, "--quiet", *RISK], env=env).returncode == 0


# A gate of its own

def test_gate_of_its_own(lab, who):
    """With netgate's options attach starts the gate, which ends with the sandbox."""
    name = f"own-{os.getpid()}-{time.monotonic_ns()}"
    log = os.path.join(lab.state(who), f"{name}.jsonl")
    with Sandbox(lab, who) as sandbox:
        done = sandbox_net(lab, ["attach", "--allow", "ok.test", "--pid", str(sandbox.pid), "--name", name, *RISK, "--log", log, "--audit"], who)
        assert done.returncode == 0, done
        assert [entry["sandbox"] for entry in listed(lab, who) if entry["job"] == name] == [name]
        assert sandbox.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
    wait_for(lambda: not any(entry["job"] == name for entry in listed(lab, who)), "the end of the gate")
    records = read_log(log)
    assert (records[0]["mode"], records[-1]["type"]) == ("audit", "end")


def test_gate_of_its_own_that_fails(lab, who):
    """Nothing stays: neither of a gate that can't start, nor of one that can't record."""
    name = f"own-{os.getpid()}-{time.monotonic_ns()}"
    with Sandbox(lab, who) as sandbox:
        for options, said in ((["--allow", "*"], "the gate was not started"), (["--log", "/dev/full"], "was not attached"),
                              (["--nonsense"], "--nonsense: unknown option"), (["--allow", "ok.test", "true"], "without a command")):
            done = sandbox_net(lab, ["attach", "--pid", str(sandbox.pid), "--name", name, *RISK, *options], who)
            assert done.returncode == FAILED and said in done.stderr, done
            assert sandbox.links() == ["lo"]
            assert not any(entry["job"] == name for entry in listed(lab, who))


def test_attempt_that_fails_late(lab, who):
    """The gate was built and proven: when that is told, neither the link nor the name is taken any more."""
    with Sandbox(lab, who) as sandbox:
        with Gate(lab, ["--log", "/dev/full", "--keep"], who, log=False) as gate:
            for _ in range(5):
                done = gate.attach(sandbox, "--name", "box", *RISK)
                assert done.returncode == FAILED and "the proxy has ended" in done.stderr, done
                assert sandbox.links() == ["lo"]
            assert listed(lab, who).count({"job": gate.job, "netgate": gate.running.process.pid}) == 1
        with Gate(lab, ["--allow", "ok.test"], who) as gate:
            assert gate.attach(sandbox, "--name", "box", *RISK).returncode == 0


def listed(lab, user=None):
    done = sandbox_net(lab, ["ls", "--json"], user)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_ls(lab, who):
    with attached(lab, user=who) as box:
        (entry,) = [entry for entry in listed(lab, who) if entry["job"] == box.gate.job]
        assert (entry["sandbox"], entry["attached"]) == ("box", f"pid {box.sandbox.pid}")
        assert (entry["netgate"], entry["pid"]) == (roles(box.gate)["keeper"], roles(box.gate)["session"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["since"])
        lines = sandbox_net(lab, ["ls"], who).stdout.splitlines()
        assert lines[0].split()[:5] == ["JOB", "NETGATE", "SANDBOX", "PID", "SINCE"]
        (line,) = [line for line in lines if line.startswith(box.gate.job)]
        assert line.split() == [box.gate.job, str(entry["netgate"]), "box", str(entry["pid"]), entry["since"], "pid", str(box.sandbox.pid)]
        with Gate(lab, user=who) as idle:
            (entry,) = [entry for entry in listed(lab, who) if entry["job"] == idle.job]
            pid = idle.running.process.pid
            assert entry == {"job": idle.job, "netgate": pid}
            (line,) = [line for line in sandbox_net(lab, ["ls"], who).stdout.splitlines() if line.startswith(idle.job)]
            assert line.split() == [idle.job, str(pid), "-", "-", "-", "nothing", "is", "attached"]


def test_ls_without_jobs(lab, tmp_path):
    """The header, as container engines print theirs; with --json nothing."""
    environment = ["env", f"XDG_RUNTIME_DIR={tmp_path}"]
    os.chmod(tmp_path, 0o777)
    list_ = [*environment, os.path.join(lab.programs(), "sandbox-net"), "ls"]
    done = lab.on_host(list_, user=lab.user)
    assert done.returncode == 0 and done.stdout.split() == ["JOB", "NETGATE", "SANDBOX", "PID", "SINCE", "ATTACHED", "TO"], done
    assert lab.on_host([*list_, "--json"], user=lab.user).stdout == ""
    done = lab.on_host(["env", "--unset=XDG_RUNTIME_DIR", list_[2], "detach", "--job", "x"], user=lab.user)
    assert done.returncode == FAILED and "neither XDG_RUNTIME_DIR is set nor /run/user/" in done.stderr, done


def test_usage(lab):
    for args, said in ((["attach"], "which sandbox?"), (["attach", "--pid", "1"], "which job?"), (["detach"], "which job?"),
                       (["attach", "--pid", "1", "--netns", "/x", "--job", "j"], "name one sandbox"), (["ls", "-l"], "no such option"),
                       (["attach", "--pid"], "a value is missing"), (["attach", "--pid", "1", "--job", "../x"], '--job: "../x": not a name'),
                       (["attach", "--pid", "1", "--job", "j", "--name", ".x"], "--name"),
                       (["attach", "--pid", "1", "--job", "j", "--accept-risk", "all"], "--accept-risk"),
                       (["detach", "--job", "there-is-none"], "no netgate waits for job there-is-none")):
        done = sandbox_net(lab, args)
        assert (done.returncode, done.stdout) == (FAILED, "") and said in done.stderr, done
    for name in re.findall("^  ([a-z]+(?:-[a-z]+)?) ", sandbox_net(lab, ["--help"]).stdout, re.M):
        assert sandbox_net(lab, [name, "--help"]).stdout.startswith(f"usage: sandbox-net {name}")
    for args, said in (([], "no command given"), (["--job", "../x"], "--job"), (["--job", "j", "--user", "x"], "--user is for a command"),
                       (["--job", "j", "--detach", "--log", "-"], "--detach"), (["--job", "j", "--ready-fd", "99"], "--ready-fd"),
                       (["--job", "j", "--wait", "soon"], "--wait"), (["--job", "j", "--keep", "--", "true"], "without a command")):
        done = lab.netgate(args, None, log=None)
        assert (done.rc, done.out) == (FAILED, "") and said in done.err, done


# The gate that waits

def test_socket(lab, who):
    """Private to its user, and gone at the end."""
    with Gate(lab, user=who) as gate:
        mode = lambda path: os.stat(path).st_mode & 0o777
        assert (mode(os.path.dirname(gate.path)), mode(gate.path)) == (0o700, 0o600)
        assert os.path.basename(gate.path) == f"{gate.job}.sock"
        gate.running.process.terminate()
        assert gate.finish().rc == 0
        assert not [name for name in os.listdir(os.path.dirname(gate.path)) if name.startswith(gate.job)]


ASK = """
import socket, struct, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
    sock.connect(sys.argv[1])
    try:
        sock.send(struct.pack("=2I1648x", 0x6e670101, 6))
        answer = sock.recv(4096)
    except (BrokenPipeError, ConnectionResetError):
        answer = b""
print(struct.unpack_from("=2I", answer)[1] if answer else "cut off")
"""


def test_socket_that_is_open_to_all(lab):
    """Whoever gets at it must be its user or root: the modes of files are not what keeps others away."""
    with Gate(lab, user=lab.user) as gate, contextlib.ExitStack() as stack:
        path = gate.path
        while path != lab.folder:
            mode = os.stat(path).st_mode
            stack.callback(os.chmod, path, mode)
            os.chmod(path, mode | 0o777)
            path = os.path.dirname(path)
        own = os.stat(gate.path).st_uid
        says = lambda uid: subprocess.run([sys.executable, "-c", ASK, gate.path], user=uid, group=uid, extra_groups=[], check=True,
                                          capture_output=True, text=True).stdout.strip()
        assert own not in (0, 65534) and [says(own), says(0), says(65534)] == ["4", "4", "cut off"]


def test_one_netgate_a_job(lab, who):
    """A second one is told so; what a killed one left behind is in nobody's way."""
    with Gate(lab, user=who) as gate:
        second = lab.netgate(["--job", gate.job], None, user=who, env=runtime(lab, who))
        assert second.rc == FAILED and f"a netgate waits for job {gate.job} already" in second.err, second
        gate.running.kill()
        assert os.path.exists(gate.path)
        assert f"no netgate waits for job {gate.job}" in sandbox_net(lab, ["detach", "--job", gate.job], who).stderr
        with Gate(lab, user=who, job=gate.job) as again, Sandbox(lab, who) as sandbox:
            assert again.attach(sandbox, *RISK).returncode == 0


def test_strangers_directory(lab):
    """A directory of sockets that others may write is refused on either side."""
    path = os.path.join(lab.workspace(lab.user), "netgate")
    os.mkdir(path)
    os.chown(path, lab.user.uid, lab.user.gid)
    os.chmod(path, 0o777)
    env = {"XDG_RUNTIME_DIR": os.path.dirname(path)}
    done = lab.netgate(["--job", "j"], None, user=lab.user, env=env)
    assert done.rc == FAILED and "mode 0700" in done.err, done


def test_nobody_comes(lab):
    result = lab.netgate(["--job", f"nobody-{os.getpid()}", "--wait", "1s"], None)
    assert result.rc == FAILED and "no sandbox was attached" in result.err and not result.records, result


def test_wait_is_for_the_first_only(lab):
    with attached(lab, args=["--wait", "5s"]) as box:
        time.sleep(5.5)
        assert box.links() == ["lo", "eth0"]


def test_background(lab, who):
    """--detach returns when it listens; the process id is in the file as long as it lives."""
    job = f"back-{os.getpid()}-{time.monotonic_ns()}"
    pid_file = os.path.join(lab.workspace(who), "pid")
    with lab.start(["--job", job, "--detach", "--pid-file", pid_file, "--allow", "ok.test"], None, user=who, env=runtime(lab, who)) as running:
        result = running.finish()
        assert result.rc == 0 and result.out == "" and f"log: {result.log}" in result.err, result
        with open(pid_file) as file:
            pid = int(file.read())
        assert list(running.processes()) == [pid]
        assert {"job": job, "netgate": pid} in listed(lab, who)
        assert os.readlink(f"/proc/{pid}/fd/2") == "/dev/null" and os.getsid(pid) == pid
        with Sandbox(lab, who) as sandbox:
            done = sandbox_net(lab, ["attach", "--job", job, "--pid", str(sandbox.pid), *RISK], who)
            assert done.returncode == 0, done
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not running.processes(), "the end of every process")
            left_with_lo(sandbox)
        assert result.records[-1]["ended"] == "stopped" and not os.path.exists(pid_file)


def test_background_that_fails(lab):
    result = lab.netgate(["--job", "j", "--detach", "--pid-file", "/nonexistent/pid"], None)
    assert result.rc == FAILED and "--pid-file" in result.err and not result.records, result


def test_service_manager(lab):
    """sd_notify(3): ready, and stopping."""
    path = os.path.join(lab.workspace(), "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(60)
        manager.bind(path)
        with Gate(lab, env={"NOTIFY_SOCKET": path}) as gate:
            assert manager.recv(100) == b"READY=1"
            gate.running.process.terminate()
            assert manager.recv(100) == b"STOPPING=1"
            assert gate.finish().rc == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_stopped(lab, who, number):
    """An orderly end on a signal, with the sandbox left alone."""
    with attached(lab, ["ok.test"], user=who) as box:
        box.gate.running.process.send_signal(number)
        result = box.gate.finish()
        assert (result.rc, result.records[-1]["ended"]) == (0, "stopped"), result
        assert not box.gate.running.processes() and left_with_lo(box) and box.sandbox.process.poll() is None


def test_ctrl_c(lab):
    """The terminal's signal goes to the whole process group: it is one orderly end all the same."""
    with attached(lab, ["ok.test"]) as box:
        for pid in box.gate.running.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        result = box.gate.finish()
        assert (result.rc, result.records[-1]["ended"]) == (0, "stopped"), result


def test_keep(lab, who):
    """With --keep the gate is there for the next one."""
    with Gate(lab, ["--keep"], who) as gate:
        for _ in range(2):
            with Sandbox(lab, who) as sandbox:
                assert gate.attach(sandbox, "--name", "box", *RISK).returncode == 0
            wait_for(lambda: len(gate.running.processes()) == 1, "the end of the session")
        assert [r["type"] for r in gate.records()] == ["start", "end"] * 2
        assert lab.on_host([lab.programs() + "/netgate", "verify", gate.running.log]).stdout.count("OK ") == 2
        gate.running.process.terminate()
        assert gate.finish().rc == 0


def test_quiet_and_verbose(lab):
    """What a person sees says whose it is."""
    for flag in ("--quiet", "--verbose"):
        with attached(lab, ["ok.test"], args=[flag]) as box:
            box.run(["curl", "-s", "http://ok.test/hello"])
            result = box.finish()
        assert (result.err == "") == (flag == "--quiet"), result
    for line in ("job {} waits: sandbox-net attach --job {} --pid PID".format(box.gate.job, box.gate.job),
                 f"sandbox box is attached: pid {box.sandbox.pid}", "box: allow http GET ok.test:80", "sandbox box:\n",
                 "sandbox box: its gate is closed"):
        assert f"netgate: {line}" in result.err, result


# How it ends

def test_detach(lab, who):
    """One of two, by its name; the other one goes on."""
    with Gate(lab, ["--allow", "ok.test"], who) as gate, Sandbox(lab, who) as one, Sandbox(lab, who) as two:
        for name, sandbox in (("one", one), ("two", two)):
            assert gate.attach(sandbox, "--name", name, *RISK).returncode == 0
        detach = lambda *args: sandbox_net(lab, ["detach", "--job", gate.job, *args], who)
        assert f"job {gate.job} has no sandbox three" in detach("--name", "three").stderr
        done = detach("--name", "one")
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), done
        assert one.links() == ["lo"]
        assert two.links() == ["lo", "eth0"]
        assert two.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        assert [entry["sandbox"] for entry in listed(lab, who) if entry["job"] == gate.job] == ["two"]
        assert gate.attach(one, "--name", "one", *RISK).returncode == 0
        assert detach().returncode == 0
        assert one.links() == two.links() == ["lo"]
        result = gate.finish()
        assert result.rc == 0 and [r["ended"] for r in result.of("end")] == ["detached"] * 3, result
        assert one.process.poll() is None and two.process.poll() is None


def test_attach_after_detach(lab, who):
    """When detach returns, its link is gone: the next gate need not wait."""
    with Gate(lab, ["--allow", "ok.test", "--keep"], who) as gate, Sandbox(lab, who) as sandbox:
        for i in range(20):
            assert gate.attach(sandbox, *RISK).returncode == 0
            assert sandbox_net(lab, ["detach", "--job", gate.job], who).returncode == 0
            assert sandbox.links() == ["lo"], f"round {i}"


def test_detach_from_an_idle_job(lab):
    """There is nothing to detach: a gate that would end with its last sandbox ends, one that stays stays, and how it ends is said."""
    with Gate(lab) as gate:
        assert sandbox_net(lab, ["detach", "--job", gate.job]).returncode == 0
        assert gate.finish().rc == 0
    with Gate(lab, ["--keep"]) as gate:
        done = sandbox_net(lab, ["detach", "--job", gate.job])
        assert (done.returncode, done.stderr.strip()) == (
            FAILED, f"sandbox-net: job {gate.job} has no sandbox, and its netgate goes on (--keep): kill {gate.running.process.pid} ends it"), done
        assert gate.running.process.poll() is None


def test_detach_cuts_what_is_open(lab):
    """A sandbox that goes on sending does not hold up the end of its gate, and nothing gets out after it."""
    with attached(lab, ["raw.test:9"]) as box:
        script = lab.script("""
            with tcp("raw.test", 9) as sock:
                show(ready=True)
                while True:
                    sock.sendall(bytes(100000))
        """)
        with subprocess.Popen(box.sandbox.command(script, lab.workspace()), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=lab.environment()) as sender:
            try:
                assert json.loads(sender.stdout.readline())
                assert sandbox_net(lab, ["detach", "--job", box.gate.job]).returncode == 0
                left_with_lo(box)
            finally:
                sender.kill()
        result = box.gate.finish()
        assert result.one("close")["end"] == "job_ended" and result.rc == 0, result


def test_link_deleted(lab, who):
    """Root in the sandbox takes its own end away: no network is left, and the record says how."""
    with attached(lab, ["ok.test"], user=who) as box:
        assert box.run(["ip", "link", "del", "eth0"]).returncode == 0
        result = box.gate.finish()
        assert (result.rc, result.records[-1]["ended"]) == (0, "link_deleted"), result
        assert "its link to the gate was taken away" in result.err
        assert box.sandbox.process.poll() is None


@pytest.mark.parametrize("first, then", [(":", ":"), ("ip link set eth0 down", "nsenter --net=/proc/$!/ns/net ip link set eth0 up")], ids=["up", "down"])
def test_link_moved(lab, who, first, then):
    """Out of the sandbox: nobody else gets its gate, at the latest when he raises the link there."""
    script = f"""
        unshare --net sleep 1000 &
        trap "kill $!" EXIT
        while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do :; done
        {first} && ip link set eth0 netns $! && {then} && echo moved
        while nsenter --net=/proc/$!/ns/net ip link show eth0 >/dev/null; do :; done
    """
    with attached(lab, ["ok.test"], user=who) as box:
        done = box.run(["sh", "-c", script])
        assert done.stdout == "moved\n", done
        assert box.gate.finish().records[-1]["ended"] == "link_deleted"


def test_news_that_are_lost(lab):
    """The proxy is stopped until the kernel has more events of the link than the socket takes, and the deletion is among the lost ones."""
    with attached(lab) as box:
        proxy = roles(box.gate)["proxy"]
        os.kill(proxy, signal.SIGSTOP)
        batch = "link set eth0 down\nlink set eth0 up\n" * 1000 + "link del eth0\n"
        assert box.run(["ip", "-batch", "-"], stdin=batch).returncode == 0
        os.kill(proxy, signal.SIGCONT)
        assert box.gate.finish().records[-1]["ended"] == "link_deleted"


def test_time_limit(lab, who):
    """The gate is closed at that time, and nothing is killed."""
    with attached(lab, ["ok.test"], args=["--timeout", "5s"], user=who) as box:
        assert box.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        result = box.gate.finish()
        assert (result.rc, result.records[-1]["ended"]) == (0, "time_limit"), result
        assert "sandbox box: the time limit is reached" in result.err
        assert left_with_lo(box) and box.sandbox.process.poll() is None


def test_process_that_ends_meanwhile(lab, who):
    """It dies while the gate is made: an error, nothing is left, and the gate waits on."""
    with Sandbox(lab, who) as sandbox, Gate(lab, ["--allow", "ok.test"], who) as gate:
        keeper = gate.running.process.pid
        os.kill(keeper, signal.SIGSTOP)
        command = [lab.programs() + "/sandbox-net", "attach", "--job", gate.job, "--pid", str(sandbox.pid), *RISK]
        with subprocess.Popen(lab.host.command(command, who), stderr=subprocess.PIPE, text=True,
                              env=lab.environment(None, who) | runtime(lab, who)) as attach:
            wait_for(lambda: "unix_stream_read" in wchan(attach.pid) or "poll" in wchan(attach.pid), "sandbox-net to wait for an answer")
            sandbox.close()
            os.kill(keeper, signal.SIGCONT)
            assert f"process {sandbox.pid} has ended meanwhile" in attach.communicate(timeout=60)[1]
            assert attach.returncode == FAILED
        wait_for(lambda: len(gate.running.processes()) == 1, "the end of the session")
        assert [r["type"] for r in gate.records()] == ["start", "end"] and gate.records()[1]["ended"] in ("attach_failed", "sandbox_gone")
        with Sandbox(lab, who) as second:
            assert gate.attach(second, *RISK).returncode == 0


# Runs in a pid namespace of its own, where the next number can be chosen.
SWAP = """
import json, subprocess, sys

def start():
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\\n"
    return process

one = start()
attach = subprocess.Popen([*sys.argv[1:], "--pid", str(one.pid)], stderr=subprocess.PIPE, text=True)
while attach.poll() is None and "poll" not in open(f"/proc/{attach.pid}/wchan").read():
    pass
one.kill()
one.wait()
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(one.pid - 1))
two = start()
print(json.dumps([one.pid, two.pid]), flush=True)
err = attach.communicate()[1]
links = subprocess.run(["nsenter", f"--target={two.pid}", "--net", "ip", "-o", "link"], capture_output=True, text=True).stdout
print(json.dumps([attach.returncode, err, two.poll(), len(links.splitlines())]))
two.kill()
"""


def test_number_that_another_process_has_meanwhile(lab):
    """A process with the number of the one that was meant is left alone."""
    with Gate(lab, ["--allow", "ok.test"]) as gate:
        keeper = gate.running.process.pid
        os.kill(keeper, signal.SIGSTOP)
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "python3", "-c", SWAP,
                   lab.programs() + "/sandbox-net", "attach", "--job", gate.job, *RISK]
        with subprocess.Popen(lab.host.command(command), stdout=subprocess.PIPE, text=True, env=lab.environment()) as swap:
            one, two = json.loads(swap.stdout.readline())
            os.kill(keeper, signal.SIGCONT)
            rc, err, status, links = json.loads(swap.stdout.readline())
        assert one == two and (rc, status, links) == (FAILED, None, 1), (one, two, rc, err, status, links)
        assert f"process {one} has ended meanwhile" in err


def wchan(pid):
    with open(f"/proc/{pid}/wchan") as file:
        return file.read()


def test_attach_that_is_killed(lab):
    """Before the gate is in force: it is taken away again."""
    with Sandbox(lab) as sandbox, Gate(lab) as gate:
        keeper = gate.running.process.pid
        os.kill(keeper, signal.SIGSTOP)
        command = [lab.programs() + "/sandbox-net", "attach", "--job", gate.job, "--pid", str(sandbox.pid)]
        with subprocess.Popen(lab.host.command(command), stderr=subprocess.PIPE, env=lab.environment()) as attach:
            wait_for(lambda: "poll" in wchan(attach.pid), "sandbox-net to wait for an answer")
            attach.kill()
        os.kill(keeper, signal.SIGCONT)
        wait_for(lambda: gate.attach(sandbox).returncode == 0, "the gate to be free again")
        assert sandbox.links() == ["lo", "eth0"]


@pytest.mark.parametrize("victim", ["keeper", "session", "proxy"])
def test_killed(lab, who, victim):
    """Whoever is killed: the sandbox is left with lo, and of netgate nothing."""
    with attached(lab, ["ok.test"], user=who) as box:
        os.kill(roles(box.gate)[victim], signal.SIGKILL)
        left_with_lo(box)
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
    with Gate(lab, ["--allow", "ok.test"], who) as gate, Sandbox(lab, who) as one, Sandbox(lab, who) as two:
        for name, sandbox in (("one", one), ("two", two)):
            done = gate.attach(sandbox, "--name", name, *RISK)
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

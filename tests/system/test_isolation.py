# SPDX-License-Identifier: Apache-2.0
"""The isolation of the processes of a real job, tried from inside: inject.c makes system calls in their name.

tests/unit/test_isolation.c has the whole table for the proxy; here is that a job's processes really are as isolated.
"""

import ctypes
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from lab import wait_for
from lab.attached import attached

AT_FDCWD = -100
EACCES = 13
SYS_PIDFD_GETFD = 438
SIOCGSKNS = 0x894C
SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS = 270, 9
RTNLGRP_LINK = 1
FINDER_CAPABILITIES = 1 << 19 | 1 << 2  # SYS_PTRACE, DAC_READ_SEARCH


def roles(running):
    """{role: pid} of a job whose finder is there."""
    wait_for(lambda: running.filtered("netgate-finder"), "the finder")
    return {"proxy": running.child(), "finder": running.filtered("netgate-finder")}


@pytest.fixture
def job(lab, who):
    """A job with an open connection; its processes are at rest."""
    with lab.start(["--allow", "raw.test:4444"], lab.script("sock = tcp('raw.test', 4444)\nsock.send(b'x')\nshow(ready=True)\nsys.stdin.read()"),
                   stdin=subprocess.PIPE, user=who) as running:
        running.next()
        wait_for(lambda: lab.raw.of("mute"), "the connection")
        wait_for(lambda: any(record["type"] == "process" and "conn" in record for record in running.records), "the end of the look at who made it")
        yield running


def status(pid):
    with open(f"/proc/{pid}/status") as lines:
        return dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)


def descriptors(pid):
    return {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}


def test_what_the_proxy_holds(job, who):
    """No file but the log, no directory, no socket of another kind than those of G, of the world and of netgate itself."""
    proxy = roles(job)["proxy"]
    held = descriptors(proxy)
    assert held.pop(0) == held.pop(1) == "/dev/null"
    files = [path for path in held.values() if path.startswith("/")]
    assert files == [job.log], held
    assert {re.sub(r"[:\[].*", "", path) for path in held.values() if not path.startswith("/")} <= {"socket", "pipe", "anon_inode"}, held
    assert {path for path in held.values() if path.startswith("anon_inode")} <= {"anon_inode:[eventpoll]", "anon_inode:[eventfd]",
                                                                                "anon_inode:[timerfd]"}, held
    values = status(proxy)
    assert (values["Seccomp"], values["NoNewPrivs"], values["Threads"]) == ("2", "1", "1")
    assert {values[key] for key in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    if not who:
        assert values["CapBnd"] == "0" * 16 and values["Groups"].strip() == "" and values["Uid"].split() == ["65534"] * 4


def sockets(pid):
    """Its sockets, one after the other, as our own."""
    libc, process = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid)
    try:
        for fd, path in descriptors(pid).items():
            if path.startswith("socket:"):
                copy = libc.syscall(SYS_PIDFD_GETFD, process, fd, 0)
                assert copy >= 0, os.strerror(ctypes.get_errno())
                with socket.socket(fileno=copy) as one:
                    yield one
    finally:
        os.close(process)


def memberships(pid):
    """The groups of rtnetlink(7) that its sockets hear, each socket's as bits."""
    found = []
    for one in sockets(pid):
        if (one.family, one.proto) == (socket.AF_NETLINK, 0):  # NETLINK_ROUTE
            groups = one.getsockopt(SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, 4)
            found.append(int.from_bytes(groups[:4], sys.byteorder))
    return [groups for groups in found if groups]


def test_buffers(job):
    """What one connection may hold of the host's memory, in the gate's namespace: the one that its listening sockets are in."""
    found = set()
    for one in sockets(roles(job)["proxy"]):
        if one.family == socket.AF_INET and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            gate = fcntl.ioctl(one, SIOCGSKNS)
            try:
                text = subprocess.run(["nsenter", f"--net=/proc/{os.getpid()}/fd/{gate}", "cat", "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"],
                                      capture_output=True, text=True, check=True, timeout=60).stdout
            finally:
                os.close(gate)
            found.update(int(line.split()[-1]) for line in text.splitlines())
    assert found == {1 << 20}


def test_who_hears_of_links(job, lab, who):
    """The kernel goes by each such socket at every change of a link in every namespace: only a proxy that needs one has it."""
    def heard(running):
        return [groups for pid, name in running.processes().items() if name == "netgate" for groups in memberships(pid)]
    assert heard(job) == []
    with attached(lab, user=who) as box:
        assert heard(box.gate.running) == [1 << (RTNLGRP_LINK - 1)]


def test_what_the_finder_holds(job, who):
    """One socket to the proxy, one to ask about sockets, and /proc, which is its root too."""
    finder = roles(job)["finder"]
    held = sorted(re.sub(r":\[.*", "", path) for path in descriptors(finder).values())
    assert held == ["/dev/null"] * 3 + ["/proc"] + ["socket"] * 2
    assert os.readlink(f"/proc/{finder}/root") == "/proc"
    values = status(finder)
    assert (values["Seccomp"], values["NoNewPrivs"]) == ("2", "1")
    assert int(values["CapEff"], 16) == int(values["CapPrm"], 16) == FINDER_CAPABILITIES
    assert os.readlink(f"/proc/{finder}/ns/net") != os.readlink("/proc/self/ns/net")
    if who:
        assert os.readlink(f"/proc/{finder}/ns/user") != os.readlink("/proc/self/ns/user")


def test_what_the_finder_of_an_attached_sandbox_holds(lab, who):
    """/proc, a process's directory in it, the way home, and one socket: nothing of the sandbox."""
    with attached(lab, user=who) as box:
        finder = roles(box.gate.running)["finder"]
        held = descriptors(finder)
        assert sorted(re.sub(r":\[.*", "", path) for path in held.values()) == [*["/dev/null"] * 3, "/proc", f"/proc/{box.sandbox.pid}", "net", "socket"]
        assert os.readlink(f"/proc/{finder}/ns/net") in held.values()
        assert os.readlink(f"/proc/{finder}/ns/net") not in (f"net:[{box.sandbox.netns}]", os.readlink(f"/proc/{box.gate.running.process.pid}/ns/net"))
        values = status(finder)
        assert (values["Seccomp"], values["NoNewPrivs"]) == ("2", "1")
        assert int(values["CapEff"], 16) == int(values["CapPrm"], 16) == FINDER_CAPABILITIES | 1 << 21  # and SYS_ADMIN
        if not who:
            assert values["Uid"].split() == ["65534"] * 4


@pytest.mark.parametrize("attempt", [("setns", 0, 0), ("setns", 0, 0x20000), ("socket", socket.AF_INET, socket.SOCK_STREAM, 0),
                                     ("socket", socket.AF_NETLINK, socket.SOCK_RAW, 0), ("mount", "none", "/mnt", "tmpfs", 0, 0),
                                     ("ptrace", 16, 1, 0, 0), ("openat", AT_FDCWD, "/1/x", os.O_WRONLY | os.O_CREAT, 0o600)],
                         ids=["setns", "mount-namespace", "inet", "route", "mount", "ptrace", "create"])
def test_deadly_for_the_finder_of_an_attached_sandbox(lab, inject, attempt):
    with attached(lab, ["ok.test"]) as box:
        assert inject(roles(box.gate.running)["finder"], *attempt) == "SIGSYS"
        wait_for(lambda: "netgate-finder" not in box.gate.running.processes().values(), "the finder's end")
        assert box.finish().rc == 0


def test_refused_paths(job, inject):
    """The proxy may ask for a file, and is refused: it goes on."""
    proxy = roles(job)["proxy"]
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT):
        assert inject(proxy, "openat", AT_FDCWD, "/etc/passwd", flags, 0o600) == -EACCES
    assert job.finish(b"").rc == 0


DEADLY = {"execve": ("execve", "/bin/true", 0, 0), "unix": ("socket", socket.AF_UNIX, socket.SOCK_STREAM, 0),
          "netlink": ("socket", socket.AF_NETLINK, socket.SOCK_RAW, 0), "packet": ("socket", socket.AF_PACKET, socket.SOCK_RAW, 0),
          "raw": ("socket", socket.AF_INET, socket.SOCK_RAW, 1), "kill": ("kill", 1, 0), "ptrace": ("ptrace", 16, 1, 0, 0),
          "setns": ("setns", 0, 0), "mount": ("mount", "none", "/mnt", "tmpfs", 0, 0), "clone": ("clone", 17, 0, 0, 0, 0)}


@pytest.mark.parametrize("attempt", DEADLY)
def test_deadly_for_the_proxy(lab, inject, attempt):
    """It dies of the attempt, and with it the sandbox's network and the command."""
    with lab.start(["--allow", "ok.test"], lab.script("show(ready=True)\nsys.stdin.read()"), stdin=subprocess.PIPE) as running:
        running.next()
        assert inject(roles(running)["proxy"], *DEADLY[attempt]) == "SIGSYS"
        result = running.finish()
    assert result.rc == 125 and f"the proxy was killed by signal {int(signal.SIGSYS)}" in result.err, result


@pytest.mark.parametrize("attempt", [*DEADLY, "write", "create", "setuid"])
def test_deadly_for_the_finder(job, inject, attempt):
    """It dies of the attempt; the job goes on and says that processes are not known any more."""
    more = {"write": ("write", 0, "x", 1), "create": ("openat", AT_FDCWD, "/1/x", os.O_WRONLY | os.O_CREAT, 0o600), "setuid": ("setuid", 0)}
    finder = roles(job)["finder"]
    assert inject(finder, *(DEADLY | more)[attempt]) == "SIGSYS"
    wait_for(lambda: "netgate-finder" not in job.processes().values(), "the finder's end")
    result = job.finish(b"")
    assert result.rc == 0, result


def test_the_finder_sees_processes_only(job, inject):
    """Its root is /proc: no other file is there to be read."""
    finder = roles(job)["finder"]
    assert inject(finder, "openat", AT_FDCWD, "/etc/passwd", os.O_RDONLY) == -2
    assert inject(finder, "openat", AT_FDCWD, "/../../etc/passwd", os.O_RDONLY) == -2
    assert job.finish(b"").rc == 0

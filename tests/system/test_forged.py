# SPDX-License-Identifier: Apache-2.0
"""What one of netgate's processes says to another when it has been taken over: nobody obeys, everything ends, and a person is told."""

import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile

import pytest

from lab import wait_for

# base/report.h and base/handoff.h
HEAD = 72
MONITOR_COUNTERS, MONITOR_COUNTED, MONITOR_FINISH, MONITOR_ENDED, MONITOR_FINDER, MONITOR_LOG, MONITOR_LINK_GONE = range(1, 8)
REPORT_NOTE, REPORT_STARTED, REPORT_STOPPED, REPORT_FAILED, REPORT_ENDED, REPORT_EXEC, REPORT_FIXED, REPORT_SANDBOX = range(1, 9)
GATE, READY, ARM, ARMED = range(1, 5)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


FACTS = """
#include <stdio.h>
#include <string.h>
#include "base/handoff.h"
#include "base/report.h"

int main(void)
{
	struct handoff_msg gate = { .magic = HANDOFF_MAGIC, .type = HANDOFF_GATE };

	memset(gate.nonce, 'n', sizeof(gate.nonce));
	layout_usual(&gate.layout);
	printf("%zu %zu ", sizeof(struct monitor_msg), sizeof(struct report_msg));
	for (size_t i = 0; i < sizeof(gate); i++)
		printf("%02x", ((unsigned char *)&gate)[i]);
	return 0;
}
"""


def facts():
    """The sizes of the messages, which grow (what follows the members that are written here is zero), and a whole HANDOFF_GATE."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "facts")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", f"-I{TOP}", "-o", path,
                        *[f"{TOP}/base/{name}.c" for name in ("layout", "addr", "prefix")], "-x", "c", "-"], input=FACTS, text=True, check=True)
        monitor, report, gate = subprocess.run([path], capture_output=True, text=True, check=True).stdout.split()
        return int(monitor), int(report), bytes.fromhex(gate)


MONITOR_SIZE, REPORT_SIZE, GATE_MSG = facts()


def monitor_msg(kind, head=b""):
    return struct.pack(f"=IIiI{HEAD}s", kind, 0, -1, 0, head).ljust(MONITOR_SIZE, b"\0")


def unix_sockets(pid):
    """Descriptors that are sockets of AF_UNIX, in their order."""
    with open(f"/proc/{pid}/net/unix") as table:
        inodes = {line.split()[6] for line in table.read().splitlines()[1:]}
    found = {int(fd): re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}")) for fd in os.listdir(f"/proc/{pid}/fd")}
    return sorted(fd for fd, match in found.items() if match and match[1] in inodes)


FROM_PROXY = {
    "short": [b"x"],
    "long": [bytes(500)],
    "unknown type": [monitor_msg(99)],
    "type 0": [monitor_msg(0)],
    **{f"not its to say, {kind}": [monitor_msg(kind)] for kind in (MONITOR_COUNTED, MONITOR_FINISH, MONITOR_FINDER, MONITOR_LOG)},
    "no link": [monitor_msg(MONITOR_LINK_GONE)],
    "counters of nothing": [monitor_msg(MONITOR_COUNTERS)],
    "no head": [monitor_msg(MONITOR_ENDED, b"\x1b]0;title\x07" * 6)],
    "short head": [monitor_msg(MONITOR_ENDED, b"a" * 63)],
    "long head": [monitor_msg(MONITOR_ENDED, b"a" * 65)],
    "ended twice": [monitor_msg(MONITOR_ENDED, b"a" * 64)] * 2,
}


@pytest.mark.parametrize("messages", FROM_PROXY.values(), ids=FROM_PROXY.keys())
def test_to_the_monitor(lab, inject, messages):
    """A proxy that says what it may not say is ended, and with it the sandbox's network and the command."""
    with lab.start(["--allow", "ok.test"], lab.script("show(ready=True)\nsys.stdin.read()"), stdin=subprocess.PIPE) as running:
        running.next()
        wait_for(lambda: "netgate-finder" in running.processes().values(), "the finder")
        proxy = running.child()
        # The first is the monitor's, which it was started with; the finder's came later.
        fd = unix_sockets(proxy)[0]
        for message in messages:
            # It may be killed as soon as the message is there.
            assert inject(proxy, "sendto", fd, message, len(message), 0, 0, 0) in (len(message), "SIGKILL")
        result = running.finish()
        assert not running.processes()
    assert result.rc == 125 and "the proxy sent a message that it may not send, and is ended" in result.err, result
    assert "\x1b" not in result.err and result.records[-1]["type"] != "end", result
    done = subprocess.run([os.path.join(lab.programs(), "netgate"), "verify", result.log], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and done.stdout.startswith("UNFINISHED"), done


# A launcher of the test's own, beside a copy of netgate: it says what it is told to.

LAUNCHER = """#!/usr/bin/python3
import array, ctypes, os, socket, struct, sys, time
args = sys.argv
gate = socket.socket(fileno=int(args[args.index("--gate-fd") + 1]))
report = socket.socket(fileno=int(args[args.index("--report-fd") + 1]))

def send(sock, data, fds=()):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        sock.sendmsg([data], rights)
    except OSError as error:
        print(error, file=sys.stderr)

def msg(kind, value=0, text=b""):
    return struct.pack("=Ii480s", kind, value, text).ljust(REPORT_SIZE, b"\\0")

def handoff(kind, magic=None):
    return (GATE_MSG[:4] if magic is None else struct.pack("=I", magic)) + struct.pack("=I", kind) + GATE_MSG[8:]

def pipes(n):
    return [os.pipe()[0] for _ in range(n)]

INET, INET6, NETLINK, PACKET, UNIX = socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_UNIX
STREAM, DGRAM, RAW, ROUTE, NETFILTER = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, 0, 12
TCP4, TCP6, UDP4, UDP6, NFLOG, NFT, LINK, GUEST = range(8)
KINDS = [(INET, STREAM), (INET6, STREAM), (INET, DGRAM), (INET6, DGRAM), (NETLINK, RAW, NETFILTER), (NETLINK, RAW, NETFILTER), (NETLINK, RAW, ROUTE),
         (PACKET, RAW)]
held = []

def leave():
    "To a network namespace of its own."
    assert ctypes.CDLL(None, use_errno=True).unshare(0x40000000) == 0

def sock(family, type, protocol=0, listen=True, blocking=False):
    held.append(socket.socket(family, type, protocol))
    held[-1].setblocking(blocking)
    if type == STREAM and listen and family != UNIX:
        held[-1].listen()
    return held[-1].fileno()

def sockets(n=7):
    "As base/handoff.h has them, of the network namespace that this is in."
    return [sock(*kind) for kind in KINDS[:n]]

def swap(at, fd):
    fds = sockets(8)[: max(7, at + 1)]
    fds[at] = fd
    return fds

FORGE
if args[-1] == "disobey":
    while True:
        time.sleep(1)
try:
    report.recv(1)
except OSError:
    pass
"""


@pytest.fixture
def forged(lab):
    """forged(code, *words): runs a netgate whose launcher runs `code`."""

    def run(code, *words):
        folder = os.path.join(lab.workspace(), "bin")
        os.mkdir(folder)
        shutil.copy(os.path.join(lab.programs(), "netgate"), folder)
        path = os.path.join(folder, "sandbox-net")
        with open(path, "w") as out:
            out.write(LAUNCHER.replace("GATE_MSG", repr(GATE_MSG)).replace("REPORT_SIZE", str(REPORT_SIZE)).replace("FORGE", code))
        os.chmod(path, 0o755)
        with lab.start([], words or ["true"], program=os.path.join(folder, "netgate")) as running:
            result = running.finish()
            wait_for(lambda: not running.processes(), "the end of every process")
        return result

    return run


FROM_LAUNCHER = {
    "short": ("send(report, b'x')", "malformed report"),
    "long": ("send(report, bytes(1000))", "malformed report"),
    "too many descriptors": (f"send(report, msg({REPORT_SANDBOX}, os.getpid()), pipes(5))", "malformed report"),
    "unknown type": ("send(report, msg(77))", "a report of unknown type 77"),
    "type 0": ("send(report, msg(0))", "a report of unknown type 0"),
    "a sandbox of nothing": (f"send(report, msg({REPORT_SANDBOX}, 1))\nsend(report, msg(77))", "unknown type 77"),
    "a sandbox of pipes": (f"send(report, msg({REPORT_SANDBOX}, 1), pipes(2))\nsend(report, msg(77))", "unknown type 77"),
    "a flood of notes": (f"for i in range(1000): send(report, msg({REPORT_NOTE}, 0, b'n'))\nsend(report, msg(77))", "unknown type 77"),
    "no NUL": (f"send(report, msg({REPORT_FAILED}, 0, b'z' * 480))", "z" * 479 + "\n"),
    "escape sequences": (f"send(report, msg({REPORT_FAILED}, 0, b'a\\x1b[2J\\nnetgate: forged\\x07'))", "a?[2J?netgate: forged?\n"),
    "in a note": (f"send(report, msg({REPORT_NOTE}, 0, b'a\\x1b[2J\\nb'))\nsend(report, msg({REPORT_FAILED}, 0, b'over'))", "note: a?[2J?b\n"),
    "disobeys": ("args.append('disobey')\nsend(report, b'x')", "malformed report"),
}


@pytest.mark.parametrize("code,said", FROM_LAUNCHER.values(), ids=FROM_LAUNCHER.keys())
def test_launcher_to_the_monitor(forged, code, said):
    result = forged(code)
    assert result.rc == 125 and said in result.err and "\x1b" not in result.err, result
    assert result.records == [], "nothing began"


TO_PROXY = {
    "short": "send(gate, b'x', sockets())",
    "long": "send(gate, bytes(1000), sockets())",
    "wrong magic": "send(gate, handoff(1, 7), sockets())",
    "no descriptors": "send(gate, handoff(1))",
    "too few": "send(gate, handoff(1), sockets()[:6])",
    "too many": "send(gate, handoff(1), sockets(8) + sockets()[:1])",
    "wrong order": "send(gate, handoff(3), sockets())",
    "gate twice": "send(gate, handoff(1), sockets())\nsend(gate, handoff(1), sockets())",
    "no layout": "send(gate, handoff(1)[:24] + bytes(len(handoff(1)) - 24), sockets())",
    "nothing": "gate.close()",
}


@pytest.mark.parametrize("code", TO_PROXY.values(), ids=TO_PROXY.keys())
def test_launcher_to_the_proxy(forged, code):
    """It ends, in order and without a signal, whatever it is given for a gate; and then everything does."""
    result = forged("leave()\n" + code + "\nwhile gate.fileno() >= 0 and gate.recv(100): pass")
    assert result.rc == 125 and "signal" not in result.err, result
    assert "the proxy ended early" in result.err or "launcher ended early" in result.err, result
    assert result.records == [], result


SERVED = """
send(gate, handoff(1), {})
try:
    answer = gate.recv(100)
except OSError:
    answer = b""
print("answer", answer[4:8].hex() or "none", file=sys.stderr)
if answer:
    sys.exit(3)
"""


@pytest.mark.parametrize("n", [7, 8], ids=["plain", "with a guest"])
def test_a_gate_by_a_forged_launcher(forged, n):
    """The sockets that the tests below put one other among are served: READY."""
    result = forged("leave()\n" + SERVED.format(f"sockets({n})"))
    assert f"answer {READY:02x}000000" in result.err and "handed over" not in result.err, result


OTHERS = {
    "pipe": "swap(TCP4, os.pipe()[0])", "file": "swap(UDP4, os.open('/etc/passwd', os.O_RDONLY | os.O_NONBLOCK))", "unix": "swap(TCP4, sock(UNIX, STREAM))",
    "other family": "swap(TCP4, sock(INET6, STREAM))", "other family, 6": "swap(TCP6, sock(INET, STREAM))", "datagrams": "swap(TCP4, sock(INET, DGRAM))",
    "does not listen": "swap(TCP6, sock(INET6, STREAM, listen=False))", "blocks": "swap(TCP4, sock(INET, STREAM, blocking=True))",
    "stream for DNS": "swap(UDP4, sock(INET, STREAM))", "listener for DNS": "swap(UDP6, sock(INET6, STREAM, listen=True))",
    "raw for DNS": "swap(UDP4, sock(INET, RAW, 17))", "UDP-Lite for DNS": "swap(UDP4, sock(INET, DGRAM, 136))", "ping for DNS": "swap(UDP4, sock(INET, RAW, 1))",
    "route for NFLOG": "swap(NFLOG, sock(NETLINK, RAW, ROUTE))", "route for counters": "swap(NFT, sock(NETLINK, RAW, ROUTE))",
    "netfilter for links": "swap(LINK, sock(NETLINK, RAW, NETFILTER))", "packets for links": "swap(LINK, sock(PACKET, RAW))",
    "netlink for a guest": "swap(GUEST, sock(NETLINK, RAW, ROUTE))", "cooked packets": "swap(GUEST, sock(PACKET, DGRAM))",
    "one of another namespace": "[*sockets()[:6], (leave(), sock(NETLINK, RAW, ROUTE))[1]]",
}


@pytest.mark.parametrize("code", OTHERS.values(), ids=OTHERS.keys())
def test_sockets_of_another_kind(forged, code):
    """One that is not what is due: the proxy serves none of them, and a person is told."""
    result = forged("leave()\n" + SERVED.format(code))
    assert result.rc == 125 and "answer none" in result.err and result.records == [], result
    assert re.search("netgate: proxy: what the launcher handed over is no .* of the gate\n", result.err), result


def test_sockets_of_the_hosts_network(forged):
    """All of the right kind, where there is no sandbox at the other end."""
    result = forged(SERVED.format("sockets()"))
    assert result.rc == 125 and "answer none" in result.err and result.records == [], result
    assert "netgate: proxy: the launcher handed over sockets of the proxy's own network\n" in result.err, result


def test_proxy_that_hangs(forged):
    """One that does not even get to serve, and does not end either, does not keep netgate."""
    result = forged("""
import signal
for pid in os.listdir("/proc"):
    if pid.isdigit() and int(pid) != os.getpid():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if int(stat.read().rpartition(")")[2].split()[1]) == os.getppid():
                    os.kill(int(pid), signal.SIGSTOP)
        except OSError:
            pass
sys.exit(3)
""")
    assert result.rc == 125 and "launcher ended early with status 3" in result.err, result

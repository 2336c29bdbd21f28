# SPDX-License-Identifier: Apache-2.0
"""What one of netgate's processes says to another when it has been taken over: nobody obeys, everything ends, and a person is told."""

import os
import re
import shutil
import signal
import struct
import subprocess

import pytest

from lab import wait_for

# base/report.h and base/handoff.h
HEAD = 72
COUNTERS = 9
MONITOR_COUNTERS, MONITOR_COUNTED, MONITOR_FINISH, MONITOR_ENDED, MONITOR_FINDER, MONITOR_LOG, MONITOR_LINK_GONE = range(1, 8)
REPORT_NOTE, REPORT_STARTED, REPORT_STOPPED, REPORT_FAILED, REPORT_ENDED, REPORT_EXEC, REPORT_FIXED, REPORT_SANDBOX = range(1, 9)
MAGIC = 0x6E670001
GATE, READY, ARM, ARMED = range(1, 5)


TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def monitor_msg(kind, head=b""):
    return struct.pack(f"=IIiI{HEAD}sQQ", kind, 0, -1, 0, head, 0, 0) + bytes(16 * COUNTERS)


@pytest.fixture(scope="module", autouse=True)
def right_sizes():
    """With another size, every message here would be refused for that alone."""
    asserts = "".join(f'_Static_assert({left} == {right}, "{left}");\n' for left, right in (
        ("sizeof(struct monitor_msg)", len(monitor_msg(0))), ("sizeof(struct report_msg)", 8 + 480 + 16),
        ("sizeof(struct handoff_msg)", 8 + 16 + 12), ("MONITOR_LINK_GONE", MONITOR_LINK_GONE), ("REPORT_SANDBOX", REPORT_SANDBOX)))
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-fsyntax-only", f"-I{TOP}", "-x", "c", "-"], check=True, text=True,
                   input=f'#include "base/report.h"\n{asserts}')


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
        (proxy,) = [pid for pid, name in running.processes().items() if name == "netgate" and pid != running.process.pid]
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
import array, os, socket, struct, sys, time
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
    return struct.pack("=Ii480sQQ", kind, value, text, 0, 0)

def handoff(kind, magic=MAGIC):
    return struct.pack("=II16s12s", magic, kind, b"n" * 16, bytes(12))

def pipes(n):
    return [os.pipe()[0] for _ in range(n)]

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
            out.write(LAUNCHER.replace("MAGIC", str(MAGIC)).replace("FORGE", code))
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
    "short": "send(gate, b'x')",
    "long": "send(gate, bytes(1000))",
    "wrong magic": "send(gate, handoff(1, 7), pipes(7))",
    "no descriptors": "send(gate, handoff(1))",
    "too few": "send(gate, handoff(1), pipes(3))",
    "too many": "send(gate, handoff(1), pipes(12))",
    "wrong order": "send(gate, handoff(3), pipes(7))",
    "gate twice": "send(gate, handoff(1), pipes(7))\nsend(gate, handoff(1), pipes(7))",
    "nothing": "gate.close()",
}


@pytest.mark.parametrize("code", TO_PROXY.values(), ids=TO_PROXY.keys())
def test_launcher_to_the_proxy(forged, code):
    """It ends, in order and without a signal, whatever it is given for a gate; and then everything does."""
    result = forged(code + "\nwhile gate.fileno() >= 0 and gate.recv(100): pass")
    assert result.rc == 125 and "signal" not in result.err, result
    assert "the proxy ended early" in result.err or "the log can't" in result.err or "launcher ended early" in result.err, result
    assert not [record for record in result.records if record["type"] not in ("start", "end")], result

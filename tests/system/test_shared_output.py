# SPDX-License-Identifier: Apache-2.0
"""The command shares netgate's standard error and output: it can fill them, stop them, change their flags, and must gain nothing by it."""

import fcntl
import os
import pty
import signal
import subprocess
from textwrap import dedent

import pytest

from lab import wait_for

BLOCK = """
    import fcntl, termios

    def fill_pipe():
        flags = fcntl.fcntl(2, fcntl.F_GETFL)
        fcntl.fcntl(2, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        try:
            while True:
                os.write(2, b"x" * 4096)
        except BlockingIOError:
            pass
        fcntl.fcntl(2, fcntl.F_SETFL, flags)

    def stop_terminal():
        termios.tcflow(2, termios.TCOOFF)

    {"pipe": fill_pipe, "terminal": stop_terminal}[sys.argv[1]]()
"""


class Blocked:
    """A run whose command blocks standard error, which nobody reads, and then goes on with `text`."""

    def __init__(self, lab, kind, args, text):
        self._fds = os.pipe() if kind == "pipe" else pty.openpty()
        self.running = lab.start(["--allow", "ok.test", *args], lab.script(dedent(BLOCK) + dedent(text), kind),
                                 stderr=self._fds[1], stdin=subprocess.PIPE)

    def __enter__(self):
        return self.running

    def __exit__(self, *_):
        self.running.kill()
        for fd in self._fds:
            os.close(fd)


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_blocked_stderr_holds_nothing_up(lab, kind):
    """A time limit, a signal and the command's own end: netgate ends, and the log is complete."""
    wait = "show(ready=True)\nsys.stdin.read()"
    with (Blocked(lab, kind, ["--timeout", "5s"], wait) as limited, Blocked(lab, kind, [], wait) as signalled,
          Blocked(lab, kind, [], "show(ready=True)") as ending, Blocked(lab, kind, ["--verbose"], """
              for _ in range(50):
                  http("ok.test", 80, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
              show(ready=True)
          """) as verbose):
        cases = [(limited, 124), (signalled, -signal.SIGTERM), (ending, 0), (verbose, 0)]
        for running, _ in cases:
            assert running.next() == {"ready": True}
        signalled.process.send_signal(signal.SIGTERM)
        for running, status in cases:
            assert running.process.wait(120) == status
            wait_for(lambda: not running.processes(), "the end of every process")
            assert running.records[-1]["type"] == "end"
        assert len([record for record in verbose.records if record["type"] == "close"]) == 50


def test_flags_of_stderr_stay_the_callers(lab):
    """netgate leaves O_NONBLOCK as it was, and its last lines are whole when the command sets it."""
    reader, writer = os.pipe()
    try:
        with lab.start(["--allow", "ok.test"], lab.script("""
            import fcntl
            flags = fcntl.fcntl(2, fcntl.F_GETFL)
            fcntl.fcntl(2, fcntl.F_SETFL, flags | os.O_NONBLOCK)
            show(nonblocking=bool(flags & os.O_NONBLOCK))
        """), stderr=writer) as running:
            assert running.next() == {"nonblocking": False}
            assert running.process.wait(120) == 0
        assert fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK, "the command's own change is still there"
        os.close(writer)
        writer = -1
        with os.fdopen(reader, "r") as lines:
            reader = -1
            assert "netgate: log: " in lines.read()
    finally:
        for fd in (reader, writer):
            if fd >= 0:
                os.close(fd)


def verify(lab, log):
    return subprocess.run([os.path.join(lab.programs(), "netgate"), "verify", "-"], input=log.encode(), capture_output=True,
                          timeout=60).returncode


def test_log_on_standard_output_is_netgates_alone(lab, who):
    """With `--log -` the command's output goes to standard error: it can't write records of its own."""
    forged = '{"v":1,"seq":2,"type":"decision","host":"never.test","verdict":"deny"}'
    result = lab.netgate(["--log", "-", "--allow", "ok.test"], ["sh", "-c", f"echo '{forged}'; curl -sS http://ok.test/hello"],
                         log=None, user=who)
    assert result.rc == 0, result
    assert forged in result.err and "hello from ok.test" in result.err, result
    records = result.shown
    assert records[0]["type"] == "start" and records[-1]["type"] == "end", result
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1)), result
    assert {record["host"] for record in records if record["type"] == "decision"} == {"ok.test"}, result
    assert verify(lab, result.out) == 0
    assert verify(lab, result.out + forged + "\n") != 0

# SPDX-License-Identifier: Apache-2.0
"""--json: what became of a job as one object, whatever the command does to its output."""

import base64
import json
import os
import subprocess

import pytest

from lab import v4, wait_for


def run(lab, args, command, **kwargs):
    """The result, and the only line of standard output as an object."""
    result = lab.netgate(["--json", *args], command, **kwargs)
    assert result.out.count("\n") == 1 and result.out.endswith("\n") and result.out.isascii(), result
    return result, json.loads(result.out)


def script(lab, args, text, *script_args, **kwargs):
    return run(lab, args, lab.script(text, *script_args), **kwargs)


def test_object(lab, who):
    result, got = run(lab, ["--allow", "ok.test", "--job", "tool"], [
        "sh", "-c", "curl -sS http://ok.test/hello; curl -sS http://bad.test/; echo to stderr >&2; exit 3"], user=who)
    assert result.rc == got["exit"] == 3 and result.err == "", result
    assert got["stdout"].startswith("hello from ok.test\n") and got["stderr"].endswith("to stderr\n")
    assert not got["timed_out"] and not got["oom"] and not got["stdout_truncated"] and "error" not in got and "signal" not in got
    (allowed,) = got["allowed"]
    close = result.one("close")
    assert allowed == {"host": "ok.test", "port": 80, "connections": 1, "up": close["up"], "down": close["down"]}, result
    (denied,) = got["denied"]
    assert (denied["host"], denied["reason"], denied["to_allow"]) == ("bad.test", "not_allowed", "--allow bad.test"), result
    assert "--allow" not in got["stdout"] + got["stderr"]
    assert denied["lookups"] >= 1 and got["dropped"] == got["failed"] == []
    assert (got["job"], got["log"]) == ("tool", result.log) and 0 <= got["ms"] < 60_000
    verified = lab.on_host([lab.programs() + "/netgate", "verify", result.log, "--head", got["head"]])
    assert verified.returncode == 0, verified


def test_what_was_tried(lab, who):
    """Connections, packets, addresses: each with what it was about, and why it came to nothing."""
    result, got = script(lab, ["--allow", "raw.test:1234", "--allow", "private.test"], """
        def attempt(what):
            try:
                what()
            except OSError:
                pass
        attempt(lambda: tcp("raw.test", 1234))
        attempt(lambda: tcp("private.test", 80).sendall(b"GET / HTTP/1.1\\r\\nHost: private.test\\r\\n\\r\\n"))
        attempt(lambda: ending(sys.argv[1], 22, b"x"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"secret", (sys.argv[1], 9999))
    """, v4("web"), user=who)
    assert [(row["host"], row["port"], row["reason"]) for row in got["failed"]] == [("raw.test", 1234, "connect_failed")], got
    denied = {row.get("host") or row["address"]: row for row in got["denied"]}
    assert denied[v4("web")]["port"] == 22 and denied[v4("web")]["reason"] == "no_name", got
    (dropped,) = got["dropped"]
    assert dropped == {"proto": "udp", "address": v4("web"), "port": 9999, "reason": "udp", "packets": 1, "bytes": 34}, got


def test_output_that_is_no_text(lab, who):
    """Whatever the bytes are, they are in the object."""
    data = bytes(range(256)) + "é€😀\n".encode()
    result, got = script(lab, [], f"os.write(1, bytes.fromhex('{data.hex()}')); os.write(2, 'é\\x00\\x1b[31m'.encode())", user=who)
    assert base64.b64decode(got["stdout_base64"]) == data and got["stdout"] == data.decode("utf-8", "replace"), result
    assert got["stderr"] == "é\x00\x1b[31m" and "stderr_base64" not in got, result


def test_more_output_than_is_kept(lab, who):
    """The command is never held up; what is kept is the beginning, of whole characters."""
    result, got = script(lab, [], """
        for _ in range(300):
            os.write(1, "ä€😀".encode() * 10_000)
        os.write(2, b"still here")
    """, user=who)
    assert result.rc == 0 and got["stdout_truncated"] and not got["stderr_truncated"] and got["stderr"] == "still here", got["stderr"]
    kept = got["stdout"].encode()
    assert (1 << 20) - 4 < len(kept) <= 1 << 20 and "stdout_base64" not in got
    assert ("ä€😀" * 200_000).startswith(got["stdout"])


def test_what_is_left_running_holds_nothing_up(lab, who):
    result, got = run(lab, [], ["sh", "-c", "sleep 1000 & setsid sleep 1000 & echo done"], user=who)
    assert (result.rc, got["stdout"], got["exit"]) == (0, "done\n", 0), result
    assert got["ms"] < 60_000


def test_somebody_else_with_the_pipe(lab):
    """A process outside of the sandbox that got hold of standard output is not waited for."""
    workspace = lab.workspace()
    holder = subprocess.Popen(["/usr/bin/python3", "-c", """if 1:
        import array, os, socket, sys
        server = socket.socket(socket.AF_UNIX)
        server.bind(sys.argv[1])
        server.listen()
        print("ready", flush=True)
        conn = server.accept()[0]
        fds = array.array("i", [0])
        _, control, _, _ = conn.recvmsg(1, socket.CMSG_SPACE(4))
        fds.frombytes(control[0][2][:4])
        conn.send(b"y")
        sys.stdin.read()
    """, f"{workspace}/holder"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        result, got = script(lab, [], """
            sock = socket.socket(socket.AF_UNIX)
            sock.connect("holder")
            socket.send_fds(sock, [b"x"], [1])
            sock.recv(1)
            os.write(1, b"given away")
        """, workspace=workspace)
        assert (result.rc, got["stdout"]) == (0, "given away"), result
    finally:
        holder.communicate()


def test_standard_input_is_the_commands(lab, who):
    result, got = run(lab, [], ["/usr/bin/python3", "-"], stdin=b"print(6 * 7)\n", user=who)
    assert (result.rc, got["stdout"]) == (0, "42\n"), result


def test_time_limit(lab, who):
    result, got = run(lab, ["--timeout", "3s"], ["sh", "-c", "echo begun; exec sleep 1000"], user=who)
    assert result.rc == got["exit"] == 124 and got["timed_out"] and got["signal"] == 15 and got["stdout"] == "begun\n", result
    assert 2900 < got["ms"] < 60_000 and result.err == "", result


def test_memory_limit(lab):
    result, got = run(lab, ["--memory", "50MiB"], ["/usr/bin/python3", "-c", "x = b'x' * 200_000_000"])
    assert (result.rc, got["exit"], got["signal"], got["oom"]) == (137, 137, 9, True), result
    assert any("the memory limit was reached" in note for note in got["notes"]), result


@pytest.mark.parametrize("args,command,status,error", [
    (["--alow", "ok.test"], ["true"], 125, "--alow: unknown option"),
    (["--log", "-"], ["true"], 125, "standard output"),
    (["--allow", "*.com"], ["true"], 125, "--allow"),
    (["--log", "/nonexistent/log"], ["true"], 125, "does not exist"),
    (["--workspace", "/"], ["true"], 125, "/"),
    ([], ["no-such-program"], 127, "no-such-program: command not found in the sandbox's PATH"),
    ([], ["/etc/passwd"], 126, "/etc/passwd"),
    (["--log", "/dev/full"], ["true"], 125, "the log can't be written (No space left on device), so the command was not started"),
    ([], None, 125, ""),
])
def test_failures(lab, who, args, command, status, error):
    """Of netgate itself: an object as well, and nothing on standard error."""
    result, got = run(lab, args, command, user=who, log=None if "--log" in args else True)
    assert result.rc == got["exit"] == status and error in got["error"], result
    assert result.err == "", result


def test_proxy_that_is_killed(lab):
    with lab.start(["--json"], ["sleep", "1000"]) as running:
        wait_for(lambda: "sleep" in running.processes().values(), "the command")
        os.kill(running.child(), 9)
        result = running.finish()
    got = json.loads(result.out)
    assert result.rc == got["exit"] == 125 and "the proxy was killed by signal 9" in got["error"], result


def test_verbose_lines_go_to_standard_error(lab, who):
    result, got = run(lab, ["--verbose", "--allow", "ok.test"], ["curl", "-sS", "http://ok.test/hello"], user=who)
    assert "netgate: allow http GET ok.test:80" in result.err and got["stdout"] == "hello from ok.test\n", result
    assert "netgate: log:" not in result.err and "netgate: allowed" not in result.err


def test_more_rows_than_there_is_room_for(lab):
    result, got = script(lab, [], """
        for number in range(150):
            try:
                socket.create_connection((f"203.0.113.{number}", 7), 1)
            except OSError:
                pass
    """)
    assert len(got["denied"]) == 100 and got["more_denied"] == 50, result

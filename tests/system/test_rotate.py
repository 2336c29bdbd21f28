# SPDX-License-Identifier: Apache-2.0
"""A log that is moved, removed or cut while it is written: the run goes on in the file that is there, and says so in each."""

import contextlib
import ctypes
import gzip
import json
import os
import platform
import shutil
import signal
import subprocess

import pytest

from lab import read_log, wait_for
from lab.attached import Gate, Sandbox

ASK = """
    for line in sys.stdin:
        try:
            status, headers, _ = http(sys.argv[1], 80, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n")[0]
            show(status=status, reason=headers.get("x-netgate-reason"))
        except OSError as error:
            show(error=str(error))
"""
SYNTHETIC = "198.18.0.1"  # ok.test: the first name that the gate's DNS is asked for


@pytest.fixture
def folder(lab, who):
    """A folder of the user's own, for logs."""
    path = os.path.join(lab.workspace(who), "logs")
    os.mkdir(path)
    if who:
        os.chown(path, who.uid, who.gid)
    return path


def verify(lab, *args):
    return subprocess.run([os.path.join(lab.programs(), "netgate"), "verify", *args], capture_output=True, text=True, timeout=60)


def start(lab, who, log, args=(), workspace=None):
    return lab.start(["--allow", "ok.test", *args], lab.script("socket.gethostbyname('ok.test')\n" + ASK.replace("\n    ", "\n"), SYNTHETIC), log=log,
                     user=who, stdin=subprocess.PIPE, workspace=workspace)


@contextlib.contextmanager
def stopped(running):
    """The monitor, which would make a new log meanwhile."""
    os.kill(running.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(running.process.pid, signal.SIGCONT)


def whole(lab, result, *logs):
    """The files of the log have one chain, whose head is the one that was printed."""
    head = [line.split()[2] for line in result.err.splitlines() if line.startswith("netgate: head: ")][0]
    done = verify(lab, *logs, "--head", head)
    assert done.returncode == 0 and done.stdout.startswith("OK "), done
    records = [record for log in logs for record in read_log(log)]
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    return records


def test_moved(lab, who, folder):
    """As logrotate does it, with nothing after it: no record is missing, and each file says that there is another."""
    log = os.path.join(folder, "log")
    with start(lab, who, log) as running:
        assert running.ask()["status"] == 200
        os.rename(log, log + ".1")
        wait_for(lambda: os.path.exists(log), "the new file")
        wait_for(lambda: read_log(log), "its first record")
        first = read_log(log + ".1")
        assert running.ask()["status"] == 200
        result = running.finish(b"")
    assert result.rc == 0, result
    assert (os.stat(log).st_mode & 0o777, os.stat(log).st_uid) == (0o600, who.uid if who else 0)
    assert read_log(log + ".1") == first, "nothing more goes into the old file"
    assert first[-1]["type"] == "log" and first[-1]["event"] == "rotated", first
    second = read_log(log)
    assert second[0]["type"] == "log" and second[0]["event"] == "continues", second
    whole(lab, result, log + ".1", log)
    for part, words in ((log + ".1", "it goes on in a later file"), (log, "those before are in an earlier file")):
        done = verify(lab, part)
        assert done.returncode == 3 and done.stdout.startswith("PART ") and words in done.stdout, done


def test_moved_again_and_again(lab):
    """Under a load of connections, twenty times: no record is lost, none is twice."""
    folder = lab.workspace()
    log = os.path.join(folder, "log")
    script = """
        socket.gethostbyname("ok.test")
        stop = []
        import threading

        def work():
            while not stop:
                http(sys.argv[1], 80, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        stop.append(True)
        for thread in threads:
            thread.join()
    """
    logs = []
    with lab.start(["--allow", "ok.test"], lab.script(script, SYNTHETIC), log=log, stdin=subprocess.PIPE) as running:
        wait_for(lambda: len(read_log(log)) > 10, "ten records")
        for number in range(20):
            logs.append(f"{log}.{number:02}")
            os.rename(log, logs[-1])
            wait_for(lambda: os.path.exists(log) and len(read_log(log)) > 1, "records in the new file")
        result = running.finish(b"")
    assert result.rc == 0, result
    records = whole(lab, result, *logs, log)
    assert len([record for record in records if record["type"] == "log"]) == 40
    assert records[-1]["lost"] == 0
    # Compressed and put together again, as they are found later.
    for path in logs:
        with open(path, "rb") as plain, gzip.open(path + ".gz", "wb") as packed:
            shutil.copyfileobj(plain, packed)
    text = subprocess.run(["sh", "-c", 'zcat "$@"', "sh", *[path + ".gz" for path in logs]], capture_output=True, check=True, timeout=60).stdout
    with open(log, "rb") as last:
        done = subprocess.run([os.path.join(lab.programs(), "netgate"), "verify", "-"], input=text + last.read(), capture_output=True, timeout=60)
    assert done.returncode == 0, done


def test_hangup_looks_at_once(lab, who, folder):
    """SIGHUP, as other daemons take it: the log is opened anew at once; the command gets the signal all the same."""
    log = os.path.join(folder, "log")
    script = """
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        show(ready=True)
        show(hangup=signal.sigwait({signal.SIGHUP}) == signal.SIGHUP)
        sys.stdin.read()
    """
    with lab.start([], lab.script(script), log=log, user=who, stdin=subprocess.PIPE) as running:
        running.next()
        os.rename(log, log + ".1")
        running.process.send_signal(signal.SIGHUP)
        assert running.next() == {"hangup": True}
        assert os.path.exists(log), "the new file is there before the command has the signal"
        result = running.finish(b"")
    assert result.rc == 0, result
    whole(lab, result, log + ".1", log)


def test_removed(lab, who, folder):
    """Without a file nothing new is allowed; with the new one it is, and the records between are counted."""
    log = os.path.join(folder, "log")
    with start(lab, who, log) as running:
        assert running.ask()["status"] == 200
        served = len(lab.web.requests)
        with stopped(running):
            os.unlink(log)
            assert running.ask() == {"status": 503, "reason": "log_unavailable"}
            assert len(lab.web.requests) == served
        wait_for(lambda: read_log(log), "the first record in the new file")
        assert running.ask()["status"] == 200
        result = running.finish(b"")
    assert result.rc == 0, result
    records = read_log(log)
    assert [record["type"] for record in records[:2]] == ["log", "gap"] and records[0]["event"] == "continues", result
    assert records[1]["lost"] == records[-1]["lost"] > 0, result
    assert "the log can't be written (it was removed): nothing new is allowed until it can" in result.err, result
    assert f"the log {log} was removed; it goes on in a new file, without the records so far" in result.err, result
    assert verify(lab, log).returncode == 3


def test_directory_gone(lab, who, folder):
    """A log that can't be opened anew: it is said once, and nothing new is allowed until it can be."""
    log = os.path.join(folder, "sub", "log")
    os.mkdir(os.path.dirname(log))
    if who:
        os.chown(os.path.dirname(log), who.uid, who.gid)
    with start(lab, who, log) as running:
        assert running.ask()["status"] == 200
        with stopped(running):
            shutil.rmtree(os.path.dirname(log))
        for _ in range(2):
            assert running.ask()["reason"] == "log_unavailable"
        assert running.ask()["reason"] == "log_unavailable"
        os.mkdir(os.path.dirname(log))
        if who:
            os.chown(os.path.dirname(log), who.uid, who.gid)
        wait_for(lambda: read_log(log), "the first record in the new file")
        assert running.ask()["status"] == 200
        result = running.finish(b"")
    assert result.rc == 0, result
    assert result.err.count("can't be opened anew") <= 1, result


def test_directory_gone_for_good(lab):
    log = os.path.join(lab.workspace(), "sub", "log")
    os.mkdir(os.path.dirname(log))
    with start(lab, None, log) as running:
        assert running.ask()["status"] == 200
        with stopped(running):
            shutil.rmtree(os.path.dirname(log))
        assert running.ask()["reason"] == "log_unavailable"
        result = running.finish(b"")
    assert result.rc == 125, result
    assert f"the log {log} was removed, and can't be opened anew: No such file or directory; nothing new is allowed until it can" in result.err, result
    assert "the end of this job could not be recorded" in result.err, result


@pytest.mark.parametrize("there", ["link", "fifo", "directory"])
def test_something_else_in_its_place(lab, there):
    """Only a file takes the log's place: it goes on in the one that was moved."""
    folder = lab.workspace()
    log, victim = os.path.join(folder, "log"), os.path.join(folder, "victim")
    with open(victim, "w") as out:
        out.write("untouched\n")
    with start(lab, None, log) as running:
        assert running.ask()["status"] == 200
        other = os.path.join(folder, "other")
        {"link": lambda: os.symlink(victim, other), "fifo": lambda: os.mkfifo(other), "directory": lambda: os.mkdir(other)}[there]()
        with stopped(running):
            os.rename(log, log + ".1")
            os.rename(other, log)
        assert running.ask()["status"] == 200
        result = running.finish(b"")
    assert result.rc == 0 and "it goes on in the file that was moved" in result.err, result
    whole(lab, result, log + ".1")
    with open(victim) as seen:
        assert seen.read() == "untouched\n"


def test_cut(lab, who, folder):
    """copytruncate: noticed, on record, told at the end; the copy and the rest are whole where nothing came between."""
    log = os.path.join(folder, "log")
    with start(lab, who, log) as running:
        assert running.ask()["status"] == 200
        wait_for(lambda: sorted(record["type"] for record in read_log(log) if record["type"] in ("close", "process")) == ["close", "process", "process"],
                 "the last records of the connection, and of the look-up before it")
        shutil.copy(log, log + ".1")
        os.truncate(log, 0)
        assert running.ask()["status"] == 200
        result = running.finish(b"")
    assert result.rc == 0 and "the log was cut by another program" in result.err, result
    assert [record["event"] for record in read_log(log) if record["type"] == "log"] == ["truncated"]
    assert read_log(log)[0]["type"] == "log"
    whole(lab, result, log + ".1", log)
    assert verify(lab, log).returncode == 3
    with open(log + ".1") as copy:
        lines = copy.readlines()
    with open(log + ".1", "w") as copy:
        copy.writelines(lines[:-1])
    done = verify(lab, log + ".1", log)
    assert done.returncode == 1 and f"seq {len(lines) + 1} where {len(lines)} was due" in done.stdout, done


@pytest.mark.parametrize("args", [[], ["--fs", "host"]])
def test_not_where_the_command_could_put_one(lab, who, args):
    """In the workspace a new file would be the command's to write, or one of its own making: there is none."""
    workspace = lab.workspace(who)
    log = os.path.join(workspace, "log")
    with start(lab, who, log, args, workspace) as running:
        assert running.ask()["status"] == 200
        os.rename(log, log + ".1")
        before = len(read_log(log + ".1"))
        assert running.ask()["status"] == 200
        result = running.finish(b"")
    assert result.rc == 0, result
    assert not os.path.exists(log) and len(read_log(log + ".1")) > before
    whole(lab, result, log + ".1")


def test_two_jobs_one_log(lab):
    """Both find out, and neither takes the other's file away."""
    log = os.path.join(lab.workspace(), "log")
    with start(lab, None, log, ["--job", "a"]) as a, start(lab, None, log, ["--job", "b"]) as b:
        assert a.ask()["status"] == b.ask()["status"] == 200
        os.rename(log, log + ".1")
        wait_for(lambda: len({record["job"] for record in read_log(log)}) == 2, "both jobs in the new file")
        assert a.ask()["status"] == b.ask()["status"] == 200
        results = a.finish(b""), b.finish(b"")
    for result in results:
        assert result.rc == 0, result
    done = verify(lab, log + ".1", log)
    assert done.returncode == 0 and done.stdout.count("OK ") == 2, done


def test_gate_that_waits(lab, who, folder):
    """For each sandbox its own part; one that comes after a removal begins in the new file, or not at all."""
    log = os.path.join(folder, "log")
    curl = ["curl", "-sS", "http://ok.test/hello"]
    accept = ["--accept-risk", "net-admin"] if who else []
    with Gate(lab, ["--allow", "ok.test"], who, log=log) as gate, Sandbox(lab, who) as one, Sandbox(lab, who) as two:
        assert gate.attach(one, "--name", "one", *accept).returncode == 0
        assert one.run(curl).stdout == "hello from ok.test\n"
        os.rename(log, log + ".1")
        gate.running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: read_log(log), "the first record in the new file")
        assert gate.attach(two, "--name", "two", *accept).returncode == 0
        assert one.run(curl).stdout == two.run(curl).stdout == "hello from ok.test\n"
        two.close()
        wait_for(lambda: any(record["type"] == "end" for record in read_log(log)), "the end of two")
        with open(log) as seen:
            before = seen.read()
        moved = folder + ".moved"
        os.rename(folder, moved)
        os.unlink(os.path.join(moved, "log"))
        with Sandbox(lab, who) as three:
            done = gate.attach(three, "--name", "three", *accept)
            assert done.returncode == 125 and "was removed, and can't be opened anew" in done.stderr, done
            os.rename(moved, folder)
            assert gate.attach(three, "--name", "three", *accept).returncode == 0
            assert three.run(curl).stdout == "hello from ok.test\n"
        one.close()
        result = gate.finish()
    with open(log + ".2", "w") as out:
        out.write(before)
    done = verify(lab, log + ".1", log + ".2", log)
    # The part of one between the second file's end, which was removed with its last records, and the third one.
    assert "OK " in done.stdout and "sandbox two" in done.stdout and "sandbox three" in done.stdout, (done, result)
    assert {record["sandbox"]: record["event"] for record in read_log(log) if record["type"] == "log"} == {"one": "continues"}
    start, = [record for record in read_log(log) if record["type"] == "start"]
    assert (start["sandbox"], start["seq"]) == ("three", 1), result


def test_logrotate(lab):
    """The tool itself, with a plain configuration."""
    if not shutil.which("logrotate"):
        pytest.fail("logrotate is missing: make deps")
    folder = lab.workspace()
    os.chmod(folder, 0o700)
    log, conf = os.path.join(folder, "log"), os.path.join(folder, "conf")
    with open(conf, "w") as out:
        out.write(f"{log} {{\n rotate 5\n nocreate\n delaycompress\n compress\n}}\n")
    with start(lab, None, log) as running:
        assert running.ask()["status"] == 200
        subprocess.run(["logrotate", "--force", "--state", os.path.join(folder, "state"), conf], check=True, timeout=60)
        wait_for(lambda: read_log(log), "the first record in the new file")
        assert running.ask()["status"] == 200
        result = running.finish(b"")
    assert result.rc == 0, result
    whole(lab, result, log + ".1", log)


def poll_timeout(pid):
    """In milliseconds, of the poll(2) that a process is in, -1: none; None: it is elsewhere."""
    with open(f"/proc/{pid}/syscall") as text:
        words = text.read().split()
    return ctypes.c_int(int(words[3], 16)).value if words[0] == "7" else None


@pytest.mark.skipif(platform.machine() != "x86_64", reason="poll(2) has another number")
@pytest.mark.parametrize("args, log, looks", [([], True, True), (["--log", "-"], None, False), (["--fs", "host"], True, False)],
                         ids=["file", "output", "fixed"])
def test_only_a_log_that_can_move_is_looked_after(lab, args, log, looks):
    """Without one, the monitor is woken by what happens, and by no clock."""
    with lab.start(args, lab.script("sys.stdin.read()"), log=log, stdin=subprocess.PIPE) as running:
        wait_for(lambda: running.filtered("netgate-finder"), "the finder")
        wait_for(lambda: (poll_timeout(running.process.pid) or 0) in (range(1, 1002) if looks else [-1]), "the monitor's sleep")
        running.process.stdin.close()
        running.process.wait(timeout=60)

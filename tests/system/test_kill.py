# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each process of netgate at each step of its life, from the first socket to the last record (kill_at.c).

tests/system/test_life.py has what is killed while the command is at work.
"""

import itertools
import os
import signal
import subprocess

import pytest

from lab import v4, v6, wait_for
from lab.attached import Gate, Sandbox
from test_life import leftovers, without_new_namespaces

# Prime, so that they wander over the code as it changes; there are some 750 steps of a job, as root, and 1,050 for a user.
EVERY = {"root": 23, "user": 37, "attached": 17}
KILLED = 128 + signal.SIGKILL
HELLO = ["curl", "-s", "http://ok.test/hello"]
# What must not get out whatever is dead, and what may.
JOB = ["sh", "-c", f"curl -s --resolve bad.test:80:{v4('web')} http://bad.test/secret; {' '.join(HELLO)}; "
                   f"curl -s --resolve x.test:80:[{v6('web')}] http://x.test/secret; true"]


@pytest.fixture(scope="module")
def kill_at(whole_lab):
    """kill_at(n, user): the words before a program whose n-th step is somebody's last, and a function that says whose it was
    ("NAME CALL begin|end")."""
    program = os.path.join(whole_lab.folder, "kill_at")
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O1", "-o", program, os.path.join(os.path.dirname(__file__), "kill_at.c")],
                   check=True)
    numbers = itertools.count()

    def words(n, user):
        path = os.path.join(whole_lab.state(user), f"killed-{next(numbers)}")

        def killed():
            with open(path) as seen:
                return seen.read().strip()

        return [program, str(n), path], killed

    return words


def only_allowed(capture):
    # The host's kernel answers a name server whose answer finds the proxy dead with an ICMP error.
    allowed = {("tcp", v4("web"), 80), ("tcp", v6("web"), 80), ("udp", v4("dns"), 53), ("icmp", v4("dns"), 0)}
    assert capture.destinations() <= allowed and not capture.contains(b"secret"), capture.destinations()


def whole(lab, result, note):
    """The log has no hole, and verify says whether the end is on record."""
    seqs = [record["seq"] for record in result.records]
    assert seqs == list(range(1, len(seqs) + 1)), note
    if result.records:
        done = subprocess.run([os.path.join(lab.programs(), "netgate"), "verify", result.log], capture_output=True, text=True, timeout=60)
        expected = (0, "OK") if result.records[-1]["type"] == "end" else (3, "UNFINISHED")
        assert (done.returncode, done.stdout.split()[0]) == expected, (note, done)


def check_status(name, result, note):
    ended = bool(result.records) and result.records[-1]["type"] == "end"
    assert result.rc != 125 or "netgate: " in result.err, note
    if name == "first":
        assert result.rc == KILLED, note
    elif name == "netgate":
        assert result.rc == 125, note
    elif name == "netgate-finder":
        assert result.rc == 0 and ended, note
    else:
        # A helper that had done its work is not missed; who was about to become the command, or was the command's, counts as it.
        assert result.rc == 125 or (result.rc in (0, KILLED) and ended), note


def test_each_step_of_a_job(lab, who, kill_at):
    """No way out while anything is dead, nothing stays behind, the exit status says so and the log is whole as far as it goes."""
    without_new_namespaces(lambda: steps_of_a_job(lab, who, kill_at))


def steps_of_a_job(lab, who, kill_at):
    before, seen = leftovers(lab), []
    for n in range(1, 5000, EVERY["user" if who else "root"]):
        lab.reset()
        words, killed = kill_at(n, who)
        with lab.capture() as capture, lab.start(["--allow", "ok.test"], JOB, user=who, wrap=words) as running:
            result = running.finish()
            wait_for(lambda left=running: not left.processes(), "the end of every process")
        note = (n, killed(), result)
        only_allowed(capture)
        assert len(lab.web.requests) <= len(result.of("decision", verdict="allow", door="transparent")), note
        assert leftovers(lab) == before, note
        whole(lab, result, note)
        if killed().startswith("none"):
            assert result.rc == 0 and "hello from ok.test" in result.out, note
            break
        check_status(killed().split()[0], result, note)
        seen.append(killed())
    assert len(seen) > 15 and {"first", "netgate", "sandbox-net"} <= {step.split()[0] for step in seen}, seen


def end_keeper(running):
    """Tells the gate to end, if it is still there: the tracer's child."""
    for pid, name in running.processes().items():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if name == "netgate" and int(stat.read().rpartition(")")[2].split()[1]) == running.process.pid:
                    os.kill(pid, signal.SIGTERM)
        except OSError:
            pass


def attach_and_end(gate, sandbox, killed):
    """Attaches the sandbox, uses it and ends the gate; whatever died, the sandbox had its gate or lo only."""
    attach = gate.attach(sandbox)
    assert attach.returncode == 0 or (attach.returncode == 125 and "sandbox-net: " in attach.stderr), attach
    out = sandbox.run([*HELLO, "--max-time", "10"]).stdout
    found = attach.returncode, out, sandbox.links()
    # Asked afterwards: a record that is late may be what it dies at.
    if not killed() or killed().startswith(("none", "netgate-finder")):
        assert found == (0, "hello from ok.test\n", ["lo", "eth0"]), (attach, killed())
    else:
        wait_for(lambda: sandbox.links() == ["lo"], f"a sandbox with lo only: {killed()}")
    end_keeper(gate.running)
    result = gate.finish()
    wait_for(lambda: sandbox.links() == ["lo"], "a sandbox with lo only")
    wait_for(lambda: not gate.running.processes(), "the end of every process")
    return result


def test_each_step_of_a_gate_for_a_sandbox_that_exists(lab, kill_at):
    """Keeper, session and proxy: the sandbox goes on with lo only, and of netgate nothing stays."""
    before, seen = leftovers(lab), []
    for n in range(1, 2000, EVERY["attached"]):
        lab.reset()
        words, killed = kill_at(n, None)
        try:
            gate = Gate(lab, ["--allow", "ok.test"], wrap=words)
        except RuntimeError:
            assert killed().startswith("first"), killed()
            seen.append(killed())
            continue
        with lab.capture() as capture, gate, Sandbox(lab) as sandbox:
            result = attach_and_end(gate, sandbox, killed)
        note = (n, killed(), result)
        only_allowed(capture)
        assert len(lab.web.requests) <= len(result.of("decision", verdict="allow", door="transparent")), note
        whole(lab, result, note)
        if killed().startswith("none"):
            break
        check = result.rc == KILLED if killed().startswith("first") else result.rc in (0, 125, 143)
        assert check, note
        seen.append(killed())
    assert len(seen) > 8 and {"first", "netgate"} <= {step.split()[0] for step in seen}, seen
    assert leftovers(lab) == before

# SPDX-License-Identifier: Apache-2.0
"""What a command may use of the machine: memory, processes, processors; who holds it to that, and what is left of it."""

import os
import re

import pytest

from lab import wait_for

HOG = "x = b'x' * 400_000_000; print(len(x))"
# Starts sleeping children until the system refuses one, and says how many there were.
CHILDREN = """
    children = []
    while len(children) < 200:
        try:
            child = os.fork()
        except BlockingIOError:
            break
        if not child:
            time.sleep(1000)
        children.append(child)
    show(children=len(children))
"""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def leftovers():
    """Cgroups of launchers that are gone."""
    found = [(path, re.fullmatch(r"netgate-(\d+)(-\d+)?", os.path.basename(path))) for path, _, _ in os.walk("/sys/fs/cgroup")]
    return [path for path, match in found if match and not is_alive(match[1])]


def start(result):
    return result.one("start")


def is_cgroup(result, what):
    return start(result)[f"{what}_by"].startswith("cgroup")


def counted(result, number):
    """So many may be counted: for an ordinary user without a cgroup, one of netgate's processes may not be there yet."""
    return (number,) if is_cgroup(result, "pids") else (number, number + 1)


def test_memory(lab, who):
    """More than it may have: with a cgroup the process is killed, else it gets no more; the record says which."""
    result = lab.netgate(["--memory", "100MiB"], ["/usr/bin/python3", "-c", HOG], user=who)
    end = result.one("end")
    assert "400000000" not in result.out
    if who is None:
        assert is_cgroup(result, "memory"), result
    if is_cgroup(result, "memory"):
        assert (result.rc, end["signal"], end["oom_kills"]) == (137, 9, 1), result
        assert "netgate: note: the memory limit was reached: 1 process was killed" in result.err, result
    else:
        assert start(result)["memory_by"] == "rlimit" and "MemoryError" in result.err, result
        assert "note: --memory holds for each process by itself" in result.err and "oom_kills" not in end, result
    assert "pids_by" not in start(result) and "cpus_by" not in start(result)
    assert not leftovers()


def test_enough_memory(lab, who):
    """What stays within all its limits does not notice them: nothing in the records, no note."""
    limits = ["--memory", "200MiB", "--pids", "30"] + (["--cpus", "2"] if who is None else [])
    result = lab.python(limits, "x = b'x' * 20_000_000; show(done=len([0 for _ in x[:5]]))", user=who)
    assert result.rc == 0 and result.shown == [{"done": 5}], result
    assert not {"oom_kills", "forks_refused"} & set(result.one("end")) and "reached" not in result.err, result


def test_memory_of_all_processes_together(lab):
    result = lab.python(["--memory", "100MiB"], """
        import subprocess
        code = "x = b'x' * 45_000_000; input()"
        children = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) for _ in range(4)]
        show(killed=os.waitpid(-1, 0)[1])
    """)
    assert result.rc == 0 and result.shown == [{"killed": 9}], result
    assert result.one("end")["oom_kills"] >= 1


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_files_in_memory_count(lab, who, folder):
    """What is gone at the end is kept in memory until then."""
    result = lab.netgate(["--memory", "50MiB"], ["sh", "-c", f"head -c 200M /dev/zero >{folder}/file; wc -c <{folder}/file"], user=who)
    size = int(result.out) if result.out else 0
    assert size < 53_000_000 and ("No space left" in result.err or "oom_kills" in result.one("end")), result


def test_pids(lab, who):
    """So many and not one more, whoever counts; the command itself is one."""
    result = lab.python(["--pids", "20"], CHILDREN, user=who)
    assert result.rc == 0 and result.shown[0]["children"] in counted(result, 19), result
    if is_cgroup(result, "pids"):
        assert result.one("end")["forks_refused"] == 1, result
        assert "netgate: note: the limit of processes was reached: 1 could not be started" in result.err
    else:
        assert start(result)["pids_by"] == "rlimit", result
        assert "forks_refused" not in result.one("end") and "reached" not in result.err, "nobody counts them"


def test_threads_count_as_processes(lab, who):
    result = lab.python(["--pids", "10"], """
        import threading
        hold = threading.Event()
        count = 0
        try:
            while count < 200:
                threading.Thread(target=hold.wait).start()
                count += 1
        except RuntimeError:
            pass
        show(threads=count)
        hold.set()
    """, user=who)
    assert result.rc == 0 and result.shown[0]["threads"] in counted(result, 9), result


def test_fork_bomb(lab, who):
    """It ignores that it should end, too: the time limit ends it all the same, and what it tried is on record."""
    with lab.start(["--pids", "20", "--timeout", "4s"], lab.script("""
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            try:
                os.fork()
            except BlockingIOError:
                time.sleep(0.1)
    """), user=who) as running:
        result = running.finish()
        assert result.rc == 124 and not running.processes(), result
    assert result.one("end")["signal"] == 9, result
    if is_cgroup(result, "pids"):
        assert result.one("end")["forks_refused"] > 0, result
    assert not leftovers()


def test_cpus(lab):
    """Two that compute for two seconds get half a processor together."""
    result = lab.python(["--cpus", "0.5"], """
        end = time.monotonic() + 2
        child = os.fork()
        while time.monotonic() < end:
            pass
        if not child:
            os._exit(0)
        os.wait()
        times = os.times()
        show(used=times.user + times.system + times.children_user + times.children_system)
    """)
    assert is_cgroup(result, "cpus") and result.shown[0]["used"] < 1.5, result


def test_what_cannot_be_enforced_is_an_error(lab):
    """No cgroup is to be had for a user to whom none was given, and nothing else limits processors."""
    result = lab.netgate(["--cpus", "1"], ["true"], user=lab.user)
    assert result.rc == 125 and "--cpus can't be enforced here: it takes a cgroup" in result.err, result
    result = lab.netgate(["--cpus", "1", "--memory", "1GiB"], ["true"], user=lab.user)
    assert result.rc == 125 and not result.records, result


def test_a_gate_that_waits_limits_nothing(lab):
    for flag, value in (("--memory", "1GiB"), ("--pids", "10"), ("--cpus", "1")):
        result = lab.netgate(["--job", "waits", flag, value], None)
        assert result.rc == 125 and f'the limit "{flag[2:]}" is for a command' in result.err, result


def test_root_without_cgroups(lab):
    """RLIMIT_NPROC does not hold for the machine's root, so it is no way out."""
    hidden = lab.host.mounts(tmpfs={"/sys/fs/cgroup": "1M"})
    result = lab.netgate(["--pids", "5"], ["true"], mounts=hidden)
    assert result.rc == 125 and "--pids can't be enforced here" in result.err, result
    result = lab.netgate(["--memory", "100MiB"], ["/usr/bin/python3", "-c", HOG], mounts=hidden)
    assert start(result)["memory_by"] == "rlimit" and "MemoryError" in result.err, result
    result = lab.python(["--pids", "20", "--user", lab.user.name], CHILDREN, mounts=hidden, workspace=lab.workspace(lab.user))
    assert start(result)["pids_by"] == "rlimit" and result.shown == [{"children": 19}], result


@pytest.mark.parametrize("tree", ["sealed", "host"])
def test_command_cannot_raise_its_limits(lab, who, tree):
    result = lab.python(["--memory", "100MiB", "--pids", "20", "--fs", tree], """
        import ctypes, resource
        libc = ctypes.CDLL(None, use_errno=True)
        def refused(call):
            try:
                return call() != 0
            except (OSError, ValueError):
                return True
        with open("/proc/self/cgroup") as lines:
            show(paths=sorted({line.rstrip().split(":", 2)[2] for line in lines}))
        show(trees=os.path.exists("/sys/fs/cgroup"),
             refused=[refused(lambda: libc.unshare(0x02000000)),
                      refused(lambda: libc.mount(b"x", b"/tmp", b"cgroup2", 0, None)),
                      refused(lambda: resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6)))])
    """, user=who)
    trees, paths = result.shown[1], result.shown[0]["paths"]
    assert result.rc == 0 and trees["trees"] is False, result
    assert trees["refused"][:2] == [True, True] and (is_cgroup(result, "pids") or trees["refused"][2]), result
    # Of the controllers in use it sees its own cgroup as the root of all.
    assert "/" in paths and not any("netgate" in path for path in paths), result


def test_limits_of_a_policy(lab):
    """The same in a file; the smaller of file and flag counts."""
    path = os.path.join(lab.folder, "resources.yaml")
    with open(path, "w") as out:
        out.write("version: 1\nlimits: {pids: 20, memory: 1GiB, cpus: 1.5}\n")
    result = lab.python(["--policy", path, "--pids", "30"], CHILDREN)
    assert result.shown == [{"children": 19}] and is_cgroup(result, "memory") and is_cgroup(result, "cpus"), result


@pytest.mark.parametrize("flag,value,why", [
    ("--memory", "100", '"100": not a size of 4MiB or more'), ("--memory", "1MiB", "not a size of 4MiB or more"),
    ("--pids", "0", "not a number of processes"), ("--cpus", "0", "not a number of processors"), ("--cpus", "half", "such as 2 or 0.5")])
def test_values(lab, flag, value, why):
    result = lab.netgate([flag, value], ["true"])
    assert result.rc == 125 and f"netgate: {flag}: " in result.err and why in result.err, result


def test_leftovers_of_a_killed_netgate(lab):
    """Nobody is left to remove its cgroups; the next run does."""
    with lab.start(["--pids", "20", "--memory", "100MiB"], lab.script("show(ready=True); time.sleep(1000)")) as running:
        running.next()
        running.process.kill()
        running.process.wait()
        wait_for(lambda: not running.processes(), "the end of the sandbox")
    assert leftovers()
    assert lab.netgate(["--pids", "20", "--memory", "100MiB"], ["true"]).rc == 0
    assert not leftovers()


def test_what_is_written_outside_of_the_workspace_is_gone(lab, who):
    places = ["/tmp", "/var/tmp", "/run", "/dev/shm", who.home if who else "/root"]
    result = lab.python([], """
        show(written=[path for path in sys.argv[1:] if os.access(path, os.W_OK)])
        for path in sys.argv[1:]:
            if os.access(path, os.W_OK):
                open(path + "/netgate-written", "w").write("x")
        open("netgate-kept", "w").write("x")
        show(seen=[os.path.exists(path + "/netgate-written") for path in sys.argv[1:]])
    """, *places, user=who, workspace=(workspace := lab.workspace(who)))
    assert result.shown[0]["written"][:2] == ["/tmp", "/var/tmp"] and len(result.shown[0]["written"]) >= 4, result
    assert os.path.exists(f"{workspace}/netgate-kept")
    assert not [path for path in places if os.path.exists(f"{path}/netgate-written")]
    again = lab.python([], "show(seen=[path for path in sys.argv[1:] if os.path.exists(path + '/netgate-written')])", *places, user=who,
                       workspace=workspace)
    assert again.shown == [{"seen": []}], again

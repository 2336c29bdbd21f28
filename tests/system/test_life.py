# SPDX-License-Identifier: Apache-2.0
"""How a job starts, runs and ends: exit statuses, signals, descriptors; and that nothing gets out or stays behind, whoever is killed."""

import contextlib
import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import termios

import pytest

from lab import child_of, v4, v6, wait_for

ATTEMPTS = """
    import threading

    def attempt(what):
        try:
            what()
        except (OSError, EOFError, IndexError):
            pass

    def udp(address, family):
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"secret-in-udp", (address, 9999))

    def tls(name, address):
        with tcp(address, 443, 1) as sock:
            sock.sendall(Tls(name).hello())
            sock.recv(100)

    show(ready=True)
    while True:
        attempt(lambda: udp(sys.argv[1], socket.AF_INET))
        attempt(lambda: udp(sys.argv[2], socket.AF_INET6))
        attempt(lambda: tls("bad.test", sys.argv[1]))
        attempt(lambda: tls("bad.test", sys.argv[2]))
        attempt(lambda: tls("ok.test", "ok.test"))
        attempt(lambda: socket.getaddrinfo("secret-in-dns.bad.test", 80))
        attempt(lambda: tcp(sys.argv[1], 7, 1).close())
"""


@pytest.mark.parametrize("command,status", [
    (["true"], 0), (["false"], 1), (["sh", "-c", "exit 42"], 42), (["sh", "-c", "kill -9 $$"], 137),
    (["sh", "-c", "kill -USR1 $$"], 138), (["/nonexistent/program"], 127), (["no-such-program"], 127), (["/etc/passwd"], 126),
    (["/"], 126),
], ids=lambda value: "-".join(value) if isinstance(value, list) else None)
def test_exit_status(lab, who, command, status):
    result = lab.netgate(["--allow", "ok.test"], command, user=who)
    assert (result.rc, result.out) == (status, ""), result
    if status in (126, 127):
        assert command[0] in result.err, result


def test_output_is_the_commands_own(lab, who):
    """Bytes of any kind pass in and out unchanged; stderr only gets something behind the command's."""
    data = bytes(range(256)) * 5000
    with lab.start(["--allow", "ok.test"], ["sh", "-c", "cat; echo from the command >&2"], stdin=subprocess.PIPE,
                   user=who) as running:
        out, err = running.process.communicate(data, 60)
    assert out == data
    assert err.decode().splitlines()[0] == "from the command"


def test_errors_leave_no_empty_log(lab):
    """A job that never began has no log, and no path of one is printed."""
    logs = os.path.join(lab.state(lab.user), "netgate")
    before = os.listdir(logs) if os.path.isdir(logs) else []
    result = lab.netgate(["--user", "nobody"], ["true"], log=None, user=lab.user)
    assert result.rc == 125 and "log:" not in result.err and sorted(os.listdir(logs)) == sorted(before), result
    result = lab.netgate(["--log", "/dev/full"], ["true"], log=None)
    assert (result.rc, result.err) == (125, "netgate: the log can't be written (No space left on device), so the command was not started\n"), result


def test_names_of_logs(lab):
    """The process id once, as a part of the job's name; jobs of one name in one second get a number."""
    result = lab.netgate([], ["true"], log=None, user=lab.user)
    assert re.search(r"/true-\d+-\d{8}T\d{6}Z\.jsonl\n", result.err), result
    paths = [re.search(r"log: (.*/two-\d{8}T\d{6}Z(-\d+)?\.jsonl)\n", lab.netgate(["--job", "two"], ["true"], log=None, user=lab.user).err)[1]
             for _ in range(8)]
    assert len(set(paths)) == 8 and all(os.path.getsize(path) for path in paths), paths


def test_user_namespace_of_one_uid(lab, who):
    """There is no nobody to become: the proxy goes on as who it is, without capabilities, and says so."""
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "https://ok.test/hello"], user=who, wrap=["unshare", "--user", "--map-root-user"])
    assert (result.rc, result.out) == (0, "hello from ok.test\n"), result
    assert "note: this user namespace has no uid 65534" in result.err, result


def test_quiet(lab, who):
    result = lab.netgate(["--quiet", "--allow", "ok.test"], ["curl", "-s", "https://bad.test/"], user=who)
    assert (result.rc, result.out, result.err) == (6, "", ""), result


def test_verbose(lab, who):
    result = lab.netgate(["--verbose", "--allow", "ok.test"],
                         ["sh", "-c", "curl -s http://ok.test/hello; curl -s http://bad.test/"], user=who)
    assert "netgate: allow http GET ok.test:80 (host) /hello by --allow ok.test" in result.err, result
    assert any(line.startswith("netgate: deny  dns bad.test") for line in result.err.splitlines()), result
    assert "netgate: close ok.test:80" in result.err


def test_summary(lab, who):
    result = lab.netgate(["--allow", "ok.test"],
                         ["sh", "-c", "curl -s http://ok.test/hello http://ok.test/hello; curl -s http://bad.test/ http://bad.test/"],
                         user=who)
    assert result.out == "hello from ok.test\n" * 2
    for word in ("ok.test", "bad.test", "not_allowed", "--allow bad.test"):
        assert word in result.err, result


def test_time_limit(lab, who):
    result = lab.netgate(["--timeout", "1s"], ["sleep", "1000"], user=who)
    assert result.rc == 124, result
    assert "time" in result.err


def test_time_limit_of_a_command_that_ignores_sigterm(lab):
    with lab.start(["--timeout", "4s"], ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]) as running:
        result = running.finish()
        assert result.rc == 124, result
        assert "it did not end in 5 s and was killed" in result.err and "launcher" not in result.err, result
        wait_for(lambda: not running.processes(), "the end of every process")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_signals_are_forwarded(lab, who, number):
    script = f"""
        import signal
        signal.signal({int(number)}, lambda *_: sys.exit(7))
        show(ready=True)
        signal.pause()
    """
    with lab.start([], lab.script(script), user=who) as running:
        assert running.next() == {"ready": True}
        running.process.send_signal(number)
        assert running.finish().rc == 7


def test_command_that_dies_of_a_forwarded_signal(lab):
    with lab.start([], lab.script("show(ready=True)\nimport signal\nsignal.pause()")) as running:
        running.next()
        running.process.send_signal(signal.SIGTERM)
        result = running.finish()
        assert result.rc == -signal.SIGTERM and "netgate: log: " in result.err, result


@pytest.mark.parametrize("name,number", [("INT", 2), ("QUIT", 3), ("TERM", 15), ("HUP", 1)])
def test_death_by_a_request_to_end(lab, who, name, number):
    """netgate ends by the signal that ended the command, after the summary; for a shell that is 128 + n."""
    result = lab.netgate([], ["sh", "-c", f"kill -{name} $$"], user=who)
    assert result.rc == -number and "netgate: log: " in result.err, result
    result = lab.netgate([], ["sh", "-c", f"kill -{name} $$"], user=who, wrap=["sh", "-c", '"$@"; echo $?', "sh"])
    assert result.out == f"{128 + number}\n", result


class Terminal:
    """A run on a controlling terminal of its own, as the foreground job of `shell`, words that run "$@"."""

    def __init__(self, lab, args, command, shell=(), user=None):
        self.master, self.slave = pty.openpty()
        self.running = lab.start(args, command, user=user, stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                 wrap=["setsid", "--ctty", *shell])
        self.text = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.running.kill()
        os.close(self.master)
        os.close(self.slave)

    def expect(self, text):
        wait_for(lambda: self.read() or text in self.text, f"{text} in {self.text}")

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 4096)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_ctrl_c_ends_a_loop(lab, who, shell):
    """The shell around netgate sees the Ctrl-C that was meant for all of the job."""
    loop = [shell, "-c", 'for i in 1 2 3; do "$@"; echo again; done', shell]
    with Terminal(lab, [], ["/usr/bin/python3", "-c", "import signal; signal.signal(2, signal.SIG_DFL); print('ready', flush=True); signal.pause()"],
                  loop, who) as terminal:
        terminal.expect(b"ready")
        os.write(terminal.master, b"\x03")
        assert terminal.running.process.wait(120) == -signal.SIGINT
        terminal.read()
    assert b"netgate: log: " in terminal.text and b"again" not in terminal.text, terminal.text


def test_loop_of_a_command_that_takes_ctrl_c(lab, who):
    """One that ends in its own way leaves the loop alone, as it would without netgate."""
    loop = ["sh", "-c", 'for i in 1 2; do "$@"; echo status $?; done', "sh"]
    with Terminal(lab, [], ["sh", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done"], loop, who) as terminal:
        for _ in range(2):
            terminal.expect(b"ready")
            terminal.text = b""
            os.write(terminal.master, b"\x03")
            terminal.expect(b"status 5")
        assert terminal.running.process.wait(120) == 0


@pytest.mark.parametrize("ending", ["exit", "kill", "timeout", "ignored timeout", "launcher", "proxy"])
def test_terminal_modes_are_restored(lab, who, ending):
    script = {"kill": "kill -9 $$", "exit": "exit 0", "ignored timeout": "trap '' TERM; while :; do sleep 0.1; done"}.get(ending, "sleep 1000")
    args = ["--timeout", "4s"] if "timeout" in ending else []  # for what comes first, on a busy machine too
    with Terminal(lab, args, ["sh", "-c", f"stty raw -echo; echo ready; {script}"], ["sh", "-c", '"$@"; read line', "sh"], who) as terminal:
        before = termios.tcgetattr(terminal.slave)
        terminal.expect(b"ready")
        if ending in ("launcher", "proxy"):
            monitor = terminal.running.child()  # of the shell
            os.kill(child_of(monitor, "sandbox-net" if ending == "launcher" else "netgate"), signal.SIGKILL)
        terminal.expect(b"netgate: log: ")
        wait_for(lambda: termios.tcgetattr(terminal.slave) == before, "the modes of before")
        os.write(terminal.master, b"line\n")
        assert terminal.running.process.wait(120) == 0, "the shell has its terminal back"


@pytest.mark.parametrize("shell, script", [
    (["sh", "-c"], "kill -STOP $$"),
    (["sh", "-c"], "trap 'kill -STOP $$' TERM; while :; do sleep 0.1; done"),
    (["bash", "-mc"], "stty tostop; trap '' TERM; while :; do sleep 0.1; done"),
], ids=["stops itself", "stops itself at the end of its time", "stops who writes"])
def test_the_time_limit_of_what_stops(lab, who, shell, script):
    """A command on a terminal can have netgate stop, as a shell's job does, but not for longer than it may run."""
    with Terminal(lab, ["--timeout", "4s"], ["sh", "-c", f"echo ready; {script}"],
                  [*shell, '"$@"; echo status $?; :', "sh"], who) as terminal:
        terminal.expect(b"ready")
        terminal.expect(b"status 124")


def test_grandchildren_end_with_the_command(lab, who):
    """What the command leaves running is gone when netgate has returned."""
    with lab.start([], ["sh", "-c", "sleep 1000 & setsid sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & echo started"],
                   user=who) as running:
        result = running.finish()
        assert (result.rc, result.out) == (0, "started\n"), result
        assert running.processes() == {}


def test_only_the_standard_descriptors(lab, who):
    """Descriptors that the caller left open, and netgate's own, are not the command's."""
    result = lab.python([], "show(fds=sorted(os.listdir('/proc/self/fd')))", user=who,
                        wrap=["sh", "-c", 'exec "$@" 7</etc/passwd 9>/dev/null', "sh"])
    (seen,) = result.shown
    assert len(seen["fds"]) == 4 and seen["fds"][:3] == ["0", "1", "2"], result  # the fourth is the listing's own


def test_arguments_and_environment_pass_unchanged(lab, who):
    words = ["", "a b", "-x", "--", "--allow", "ünï", "new\nline", "*"]
    result = lab.python([], "show(argv=sys.argv[1:], value=os.environ['SOME'], cwd=os.getcwd())", *words, user=who,
                        env={"SOME": "thing"}, workspace=(workspace := lab.workspace(who)))
    assert result.shown == [{"argv": words, "value": "thing", "cwd": workspace}], result


def test_privileges_are_gone(lab, who):
    result = lab.python([], """
        with open("/proc/self/status") as status:
            values = dict(line.split(":", 1) for line in status)
        show(**{key: values[key].split()[0] for key in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")},
             uid=os.getuid(), pid=os.getpid())
    """, user=who)
    (seen,) = result.shown
    assert {seen[key] for key in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")} == {"0" * 16}, result
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2") and seen["uid"] == (who.uid if who else 0), result
    assert seen["pid"] < 10


def test_user_option(lab):
    result = lab.netgate(["--user", lab.user.name], ["sh", "-c", "id -u; echo $HOME"], workspace=lab.workspace(lab.user))
    assert result.out.split()[0] == str(lab.user.uid), result


def test_sudo_runs_as_the_caller(lab):
    """As sudo sets things: root with the caller's number in the environment."""
    env = {"SUDO_UID": str(lab.user.uid), "SUDO_GID": str(lab.user.gid), "SUDO_USER": lab.user.name}
    result = lab.netgate(["--allow", "ok.test"], ["sh", "-c", "id -u; curl -sS https://ok.test/hello"], env=env,
                         workspace=lab.workspace(lab.user))
    assert result.out == f"{lab.user.uid}\nhello from ok.test\n", result


def test_terminal(lab, who):
    """On a terminal, the command has one, of the right size, and reads from it."""
    master, slave = pty.openpty()
    try:
        subprocess.run(["stty", "rows", "33", "cols", "77"], stdin=slave, check=True, timeout=60)
        with lab.start(["--quiet"], ["sh", "-c", "stty size; read line; echo got $line; test -t 0 && test -t 1 && test -t 2 && echo tty"],
                       user=who, stdin=slave, stdout=slave, stderr=slave) as running:
            os.write(master, b"typed\n")
            status = running.process.wait(60)
            os.close(slave)
            slave = -1
            seen = b""
            while b"tty" not in seen.replace(b"typed", b"").split(b"got")[-1]:
                seen += os.read(master, 4096)
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)
    assert status == 0 and b"33 77" in seen and b"got typed" in seen, seen


def only_allowed_packets(capture):
    """All that left went to the allowed host's addresses or was a question about its name."""
    allowed = {("tcp", v4("web"), 443), ("tcp", v6("web"), 443), ("udp", v4("dns"), 53)}
    assert capture.destinations() <= allowed, capture.destinations()
    for secret in (b"secret-in", b"bad\x04test"):
        assert not capture.contains(secret)


def leftovers(lab):
    """Names that a job could leave on the host: links, mounts, files. (Gates of others come and go in /run/netgate.)"""
    os.makedirs("/run/netgate", 0o700, exist_ok=True)
    links = [link["ifname"] for link in json.loads(lab.host.net.run("ip", "-j", "link"))]
    files = [os.path.join(folder, name) for folder in ("/tmp", "/run", "/dev/shm", "/run/netns", "/var/tmp")
             if os.path.isdir(folder) for name in os.listdir(folder) if "netgate" in name or "sandbox" in name]
    return links, lab.host.mount_table(), [path for path in files if not path.startswith("/tmp/netgate-lab-")]


def namespaces():
    """Network namespaces that the kernel holds, those without a process included."""
    # What a processor keeps at hand counts as used until the cache is told to give it back.
    with open("/sys/kernel/slab/net_namespace/shrink", "w") as shrink:
        shrink.write("1")
    with open("/proc/slabinfo") as slabs:
        return [int(line.split()[1]) for line in slabs if line.startswith("net_namespace ")][0]


def without_new_namespaces(work):
    """Calls work() and waits until the kernel holds no more network namespaces than before. They are counted on the whole machine, where others may
    make some, too: then all of it is done again. What work() leaves, it leaves each time."""
    for _ in range(5):
        spaces = namespaces()
        work()
        with contextlib.suppress(AssertionError):
            wait_for(lambda: namespaces() <= spaces + 3, "the end of the namespaces")
            return
    raise AssertionError(f"{namespaces() - spaces} namespaces were left")


def roles(running):
    """{role: pid}; the monitor is the process that was started."""
    return {"monitor": running.process.pid, "proxy": running.child(), "launcher": running.child("sandbox-net")}


def state_of(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("role", ["monitor", "proxy", "launcher"])
def test_kill_a_role_at_work(lab, who, role):
    """While the command tries everything it can: nothing but the allowed gets out before, at and after the kill."""
    before = leftovers(lab)
    with lab.capture() as capture:
        with lab.start(["--allow", "ok.test"], lab.script(ATTEMPTS, v4("web"), v6("web")), user=who) as running:
            assert running.next() == {"ready": True}
            wait_for(lambda: len(running.records) > 30, "thirty records")
            pid = roles(running)[role]
            os.kill(pid, signal.SIGKILL)
            result = running.finish()
            wait_for(lambda: not running.processes(), f"the end of all: {running.processes()}")
        only_allowed_packets(capture)
    assert result.rc == (-9 if role == "monitor" else 125), result
    assert leftovers(lab) == before
    assert [record["seq"] for record in result.records] == list(range(result.records[0]["seq"],
                                                                      result.records[0]["seq"] + len(result.records)))
    capture.packets.clear()


def test_stopped_proxy(lab):
    """While the proxy stands still nothing passes, and nothing is lost: it goes on where it was."""
    script = """
        sock = tcp("raw.test", 7)
        for line in sys.stdin:
            sock.sendall(line.encode())
            if line != "silence\\n":
                show(back=read_until(sock, b"\\n").decode())
    """
    with lab.start(["--allow", "raw.test:7"], lab.script(script), stdin=subprocess.PIPE) as running:
        assert running.ask("first\0") == {"back": "first\0\n"}
        proxy = roles(running)["proxy"]
        os.kill(proxy, signal.SIGSTOP)
        with lab.capture() as capture:
            running.process.stdin.write(b"silence\n")
            running.process.stdin.flush()
            wait_for(lambda: state_of(proxy) == "T", "the stop")
            try:
                running.process.wait(0.5)
            except subprocess.TimeoutExpired:
                pass
        assert [packet for packet in capture.packets if packet.payload] == []
        os.kill(proxy, signal.SIGCONT)
        assert running.ask("last") == {"back": "silence\n"}
        assert running.finish(b"").rc == 0


@pytest.mark.parametrize("seed", range(12))
def test_kill_anything_at_any_moment(lab, who, seed):
    """From the first instant of the start on, a random process of the job is killed after a random while."""
    chance = random.Random(seed)
    before = leftovers(lab)
    with lab.capture() as capture:
        for _ in range(4):
            with lab.start(["--allow", "ok.test"], lab.script(ATTEMPTS, v4("web"), v6("web")), user=who) as running:
                deadline = chance.uniform(0, 0.06)
                try:
                    running.process.wait(deadline)
                except subprocess.TimeoutExpired:
                    pass
                found = sorted(running.processes())
                if found:
                    try:
                        os.kill(chance.choice(found), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                running.process.send_signal(signal.SIGTERM)
                running.finish()
                wait_for(lambda: not running.processes(), "the end of every process")
        only_allowed_packets(capture)
    assert leftovers(lab) == before


def test_nothing_stays_behind(lab, who):
    """Jobs with open connections, of every way to end: links, mounts, files, processes and namespaces are as before."""
    before = leftovers(lab)
    script = """
        socks = [tcp("raw.test", 4444) for _ in range(20)]
        for sock in socks:
            sock.sendall(b"x" * 100_000)
        show(ready=True)
        sys.stdin.read()
    """

    def jobs():
        for ending in ("exit", "term", "kill") * 5:
            with lab.start(["--allow", "raw.test:4444"], lab.script(script), stdin=subprocess.PIPE, user=who) as running:
                running.next()
                if ending != "exit":
                    running.process.send_signal(signal.SIGTERM if ending == "term" else signal.SIGKILL)
                result = running.finish(b"")
                wait_for(lambda left=running: not left.processes(), "the end of every process")
            if ending != "kill":
                assert len([record for record in result.records if record["type"] == "close"]) == 20, result
    without_new_namespaces(jobs)
    assert leftovers(lab) == before


def test_descriptors_return_to_baseline(lab):
    """The proxy holds as many descriptors after 200 connections as after the first few, but for the pipes that it keeps for one."""
    script = """
        for line in sys.stdin:
            for _ in range(int(line)):
                with tcp("raw.test", 7) as sock:
                    sock.sendall(b"x" * 300_000)
                    sock.shutdown(socket.SHUT_WR)
                    assert len(read_all(sock)) == 300_000
            show(done=True)
    """
    with lab.start(["--allow", "raw.test:7"], lab.script(script), stdin=subprocess.PIPE) as running:
        running.ask("20")
        proxy = roles(running)["proxy"]
        closed = lambda: [record["type"] for record in running.records].count("close")
        wait_for(lambda: closed() == 20, "20 close records")
        first = len(os.listdir(f"/proc/{proxy}/fd"))
        running.ask("200")
        wait_for(lambda: closed() == 220, "220 close records")
        wait_for(lambda: len(os.listdir(f"/proc/{proxy}/fd")) <= first + 4, "the descriptors of before")
        running.finish(b"")


def test_the_proxy_is_isolated(lab, who):
    """While it serves: no capability, no new privileges, no root, seccomp."""
    with lab.start(["--allow", "raw.test:4444"], lab.script("tcp('raw.test', 4444)\nshow(ready=True)\nsys.stdin.read()"),
                   stdin=subprocess.PIPE, user=who) as running:
        running.next()
        proxy = roles(running)["proxy"]
        with open(f"/proc/{proxy}/status") as status:
            values = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        running.finish(b"")
    assert {values[key] for key in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}
    assert (values["NoNewPrivs"], values["Seccomp"]) == ("1", "2")
    assert values["Uid"].split() == [str(who.uid if who else 65534)] * 4


def test_many_jobs_at_once(lab, who):
    """Twenty at the same time, each with the same addresses and its own log."""
    runs = [lab.start(["--allow", "ok.test"], ["curl", "-sS", "https://ok.test/hello"], user=who) for _ in range(20)]
    results = [running.finish() for running in runs]
    assert [(result.rc, result.out) for result in results] == [(0, "hello from ok.test\n")] * 20, results[0]
    assert len({result.log for result in results}) == 20


FATES = """
    import threading

    def quiet(what, *args):
        try:
            return what(*args)
        except (OSError, EOFError, ValueError, IndexError, ssl.SSLError):
            pass

    def abort(host, port, data):
        with tcp(host, port) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(data)

    def echo(shut):
        with tcp("raw.test", 7) as sock:
            sock.sendall(b"x" * 200_000)
            if shut:
                sock.shutdown(socket.SHUT_WR)
                read_all(sock)

    GET = b"GET /hello HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n"
    CONNECT = b"CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n"
    HELLO = Tls("ok.test").hello()
    fates = [lambda: http("ok.test", 80, GET % b"ok.test"), lambda: http("ok.test", 80, GET % b"bad.test"), lambda: abort("ok.test", 443, HELLO),
             lambda: abort("ok.test", 443, HELLO[:50]), lambda: ending(sys.argv[1], 443, Tls("bad.test").hello()), lambda: ending(sys.argv[1], 9),
             lambda: tcp("ok.test", 80).close(), lambda: abort("raw.test", 4444, b"@"), lambda: ending("raw.test", 4445, b"@word"), lambda: echo(True),
             lambda: echo(False), lambda: ending("closed.test", 2222), lambda: http("fails.test", 80, GET % b"fails.test"),
             lambda: http("10.200.0.1", 3128, CONNECT % (b"bad.test:443", b"bad.test:443")), lambda: abort("10.200.0.1", 3128, CONNECT % (b"raw.test:7", b"raw.test:7")),
             lambda: abort("10.200.0.1", 1080, b"\\5\\1\\0\\5\\1\\0\\3\\10raw.test\\0\\7"), lambda: ending("10.200.0.1", 1080, b"\\4\\1"),
             lambda: socket.getaddrinfo("bad.test", 80)]

    def work(numbers):
        for number in numbers:
            quiet(fates[number % len(fates)])

    for line in sys.stdin:
        threads = [threading.Thread(target=work, args=[range(first, int(line), 8)]) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        show(done=True)
"""


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def test_a_thousand_connections_of_every_fate(lab):
    """When they are gone the proxy holds the descriptors of before, and no more memory than after the first of them."""
    lab.dns.add("closed.test", a=[v4("h2")])
    lab.dns.add("fails.test", rcode=2)
    allow = [word for entry in ("ok.test", "raw.test:7", "raw.test:4444", "raw.test:4445", "closed.test:2222", "fails.test") for word in ("--allow", entry)]
    with lab.start(allow, lab.script(FATES, v4("web")), stdin=subprocess.PIPE) as running:
        running.ask("0")
        proxy = roles(running)["proxy"]
        held = lambda: len(os.listdir(f"/proc/{proxy}/fd"))
        before = held()
        running.ask("200")
        wait_for(lambda: held() <= before + 4, f"{before} descriptors again, and the pipes that are kept")
        memory = resident(proxy)
        running.ask("1000")
        wait_for(lambda: held() <= before + 4, f"{before} descriptors again, and the pipes that are kept")
        assert resident(proxy) < memory + 4096, "KiB"
        result = running.finish(b"")
    assert result.rc == 0, result
    opened = {record["conn"] for record in result.of("dial", outcome="connected")}
    assert opened == {record["conn"] for record in result.of("close") if record["end"] != "connect_failed"}, "each has its end"
    assert result.one("end")["accepts"] > 900 and len(opened) > 300, result.one("end")
    assert {"client", "client_reset", "upstream_reset", "connect_failed"} <= {record["end"] for record in result.of("close")}

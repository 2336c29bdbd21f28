# SPDX-License-Identifier: Apache-2.0
"""The process records: who in the sandbox made an attempt, or that nobody knows."""

import ctypes
import json
import os
import signal
import struct
import subprocess
import textwrap

import pytest

from lab import v4, v6, wait_for

PYTHON = os.path.realpath("/usr/bin/python3")
FINDER = "netgate-finder"
BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]  # the system call


BARE = """
    def bare(address, to=9, device=None):
        # A connection that is reset, perhaps before connect() has returned; returns its port.
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as sock:
            if device:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
            sock.bind(("", 0))
            port = sock.getsockname()[1]
            try:
                sock.connect((address, to))
                fate(sock)
            except ConnectionResetError:
                pass
            return port
"""


def bare_script(text):
    return textwrap.dedent(BARE) + textwrap.dedent(text)


def process_of(result, decision):
    """The process record of a decision's connection, or of its datagram's source."""
    if "conn" in decision:
        return result.one("process", conn=decision["conn"])
    return result.one("process", src=decision["src"])


TRIES = 5  # a busy machine may not look before a denied connection is reset


def known(records):
    """The record of a process that made TRIES attempts, of which all were counted and one at least was looked at in time."""
    assert sum(record.get("count", 1) for record in records) == TRIES, records
    found = [record for record in records if record.get("unknown") not in ("gone", "timeout")]
    own = [{key: value for key, value in record.items() if key in ("pid", "host_pid", "uid", "exe", "cmdline", "unknown")} for record in found]
    assert own and all(one == own[0] for one in own), records
    return found[0]


def finder(running):
    found = [pid for pid, name in running.processes().items() if name == FINDER]
    assert len(found) <= 1
    return found[0] if found else None


def test_allowed_and_denied(lab, who):
    """An allowed host, a denied one by TLS and one by a bare connection, over both families: each has the same process."""
    script = lab.script(bare_script("""
        for address in ("ok.test", *sys.argv[1:]):
            with tcp(address, 443) as sock:
                sock.sendall(Tls("ok.test" if address == "ok.test" else "bad.test").hello())
                sock.recv(1)
                show(pid=os.getpid())
                sys.stdin.readline()
        for address in sys.argv[1:]:
            bare(address)
    """), v4("web"), v6("web"))
    with lab.start(["--allow", "ok.test"], script, stdin=subprocess.PIPE, user=who) as running:
        for count in (1, 2, 3):
            pid = (running.ask() if count > 1 else running.next())["pid"]
            wait_for(lambda: sum("conn" in r for r in running.records if r["type"] == "process") == count, "the record")
        result = running.finish(b"\n")
    decisions = result.of("decision", door="transparent")
    assert [d["verdict"] for d in decisions] == ["allow", "deny", "deny", "deny", "deny"], result
    records = [process_of(result, decision) for decision in decisions]
    assert [record["src"] for record in records] == [decision["src"] for decision in decisions]
    for record in records:
        assert (record["pid"], record["uid"], record["exe"]) == (pid, who.uid if who else 0, PYTHON), result
        assert record["cmdline"][:2] == ["/usr/bin/python3", "-c"]
        assert record["cmdline"][2].startswith("from inside import *\\x0a")
    assert len({record["host_pid"] for record in records}) == 1


def test_host_pid(lab, who):
    with lab.start([], lab.script(bare_script(f"for _ in range({TRIES}): bare(sys.argv[1])\nshow(ready=True)\nsys.stdin.read()"), v4("web")),
                   stdin=subprocess.PIPE, user=who) as running:
        running.next()
        records = lambda: [r for r in running.records if r["type"] == "process"]
        wait_for(lambda: sum(r.get("count", 1) for r in records()) == TRIES, "the records")
        record = known(records())
        with open(f"/proc/{record['host_pid']}/status") as status:
            (line,) = [line for line in status if line.startswith("NSpid:")]
        assert line.split()[-1] == str(record["pid"])
        running.finish(b"")


def test_curl_and_its_questions(lab, who):
    """Two programs one after the other, each so quick that it may be over before anybody could look."""
    result = lab.netgate(["--allow", "ok.test"],
                         ["sh", "-c", "curl -sS https://ok.test/hello; curl -sSk --connect-to bad.test:443:ok.test:443 https://bad.test/"],
                         user=who)
    words = {"ok.test": "https://ok.test/hello", "bad.test": "https://bad.test/"}
    named = 0
    for decision in result.of("decision"):
        record = process_of(result, decision)
        if record.get("unknown") in ("gone", "timeout"):
            continue
        named += 1
        assert record["exe"] == os.path.realpath("/usr/bin/curl") and record["cmdline"][0] == "curl", result
        if decision["door"] == "transparent":
            assert record["cmdline"][-1] == words[decision["host"]]
    assert named >= 1, result


def test_a_question_over_udp(lab, who):
    """The socket stays open: its process is known; asked at once and again, there is one record."""
    script = lab.script("""
        query = bytes.fromhex("123401000001000000000000") + b"\\3bad\\4test\\0\\0\\1\\0\\1"
        for family, gate in ((socket.AF_INET, "10.200.0.1"), (socket.AF_INET6, "fd6e:6574:6761:7465::1")):
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                for _ in range(3):
                    sock.sendto(query, (gate, 53))
                    sock.recv(1000)
                show(pid=os.getpid())
                sys.stdin.readline()
    """)
    with lab.start(["--allow", "ok.test"], script, stdin=subprocess.PIPE, user=who) as running:
        pid = running.next()["pid"]
        for count in (1, 2):
            wait_for(lambda: len([r for r in running.records if r["type"] == "process"]) == count, "the record")
            result = running.finish(b"\n") if count == 2 else running.ask()
    records = result.of("process")
    assert [record["pid"] for record in records] == [pid] * 2, result
    assert all("conn" not in record for record in records)
    assert len(result.of("decision", door="dns", verdict="deny")) == 6
    assert {record["src"] for record in records} == {d["src"] for d in result.of("decision", door="dns")}


def test_short_lived(lab, who):
    """Double-forked processes that connect and are gone at once: each is named rightly, or not at all."""
    result = lab.python([], """
        pids = []
        for i in range(20):
            read, write = os.pipe()
            if (child := os.fork()) == 0:
                if os.fork() == 0:
                    sock = socket.socket()
                    sock.bind(("", 20000 + i))  # each its own: the kernel would give one again that is free
                    os.write(write, struct.pack("ii", os.getpid(), sock.getsockname()[1]))
                    sock.connect_ex((sys.argv[1], 9))
                os._exit(0)
            os.waitpid(child, 0)
            pids.append(struct.unpack("ii", os.read(read, 8)))
        show(pids=pids)
    """, v4("web"), user=who)
    owners = {port: pid for pid, port in result.shown[0]["pids"]}
    decisions = result.of("decision", door="transparent")
    assert len(decisions) == 20
    for decision in decisions:
        record = process_of(result, decision)
        port = int(decision["src"].rpartition(":")[2])
        assert record.get("unknown") in ("gone", "timeout") or (record["pid"], record.get("exe", PYTHON)) == (owners[port], PYTHON), result


def test_hostile_names(lab, who):
    """Control bytes and quotes in the arguments and in the name that a process gives itself."""
    result = lab.netgate([], ["/usr/bin/python3", "-c", """if True:
        import os, sys
        os.execv("/usr/bin/python3", ["x\\n\\"}", "-c", sys.argv[1], sys.argv[2], "\\x1b[31m\\r", "b" * 5000])
    """, f"""if True:
        import ctypes, socket, sys
        ctypes.CDLL(None).prctl(15, b"\\n\\"}}\\x1b\\xff", 0, 0, 0)
        for _ in range({TRIES}):
            try:
                socket.create_connection((sys.argv[1], 9)).recv(1)
            except OSError:
                pass
    """, v4("web")], user=who)
    record = known(result.of("process"))
    assert record["exe"] == PYTHON, result
    assert record["cmdline"][0] == 'x\\x0a"}'
    assert record["cmdline"][3:5] == [v4("web"), "\\x1b[31m\\x0d"]
    assert record["cmdline"][5].startswith("bbbb") and "\\+" in record["cmdline"][5]


def test_rewritten_arguments_and_deleted_program(lab, who):
    """A program of the command's own making that is gone from its path, and whose arguments are not what it was started with."""
    result = lab.python([], """
        import shutil
        name = b"/tmp/a\\n\\"}\\x1b[2J\\xff"
        shutil.copy(b"/usr/bin/python3", name)
        code = '''if True:
            import contextlib, os, socket, sys
            os.unlink(os.fsencode(sys.argv[2]))
            for _ in range(int(sys.argv[3])):
                with contextlib.suppress(OSError):
                    socket.create_connection((sys.argv[1], 9)).recv(1)
        '''
        os.spawnv(os.P_WAIT, name, [b"innocent", b"-c", code.encode(), sys.argv[1].encode(), name, sys.argv[2].encode()])
    """, v4("web"), str(TRIES), user=who)
    record = known(result.of("process"))
    assert record["exe"] == '/tmp/a\\x0a"}\\x1b[2J\\xff (deleted)', result
    assert record["cmdline"][0] == "innocent"


def test_process_that_hides(lab, who):
    """Not dumpable: root sees it all the same; an ordinary user is told that something was hidden."""
    result = lab.python([], bare_script("""
        import ctypes
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
        for _ in range(int(sys.argv[2])):
            bare(sys.argv[1])
    """), v4("web"), str(TRIES), user=who)
    record = known(result.of("process"))
    assert record.get("unknown") == "hidden" if who else record["exe"] == PYTHON, result


def test_many_connections_of_many_processes(lab, who):
    """Eight processes with a hundred connections each: every connection is accounted for, and none is given to another."""
    result = lab.python([], bare_script("""
        children = []
        for i in range(8):
            read, write = os.pipe()
            if os.fork() == 0:
                for _ in range(100):
                    bare(sys.argv[1], 1000 + i)
                os.write(write, struct.pack("i", os.getpid()))
                os._exit(0)
            os.close(write)
            children.append(read)
        show(pids=[struct.unpack("i", os.read(read, 4))[0] for read in children])
    """), v4("web"), user=who)
    wanted = {d["conn"]: result.shown[0]["pids"][d["port"] - 1000] for d in result.of("decision")}
    records = result.of("process")
    named = [record for record in records if "pid" in record]
    for record in named:
        assert record["pid"] == wanted[record["conn"]], record
    assert sum(record.get("count", 1) for record in records) == 800
    # A busy machine may not look before a connection is reset.
    late = sum(record.get("count", 1) for record in records if record.get("unknown") in ("gone", "timeout"))
    assert named and len(named) + late > 700, (len(named), late)


def test_many_descriptors(lab):
    """Two thousand sockets open at once: the last one is found as well."""
    script = lab.script("""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        socks = [tcp("raw.test", 4444) for _ in range(2000)]
        time.sleep(0.5)
        socks.append(tcp("raw.test", 4444))
        show(last=socks[-1].getsockname()[1])
        sys.stdin.readline()
    """)
    with lab.start(["--allow", "raw.test:4444"], script, stdin=subprocess.PIPE) as running:
        last = running.next()["last"]
        (record,) = wait_for(lambda: [r for r in running.records if r["type"] == "process" and r.get("src", "").endswith(f":{last}")], "the record")
        running.finish(b"\n")
    assert record["exe"] == PYTHON, record


def test_no_finder_left(lab, who):
    """The finder is there while the command runs, and gone with netgate however it ends; a job's end does not wait for it."""
    for ending in (None, signal.SIGTERM, signal.SIGKILL):
        with lab.start([], lab.script("show(ready=True)\nsys.stdin.read()"), stdin=subprocess.PIPE, user=who) as running:
            running.next()
            wait_for(lambda: finder(running), "the finder")
            os.kill(finder(running), signal.SIGSTOP)
            if ending:
                running.process.send_signal(ending)
            running.finish(b"")
            if ending == signal.SIGKILL:
                wait_for(lambda: not running.processes(), "the end of every process")
            assert running.processes() == {}


def test_finder_is_isolated(lab, who):
    """It has the sandbox's network, /proc as its root, a system call filter, and no capability but two; as root, it is another user."""
    with lab.start([], lab.script("show(ready=True)\nsys.stdin.read()"), stdin=subprocess.PIPE, user=who) as running:
        running.next()
        wait_for(lambda: running.filtered(FINDER), "the finder")
        pid = finder(running)
        status = lambda: dict(line.rstrip("\n").split(":\t", 1) for line in open(f"/proc/{pid}/status") if ":\t" in line)
        values = status()
        two = f"{1 << 19 | 1 << 2:016x}"
        assert (values["CapEff"], values["CapPrm"], values["CapInh"]) == (two, two, "0" * 16)
        assert values["NoNewPrivs"] == "1" and values["Uid"].split() == [str(who.uid if who else 65534)] * 4
        assert os.readlink(f"/proc/{pid}/root") == "/proc"
        command = [p for p, name in running.processes().items() if name == "python3"][0]
        assert os.readlink(f"/proc/{pid}/ns/net") == os.readlink(f"/proc/{command}/ns/net") != os.readlink("/proc/self/ns/net")
        assert sorted(os.path.basename(os.readlink(f"/proc/{pid}/fd/{fd}")).split(":")[0]
                      for fd in os.listdir(f"/proc/{pid}/fd")) == ["null"] * 3 + ["proc"] + ["socket"] * 2
        running.finish(b"")


def test_without_a_finder(lab, who):
    """It is killed: nothing else changes, and the log says that nobody is named."""
    script = """
        for line in sys.stdin:
            with tcp("ok.test", 443) as sock:
                sock.sendall(Tls("ok.test").hello())
                show(got=len(sock.recv(1)))
    """
    with lab.start(["--allow", "ok.test"], lab.script(script), stdin=subprocess.PIPE, user=who) as running:
        assert running.ask("go") == {"got": 1}
        wait_for(lambda: any("conn" in r for r in running.records if r["type"] == "process"), "the record")
        os.kill(finder(running), signal.SIGKILL)
        wait_for(lambda: finder(running) is None, "its end")
        assert running.ask("go") == {"got": 1}
        result = running.finish(b"")
    assert result.rc == 0, result
    assert [d["verdict"] for d in result.of("decision", door="transparent")] == ["allow", "allow"]
    missed = result.of("process", unknown="unavailable")
    assert sum(record.get("count", 1) for record in missed) >= 1, result
    assert len(result.of("process", exe=PYTHON, conn=1)) == 1


@pytest.mark.parametrize("address", [v4("web"), v6("web")])
def test_bound_to_the_link(lab, address):
    """SO_BINDTODEVICE, which any process may use since Linux 5.7."""
    result = lab.python([], bare_script(f"for _ in range({TRIES}): bare(sys.argv[1], device=b'eth0')"), address)
    record = known(result.of("process"))
    assert record.get("exe") == PYTHON, result


def test_ipv4_from_an_ipv6_socket(lab, who):
    result = lab.python([], bare_script(f"for _ in range({TRIES}): bare('::ffff:' + sys.argv[1])"), v4("web"), user=who)
    record = known(result.of("process"))
    assert record.get("exe") == PYTHON and record["src"].startswith("10."), result


def test_root_without_the_capabilities(lab):
    """As in many containers: what root lacks on the host, it has over the sandbox."""
    result = lab.python([], bare_script(f"for _ in range({TRIES}): bare(sys.argv[1])"), v4("web"),
                        wrap=["setpriv", "--bounding-set", "-sys_ptrace,-dac_read_search"])
    record = known(result.of("process"))
    assert record.get("exe") == PYTHON, result


# ---- processes that are gone: for root, a kernel program names them ----

GONE = """
    def gone(attempt):
        # A process whose parent is gone makes an attempt, and is gone as well; returns its pid.
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            if os.fork() == 0:
                os.write(write, struct.pack("i", os.getpid()))
                attempt()
            os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        with open(read, "rb") as ended:
            return struct.unpack("i", ended.read())[0]

    def connect(address, to=9, port=0):
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", port))
        sock.setblocking(False)
        sock.connect_ex((address, to))

    def query(port):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("", port))
        sock.sendto(bytes.fromhex("123401000001000000000000") + b"\\3bad\\4test\\0\\0\\1\\0\\1", ("10.200.0.1", 53))
"""


def without_bpf():
    """Words that take the system call bpf(2) from what they run: as on a machine that lacks what it needs."""
    return [PYTHON, "-c", textwrap.dedent(f"""
        import ctypes, os, struct, sys
        steps = b"".join(struct.pack("HBBI", *step) for step in
                         [(0x20, 0, 0, 0), (0x15, 0, 1, {BPF}), (6, 0, 0, 0x50000 | 1), (6, 0, 0, 0x7fff0000)])
        buffer = ctypes.create_string_buffer(steps)
        program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
        os.execvp(sys.argv[1], sys.argv[1:])
    """)]


class Gone:
    """A command that makes attempts when it is told to, by processes that are gone at once.

    `text` has a function attempts() that makes them, and returns what self.attempts() does.
    """

    def __init__(self, lab, text, *args, **kwargs):
        script = textwrap.dedent(text) + textwrap.dedent(GONE) + textwrap.dedent("""
            show(ready=True)
            for line in sys.stdin:
                show(pids=attempts())
        """)
        self.running = lab.start([], lab.script(script, *args), stdin=subprocess.PIPE, **kwargs)

    def __enter__(self):
        self.running.next()
        wait_for(lambda: self.running.filtered(FINDER), "the finder")
        return self

    def __exit__(self, *_):
        self.running.kill()

    def attempts(self, blind=True):
        """Has them made. Returns what the script's returned, and their records: of a time when no answer came too late.

        `blind`: the finder sleeps meanwhile, so that all of them are gone when it looks.
        """
        for _ in range(20):
            before = len(self.running.records)
            pid = finder(self.running)
            if blind:
                os.kill(pid, signal.SIGSTOP)
            try:
                pids = self.running.ask("go")["pids"]
            finally:
                os.kill(pid, signal.SIGCONT)
            seen = lambda: [r for r in self.running.records[before:] if r["type"] == "process"]
            wait_for(lambda: sum(r.get("count", 1) for r in seen()) >= len(pids), "the records")
            records = seen()
            if not [r for r in records if r.get("unknown") == "timeout"]:
                return pids, records
        raise AssertionError("the machine is too busy for answers in two seconds")


def test_gone_are_named(lab):
    """A hundred processes that connect and exit at once: all are named, each with its own number."""
    with Gone(lab, """
        def attempts():
            return [gone(lambda: connect(sys.argv[1 + port % 2], port=port)) for port in range(20000, 20100)]
    """, v4("web"), v6("web")) as job:
        pids, records = job.attempts(blind=False)
    owners = dict(zip(range(20000, 20100), pids))
    assert len(records) == 100
    for record in records:
        port = int(record["src"].rpartition(":")[2])
        assert (record.get("pid"), record.get("exe"), record.get("uid")) == (owners[port], PYTHON, 0), record
        assert record["cmdline"][:2] == ["/usr/bin/python3", "-c"], record


@pytest.mark.parametrize("attempt", ["connect(sys.argv[1], port=port)", "connect(sys.argv[2], port=port)", "query(port)"])
def test_gone_before_anybody_looked(lab, attempt):
    with Gone(lab, f"""
        def attempts():
            return [gone(lambda: {attempt}) for port in range(20000, 20010)]
    """, v4("web"), v6("web")) as job:
        pids, records = job.attempts()
    assert [r.get("pid") for r in records] == pids, records
    assert {(r["exe"], r["uid"], r["cmdline"][1]) for r in records} == {(PYTHON, 0, "-c")}, records


def test_who_made_it_and_who_has_it(lab, who):
    """A socket that one process connects and another keeps: for root the one that connected it is named, else the one that has it."""
    with Gone(lab, """
        held = []
        def attempts():
            sock = socket.socket()
            sock.setblocking(False)
            held.append(sock)
            child = os.fork()
            if child == 0:
                sock.connect_ex((sys.argv[1], 443))
                os._exit(0)
            os.waitpid(child, 0)
            return [os.getpid() if int(sys.argv[2]) else child]
    """, v4("web"), "1" if who else "0", user=who) as job:
        pids, records = job.attempts()
    assert [record.get("pid") for record in records] == pids, records


def test_maker_in_another_network_namespace(lab):
    """A socket goes with a process into a network namespace of its own; who connects it there is named, and nobody else who has it."""
    result = lab.python([], """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        with socket.socket() as sock:
            sock.bind(("", 0))
            sock.set_inheritable(True)
            sleeper = os.fork()
            if sleeper == 0:
                os.execv("/bin/sleep", ["sleep", "60"])
            maker = os.fork()
            if maker == 0:
                ok = libc.unshare(0x50000000) == 0  # CLONE_NEWUSER | CLONE_NEWNET
                try:
                    sock.connect((sys.argv[1], 9))
                except ConnectionResetError:
                    pass
                os._exit(0 if ok else 7)
            show(maker=maker, status=os.waitpid(maker, 0)[1])
            os.kill(sleeper, 9)
    """, v4("raw"))
    assert result.shown[0]["status"] == 0, result
    named = result.one("process")
    assert (named["pid"], named["exe"]) == (result.shown[0]["maker"], PYTHON), result


def test_place_of_the_program(lab, who):
    """It is there before the link is up, program or not: made later, it costs the packets of that moment, such as the first look-up."""
    result = lab.netgate([], ["tc", "qdisc", "show", "dev", "eth0"], user=who)
    assert "qdisc clsact ffff:" in result.out, result


def test_gone_without_privilege(lab, who):
    """An ordinary user has no kernel program, and neither has root without bpf(2): nobody is named who can't be looked at."""
    with Gone(lab, """
        def attempts():
            return [gone(lambda: connect(sys.argv[1])) for _ in range(10)]
    """, v4("web"), user=who, wrap=() if who else without_bpf()) as job:
        _, records = job.attempts()
    assert [r.get("unknown") for r in records] == ["gone"] * 10, records


HOSTILE = """if True:
    import ctypes, os, socket, sys
    if len(sys.argv) > 3:
        os.unlink(os.fsencode(sys.argv[3]))
    ctypes.CDLL(None).prctl(15, b"sshd", 0, 0, 0)
    sock = socket.socket()
    sock.setblocking(False)
    os.write(int(sys.argv[2]), os.getpid().to_bytes(4, "little"))
    sock.connect_ex((sys.argv[1], 9))
    os._exit(0)
"""


def test_gone_and_hostile(lab):
    """What a process says of itself is in its arguments only; program and number are the kernel's. As /proc has them."""
    with Gone(lab, """
        import shutil
        name = b"/tmp/dir\\n\\"}/a\\x1b[2J\\xff"
        os.mkdir(os.path.dirname(name))

        def run(program, *more):
            read, write = os.pipe()
            os.set_inheritable(write, True)
            if os.fork() == 0:
                words = [b"/usr/sbin/\\x1bsshd", b"-c", sys.argv[2].encode(), sys.argv[1].encode(), str(write).encode(), *more]
                os.execv(program, words)
            os.close(write)
            os.wait()
            with open(read, "rb") as ended:
                return int.from_bytes(ended.read(), "little")

        def attempts():
            shutil.copy(b"/usr/bin/python3", name)
            memory = os.memfd_create("evil", 0)
            with open("/usr/bin/python3", "rb") as program:
                while os.sendfile(memory, program.fileno(), None, 1 << 30):
                    pass
            return [run(name), run(name, name), run(f"/proc/self/fd/{memory}")]
    """, v4("web"), HOSTILE) as job:
        pids, records = job.attempts()
    path = '/tmp/dir\\x0a"}/a\\x1b[2J\\xff'
    assert [r.get("pid") for r in records] == pids, records
    assert [r.get("exe") for r in records] == [path, path + " (deleted)", "/memfd:evil (deleted)"], records
    assert {r["cmdline"][0] for r in records} == {"/usr/sbin/\\x1bsshd"}


def test_gone_in_a_flood(lab):
    """More attempts than are remembered: the first are forgotten, and nobody else is named for them."""
    with Gone(lab, """
        def attempts():
            pids = [gone(lambda: connect(sys.argv[1])) for _ in range(10)]
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.connect(("10.200.0.1", 53))
            for _ in range(300):
                sock.send(b"no query")
            return pids
    """, v4("web")) as job:
        _, records = job.attempts()
    attempts = [r for r in records if "conn" in r]
    assert [r.get("unknown") for r in attempts] == ["gone"] * 10, records


def test_gone_from_two_sandboxes(lab):
    """With the same addresses and ports at the same time: neither is mistaken for the other."""
    text = """
        word = {!r}
        def attempts():
            return [gone(lambda: connect(sys.argv[1], port=port)) for port in range(20000, 20010)]
    """
    seen = {}
    with Gone(lab, text.format("one"), v4("web")) as one, Gone(lab, text.format("two"), v4("web")) as two:
        for job, word in ((one, "one"), (two, "two"), (one, "one")):
            pids, records = job.attempts()
            assert [r.get("pid") for r in records] == pids, records
            assert all(f"word = '{word}'" in r["cmdline"][2] for r in records), records
            seen[word] = [r["src"] for r in records]
    assert seen["one"] == seen["two"]


def kernel_program_exists(number):
    """Whether there is a BPF program with this id (BPF_PROG_GET_FD_BY_ID)."""
    attr = ctypes.create_string_buffer(struct.pack("III", number, 0, 0))
    fd = ctypes.CDLL(None).syscall(BPF, 13, attr, 12)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def test_kernel_program_goes_with_the_sandbox(lab):
    """It hangs on the sandbox's link and is gone with it."""
    with Gone(lab, "attempts = list") as job:
        command = [p for p, name in job.running.processes().items() if name == "python3"][0]
        done = subprocess.run(["nsenter", f"--net=/proc/{command}/ns/net", "tc", "-j", "filter", "show", "dev", "eth0", "egress"],
                              capture_output=True, text=True, check=True)
        (number,) = [f["options"]["prog"]["id"] for f in json.loads(done.stdout) if "prog" in f.get("options", {})]
        assert kernel_program_exists(number)
    wait_for(lambda: not kernel_program_exists(number), "the end of the kernel program")

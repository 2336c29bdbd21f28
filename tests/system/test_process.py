# SPDX-License-Identifier: Apache-2.0
"""The process records: who in the sandbox made an attempt, or that nobody knows."""

import os
import signal
import subprocess
import textwrap
import time

import pytest

from lab import v4, v6, wait_for

PYTHON = os.path.realpath("/usr/bin/python3")
FINDER = "netgate-finder"


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


def finder(running):
    found = [pid for pid, name in running.processes().items() if name == FINDER]
    assert len(found) <= 1
    return found[0] if found else None


def test_allowed_and_denied(lab, who):
    """An allowed host, a denied one by TLS and one by a bare connection, over both families: each has the same process."""
    result = lab.python(["--allow", "ok.test"], bare_script("""
        show(pid=os.getpid())
        for address in ("ok.test", *sys.argv[1:]):
            with tcp(address, 443) as sock:
                sock.sendall(Tls("ok.test" if address == "ok.test" else "bad.test").hello())
                sock.recv(1)
                time.sleep(0.3)
        for address in sys.argv[1:]:
            bare(address)
    """), v4("web"), v6("web"), user=who)
    pid = result.shown[0]["pid"]
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
    with lab.start([], lab.script(bare_script("bare(sys.argv[1])\nshow(ready=True)\nsys.stdin.read()"), v4("web")),
                   stdin=subprocess.PIPE, user=who) as running:
        running.next()
        wait_for(lambda: [r for r in running.records if r["type"] == "process"], "the record")
        (record,) = [r for r in running.records if r["type"] == "process"]
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
        if record.get("unknown") == "gone":
            continue
        named += 1
        assert record["exe"] == os.path.realpath("/usr/bin/curl") and record["cmdline"][0] == "curl", result
        if decision["door"] == "transparent":
            assert record["cmdline"][-1] == words[decision["host"]]
    assert named >= 1, result


def test_a_question_over_udp(lab, who):
    """The socket stays open: its process is known; asked at once and again, there is one record."""
    result = lab.python(["--allow", "ok.test"], """
        query = bytes.fromhex("123401000001000000000000") + b"\\3bad\\4test\\0\\0\\1\\0\\1"
        for family, gate in ((socket.AF_INET, "10.200.0.1"), (socket.AF_INET6, "fd6e:6574:6761:7465::1")):
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                for _ in range(3):
                    sock.sendto(query, (gate, 53))
                    sock.recv(1000)
                time.sleep(0.1)
        show(pid=os.getpid())
    """, user=who)
    records = result.of("process")
    assert [record["pid"] for record in records] == [result.shown[0]["pid"]] * 2, result
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
                    sock.bind(("", 0))
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
        assert record.get("unknown") == "gone" or (record["pid"], record.get("exe", PYTHON)) == (owners[port], PYTHON), result


def test_hostile_names(lab, who):
    """Control bytes and quotes in the arguments and in the name that a process gives itself."""
    result = lab.netgate([], ["/usr/bin/python3", "-c", """if True:
        import os, sys
        os.execv("/usr/bin/python3", ["x\\n\\"}", "-c", sys.argv[1], sys.argv[2], "\\x1b[31m\\r", "b" * 5000])
    """, """if True:
        import ctypes, socket, sys
        ctypes.CDLL(None).prctl(15, b"\\n\\"}\\x1b\\xff", 0, 0, 0)
        try:
            socket.create_connection((sys.argv[1], 9)).recv(1)
        except OSError:
            pass
    """, v4("web")], user=who)
    (record,) = result.of("process")
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
        code = "import os, socket, sys, time; os.unlink(os.fsencode(sys.argv[2])); s = socket.socket(); s.connect_ex((sys.argv[1], 9)); time.sleep(0.1)"
        os.spawnv(os.P_WAIT, name, [b"innocent", b"-c", code.encode(), sys.argv[1].encode(), name])
    """, v4("web"), user=who)
    (record,) = result.of("process")
    assert record["exe"] == '/tmp/a\\x0a"}\\x1b[2J\\xff (deleted)', result
    assert record["cmdline"][0] == "innocent"


def test_process_that_hides(lab, who):
    """Not dumpable: root sees it all the same; an ordinary user is told that something was hidden."""
    result = lab.python([], bare_script("""
        import ctypes
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
        bare(sys.argv[1])
    """), v4("web"), user=who)
    (record,) = result.of("process")
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
    assert len(named) > 700, len(named)


def test_many_descriptors(lab):
    """Two thousand sockets open at once: the last one is found as well."""
    result = lab.python(["--allow", "raw.test:4444"], """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        socks = [tcp("raw.test", 4444) for _ in range(2000)]
        time.sleep(0.5)
        socks.append(tcp("raw.test", 4444))
        time.sleep(0.5)
        show(last=socks[-1].getsockname()[1])
    """)
    last = result.shown[0]["last"]
    (record,) = [r for r in result.of("process") if r.get("src", "").endswith(f":{last}")]
    assert record["exe"] == PYTHON, record


def test_no_finder_left(lab, who):
    """The finder is there while the command runs, and gone with netgate however it ends; a job's end does not wait for it."""
    for ending in (None, signal.SIGTERM, signal.SIGKILL):
        with lab.start([], lab.script("show(ready=True)\nsys.stdin.read()"), stdin=subprocess.PIPE, user=who) as running:
            running.next()
            wait_for(lambda: finder(running), "the finder")
            began = time.monotonic()
            if ending:
                running.process.send_signal(ending)
            running.finish(b"")
            assert time.monotonic() - began < 2
            if ending == signal.SIGKILL:
                wait_for(lambda: not running.processes(), "the end of every process")
            assert running.processes() == {}


def test_finder_is_isolated(lab, who):
    """It has the sandbox's network, /proc as its root, a system call filter, and no capability but two; as root, it is another user."""
    with lab.start([], lab.script("show(ready=True)\nsys.stdin.read()"), stdin=subprocess.PIPE, user=who) as running:
        running.next()
        wait_for(lambda: finder(running), "the finder")
        pid = finder(running)
        status = lambda: dict(line.rstrip("\n").split(":\t", 1) for line in open(f"/proc/{pid}/status") if ":\t" in line)
        wait_for(lambda: status()["Seccomp"] == "2", "its filter")
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
        pid = finder(running)
        os.kill(pid, signal.SIGKILL)
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
    result = lab.python([], bare_script("bare(sys.argv[1], device=b'eth0')"), address)
    (record,) = result.of("process")
    assert record.get("exe") == PYTHON, result


def test_ipv4_from_an_ipv6_socket(lab, who):
    result = lab.python([], bare_script("bare('::ffff:' + sys.argv[1])"), v4("web"), user=who)
    (record,) = result.of("process")
    assert record.get("exe") == PYTHON and record["src"].startswith("10."), result


def test_root_without_the_capabilities(lab):
    """As in many containers: what root lacks on the host, it has over the sandbox."""
    result = lab.python([], bare_script("bare(sys.argv[1])\ntime.sleep(0.1)"), v4("web"),
                        wrap=["setpriv", "--bounding-set", "-sys_ptrace,-dac_read_search"])
    (record,) = result.of("process")
    assert record.get("exe") == PYTHON, result

# SPDX-License-Identifier: Apache-2.0
"""What runs out or fails while netgate works: memory, descriptors, the name server, a peer. Never an allow without its record."""

import os
import re
import subprocess

import pytest

from lab import v4, wait_for

TRY = """
    def attempt(what):
        try:
            return what()
        except Exception as error:
            return type(error).__name__

    def tls():
        with tcp("ok.test", 443, 5) as sock:
            client = Tls("ok.test")
            client.handshake(sock, at_once)
            return len(client.exchange(sock, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n"))

    def connect():
        with tcp("10.200.0.1", 3128, 5) as sock:
            sock.sendall(b"CONNECT raw.test:7 HTTP/1.1\\r\\nHost: raw.test:7\\r\\n\\r\\n")
            return sock.recv(12).decode()

    GET = b"GET /hello HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n"
    show(out=[attempt(lambda: http("ok.test", 80, GET % b"ok.test")[0][0]), attempt(tls), attempt(connect),
              attempt(lambda: ending(sys.argv[1], 22)), attempt(lambda: ending(sys.argv[1], 80, GET % b"bad.test"))])
"""


@pytest.fixture(scope="module")
def fail(whole_lab):
    """fail(n, program, child): the environment in which the n-th allocation fails (fail_alloc.c)."""
    library = os.path.join(whole_lab.folder, "fail_alloc.so")
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-o", library,
                    os.path.join(os.path.dirname(__file__), "fail_alloc.c")], check=True)

    def env(n, program="netgate", child=False):
        return {"LD_PRELOAD": library, "FAIL_AT": str(n), "FAIL_IN": program} | ({"FAIL_CHILD": "1"} if child else {})

    return env


def test_memory_while_a_policy_is_loaded(lab, fail):
    """Each single allocation: an error with status 1 and no crash, or the same policy as with it, until one run is untouched."""
    policy = os.path.join(lab.workspace(), "policy.yaml")
    with open(policy, "w") as out:
        out.write('version: 1\nallow:\n  - api.example.com\n  - "*.example.org"\n  - host: db.example.net\n    ports: [5432]\n'
                  '    addresses: [10.2.0.0/16]\ndeny:\n  - bad.example.org\nlimits:\n  connections: 5\n')

    def check(n):
        return subprocess.run([os.path.join(lab.programs(), "netgate"), "check", policy], capture_output=True, text=True, timeout=60,
                              env=lab.environment() | fail(n))

    good = check(0)
    assert good.returncode == 0, good
    for n in range(1, 5000):
        done = check(n)
        if "on purpose" not in done.stderr:
            break
        assert done.returncode in (0, 1, 2), (n, done)
        assert done.returncode != 0 or done.stdout == good.stdout, (n, done)
        assert done.returncode == 0 or "netgate: " in done.stderr, (n, done)
    assert 50 < n < 4999, "as many as were seen to fail"


# Where in the processes' lives: a few of each; the numbers are prime, so that they wander over the code as it changes.
@pytest.mark.parametrize("program,child,numbers", [("netgate", False, range(1, 100, 6)), ("netgate", True, range(1, 200, 8)),
                                                   ("sandbox-net", False, range(1, 100, 6))], ids=["monitor", "proxy", "launcher"])
def test_memory_of_a_job(lab, fail, program, child, numbers):
    """A job with one allocation less, at many places: no crash while it serves, and what was let through is on record."""
    failed = 0
    for n in numbers:
        lab.reset()
        result = lab.netgate(["--allow", "ok.test", "--allow", "raw.test:7"], lab.script(TRY, v4("web")), env=fail(n, program, child))
        failed += "on purpose" in result.err
        assert result.rc in (0, 125), (n, result)
        assert not result.records or "killed by signal" not in result.err, (n, result)
        allowed = result.of("decision", verdict="allow", door="transparent")
        assert len(lab.web.requests) <= len(allowed), (n, result)
        # Two addresses may be tried for one name, each on record.
        assert not lab.raw.of("echo") or result.of("decision", verdict="allow", door="connect"), (n, result)
        seqs = [record["seq"] for record in result.records]
        assert seqs == list(range(1, len(seqs) + 1)), (n, result)
    assert failed > 2, "allocations were seen to fail"


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return sum(int(field) for field in stat.read().rpartition(")")[2].split()[11:13])


def test_no_more_descriptors(lab):
    """The proxy has none left: it waits instead of spinning, connections wait too, and are served when there are some again."""
    script = """
        held = []
        for line in sys.stdin:
            if line == "take\\n":
                for _ in range(40):
                    sock = socket.socket()
                    sock.setblocking(False)
                    sock.connect_ex((sys.argv[1], 443))
                    held.append(sock)
            elif line == "free\\n":
                while held:
                    held.pop().close()
            else:
                show(status=http("ok.test", 80, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n")[0][0])
                continue
            show(done=True)
    """
    most = 50  # fewer than the connections that the proxy would take
    with lab.start(["--allow", "ok.test"], lab.script(script, v4("web")), stdin=subprocess.PIPE, wrap=["prlimit", f"--nofile={most}:{most}"]) as running:
        assert running.ask("ask") == {"status": 200}
        proxy = running.child()
        used = len(os.listdir(f"/proc/{proxy}/fd"))
        running.ask("take")
        wait_for(lambda: len(os.listdir(f"/proc/{proxy}/fd")) >= most - 1, "the last descriptor")
        before = cpu_ticks(proxy)
        try:
            running.process.wait(2)
        except subprocess.TimeoutExpired:
            pass
        # Of two seconds a tenth, at most; one that spins takes all of them, or its share on a busy machine.
        assert cpu_ticks(proxy) - before < 0.1 * 2 * os.sysconf("SC_CLK_TCK") + 5
        running.ask("free")
        assert running.ask("ask") == {"status": 200}
        wait_for(lambda: len(os.listdir(f"/proc/{proxy}/fd")) <= used + 4, "the descriptors of before")
        result = running.finish(b"")
    assert result.rc == 0, result
    end = result.one("end")
    assert end["syns"] >= end["accepts"] and re.search("netgate: ", result.err), result

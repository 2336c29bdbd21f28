# SPDX-License-Identifier: Apache-2.0
"""Clients and upstreams that are silent, slow, or gone: every deadline fires, every byte arrives, and nothing spins."""

import asyncio
import collections
import contextlib
import os
import socket
import subprocess
from textwrap import dedent

import pytest

from lab import DEAD, v4, v6, wait_for

EACH = 40  # connections of a kind
HELLO_S, DRAIN_S = 10, 5  # netgate's limits: for a hello or a dial, and for a client to close
ANSWER, BY_CLOSE, STREAM, AWAIT_END, SLOW_SINK = 8001, 8002, 8003, 8004, 8005  # ports of raw.test

SCRIPT = """
    import select

    def small(port, buffer, data):
        \"\"\"A connection whose receive buffer stays small, so that what it does not read waits in netgate.\"\"\"
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.settimeout(TIMEOUT)
        sock.connect((socket.gethostbyname("raw.test"), port))
        sock.sendall(data)
        return sock

    def get(what, *fields, host="raw.test"):
        return "\\r\\n".join([f"GET /{what} HTTP/1.1", f"Host: {host}", *fields, "", ""]).encode()
"""


def script(text):
    return dedent(SCRIPT) + dedent(text)


async def length_asked_for(reader):
    """The LENGTH of "GET /LENGTH HTTP/1.1"."""
    return int((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1][1:])


async def answer(reader, writer, seen):
    """So many bytes with a Content-Length, then the end of the connection."""
    length = await length_asked_for(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + bytes(length))
    await writer.drain()
    seen.end = "closed"


async def by_close(reader, writer, seen):
    """So many bytes, which the end of the connection delimits."""
    length = await length_asked_for(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + bytes(length))
    await writer.drain()
    seen.end = "closed"


async def stream(reader, writer, seen):
    """No HTTP: as many bytes as a first line says, then the end."""
    writer.write(bytes(int(await reader.readline())))
    await writer.drain()
    seen.end = "closed"


async def await_end(reader, writer, seen):
    """Answers a request only when the client has ended its side."""
    seen.received = len(await reader.readuntil(b"\r\n\r\n"))
    await reader.read()
    seen.end = "eof"
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")


async def slow_sink(reader, writer, seen):
    """Takes 2 MB/s and has little room for more."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    while piece := await reader.read(50_000):
        seen.received += len(piece)
        await asyncio.sleep(len(piece) / 2e6)
    seen.end = "eof"


@pytest.fixture(scope="module")
def upstreams(whole_lab):
    with contextlib.ExitStack() as stack:
        for handler, port in ((answer, ANSWER), (by_close, BY_CLOSE), (stream, STREAM), (await_end, AWAIT_END),
                              (slow_sink, SLOW_SINK)):
            stack.enter_context(whole_lab.raw.listening(whole_lab.inet, handler, v4("raw"), v6("raw"), port=port))
        yield


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_every_deadline_fires(lab):
    """Many of each kind at once: silent, cut in the middle, refused and kept open, waiting for a dead host. All end in time."""
    lab.dns.add("dead.test", a=[v4(DEAD)])
    result = lab.python(["--allow", "ok.test", "--allow", "dead.test", "--allow", "raw.test:7"], script("""
        import collections
        each = int(sys.argv[1])
        kinds = {"silent": ("ok.test", 443, b""), "part of a TLS record": ("ok.test", 443, b"\\x16\\3\\1\\2"),
                 "part of a request": ("ok.test", 80, b"GET / HT"), "silent on 80": ("ok.test", 80, b""),
                 "a method on a raw port": ("raw.test", 7, b"GET"), "part of TLS on a raw port": ("raw.test", 7, b"\\x16\\3\\1"),
                 "refused": ("ok.test", 80, get("", host="bad.test")), "dead": ("dead.test", 80, get("", host="dead.test"))}
        socks, poll = {}, select.poll()
        for kind, (host, port, data) in kinds.items():
            for _ in range(each):
                begun = time.monotonic()
                sock = tcp(host, port)
                sock.sendall(data)
                socks[sock.fileno()] = kind, sock, begun
                # A refused client's connection gets its answer and FIN at once; what is awaited is its end.
                poll.register(sock, 0 if kind == "refused" else select.POLLRDHUP)
        took, limit = collections.defaultdict(list), time.monotonic() + 40
        while socks and time.monotonic() < limit:
            for fd, _ in poll.poll(1000):
                kind, sock, begun = socks.pop(fd)
                took[kind].append(time.monotonic() - begun)
                poll.unregister(fd)
                sock.close()
        show(open=collections.Counter(kind for kind, _, _ in socks.values()),
             first={kind: min(times) for kind, times in took.items()}, last={kind: max(times) for kind, times in took.items()})
    """), str(EACH))
    (seen,) = result.shown
    assert seen["open"] == {} and len(seen["last"]) == 8, result
    for kind, first in seen["first"].items():
        due = DRAIN_S if kind == "refused" else HELLO_S
        assert due - 0.5 < first and seen["last"][kind] < due + 15, (kind, seen, result)
    # 443: two kinds. 80: two kinds; dead.test was allowed and could not be reached. 7: two kinds, cut after the dial.
    denials = result.of("decision", door="transparent", verdict="deny")
    reasons = collections.Counter((record["port"], record["reason"]) for record in denials)
    assert reasons == {(443, "hello_timeout"): 2 * EACH, (80, "hello_timeout"): 2 * EACH, (7, "hello_timeout"): 2 * EACH,
                       (80, "not_allowed"): EACH}, result
    ends = collections.Counter((record["dst"].rpartition(":")[2], record["end"]) for record in result.of("close"))
    assert ends == {("7", "denied"): 2 * EACH, ("80", "connect_failed"): EACH}, result
    assert sum(seen.received for seen in lab.raw.of("echo")) == 0 and lab.web.hellos == [] and lab.web.requests == []


def test_a_short_first_word_is_not_held_for_long(lab):
    """A client may say a word that could still become a method, and wait for the server: the word passes after a second."""
    result = lab.python(["--allow", "raw.test:7"], """
        words = [b"HELO", b"x", b"QUIT"]
        begun = time.monotonic()
        socks = [tcp("raw.test", 7) for _ in words]
        for sock, word in zip(socks, words):
            sock.sendall(word)
        show(back=[sock.recv(100).decode() for sock in socks], took=time.monotonic() - begun)
    """)
    (seen,) = result.shown
    assert seen["back"] == ["HELO", "x", "QUIT"] and 0.9 < seen["took"] < HELLO_S - 2, result
    assert result.of("decision", verdict="deny") == []


def test_slow_readers_get_everything(lab, upstreams):
    """Each reads the last part slowly, for longer than a client has to close once it has everything: nothing is cut off."""
    size = 500_000  # which the buffers of the link have room for
    allow = [word for port in (ANSWER, BY_CLOSE, STREAM) for word in ("--allow", f"raw.test:{port}")]
    result = lab.python(allow, script("""
        import threading
        size, answer, by_close, stream = map(int, sys.argv[1:])

        def read(kind, port, request, half_close):
            sock, count = small(port, 8192, request), 0
            if half_close:
                sock.shutdown(socket.SHUT_WR)
            try:
                while piece := sock.recv(8192 if count < size - 60_000 else 500):
                    count += len(piece)
                    if count >= size - 60_000:
                        time.sleep(0.1)
                end = "eof"
            except OSError as error:
                end = repr(error)
            show(kind=kind, count=count, end=end, ms=1000 * (time.monotonic() - begun))

        begun = time.monotonic()
        readers = [("length", answer, get(size, "Connection: close"), False), ("until close", by_close, get(size), False),
                   ("tunnel", stream, b"%d\\n" % size, False), ("half-closed tunnel", stream, b"%d\\n" % size, True)]
        threads = [threading.Thread(target=read, args=reader) for reader in readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """), str(size), str(ANSWER), str(BY_CLOSE), str(STREAM))
    got = {seen["kind"]: seen for seen in result.shown}
    assert len(got) == 4 and {seen["end"] for seen in got.values()} == {"eof"}, result
    for kind, seen in got.items():
        head = seen["count"] - size
        assert (0 < head < 100) if kind in ("length", "until close") else head == 0, (kind, result)
    closes = result.of("close")
    assert len(closes) == 4 and all(size <= record["down"] < size + 100 for record in closes), result
    # All but the tunnel that the client held open were over early for netgate, which then still had to deliver.
    early = min(seen["ms"] for seen in got.values()) - 1000 * (DRAIN_S + 1)
    assert sum(record["ms"] < early for record in closes) == 3, result


def test_client_resets_during_an_exchange(lab, upstreams):
    """The answer is still awaited when the client breaks off: the leg is over at once, and upstream learns how."""
    with lab.start(["--allow", f"raw.test:{AWAIT_END}"], lab.script(script("""
        for line in sys.stdin:
            sock = tcp("raw.test", int(sys.argv[1]))
            sock.sendall(get(""))
            show(sent=True)
            sys.stdin.readline()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
            show(reset=True)
    """), str(AWAIT_END)), stdin=subprocess.PIPE) as running:
        running.ask()
        proxy = running.child()
        wait_for(lambda: [seen for seen in lab.raw.seen if seen.received], "the request upstream")
        busy = descriptors(proxy)
        running.ask()
        wait_for(lambda: [record for record in running.records if record["type"] == "close"], "the close record", HELLO_S)
        wait_for(lambda: lab.raw.seen[0].end == "reset", "the reset upstream", HELLO_S)
        wait_for(lambda: descriptors(proxy) <= busy - 2, "the end of both sockets", HELLO_S)
        result = running.finish(b"")
    assert result.one("close")["end"] == "client_reset", result


def test_client_ends_its_side_during_an_exchange(lab, upstreams):
    """FIN is passed on, and the answer that comes after it is delivered."""
    result = lab.python(["--allow", f"raw.test:{AWAIT_END}"], script("""
        with tcp("raw.test", int(sys.argv[1])) as sock:
            sock.sendall(get(""))
            sock.shutdown(socket.SHUT_WR)
            show(body=response(sock.makefile("rb"))[2].decode())
    """), str(AWAIT_END))
    assert result.shown == [{"body": "late"}], result
    assert [seen.end for seen in lab.raw.seen] == ["eof"]
    assert result.one("close")["end"] in ("client", "upstream"), result


def test_last_bytes_of_a_command_that_exits(lab, upstreams):
    """3 MB are written and the command is gone at once; a slow upstream gets all of them, in good order."""
    size = 3_000_000
    result = lab.python(["--allow", f"raw.test:{SLOW_SINK}"], f"""
        sock = tcp("raw.test", {SLOW_SINK})
        sock.sendall(b"x" * {size})
        sock.close()
    """)
    assert result.rc == 0, result
    (seen,) = lab.raw.seen
    wait_for(lambda: seen.end, "the end of the stream upstream")
    assert (seen.received, seen.end) == (size, "eof"), result
    close = result.one("close")
    assert close["up"] == size and close["end"] in ("client", "job_ended"), result


def test_no_busy_loop(lab, upstreams):
    """Clients that read nothing, upstreams that closed, and every amount of bytes in between: the proxy sleeps."""
    allow = [word for port in (ANSWER, BY_CLOSE, STREAM) for word in ("--allow", f"raw.test:{port}")]
    with lab.start(["--allow", "ok.test", *allow], lab.script(script("""
        kept = []
        for size in range(2048, 170 * 1024, 8192):
            for port, request in zip(map(int, sys.argv[1:]), (get(size), get(size), b"%d\\n" % size)):
                for half_close in (False, True):
                    kept.append(small(port, 4096, request))
                    if half_close:
                        kept[-1].shutdown(socket.SHUT_WR)
        show(count=len(kept))
        sys.stdin.readline()
        show(status=http("ok.test", 80, get("hello", host="ok.test"))[0][0])
    """), str(ANSWER), str(BY_CLOSE), str(STREAM)), stdin=subprocess.PIPE) as running:
        count = running.next()["count"]
        proxy = running.child()
        wait_for(lambda: [seen.end for seen in lab.raw.seen] == ["closed"] * count, "the end of every upstream")
        before = cpu_seconds(proxy)
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(2)
        assert cpu_seconds(proxy) - before < 0.2
        assert running.ask() == {"status": 200}
        result = running.finish(b"")
    assert len(result.of("close")) == count + 1, result

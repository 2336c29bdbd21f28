# SPDX-License-Identifier: Apache-2.0
"""Bytes through the gate: all of them, both ways, however they are cut into segments, and counted exactly."""

import hashlib

import pytest

from lab import pattern, v4, wait_for
from lab.attached import attached

SIZE = 64 << 20


def test_bulk_both_ways_at_once(lab, who):
    """64 MB up while the same 64 MB come back; equal hashes, and the record has the exact counts."""
    result = lab.python(["--allow", "raw.test:7"], """
        import threading
        size = int(sys.argv[1])
        block = pattern(1 << 20)
        with tcp("raw.test", 7) as sock:
            def send():
                for _ in range(size >> 20):
                    sock.sendall(block)
                sock.shutdown(socket.SHUT_WR)
            threading.Thread(target=send).start()
            digest, count = hashlib.sha256(), 0
            while piece := sock.recv(1 << 18):
                digest.update(piece)
                count += len(piece)
            show(count=count, sha256=digest.hexdigest())
    """, str(SIZE), user=who)
    sha256 = hashlib.sha256(pattern(1 << 20) * (SIZE >> 20)).hexdigest()
    assert result.shown == [{"count": SIZE, "sha256": sha256}], result
    assert [(seen.received, seen.sha256) for seen in lab.raw.seen] == [(SIZE, sha256)]
    close = result.one("close")
    assert (close["up"], close["down"]) == (SIZE, SIZE), result
    assert close["end"] == "client"


# What the link takes in one piece from TCP over IPv4: IFLA_GSO_IPV4_MAX_SIZE, which Linux has had since 6.3.
PIECE = """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.send(struct.pack("=IHHII BxHiII", 32, 18, 1, 1, 0, 0, 0, socket.if_nametoindex("eth0"), 0, 0))
        answer = sock.recv(65536)
    at, found = 32, None
    while at < len(answer):
        size, kind = struct.unpack_from("=HH", answer, at)
        if kind == 63:
            found = struct.unpack_from("=I", answer, at + 4)[0]
        at += (size + 3) & ~3
    show(piece=found)
"""


def test_pieces(lab, who):
    """Big ones where only the kernel's stack is at the link. Another's (gVisor's) may be at the link of a sandbox that was there before."""
    (own,) = lab.python([], PIECE, user=who).shown
    with attached(lab, user=who) as box:
        (others,) = box.python(PIECE)
    if own["piece"] is None:
        pytest.skip("Linux before 6.3")
    assert (own["piece"], others["piece"]) == (262144, 65536)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_bulk_download(lab, scheme):
    size = 50_000_000
    result = lab.netgate(["--allow", "ok.test"], ["sh", "-c", f"curl -sS '{scheme}://ok.test/bytes?n={size}' | sha256sum"])
    assert result.out.split()[0] == hashlib.sha256(pattern(size)).hexdigest(), result
    assert result.one("close")["down"] > size


@pytest.mark.parametrize("length", [1, 2, 1447, 1448, 65535, 65536, 65537, 1_000_000])
def test_counts_are_exact(lab, length):
    result = lab.python(["--allow", "raw.test:9"], """
        with tcp("raw.test", 9) as sock:
            sock.sendall(pattern(int(sys.argv[1])))
            sock.shutdown(socket.SHUT_WR)
            show(answer=read_all(sock).decode())
    """, str(length))
    answer = f"{length} {hashlib.sha256(pattern(length)).hexdigest()}\n"
    assert result.shown == [{"answer": answer}], result
    close = result.one("close")
    assert (close["up"], close["down"]) == (length, len(answer)), result


def test_half_close(lab, who):
    """The client says "that's all" and only then gets its answer: both halves live on their own."""
    result = lab.python(["--allow", "raw.test:9"], """
        with tcp("raw.test", 9) as sock:
            sock.sendall(b"abc")
            sock.shutdown(socket.SHUT_WR)
            show(answer=read_all(sock).decode())
    """, user=who)
    assert result.shown[0]["answer"].startswith("3 "), result
    assert lab.raw.of("sink")[0].end == "eof"


def test_upstream_half_close(lab):
    """Upstream ends first; the client's later bytes are not lost in silence."""
    result = lab.python(["--allow", "raw.test:19"], """
        with tcp("raw.test", 19) as sock:
            sock.sendall(b"100\\n")
            show(length=len(read_all(sock)))
    """)
    assert result.shown == [{"length": 100}], result
    assert result.one("close")["end"] in ("upstream", "client"), result


def test_slow_reader(lab):
    """A client that reads late loses nothing and does not make netgate hold it all."""
    result = lab.python(["--allow", "raw.test:19"], """
        with tcp("raw.test", 19) as sock:
            sock.sendall(b"20000000\\n")
            count = 0
            while piece := sock.recv(4096):
                count += len(piece)
            show(count=count)
    """)
    assert result.shown == [{"count": 20_000_000}], result
    assert result.one("close")["down"] == 20_000_000


def test_server_speaks_first(lab, who):
    """SMTP, SSH, MySQL: a rule with the port is dialled at once, without waiting for the client."""
    result = lab.python(["--allow", "banner.test:25"], """
        with tcp("banner.test", 25) as sock:
            stream = sock.makefile("rb")
            show(banner=stream.readline().decode())
            sock.sendall(b"helo sandbox\\n")
            show(answer=stream.readline().decode())
    """, user=who)
    assert result.shown == [{"banner": "220 banner.test ready\r\n"}, {"answer": "HELO SANDBOX\n"}], result


def test_server_first_without_its_port_is_denied_at_once(lab):
    result = lab.python(["--allow", "banner.test"], """
        show(end=ending("banner.test", 25))
    """)
    assert result.shown == [{"end": "reset"}], result
    assert result.of("decision", host="banner.test", port=25, reason="port_not_allowed")


def test_any_bytes_on_443(lab):
    """`host:443/tcp`: no TLS is asked for there."""
    lab.dns.add("any.test", a=[v4("raw")])
    with lab.raw.listening(lab.inet, lab.raw.echo, v4("raw"), port=443):
        result = lab.python(["--allow", "any.test:443/tcp"], """
            with tcp("any.test", 443) as sock:
                sock.sendall(b"not tls at all")
                sock.shutdown(socket.SHUT_WR)
                show(answer=read_all(sock).decode())
        """)
    assert result.shown == [{"answer": "not tls at all"}], result


@pytest.mark.parametrize("port", [443, 80])
def test_quiet_client(lab, port):
    """Connects and says nothing: closed at the deadline with its own reason, and others are served meanwhile."""
    result = lab.python(["--allow", "ok.test"], """
        quiet = tcp("ok.test", int(sys.argv[1]))
        show(other=http("ok.test", 80, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")[0][0])
        end, got = fate(quiet)
        show(end=end)
    """, str(port))
    assert result.shown[0] == {"other": 200} and result.shown[1]["end"] in ("eof", "reset"), result
    decision = result.one("decision", verdict="deny")
    assert decision["reason"] == "hello_timeout" and decision["port"] == port, result


def test_deadline_is_total(lab):
    """A byte now and then does not put the deadline off."""
    result = lab.python(["--allow", "ok.test"], """
        hello = Tls("ok.test").hello()
        with tcp("ok.test", 443) as sock:
            sock.settimeout(0.5)
            for number in range(120):
                try:
                    sock.send(hello[number : number + 1])
                    if sock.recv(100) == b"":
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
            show(sent=number)
    """)
    assert result.one("decision", verdict="deny")["reason"] == "hello_timeout", result
    assert lab.web.hellos == []


@pytest.mark.parametrize("alpn", [0, 1300, 7500, 15500, 16900, 40000], ids=lambda size: f"{size}B")
def test_hello_sizes(lab, alpn):
    """Post-quantum sizes and far beyond, over several records: the handshake completes with the real server."""
    result = lab.python(["--allow", "ok.test"], """
        size = int(sys.argv[1])
        names = ["http/1.1"] + [f"x{number:05d}" + "y" * 94 for number in range(size // 101)]
        with tcp("ok.test", 443) as sock:
            client = Tls("ok.test", names)
            client.handshake(sock, lambda sock, hello: (show(hello=len(hello)), sock.sendall(hello)))
            got = client.exchange(sock, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n")
            show(body=got.partition(b"\\r\\n\\r\\n")[2].decode())
    """, str(alpn))
    hello, body = result.shown
    assert hello["hello"] > alpn and body == {"body": "hello from ok.test\n"}, result
    assert result.one("decision", door="transparent")["host"] == "ok.test"


def test_hello_of_65_kilobytes_is_refused(lab):
    result = lab.python(["--allow", "ok.test"], """
        body = bytes([1]) + (70000).to_bytes(3, "big") + b"\\3\\3" + bytes(70000)
        records = b"".join(b"\\x16\\3\\1" + len(part).to_bytes(2, "big") + part
                           for part in (body[at : at + 16000] for at in range(0, len(body), 16000)))
        with tcp("ok.test", 443) as sock:
            try:
                sock.sendall(records)
            except ConnectionError:
                pass
            show(end=fate(sock)[0])
    """)
    assert result.one("decision", door="transparent")["reason"] == "tls_malformed", result
    assert lab.web.hellos == []


@pytest.mark.parametrize("name,status", [("ok.test", "allow"), ("bad.test", "deny")])
def test_hello_a_byte_a_segment(lab, who, name, status):
    result = lab.python(["--allow", "ok.test"], """
        try:
            with tcp("ok.test", 443) as sock:
                client = Tls(sys.argv[1])
                client.handshake(sock, byte_by_byte)
                client.exchange(sock, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n")
                show(end="served")
        except ssl.SSLError as error:
            show(end=error.reason)
    """, name, user=who)
    assert result.shown == [{"end": "served" if status == "allow" else "TLSV1_ALERT_ACCESS_DENIED"}], result
    assert result.one("decision", door="transparent")["verdict"] == status
    assert lab.web.hellos == (["ok.test"] if status == "allow" else [])


def test_hello_a_byte_a_record(lab):
    """A ClientHello cut into TLS records of one byte each."""
    result = lab.python(["--allow", "ok.test"], """
        def by_record(sock, hello):
            sock.sendall(b"".join(hello[:3] + b"\\0\\1" + bytes([byte]) for byte in hello[5:]))
        try:
            with tcp("ok.test", 443) as sock:
                Tls("bad.test").handshake(sock, by_record)
        except ssl.SSLError as error:
            show(end=error.reason)
    """)
    assert result.shown == [{"end": "TLSV1_ALERT_ACCESS_DENIED"}], result
    decision = result.one("decision", door="transparent")
    assert decision["verdict"] == "deny" and decision["reason"] in ("not_allowed", "name_mismatch"), result


def test_many_connections_at_once(lab, who):
    """300 open at the same time, each with its own bytes."""
    result = lab.python(["--allow", "raw.test:7"], """
        socks = [tcp("raw.test", 7) for _ in range(300)]
        for number, sock in enumerate(socks):
            sock.sendall(b"hello %d" % number)
        for sock in socks:
            sock.shutdown(socket.SHUT_WR)
        show(good=sum(read_all(sock) == b"hello %d" % number for number, sock in enumerate(socks)))
    """, user=who)
    assert result.shown == [{"good": 300}], result
    closes = result.of("close")
    assert len(closes) == 300 and len({record["conn"] for record in closes}) == 300
    assert sum(record["up"] for record in closes) == sum(len(f"hello {number}") for number in range(300))


def test_upstream_resets(lab):
    result = lab.python(["--allow", "raw.test:4445"], """
        with tcp("raw.test", 4445) as sock:
            sock.sendall(b"\\0")
            show(end=fate(sock)[0])
    """)
    assert result.shown == [{"end": "reset"}], result
    assert result.one("close")["end"] == "upstream_reset"


def test_client_resets(lab):
    """Once the connection stands; before, there is nothing that it could reset."""
    result = lab.python(["--allow", "raw.test:7"], """
        sock = tcp("raw.test", 7)
        sock.sendall(b"anything")
        show(echo=sock.recv(100).decode())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    """)
    assert result.shown == [{"echo": "anything"}], result
    wait_for(lambda: lab.raw.of("echo") and lab.raw.of("echo")[0].end, "the end of the connection upstream")
    assert result.one("close")["end"] == "client_reset", result


def test_urgent_data(lab):
    """One urgent byte used to make splice spin or stop: the stream goes on and ends."""
    result = lab.python(["--allow", "raw.test:7"], """
        with tcp("raw.test", 7) as sock:
            sock.sendall(b"a" * 100_000)
            sock.send(b"!", socket.MSG_OOB)
            sock.sendall(b"b" * 100_000)
            sock.shutdown(socket.SHUT_WR)
            got = read_all(sock)
            show(a=got.count(b"a"), b=got.count(b"b"))
    """)
    assert result.shown == [{"a": 100_000, "b": 100_000}], result


def test_changed_pages(lab):
    """Judged bytes are sent from a copy: pages that the client changes after sending can't change the Host."""
    result = lab.python(["--allow", "ok.test"], """
        import mmap
        request = b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nX: " + b"x" * 3000 + b"\\r\\n\\r\\n"
        memory = os.memfd_create("m")
        os.truncate(memory, 8192)
        view = mmap.mmap(memory, 8192)
        view[: len(request)] = request
        at = request.index(b"ok.test")
        with tcp("ok.test", 80) as sock:
            half = len(request) // 2
            os.sendfile(sock.fileno(), memory, 0, half)
            view[at : at + 7] = b"ba.test"
            os.sendfile(sock.fileno(), memory, half, len(request) - half)
            stream = sock.makefile("rb")
            show(status=response(stream)[0])
    """)
    hosts = {request.headers["host"] for request in lab.web.requests}
    judged = {record["host"] for record in result.of("decision", door="transparent", verdict="allow")}
    assert hosts == judged or (hosts == set() and result.shown[0]["status"] in (400, 403)), result

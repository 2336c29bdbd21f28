# SPDX-License-Identifier: Apache-2.0
"""HelloRetryRequest: the second ClientHello of a connection must carry the name of the first, through every door."""

import hashlib
import os
import subprocess
from textwrap import dedent

import pytest

from lab import v4, v6, wait_for

DOORS = ["transparent", "connect", "socks5"]
RETRY_RANDOM = hashlib.sha256(b"HelloRetryRequest").digest()

# For the scripts in the sandbox.
INSIDE = """
GATE = "10.200.0.1"

def reach(door, name="ok.test", port=443):
    if door == "transparent":
        return tcp(name, port)
    sock = tcp(GATE, 3128)
    if door == "connect":
        sock.sendall(f"CONNECT {name}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
        assert b" 200 " in read_until(sock, b"\\r\\n\\r\\n")
    else:
        sock.sendall(b"\\5\\1\\0" + struct.pack("!BBBBB", 5, 1, 0, 3, len(name)) + name.encode() + struct.pack("!H", port))
        assert take(sock, 12)[2:4] == b"\\5\\0"
    return sock

def block(width, data):
    return len(data).to_bytes(width, "big") + data

def extension(kind, data):
    return struct.pack("!H", kind) + block(2, data)

# A TLS 1.3 hello that knows P-384 and brings a share for X25519 only.
def hello(name, group=0x1d, share=bytes(range(1, 33)), ech=b""):
    parts = b"" if name is None else extension(0, block(2, b"\\0" + block(2, name.encode())))
    parts += extension(10, block(2, b"\\0\\x1d\\0\\x18")) + extension(13, block(2, b"\\4\\3\\x08\\4\\4\\1"))
    parts += extension(43, block(1, b"\\3\\4")) + extension(51, block(2, struct.pack("!H", group) + block(2, share)))
    parts += extension(0xfe0d, ech) if ech else b""
    body = b"\\3\\3" + bytes(range(32)) + block(1, bytes(32)) + block(2, b"\\x13\\1\\x13\\2") + b"\\1\\0" + block(2, parts)
    return b"\\1" + block(3, body)

def records(message, size=16384):
    return b"".join(b"\\x16\\3\\1" + block(2, message[at:at + size]) for at in range(0, len(message), size))

CCS = b"\\x14\\3\\3\\0\\1\\1"
DATA = b"\\x17\\3\\3" + block(2, b"early" * 20)

# The message in the first record that comes back.
def retry(sock):
    head = take(sock, 5)
    assert head[0] == 0x16, head
    return take(sock, int.from_bytes(head[3:], "big"))

"""


def run(lab, args, script, *script_args, **kwargs):
    result = lab.python(args, INSIDE + dedent(script), *script_args, **kwargs)
    assert result.rc == 0, result
    return result


def retry_request(size=16384):
    """A HelloRetryRequest for P-384, in records of this size."""
    body = b"\3\3" + RETRY_RANDOM + b"\x20" + bytes(32) + b"\x13\1\0\0\x0c\0\x2b\0\2\3\4\0\x33\0\2\0\x18"
    message = b"\2" + len(body).to_bytes(3, "big") + body
    pieces = [message[at:at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\3\3" + len(piece).to_bytes(2, "big") + piece for piece in pieces)


class Retrier:
    """A server that asks for another hello when it has as much as `first` says, and keeps what it gets."""

    def __init__(self):
        self.got = []
        self.first = 5  # bytes
        self.answer = retry_request()
        self.by_byte = False

    async def retrier(self, reader, writer, seen):
        mine = bytearray()
        self.got.append(mine)
        mine += await reader.readexactly(self.first)
        for piece in ([bytes([byte]) for byte in self.answer] if self.by_byte else [self.answer]):
            writer.write(piece)
            await writer.drain()
        while piece := await reader.read(1 << 16):
            mine += piece
            seen.received = len(mine)
        seen.end = "eof"
        writer.write(b"\x17\3\3\0\4done")


@pytest.fixture
def retrier(lab):
    server = Retrier()
    with lab.raw.listening(lab.inet, server.retrier, v4("raw"), v6("raw"), port=443):
        lab.dns.add("retry.test", a=[v4("raw")], aaaa=[v6("raw")])
        yield server


@pytest.fixture(params=[["-www"]])
def openssl(lab, request):
    """OpenSSL's server, which takes P-384 only, at retry.test."""
    port, address = "443", v4("raw")
    command = lab.inet.command("setpriv", "--pdeathsig", "KILL", "openssl", "s_server", "-accept", f"{address}:{port}", "-groups",
                               "P-384", "-cert", lab.ca.cert, "-key", lab.ca.key, "-quiet", *request.param)
    lab.dns.add("retry.test", a=[address])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            check = ["/usr/bin/python3", "-c", f"import socket; socket.create_connection(('{address}', {port})).close()"]
            wait_for(lambda: lab.on_host(check).returncode == 0)
            yield
        finally:
            server.kill()


@pytest.mark.parametrize("door", DOORS)
def test_a_real_server_asks_again(lab, openssl, door):
    """A real client whose first share does not suit a real server: it gets through, and the record is one as ever."""
    proxy = {"transparent": [], "connect": ["-proxy", "10.200.0.1:3128"]}
    if door == "socks5":
        command = ["curl", "-sk", "--socks5-hostname", "10.200.0.1:1080", "--curves", "X25519:P-384", "https://retry.test/"]
    else:
        command = ["sh", "-c", "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -groups X25519:P-384 -ign_eof -msg "
                   "-servername retry.test -connect retry.test:443 " + " ".join(proxy[door])]
    result = lab.netgate(["--allow", "retry.test"], command)
    assert "s_server" in result.out, result
    if door != "socks5":
        assert result.out.count(">>> TLS 1.3, Handshake [length") >= 2 and result.out.count(", ClientHello") == 2, result
    assert result.of("decision", verdict="deny", door=door) == [] and result.one("close")["end"] in ("client", "upstream"), result


@pytest.mark.parametrize("door", DOORS)
def test_another_name_to_a_real_server(lab, openssl, door):
    result = run(lab, ["--allow", "retry.test", "--allow", "ok.test"], """
        for name in ("ok.test", "bad.test", None):
            sock = reach(sys.argv[1], "retry.test")
            sock.sendall(records(hello("retry.test")))
            random = retry(sock)[6:38].hex()
            sock.sendall(CCS + records(hello(name, 0x18, bytes(97))))
            end, rest = fate(sock)
            show(random=random, end=end, rest=rest.hex())
    """, door)
    alert = "1503030002" + "0231"
    assert [(seen["random"], seen["rest"].removeprefix("140303000101")) for seen in result.shown] == [
        (RETRY_RANDOM.hex(), alert)] * 3, result
    denied = result.of("decision", verdict="deny", door=door)
    assert [(record["host"], record["reason"]) for record in denied] == [
        ("ok.test", "name_mismatch"), ("bad.test", "name_mismatch"), ("retry.test", "name_mismatch")], result
    assert [record["end"] for record in result.of("close")] == ["name_mismatch"] * 3, result


@pytest.mark.parametrize("door", DOORS)
def test_nothing_of_the_second_hello_gets_there(lab, retrier, door):
    """The server has the first hello, what may stand before the second, and not a byte of that one."""
    result = run(lab, ["--allow", "retry.test", "--allow", "ok.test"], """
        first = records(hello("retry.test"))
        for second in (hello("ok.test"), hello("bad.test"), hello(None), hello("RETRY.test.x"), hello("a b"), hello("")):
            for size in (16384, 100, 1):
                sock = reach(sys.argv[1], "retry.test")
                sock.sendall(first)
                retry(sock)
                sock.sendall(CCS + records(second, size))
                show(end=fate(sock)[1].hex(), first=first.hex())
    """, door)
    assert [seen["end"] for seen in result.shown] == ["15030300020231"] * 18, result
    first = bytes.fromhex(result.shown[0]["first"])
    wait_for(lambda: len(retrier.got) == 18 and all(seen.end for seen in lab.raw.seen), "the ends of all connections")
    assert {bytes(got) for got in retrier.got} <= {first, first + b"\x14\3\3\0\1\1"}, result
    reasons = [record["reason"] for record in result.of("decision", verdict="deny", door=door)]
    assert reasons == ["name_mismatch"] * 15 + ["tls_malformed"] * 3, result
    assert [record["end"] for record in result.of("close")] == ["name_mismatch"] * 15 + ["denied"] * 3, result
    named = result.of("decision", verdict="deny", raw_name="a b")
    assert len(named) == 3, result


def test_the_same_name_passes_in_any_split(lab, retrier):
    """Byte by byte, in records of any size, in capitals, behind early data, with the end of the stream at its heels."""
    result = run(lab, ["--allow", "retry.test"], """
        first, second = hello("retry.test"), hello("Retry.TEST", 0x18, bytes(97))
        def check(between, shape, size, last=b""):
            sock = reach("transparent", "retry.test")
            sock.sendall(records(first, size))
            retry(sock)
            sent = between + records(second, size) + last
            shape(sock, sent)
            sock.shutdown(socket.SHUT_WR)
            end, rest = fate(sock)
            show(sent=(records(first, size) + sent).hex(), rest=rest.hex())
        for between in (b"", CCS, DATA, CCS + DATA * 3, DATA + CCS):
            for size in (16384, 7, 1):
                check(between, at_once, size)
            check(between, byte_by_byte, 16384, b"\\x17\\3\\3\\0\\2ab")
        def in_two(sock, data):
            sock.sendall(data[:cut])
            sock.sendall(data[cut:])
        for cut in range(1, len(records(second)) + 6):
            check(CCS, in_two, 16384)
    """)
    assert len(result.shown) > 200, result
    assert {seen["rest"] for seen in result.shown} == {"1703030004" + b"done".hex()}, result
    wait_for(lambda: len(retrier.got) == len(result.shown))
    assert sorted(got.hex() for got in retrier.got) == sorted(seen["sent"] for seen in result.shown), result
    assert result.of("decision", verdict="deny", door="transparent") == [], result
    ups = [record["up"] for record in result.of("close")]
    assert sorted(ups) == sorted(len(seen["sent"]) // 2 for seen in result.shown), result


@pytest.mark.parametrize("by_byte", [False, True])
@pytest.mark.parametrize("size", [16384, 16, 1])
def test_the_request_is_seen_in_any_split(lab, retrier, size, by_byte):
    retrier.answer, retrier.by_byte = retry_request(size), by_byte
    result = run(lab, ["--allow", "retry.test"], """
        sock = reach("transparent", "retry.test")
        sock.sendall(records(hello("retry.test")))
        answer = take(sock, int(sys.argv[1]))
        sock.sendall(records(hello("bad.test")))
        show(answer=answer.hex(), rest=fate(sock)[1].hex())
    """, str(len(retrier.answer)))
    assert result.shown == [{"answer": retrier.answer.hex(), "rest": "15030300020231"}], result
    assert result.one("decision", verdict="deny")["reason"] == "name_mismatch", result


@pytest.mark.parametrize("answer", [b"\x16\3\3\0\x26\2\0\0\x22\3\3" + bytes(32), b"HTTP/1.1 400 no\r\n\r\n"])
def test_after_another_answer_nothing_is_looked_at(lab, retrier, answer):
    """Whatever the client sends next is the server's to judge, also what waited for that answer."""
    retrier.answer = answer
    result = run(lab, ["--allow", "retry.test"], """
        for early in (b"", CCS, DATA + b"\\x16\\3\\3\\0\\4 x y", b"not TLS at all"):
            sock = reach("transparent", "retry.test")
            sent = records(hello("retry.test")) + early
            sock.sendall(sent)
            take(sock, 7)
            sock.sendall(b"more")
            sock.shutdown(socket.SHUT_WR)
            show(sent=(sent + b"more").hex(), rest=fate(sock)[1][-4:].decode())
    """)
    assert {seen["rest"] for seen in result.shown} == {"done"}, result
    assert [got.hex() for got in retrier.got] == [seen["sent"] for seen in result.shown], result
    assert result.of("decision", verdict="deny", door="transparent") == [], result


@pytest.mark.parametrize("name", ["ok.test", "retry.test"])
def test_a_second_hello_that_does_not_wait(lab, retrier, name):
    """In one flight with the first, behind early data. That goes at once: the server says nothing before it is there."""
    with lab.start(["--allow", "retry.test", "--allow", "ok.test"], lab.script(INSIDE + dedent("""
        early = records(hello("retry.test")) + CCS + DATA
        show(early=early.hex())
        sys.stdin.readline()
        sock = reach("transparent", "retry.test")
        whole = early + records(hello(sys.argv[1])) + DATA
        sock.sendall(whole)
        retry(sock)
        sock.shutdown(socket.SHUT_WR)
        show(rest=fate(sock)[1].hex(), whole=whole.hex())
    """), name), stdin=subprocess.PIPE) as running:
        early = bytes.fromhex(running.next()["early"])
        retrier.first = len(early)
        seen = running.ask()
        result = running.finish()
    if name == "retry.test":
        assert retrier.got[0].hex() == seen["whole"] and seen["rest"].endswith(b"done".hex()), result
    else:
        assert (bytes(retrier.got[0]), seen["rest"]) == (early, "15030300020231"), result
        assert result.one("decision", verdict="deny", door="transparent")["reason"] == "name_mismatch", result


def test_held_bytes_of_a_client_that_is_gone(lab, retrier):
    """Half a second hello and the end of the stream: that is all there will be, and it does not pass."""
    result = run(lab, ["--allow", "retry.test"], """
        for part in (CCS, CCS[:3], DATA[:50], records(hello("retry.test"))[:40], b"\\x16"):
            sock = reach("transparent", "retry.test")
            sock.sendall(records(hello("retry.test")))
            retry(sock)
            sock.sendall(part)
            sock.shutdown(socket.SHUT_WR)
            show(rest=fate(sock)[1].hex())
    """)
    assert [seen["rest"] for seen in result.shown] == ["1703030004" + b"done".hex()] + ["15030300020231"] * 4, result
    denied = result.of("decision", verdict="deny", door="transparent")
    assert [record["reason"] for record in denied] == ["client_gone"] * 4, result


def test_what_can_not_stand_between(lab, retrier):
    result = run(lab, ["--allow", "retry.test"], """
        for part in (b"\\x18\\3\\3\\0\\1x", b"GET / HTTP/1.1\\r\\n", b"\\x16\\2", records(b"\\2\\0\\0\\1x"), b"\\x17\\3\\3\\xff\\xff",
                     records(hello("retry.test"), 50)[:55] + CCS + records(hello("retry.test"), 50)[55:]):
            sock = reach("transparent", "retry.test")
            sock.sendall(records(hello("retry.test")))
            retry(sock)
            sock.sendall(part)
            show(rest=fate(sock)[1].hex())
    """)
    assert [seen["rest"] for seen in result.shown] == ["15030300020231"] * 6, result
    denied = result.of("decision", verdict="deny", door="transparent")
    assert [record["reason"] for record in denied] == ["tls_malformed"] * 6, result


def test_a_second_hello_above_the_limit(lab, retrier):
    """It is not sent at all, like the first would not be."""
    result = run(lab, ["--allow", "retry.test", "--max-upload", "400B"], """
        first, second = records(hello("retry.test")), records(hello("retry.test", 0x18, bytes(200)))
        assert len(first) < 400 < len(first) + len(second)
        sock = reach("transparent", "retry.test")
        sock.sendall(first)
        retry(sock)
        sock.sendall(second)
        show(rest=fate(sock)[1].hex(), first=len(first))
    """)
    (seen,) = result.shown
    wait_for(lambda: all(seen.end for seen in lab.raw.seen), "the end of the connection")
    assert seen["rest"] == "15030300020231" and len(retrier.got[0]) == seen["first"], result
    assert result.one("decision", verdict="deny", door="transparent")["reason"] == "limit_upload", result
    close = result.one("close")
    assert (close["up"], close["end"]) == (seen["first"], "limit_upload"), result


@pytest.mark.parametrize("openssl", [["-early_data"]], indirect=True)
def test_early_data_of_a_real_client(lab, openssl):
    """0-RTT to a server that then asks for another hello: the early data is rejected, and the connection is made."""
    workspace = lab.workspace()
    with open(os.path.join(workspace, "early"), "wb") as out:
        out.write(bytes(10000))
    client = "openssl s_client -groups X25519:P-384 -servername retry.test -connect retry.test:443"
    script = f"""
        until_it_says() {{ until grep -q "$1" "$2"; do kill -0 $! && sleep 0.02 || exit 1; done; echo Q >&3; exec 3>&-; wait $!; }}
        mkfifo in1 in2
        : >session
        {client} -sess_out session <in1 >first & exec 3>in1; until_it_says . session
        {client} -sess_in session -early_data early <in2 >second & exec 3>in2; until_it_says "Early data was" second
        cat second"""
    result = lab.netgate(["--allow", "retry.test"], ["sh", "-c", script], workspace=workspace)
    assert "Early data was rejected" in result.out, result
    assert result.of("decision", verdict="deny", door="transparent") == [], result
    assert result.of("close")[1]["up"] > 10000, result

# SPDX-License-Identifier: Apache-2.0
"""HTTP/1 in clear text: every request of a connection is judged, bodies pass byte for byte, odd framing is refused."""

import hashlib
import json

import pytest

from lab import pattern


def sent(lab, args, script, *script_args, **kwargs):
    result = lab.python(args, script, *script_args, **kwargs)
    assert result.rc == 0, result
    return result


def test_host_switch_on_a_kept_connection(lab, who):
    """The second request names a denied host: it never leaves."""
    result = sent(lab, ["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            stream = sock.makefile("rb")
            for host in ("ok.test", "bad.test"):
                sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
                status, headers, body = response(stream)
                show(status=status, reason=headers.get("x-netgate-reason"))
            show(rest=len(stream.read()))
    """, user=who)
    first, second, rest = result.shown
    assert first == {"status": 200, "reason": None} and rest == {"rest": 0}, result
    assert second["status"] in (400, 403) and second["reason"] in ("not_allowed", "name_mismatch", "host_mismatch"), result
    assert [request.headers["host"] for request in lab.web.requests] == ["ok.test"]
    decisions = result.of("decision", door="transparent")
    assert [(record["host"], record["verdict"]) for record in decisions] == [("ok.test", "allow"), ("bad.test", "deny")]
    assert decisions[0]["conn"] == decisions[1]["conn"]


def test_two_allowed_hosts_on_one_connection(lab, who):
    """To an address that is nobody's own, a client may ask for several hosts: each is judged and gets its own server."""
    result = sent(lab, ["--allow", "ok.test", "--allow", "other.test"], """
        with tcp(sys.argv[1], 80) as sock:
            stream = sock.makefile("rb")
            for host in ("ok.test", "other.test", "ok.test"):
                sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
                show(body=response(stream)[2].decode())
    """, "203.0.114.80", user=who)
    assert [seen["body"] for seen in result.shown] == [f"hello from {host}.test\n" for host in ("ok", "other", "ok")], result
    decisions = result.of("decision", door="transparent", verdict="allow")
    assert [record["host"] for record in decisions] == ["ok.test", "other.test", "ok.test"]
    assert lab.web.requests[0].connection != lab.web.requests[1].connection


@pytest.mark.parametrize("count", [2, 10])
def test_pipelining(lab, count):
    """Several requests in one segment: all answered, in order, each judged and on record."""
    result = sent(lab, ["--allow", "ok.test"], """
        count = int(sys.argv[1])
        raw = b"".join(b"GET /bytes?n=%d HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n" % (1000 + n) for n in range(count))
        show(lengths=[len(body) for _, _, body in http("ok.test", 80, raw, count)])
    """, str(count))
    assert result.shown == [{"lengths": [1000 + number for number in range(count)]}], result
    assert len(result.of("decision", door="transparent", verdict="allow")) == count


def test_pipelining_stops_at_a_denied_host(lab):
    result = sent(lab, ["--allow", "ok.test"], """
        raw = b"".join(b"GET /hello HTTP/1.1\\r\\nHost: " + host + b"\\r\\n\\r\\n" for host in (b"ok.test", b"bad.test", b"ok.test"))
        with tcp("ok.test", 80) as sock:
            sock.sendall(raw)
            stream = sock.makefile("rb")
            show(statuses=[response(stream)[0] for _ in range(2)], rest=len(stream.read()))
    """)
    (seen,) = result.shown
    assert seen["statuses"][0] == 200 and seen["statuses"][1] in (400, 403) and seen["rest"] == 0, result
    assert [request.headers["host"] for request in lab.web.requests] == ["ok.test"]


def test_chunked_upload_with_trailers(lab, who):
    """Chunks of 1 byte up to 1 MB with an extension and a trailer; bytes and framing arrive as sent."""
    result = sent(lab, ["--allow", "ok.test"], """
        data, sizes, at = pattern(3_000_000), [1, 2, 3, 1000, 65536, 1 << 20], 0
        with tcp("ok.test", 80) as sock:
            sock.sendall(b"POST /upload HTTP/1.1\\r\\nHost: ok.test\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: X-End\\r\\n\\r\\n")
            chunks = 0
            while at < len(data):
                piece = data[at : at + sizes[chunks % len(sizes)]]
                sock.sendall(b"%x\\r\\n" % len(piece) + piece + b"\\r\\n")
                at, chunks = at + len(piece), chunks + 1
            sock.sendall(b"0\\r\\nX-End: yes\\r\\n\\r\\n")
            status, _, body = response(sock.makefile("rb"))
            show(status=status, chunks=chunks, answer=json.loads(body))
    """, user=who)
    (seen,) = result.shown
    assert seen["status"] == 200, result
    assert seen["answer"] == {"bytes": 3_000_000, "sha256": hashlib.sha256(pattern(3_000_000)).hexdigest(),
                              "chunks": seen["chunks"], "trailers": {"x-end": "yes"}}, result


def test_chunked_answer(lab):
    result = sent(lab, ["--allow", "ok.test"], """
        (status, headers, body), = http("ok.test", 80, b"GET /chunked?n=300&size=7001 HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
        show(sha256=hashlib.sha256(body).hexdigest())
    """)
    assert result.shown == [{"sha256": hashlib.sha256(pattern(300 * 7001)).hexdigest()}], result


def test_answer_until_close(lab):
    result = lab.netgate(["--allow", "ok.test"], ["sh", "-c", "curl -sS 'http://ok.test/until-close?n=500000' | sha256sum"])
    assert result.out.split()[0] == hashlib.sha256(pattern(500_000)).hexdigest(), result


def test_cut_answer_is_an_error(lab):
    """An upstream that dies in the middle of its answer must not look like success."""
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "-o", "/dev/null", "http://ok.test/cut"])
    assert result.rc == 18, result


def test_head_and_204(lab):
    result = sent(lab, ["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            stream = sock.makefile("rb")
            sock.sendall(b"HEAD /bytes?n=1000 HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
            while stream.readline() != b"\\r\\n":
                pass
            sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
            show(status=response(stream)[0])
    """)
    assert result.shown == [{"status": 200}], result


@pytest.mark.parametrize("path", ["upload", "expect"])
def test_expect_100_continue(lab, path):
    """The server says 100, or stays silent; no deadlock either way."""
    result = sent(lab, ["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            stream = sock.makefile("rb")
            sock.sendall(b"POST /" + sys.argv[1].encode() + b" HTTP/1.1\\r\\nHost: ok.test\\r\\nContent-Length: 100000\\r\\n"
                         b"Expect: 100-continue\\r\\n\\r\\n")
            if sys.argv[1] == "upload":
                show(interim=stream.readline().decode().strip())
                stream.readline()
            sock.sendall(pattern(100_000))
            show(bytes=json.loads(response(stream)[2])["bytes"])
    """, path)
    expected = [{"interim": "HTTP/1.1 100 Continue"}] if path == "upload" else []
    assert result.shown == expected + [{"bytes": 100_000}], result


def test_early_final_status(lab):
    """413 at once while the client would still send: it arrives."""
    result = sent(lab, ["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            sock.sendall(b"POST /early HTTP/1.1\\r\\nHost: ok.test\\r\\nContent-Length: 50000000\\r\\nExpect: 100-continue\\r\\n\\r\\n")
            show(status=response(sock.makefile("rb"))[0])
    """)
    assert result.shown == [{"status": 413}], result


def test_websocket(lab, who):
    """101, then both ways, small frames and 5 MB, ping and close."""
    result = sent(lab, ["--allow", "ok.test"], """
        def frame(opcode, payload):
            size = len(payload)
            return bytes([0x80 | opcode, 0x80 | 127]) + size.to_bytes(8, "big") + bytes(4) + payload

        def read(stream):
            first, second = stream.read(2)
            size = second & 127
            if size > 125:
                size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
            return first & 15, stream.read(size)

        import threading
        with tcp("ok.test", 80) as sock:
            sock.sendall(b"GET /ws HTTP/1.1\\r\\nHost: ok.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
                         b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n")
            stream = sock.makefile("rb")
            show(line=stream.readline().decode().strip())
            while stream.readline() != b"\\r\\n":
                pass
            for opcode, payload in ((1, b"hello"), (9, b"ping"), (2, pattern(5_000_000)), (8, b"")):
                threading.Thread(target=sock.sendall, args=(frame(opcode, payload),)).start()
                got, back = read(stream)
                show(opcode=got, same=back == payload)
    """, user=who)
    assert result.shown == [{"line": "HTTP/1.1 101 Switching Protocols"}] + [
        {"opcode": opcode, "same": True} for opcode in (1, 10, 2, 8)], result
    assert result.one("close")["up"] > 5_000_000 and result.one("close")["down"] > 5_000_000


def test_server_sent_events_are_flushed(lab, who):
    """The server sends an event only after the client has confirmed the one before: any buffering would stand still."""
    result = sent(lab, ["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            sock.sendall(b"GET /sse?stream=a&n=20 HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
            got = []
            stream = sock.makefile("rb")
            for line in stream:
                if line.startswith(b"data:"):
                    got.append(int(line[5:]))
                    http("ok.test", 80, b"POST /sse-ack?stream=a HTTP/1.1\\r\\nHost: ok.test\\r\\nContent-Length: 0\\r\\n\\r\\n")
                if line == b"0\\r\\n":
                    break
            show(events=got)
    """, user=who)
    assert result.shown == [{"events": list(range(20))}], result


MALFORMED = {
    "two hosts": b"GET / HTTP/1.1\r\nHost: ok.test\r\nHost: bad.test\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "length and chunked": b"POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "signed length": b"POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: +5\r\n\r\nhello",
    "odd coding": b"POST / HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "space before colon": b"GET / HTTP/1.1\r\nHost : ok.test\r\n\r\n",
    "folded header": b"GET / HTTP/1.1\r\nHost: ok.test\r\nX: a\r\n b\r\n\r\n",
    "first line of another protocol": b"PROXY TCP4 10.200.0.2 203.0.114.80 1 80\r\n",
    "no version": b"GET /\r\n",
    "bare LF": b"GET / HTTP/1.1\nHost: ok.test\n\n",
    "bare CR": b"GET / HTTP/1.1\r\nHost: ok.test\r\nX: a\rb\r\n\r\n",
    "NUL": b"GET / HTTP/1.1\r\nHost: ok.test\r\nX: a\0b\r\n\r\n",
    "name with a slash": b"GET / HTTP/1.1\r\nHost: ok.test/@bad.test\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_request(lab, name):
    """Where two readings are possible, none: 400, a record, and nothing went upstream."""
    result = sent(lab, ["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            sock.sendall(bytes.fromhex(sys.argv[1]))
            status, headers, _ = response(sock.makefile("rb"))
            show(status=status, reason=headers.get("x-netgate-reason"))
    """, MALFORMED[name].hex())
    (seen,) = result.shown
    assert seen["status"] == 400, result
    assert lab.web.requests == []
    decision = result.one("decision", door="transparent")
    assert (decision["verdict"], decision["reason"]) == ("deny", seen["reason"]), result


def test_malformed_chunk_in_a_body(lab):
    """The request was allowed; its body breaks the framing: cut, with its own end."""
    result = lab.python(["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            sock.sendall(b"POST /upload HTTP/1.1\\r\\nHost: ok.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nhello\\r\\n"
                         b"zz\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
            show(end=fate(sock)[0])
    """)
    assert result.one("close")["end"] == "http_malformed", result
    assert lab.web.seen("/smuggled") == []
    assert {request.sha256 for request in lab.web.seen("/upload")} <= {""}, "a cut body was taken for a whole one"


@pytest.mark.parametrize("size", [8, 32])
def test_big_headers(lab, size):
    result = sent(lab, ["--allow", "ok.test"], """
        cookie = b"c" * (int(sys.argv[1]) * 1024 - 200)
        (status, _, body), = http("ok.test", 80, b"GET /headers HTTP/1.1\\r\\nHost: ok.test\\r\\nCookie: " + cookie + b"\\r\\n\\r\\n")
        show(status=status, length=len(json.loads(body)["headers"]["cookie"]))
    """, str(size))
    assert result.shown == [{"status": 200, "length": size * 1024 - 200}], result


def test_too_big_headers(lab):
    result = sent(lab, ["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            try:
                sock.sendall(b"GET / HTTP/1.1\\r\\nHost: ok.test\\r\\nCookie: " + b"c" * 300_000 + b"\\r\\n\\r\\n")
            except ConnectionError:
                pass
            end, got = fate(sock)
            show(line=got.split(b"\\r\\n")[0].decode())
    """)
    assert result.shown[0]["line"].startswith(("HTTP/1.1 431", "HTTP/1.1 400")), result
    assert lab.web.requests == []
    assert result.of("decision", door="transparent", verdict="deny")


def test_a_byte_a_segment(lab):
    result = sent(lab, ["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            byte_by_byte(sock, b"POST /upload HTTP/1.1\\r\\nHost: ok.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nhello\\r\\n0\\r\\n\\r\\n")
            show(**json.loads(response(sock.makefile("rb"))[2]))
    """)
    assert result.shown[0]["bytes"] == 5, result


def test_absolute_form_to_an_ordinary_server(lab):
    """RFC 9112 §3.2.2: a client may send it; the URI's host is what counts and must be the Host."""
    result = sent(lab, ["--allow", "ok.test"], """
        for target, host in ((b"http://ok.test/hello", b"ok.test"), (b"http://bad.test/hello", b"ok.test")):
            (status, headers, _), = http("ok.test", 80, b"GET " + target + b" HTTP/1.1\\r\\nHost: " + host + b"\\r\\n\\r\\n")
            show(status=status)
    """)
    first, second = result.shown
    assert second["status"] in (400, 403), result
    assert all(request.headers["host"] == "ok.test" for request in lab.web.requests), json.dumps(result.out)


def test_port_8080_is_http_too_when_a_rule_says_so(lab):
    """On a rule's own port any protocol may pass, but a Host that shows must be the allowed one."""
    result = sent(lab, ["--allow", "ok.test:8080"], """
        for host in (b"ok.test:8080", b"bad.test"):
            with tcp("ok.test", 8080) as sock:
                sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: " + host + b"\\r\\n\\r\\n")
                try:
                    status, headers, _ = response(sock.makefile("rb"))
                    show(status=status)
                except (EOFError, ConnectionError) as error:
                    show(status=0)
    """)
    first, second = result.shown
    assert first["status"] == 200 and second["status"] != 200, result
    assert [request.headers["host"] for request in lab.web.requests] == ["ok.test:8080"]

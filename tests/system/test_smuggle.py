# SPDX-License-Identifier: Apache-2.0
"""Ways for a request to get past the gate unjudged: inside a changed protocol, or behind the last request of a connection."""

import contextlib
from textwrap import dedent

import pytest

from lab import v4, v6

PORTS = [80, 8000]  # of raw.test; the second is a raw port with a rule

# To a server that changes the protocol whatever it is asked, with the host as the request says it: a name or the address.
ASK = """
    def ask(form, port, *fields):
        family = socket.AF_INET6 if form == "v6" else socket.AF_INET
        address = socket.getaddrinfo("raw.test", port, family, socket.SOCK_STREAM)[0][4][0]
        host = {"name": "raw.test", "v4": address, "v6": f"[{address}]"}[form] + ("" if port == 80 else f":{port}")
        sock = tcp(address, port)
        sock.sendall("\\r\\n".join(["GET /first HTTP/1.1", f"Host: {host}", *fields, "", ""]).encode())
        return sock, sock.makefile("rb")
"""


@pytest.fixture(scope="module")
def changers(whole_lab):
    async def changer(reader, writer, seen):
        """Answers any request with 101, then each piece of what comes with a word."""
        seen.received = len(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: anything\r\n\r\n")
        while piece := await reader.read(1 << 16):
            seen.received += len(piece)
            writer.write(b"secret")
        seen.end = "eof"

    with contextlib.ExitStack() as stack:
        for port in PORTS:
            stack.enter_context(whole_lab.raw.listening(whole_lab.inet, changer, v4("raw"), v6("raw"), port=port))
        yield


def run(lab, text, *args):
    return lab.python(["--allow", "raw.test", "--allow", f"raw.test:{PORTS[1]}"], dedent(ASK) + dedent(text), *args)


@pytest.mark.parametrize("upgrade", ["h2c", "anything", "websocket, h2c", "h2c, websocket", "TLS/1.2"])
def test_a_change_of_protocol_is_refused(lab, changers, upgrade):
    """What follows could not be judged. The request is on record and never gets there, whatever its Host is."""
    result = run(lab, """
        for port in (80, 8000):
            for form in ("name", "v4", "v6"):
                sock, stream = ask(form, port, "Connection: Upgrade, HTTP2-Settings", "Upgrade: " + sys.argv[1],
                                   "HTTP2-Settings: AAMAAABk")
                status, headers, _ = response(stream)
                show(port=port, form=form, status=status, reason=headers.get("x-netgate-reason"), rest=len(stream.read()))
    """, upgrade)
    assert result.shown == [{"port": port, "form": form, "status": 403, "reason": "upgrade", "rest": 0}
                            for port in PORTS for form in ("name", "v4", "v6")], result
    denials = result.of("decision", door="transparent", verdict="deny")
    assert [(record["port"], record["host"], record["reason"]) for record in denials] == [
        (port, "raw.test", "upgrade") for port in PORTS for _ in range(3)], result
    assert sum(seen.received for seen in lab.raw.seen) == 0
    assert {record["end"] for record in result.of("close")} <= {"denied"}, result


def test_only_a_websocket_becomes_a_tunnel(lab, changers):
    result = run(lab, """
        for port in (80, 8000):
            for form in ("name", "v4", "v6"):
                sock, stream = ask(form, port, "Connection: Upgrade", "Upgrade: websocket")
                status = response(stream)[0]
                sock.sendall(b"frame")
                word = stream.read(6).decode()
                sock.shutdown(socket.SHUT_WR)
                show(status=status, word=word, rest=len(stream.read()))
    """)
    assert result.shown == [{"status": 101, "word": "secret", "rest": 0}] * 6, result
    assert [seen.end for seen in lab.raw.of("changer")] == ["eof"] * 6
    assert [record["end"] for record in result.of("close")] == ["client"] * 6, result


@pytest.mark.parametrize("field", ["X: y", "Upgrade: websocket"], ids=["plain", "upgrade without Connection"])
def test_a_change_that_nobody_asked_for(lab, changers, field):
    """A server that says 101 on its own is cut off: the client's next request does not reach it."""
    result = run(lab, """
        for port in (80, 8000):
            for form in ("name", "v4", "v6"):
                sock, stream = ask(form, port, sys.argv[1])
                try:
                    sock.sendall(b"GET /second HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
                except ConnectionError:
                    pass
                show(got=len(fate(sock)[1]))
    """, field)
    assert result.shown == [{"got": 0}] * 6, result
    assert [record["end"] for record in result.of("close")] == ["http_malformed"] * 6, result
    assert max(seen.received for seen in lab.raw.of("changer")) < 100


def test_a_request_behind_the_last_one(lab):
    """The client said that it is done, and then asks for another host all the same: not sent, and on record."""
    result = lab.python(["--allow", "ok.test"], """
        with tcp("ok.test", 80) as sock:
            sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n"
                         b"GET /second HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
            stream = sock.makefile("rb")
            show(status=response(stream)[0], rest=len(stream.read()))
    """)
    assert result.shown == [{"status": 200, "rest": 0}], result
    assert [request.line for request in lab.web.requests] == ["GET /hello HTTP/1.1"]
    assert [(record["verdict"], record["reason"]) for record in result.of("decision", door="transparent")] == [
        ("allow", "rule"), ("deny", "http_malformed")], result
    assert result.one("close")["end"] == "client", result

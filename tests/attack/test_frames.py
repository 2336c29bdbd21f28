# SPDX-License-Identifier: Apache-2.0
"""Frames below IP. The gate has no protocol for them; they are counted."""

from scapy.contrib.mpls import MPLS
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_RA, ICMPv6NDOptDstLLAddr, ICMPv6NDOptPrefixInfo
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Dot3, LLC, STP
from scapy.layers.ppp import PPP, PPPoE, PPPoED

from .packets import *

BROADCAST = "ff:ff:ff:ff:ff:ff"
PACKET = IP(src=SANDBOX4, dst="203.0.114.85") / UDP(dport=9) / SECRET
FRAMES = {
    "VLAN-tagged": [Ether(src=MAC, dst=GATE_MAC) / Dot1Q(vlan=7) / PACKET],
    "VLAN-tagged twice (802.1ad)": [Ether(src=MAC, dst=GATE_MAC) / Dot1AD(vlan=7) / Dot1Q(vlan=1) / PACKET],
    "PPPoE": [Ether(src=MAC, dst=BROADCAST) / PPPoED() / SECRET, Ether(src=MAC, dst=GATE_MAC) / PPPoE(sessionid=1) / PPP() / PACKET],
    "MPLS": [Ether(src=MAC, dst=GATE_MAC, type=0x8847) / MPLS(label=16) / PACKET],
    "LLDP, STP": [Ether(src=MAC, dst="01:80:c2:00:00:0e", type=0x88cc) / SECRET,
                  Dot3(src=MAC, dst="01:80:c2:00:00:00") / LLC() / STP()],
    "EtherType of one's own": [Ether(src=MAC, dst=BROADCAST, type=0x88b5) / SECRET],
    "ARP spoofing of the gateway": [Ether(src=MAC, dst=BROADCAST) / ARP(op=2, hwsrc=MAC, psrc=GATE4, pdst=GATE4),
                                    Ether(src=MAC, dst=GATE_MAC) / ARP(op=2, hwsrc=MAC, psrc=GATE4, hwdst=GATE_MAC, pdst=SANDBOX4)],
    "ARP request for every neighbour": [Ether(src=MAC, dst=BROADCAST) / ARP(psrc=SANDBOX4, pdst=f"203.0.114.{number}") for number in range(250)],
}
NEIGHBOURS = {
    "ND spoofing of the gateway": [ip6(GATE6, hlim=255) / ICMPv6ND_NA(tgt=GATE6, R=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=MAC)],
    "router advertisement to the gate": [ip6(GATE6, hlim=255) / ICMPv6ND_RA() / ICMPv6NDOptPrefixInfo(prefix="2a0f:1ab:0:9::", prefixlen=64)],
}


QUIET = 150  # ARP questions that may go uncounted: a kernel may ask while that is rare, a hundred times at once and ten times a second


def test_frames(attack):
    """The name still resolves and the page still comes afterwards: no table of the gate took anything of it in."""
    with attack("frames") as attempt:
        error = attempt.send(*[frame for frames in FRAMES.values() for frame in frames])
        answers = attempt.talk(b"GET /hello HTTP/1.1\r\nHost: ok.test\r\n\r\n")
    assert answers[0][1].endswith(b"hello from ok.test\n")
    for technique in FRAMES:
        if attempt.root:
            attempt.recorded("drop", technique, reason="frame")
        else:
            attempt.refused(error, technique)
    if attempt.root:
        sent, counted = sum(map(len, FRAMES.values())), sum(record["count"] for record in attempt.result.of("drop"))
        assert sent - QUIET <= counted <= sent


def test_another_station(attack):
    """A frame for somebody else is judged like one for the gate."""
    with attack("frame for another station") as attempt:
        error = attempt.send(Ether(src=MAC, dst="02:00:00:00:01:01") / PACKET)
    if attempt.root:
        attempt.recorded("drop", reason="udp", dst="203.0.114.85", port=9)
    else:
        attempt.refused(error)


def test_neighbour_discovery(attack):
    with attack("neighbours") as attempt:
        error = attempt.send(*[frame for frames in NEIGHBOURS.values() for frame in frames])
        answers = attempt.talk(b"GET /hello HTTP/1.1\r\nHost: ok.test\r\n\r\n")
    assert answers[0][1].endswith(b"hello from ok.test\n")
    for technique in NEIGHBOURS:
        if attempt.root:
            attempt.recorded("drop", technique, reason="icmp", dst=GATE6)
        else:
            attempt.refused(error, technique)


def test_foreign_source_station(attack):
    """The sender's hardware address says nothing to the gate: there is one sandbox on the link."""
    with attack("frame from another station") as attempt:
        error = attempt.send(Ether(src="02:00:00:00:01:02", dst=GATE_MAC) / PACKET)
    if attempt.root:
        attempt.recorded("drop", reason="udp", dst="203.0.114.85", port=9)
    else:
        attempt.refused(error)


def test_thrown_away_by_the_kernel(attack):
    """Before any rule sees them: headers that contradict themselves, and IPv6 loopback."""
    with attack("IP header with a wrong version, checksum or length; IPv6 from or to loopback") as attempt:
        error = attempt.send(LINK / IP(src=SANDBOX4, dst="203.0.114.85", chksum=1) / UDP() / SECRET,
                             LINK / IP(src=SANDBOX4, dst="203.0.114.85", len=9000) / UDP() / SECRET,
                             LINK / IP(version=5, src=SANDBOX4, dst="203.0.114.85") / UDP() / SECRET,
                             ip6("2a0f:1ab:0:2::85", plen=9000) / UDP() / SECRET, ip6("::1") / UDP() / SECRET,
                             LINK / IPv6(src="::1", dst="2a0f:1ab:0:2::85") / UDP() / SECRET)
    if attempt.root:
        attempt.note("ends in the gate")
    else:
        attempt.refused(error)

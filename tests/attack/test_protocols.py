# SPDX-License-Identifier: Apache-2.0
"""IP protocols that are neither TCP nor UDP: tunnels in themselves. Refused, counted, on record by number and destination."""

from scapy.contrib.mpls import MPLS
from scapy.layers.inet6 import IPv6
from scapy.layers.ipsec import AH, ESP
from scapy.layers.l2 import GRE
from scapy.layers.sctp import SCTP, SCTPChunkInit

from .packets import *

PROTOCOLS = {
    "GRE": (47, GRE() / IP(src=SANDBOX4, dst="203.0.114.85") / UDP() / SECRET),
    "ESP (IPsec)": (50, ESP(spi=1, data=SECRET)),
    "AH (IPsec)": (51, AH(spi=1) / UDP() / SECRET),
    "SCTP": (132, SCTP() / SCTPChunkInit()),
    "IPIP": (4, IP(src="203.0.114.2", dst="203.0.114.85") / UDP() / SECRET),
    "6in4": (41, IPv6(src="2a0f:1ab:0:1::2", dst="2a0f:1ab:0:2::85") / UDP() / SECRET),
    "MPLS in IP": (137, MPLS(label=16) / SECRET),
    "EtherIP": (97, b"\x30\0" + bytes(Ether() / IP(dst="203.0.114.85") / SECRET)),
    "OSPF, EIGRP, VRRP, PIM": (89, SECRET),
    "DCCP": (33, SECRET),
    "UDP-Lite": (136, SECRET),
    "protocol 0 (a raw hop-by-hop)": (0, SECRET),
    "protocol 253 (experimental)": (253, SECRET),
    "protocol 255 (reserved)": (255, SECRET),
}


def test_protocols(attack):
    frames = {}
    for number, (name, (proto, payload)) in enumerate(PROTOCOLS.items()):
        frames[name] = f"203.0.114.{100 + number}", proto, payload
    with attack("IP protocols") as attempt:
        error = attempt.send(*[ip4(dst, proto=proto) / payload for dst, proto, payload in frames.values()],
                             *[ip6("2a0f:1ab:0:2::" + dst.split(".")[3], nh=proto) / payload
                               for dst, proto, payload in frames.values() if proto not in (0, 51)])
    for name, (dst, proto, _) in frames.items():
        if not attempt.root:
            attempt.refused(error, name)
            continue
        for address in (dst, "2a0f:1ab:0:2::" + dst.split(".")[3])[:1 if proto in (0, 51) else 2]:
            found, = attempt.recorded("drop", name, dst=address)
            assert (found["reason"], found["proto"], found["count"]) == ("ip_protocol", f"ip-{proto}", 1)

# SPDX-License-Identifier: Apache-2.0
"""Packets made by hand: scapy's layers, the addresses of the link between sandbox and gate, and what is to be carried out."""

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

SECRET = b"exfil-5ecret"
GATE_MAC, MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
GATE4, SANDBOX4 = "10.200.0.1", "10.200.0.2"
GATE6, SANDBOX6 = "fd6e:6574:6761:7465::1", "fd6e:6574:6761:7465::2"
LINK = Ether(src=MAC, dst=GATE_MAC)


def ip4(dst, **fields):
    return LINK / IP(src=SANDBOX4, dst=dst, **fields)


def ip6(dst, **fields):
    return LINK / IPv6(src=SANDBOX6, dst=dst, **fields)


__all__ = [name for name in dir() if not name.startswith("_")]

# SPDX-License-Identifier: Apache-2.0
"""Everything that left the host, as the first router sees it: an AF_PACKET socket on the far end of the host's only link."""

import dataclasses
import ipaddress
import socket
import struct

ETH_P_ALL = 3
SOL_PACKET, PACKET_STATISTICS, PACKET_OUTGOING = 263, 6, 4
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
BUFFER = 64 << 20
MLD_ROUTERS = "ff02::16"  # the host's kernel reports its own multicast groups there, at times of its choice
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6"}


@dataclasses.dataclass
class Packet:
    time: float  # when the kernel took it, seconds since the epoch
    proto: str
    src: str
    dst: str
    sport: int
    dport: int
    payload: bytes  # what follows the TCP or UDP header; of other protocols, what follows the IP header
    flags: int = 0  # TCP
    raw: bytes = b""


def parse(frame, when):
    """An Ethernet frame as a Packet; other EtherTypes are kept with the type as their protocol."""
    ethertype = struct.unpack("!H", frame[12:14])[0]
    data = frame[14:]
    if ethertype == 0x0800:
        header, total, number = (data[0] & 15) * 4, struct.unpack("!H", data[2:4])[0], data[9]
        src, dst = (str(ipaddress.IPv4Address(data[at : at + 4])) for at in (12, 16))
        rest = data[header : total or None]
    elif ethertype == 0x86DD:
        number = data[6]
        src, dst = (str(ipaddress.IPv6Address(data[at : at + 16])) for at in (8, 24))
        rest = data[40:]
    else:
        return Packet(when, f"ethertype-{ethertype:04x}", "", "", 0, 0, data, raw=frame)
    proto = PROTOCOLS.get(number, f"ip-{number}")
    sport = dport = flags = 0
    payload = rest
    if proto in ("tcp", "udp") and len(rest) >= 8:
        sport, dport = struct.unpack("!HH", rest[:4])
        flags = rest[13] if proto == "tcp" else 0
        payload = rest[(rest[12] >> 4) * 4 :] if proto == "tcp" else rest[8:]
    return Packet(when, proto, src, dst, sport, dport, payload, flags, frame)


class Capture:
    """Use as a context manager around what is watched; `packets` is filled at its end."""

    def __init__(self, namespace, interface):
        with namespace.inside():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
            self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self._socket.bind((interface, ETH_P_ALL))
        self.packets = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def poll(self):
        """Takes what has arrived so far."""
        while self._socket.fileno() >= 0:
            try:
                frame, ancillary, _, address = self._socket.recvmsg(1 << 17, 64, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            if address[2] == PACKET_OUTGOING:  # the internet's own replies
                continue
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
            packet = parse(frame, seconds + nanoseconds / 1e9)
            if packet.dst != MLD_ROUTERS:
                self.packets.append(packet)
        return self.packets

    def stop(self):
        if self._socket.fileno() < 0:
            return
        self.poll()
        _, lost = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._socket.close()
        if lost:
            raise AssertionError(f"the capture lost {lost} packets, so it proves nothing")

    def to(self, address=None, proto=None, port=None):
        return [packet for packet in self.packets
                if (address is None or packet.dst == address) and (proto is None or packet.proto == proto)
                and (port is None or packet.dport == port)]

    def destinations(self):
        """The set of (proto, address, port) that anything was sent to."""
        return {(packet.proto, packet.dst, packet.dport) for packet in self.packets}

    def contains(self, secret):
        """True when `secret` (bytes) is in any single packet, whatever its case."""
        return any(secret.lower() in packet.raw.lower() for packet in self.packets)

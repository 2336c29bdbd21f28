# SPDX-License-Identifier: Apache-2.0
"""The lab's name server (UDP and TCP): answers from a table, and remembers every query that reached it."""

import asyncio
import dataclasses
import ipaddress
import struct
import time

A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, OPT = 1, 2, 5, 6, 12, 15, 16, 28, 41
TYPES = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 65: "HTTPS",
         255: "ANY"}
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, REFUSED = 0, 1, 2, 3, 5


@dataclasses.dataclass
class Entry:
    """What the server says about one name."""

    a: list = dataclasses.field(default_factory=list)
    aaaa: list = dataclasses.field(default_factory=list)
    cname: str = ""
    rcode: int = NOERROR
    delay: float = 0.0  # seconds before any answer
    silent: bool = False  # no answer at all
    ttl: int = 5  # seconds, of addresses and aliases
    turns: list = dataclasses.field(default_factory=list)  # entries used one after another, the last one for good


@dataclasses.dataclass
class Query:
    time: float
    name: str  # as it came, case kept
    qtype: str
    transport: str
    peer: str


class BadQuery(Exception):
    pass


def encode_name(name):
    out = b""
    for label in name.rstrip(".").split("."):
        out += bytes([len(label)]) + label.encode("latin-1")
    return out + b"\0"


def parse_query(data):
    """Returns (id, flags, name, qtype, has_opt, the question section's bytes)."""
    if len(data) < 12:
        raise BadQuery("short")
    ident, flags, questions, _, _, extra = struct.unpack("!6H", data[:12])
    if flags & 0x8000 or questions != 1:
        raise BadQuery("not one question")
    labels, at = [], 12
    while True:
        if at >= len(data):
            raise BadQuery("cut name")
        length = data[at]
        at += 1
        if length == 0:
            break
        if length > 63 or at + length > len(data):
            raise BadQuery("label")
        labels.append(data[at : at + length].decode("latin-1"))
        at += length
    if at + 4 > len(data):
        raise BadQuery("cut question")
    qtype, _ = struct.unpack("!HH", data[at : at + 4])
    return ident, flags, ".".join(labels), qtype, extra > 0, data[12 : at + 4]


def record(name, rtype, rdata, ttl):
    return encode_name(name) + struct.pack("!HHIH", rtype, 1, ttl, len(rdata)) + rdata


class Server:
    def __init__(self, loop):
        self._loop = loop
        self._closers = []
        self.zone = {}
        self.queries = []

    def add(self, name, entry=None, **fields):
        """Adds or replaces a name; keywords are those of Entry."""
        self.zone[name.lower()] = entry or Entry(**fields)

    def asked(self, part):
        """The queries whose name contains `part`, in any case."""
        return [query for query in self.queries if part.lower() in query.name.lower()]

    def listen(self, namespace, *addresses, port=53):
        import socket

        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with namespace.inside():
                udp = socket.socket(family, socket.SOCK_DGRAM)
                udp.bind((address, port))
                tcp = socket.create_server((address, port), family=family, backlog=128)
            self._loop.call(self._start(udp, tcp))

    async def _start(self, udp, tcp):
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: _Datagrams(self), sock=udp)
        server = await asyncio.start_server(self._stream, sock=tcp)
        self._closers += [transport.close, server.close]

    def close(self):
        for closer in self._closers:
            self._loop.loop.call_soon_threadsafe(closer)

    def _entry(self, name):
        entry = self.zone.get(name.lower())
        if entry and entry.turns:
            return entry.turns.pop(0) if len(entry.turns) > 1 else entry.turns[0]
        return entry

    def _records(self, name, qtype, entry):
        """The answer section; a CNAME chain is followed within the zone."""
        out, chain = [], 0
        while entry and entry.cname and chain < 120:
            out.append(record(name, CNAME, encode_name(entry.cname), entry.ttl))
            name, entry, chain = entry.cname, self._entry(entry.cname), chain + 1
        if entry and qtype == A:
            out += [record(name, A, ipaddress.IPv4Address(address).packed, entry.ttl) for address in entry.a]
        if entry and qtype == AAAA:
            out += [record(name, AAAA, ipaddress.IPv6Address(address).packed, entry.ttl) for address in entry.aaaa]
        return out

    def answer(self, data, transport, peer):
        """Returns (seconds to wait, reply), or None for silence."""
        now = time.time()
        ident, flags, name, qtype, has_opt, question = parse_query(data)
        self.queries.append(Query(now, name, TYPES.get(qtype, f"TYPE{qtype}"), transport, peer))
        entry = self._entry(name)
        if entry and entry.silent:
            return None
        rcode = entry.rcode if entry else NXDOMAIN
        records = self._records(name, qtype, entry) if rcode == NOERROR else []
        extra = b"\0" + struct.pack("!HHIH", OPT, 1232, 0, 0) if has_opt else b""
        reply = struct.pack("!6H", ident, 0x8580 | (flags & 0x0100) | rcode, 1, len(records), 0, 1 if has_opt else 0)
        return (entry.delay if entry else 0.0), reply + question + b"".join(records) + extra

    def datagrams(self, query, reply, peer):
        """What is sent over UDP for this reply: (seconds to wait, datagram) each. For a test to replace."""
        return [(0.0, reply)]

    async def _stream(self, reader, writer):
        peer = writer.get_extra_info("peername")[0]
        try:
            while True:
                length = struct.unpack("!H", await reader.readexactly(2))[0]
                answer = self.answer(await reader.readexactly(length), "tcp", peer)
                if answer:
                    await asyncio.sleep(answer[0])
                    writer.write(struct.pack("!H", len(answer[1])) + answer[1])
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, BadQuery):
            pass
        finally:
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    """Cuts an answer of more than 1232 bytes to its header and question, with the TC bit."""

    def __init__(self, server):
        self.server = server

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        try:
            answer = self.server.answer(data, "udp", peer[0])
        except BadQuery:
            return
        if not answer:
            return
        delay, reply = answer
        if len(reply) > 1232:
            end = 12 + len(parse_query(data)[5])
            flags = struct.unpack("!H", reply[2:4])[0] | 0x0200
            reply = reply[:2] + struct.pack("!5H", flags, 1, 0, 0, 0) + reply[12:end]
        for wait, datagram in self.server.datagrams(data, reply, peer):
            asyncio.get_running_loop().call_later(delay + wait, self.transport.sendto, datagram, peer)

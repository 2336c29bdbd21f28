# SPDX-License-Identifier: Apache-2.0
"""For scripts that a test runs in the sandbox: `from inside import *` (a copy of this file lies in the workspace)."""

import hashlib
import json
import os
import socket
import ssl
import struct
import sys
import time

TIMEOUT = 60


def show(**values):
    """Hands values to the test, as one line of JSON."""
    print(json.dumps(values), flush=True)


def pattern(length, seed="netgate"):
    return hashlib.shake_128(seed.encode()).digest(length)


def tcp(host, port, timeout=TIMEOUT):
    sock = socket.create_connection((host, port), timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def read_all(sock):
    """Everything up to the end of the stream."""
    out = b""
    while piece := sock.recv(1 << 16):
        out += piece
    return out


def take(sock, length):
    """Exactly so many bytes. (MSG_WAITALL does not wait on a socket with a timeout.)"""
    out = b""
    while len(out) < length:
        piece = sock.recv(length - len(out))
        if not piece:
            raise EOFError(out)
        out += piece
    return out


def read_until(sock, end):
    out = b""
    while not out.endswith(end):
        piece = sock.recv(1)
        if not piece:
            raise EOFError(out)
        out += piece
    return out


def fate(sock):
    """How a connection ends from here on: "eof", "reset" or "timeout"; with the bytes that came before."""
    got = b""
    try:
        while piece := sock.recv(1 << 16):
            got += piece
        return "eof", got
    except (ConnectionResetError, BrokenPipeError):
        return "reset", got
    except TimeoutError:
        return "timeout", got


def ending(host, port, data=b""):
    """Connects, sends, and says how it ends; a reset may come as early as in connect()."""
    try:
        with tcp(host, port) as sock:
            sock.sendall(data)
            return fate(sock)[0]
    except (ConnectionResetError, BrokenPipeError):
        return "reset"


def response(stream):
    """Reads one HTTP/1 response with a length or chunks from a file made by sock.makefile("rb"): (status, headers, body)."""
    line = stream.readline()
    if not line:
        raise EOFError
    status, headers = int(line.split()[1]), {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        while stream.readline() not in (b"\r\n", b""):
            pass
        return status, headers, body
    return status, headers, stream.read(int(headers.get("content-length", "0")))


def http(host, port, raw, count=1):
    """Sends raw bytes and reads `count` responses."""
    with tcp(host, port) as sock:
        sock.sendall(raw)
        stream = sock.makefile("rb")
        return [response(stream) for _ in range(count)]


class Tls:
    """A TLS client whose every outgoing byte passes through `send`, so that its segments can be shaped."""

    def __init__(self, name, alpn=(), context=None):
        self.context = context or ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
        if alpn:
            self.context.set_alpn_protocols(list(alpn))
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = self.context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)

    def hello(self):
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self.outgoing.read()

    def handshake(self, sock, send):
        """Completes the handshake; what is to be sent goes through send(sock, bytes). Raises ssl.SSLError on an alert."""
        send(sock, self.hello())
        while True:
            data = sock.recv(1 << 16)
            if data:
                self.incoming.write(data)
            else:
                self.incoming.write_eof()
            try:
                self.tls.do_handshake()
                return sock.sendall(self.outgoing.read())
            except ssl.SSLWantReadError:
                sock.sendall(self.outgoing.read())

    def exchange(self, sock, request):
        """Sends a request and reads until the peer's end; returns what came."""
        self.tls.write(request)
        sock.sendall(self.outgoing.read())
        out = b""
        while data := sock.recv(1 << 16):
            self.incoming.write(data)
            try:
                while piece := self.tls.read(1 << 16):
                    out += piece
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLZeroReturnError:
                break
            break
        return out


def at_once(sock, data):
    sock.sendall(data)


def byte_by_byte(sock, data):
    """One segment a byte."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in range(len(data)):
        sock.sendall(data[number : number + 1])


def dns_query(name, qtype=1, qclass=1, ident=0x1234, opt=True):
    """A query; `name` may hold any bytes in its labels."""
    raw = name if isinstance(name, bytes) else name.encode()
    out = struct.pack("!6H", ident, 0x0100, 1, 0, 0, 1 if opt else 0)
    for label in raw.rstrip(b".").split(b"."):
        out += bytes([len(label)]) + label
    out += b"\0" + struct.pack("!HH", qtype, qclass)
    return out + (b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0) if opt else b"")


def dns_server():
    with open("/etc/resolv.conf") as conf:
        return [line.split()[1] for line in conf if line.startswith("nameserver")][0]


def dns_udp(query, server=None):
    server = server or dns_server()
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(TIMEOUT)
        sock.connect((server, 53))
        sock.send(query)
        return sock.recv(4096)


def dns_read(reply):
    """A reply as {rcode, aa, ra, tc, answers, authority, additional}; the records as (type, rdata in hex or as an address)."""
    _, flags, questions, *counts = struct.unpack("!6H", reply[:12])
    at = 12

    def skip_name(at):
        while reply[at]:
            if reply[at] >= 0xC0:
                return at + 2
            at += reply[at] + 1
        return at + 1

    for _ in range(questions):
        at = skip_name(at) + 4
    out = {"rcode": flags & 15, "ra": bool(flags & 0x80), "tc": bool(flags & 0x200), "aa": bool(flags & 0x400)}
    for section, count in zip(("answers", "authority", "additional"), counts):
        out[section] = []
        for _ in range(count):
            at = skip_name(at)
            rtype, _, _, length = struct.unpack("!HHIH", reply[at : at + 10])
            rdata = reply[at + 10 : at + 10 + length]
            at += 10 + length
            if rtype in (1, 28):
                rdata = socket.inet_ntop(socket.AF_INET if rtype == 1 else socket.AF_INET6, rdata)
            out[section].append([rtype, rdata if isinstance(rdata, str) else rdata.hex()])
    return out

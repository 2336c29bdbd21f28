# SPDX-License-Identifier: Apache-2.0
"""Servers of the lab that don't speak HTTP: echo, banner first, a sink that counts, ssh, and the outside of PostgreSQL."""

import asyncio
import contextlib
import dataclasses
import hashlib
import os
import socket
import struct
import subprocess
import threading


@dataclasses.dataclass
class Seen:
    """One connection that a server had."""

    service: str
    peer: str
    received: int = 0
    sha256: str = ""
    end: str = ""  # "eof" or "reset"


class Raw:
    def __init__(self, loop):
        self._loop = loop
        self._servers = []
        self.seen = []

    def listen(self, namespace, handler, *addresses, port):
        """`handler`: a coroutine method of this class."""
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with namespace.inside():
                sock = socket.create_server((address, port), family=family, backlog=1024)
            self._servers.append(self._loop.call(asyncio.start_server(self._wrap(handler), sock=sock)))

    @contextlib.contextmanager
    def listening(self, namespace, handler, *addresses, port):
        """listen() for as long as the context lasts: another test may want the port for itself."""
        first = len(self._servers)
        self.listen(namespace, handler, *addresses, port=port)
        mine = self._servers[first:]
        try:
            yield
        finally:
            for server in mine:
                self._servers.remove(server)
                self._loop.loop.call_soon_threadsafe(server.close)
            # close() has run when a later call on the loop has.
            self._loop.call(asyncio.sleep(0))

    def listen_udp(self, namespace, *addresses, port):
        """Sends each datagram back."""
        for address in addresses:
            with namespace.inside():
                sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
                sock.bind((address, port))
            self._servers.append(self._loop.call(self._start_udp(sock)))

    @staticmethod
    async def _start_udp(sock):
        return (await asyncio.get_running_loop().create_datagram_endpoint(_UdpEcho, sock=sock))[0]

    def close(self):
        for server in self._servers:
            self._loop.loop.call_soon_threadsafe(server.close)

    def of(self, service):
        return [seen for seen in self.seen if seen.service == service]

    def _wrap(self, handler):
        async def connection(reader, writer):
            seen = Seen(handler.__name__, writer.get_extra_info("peername")[0])
            self.seen.append(seen)
            try:
                await handler(reader, writer, seen)
            except (ConnectionError, asyncio.IncompleteReadError):
                seen.end = seen.end or "reset"
            finally:
                writer.close()

        return connection

    async def _receive(self, reader, seen):
        digest = hashlib.sha256()
        while piece := await reader.read(1 << 16):
            seen.received += len(piece)
            digest.update(piece)
            yield piece
        seen.sha256, seen.end = digest.hexdigest(), "eof"

    async def echo(self, reader, writer, seen):
        """Every byte comes back; the client's end of stream is answered with ours."""
        async for piece in self._receive(reader, seen):
            writer.write(piece)
            await writer.drain()

    async def banner(self, reader, writer, seen):
        """Speaks first, then repeats each line in upper case."""
        writer.write(b"220 banner.test ready\r\n")
        while line := await reader.readline():
            seen.received += len(line)
            writer.write(line.upper())
        seen.end = "eof"

    async def sink(self, reader, writer, seen):
        """Reads to the end of the stream and only then answers: "COUNT SHA256"."""
        async for _ in self._receive(reader, seen):
            pass
        writer.write(f"{seen.received} {seen.sha256}\n".encode())

    async def source(self, reader, writer, seen):
        """Reads a line "LENGTH", sends that many zero bytes, closes."""
        line = await reader.readline()
        seen.received = len(line)
        left = int(line)
        while left:
            piece = bytes(min(left, 1 << 20))
            writer.write(piece)
            await writer.drain()
            left -= len(piece)
        seen.end = "eof"

    async def mute(self, reader, writer, seen):
        """Accepts and says nothing."""
        async for _ in self._receive(reader, seen):
            pass

    async def rude(self, reader, writer, seen):
        """Answers the first bytes with a reset."""
        seen.received = len(await reader.read(1 << 16))
        seen.end = "reset"
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def postgres(self, reader, writer, seen):
        """The PostgreSQL v3 protocol as psql sees it: no TLS, no password, every query answers one row with its text."""

        def message(kind, body):
            return kind + struct.pack("!I", len(body) + 4) + body

        async def packet():
            length = struct.unpack("!I", await reader.readexactly(4))[0]
            seen.received += length
            return await reader.readexactly(length - 4)

        body = await packet()
        while struct.unpack("!I", body[:4])[0] in (80877103, 80877104):  # SSLRequest, GSSENCRequest
            writer.write(b"N")
            body = await packet()
        ready = message(b"Z", b"I")
        writer.write(message(b"R", struct.pack("!I", 0)) + message(b"S", b"server_version\0" b"15.0\0") +
                     message(b"S", b"client_encoding\0UTF8\0") + ready)
        while True:
            kind = await reader.readexactly(1)
            body = await packet()
            if kind == b"X":
                seen.end = "eof"
                return
            if kind != b"Q":
                continue
            text = body.rstrip(b"\0")
            row = struct.pack("!H", 1) + b"echo\0" + struct.pack("!IHIhiH", 0, 0, 25, -1, -1, 0)
            writer.write(message(b"T", row) + message(b"D", struct.pack("!HI", 1, len(text)) + text) +
                         message(b"C", b"SELECT 1\0") + ready)


class _UdpEcho(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        self.transport.sendto(data, peer)


class Ssh:
    """An SSH server: dropbear, one process a connection; the lab's user logs in with the lab's key."""

    def __init__(self, folder, user):
        self.folder, self._user = folder, user
        self.client_key = os.path.join(folder, "id_ed25519")
        self._host_key = os.path.join(folder, "hostkey")
        self._listener = None
        self._children = []
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", self.client_key], check=True,
                       timeout=60)
        subprocess.run(["dropbearkey", "-t", "ed25519", "-f", self._host_key], check=True, capture_output=True,
                       timeout=60)
        self._authorize()

    def _authorize(self):
        ssh = os.path.join(self._user.home, ".ssh")
        os.makedirs(ssh, 0o700, exist_ok=True)
        with open(self.client_key + ".pub") as public, open(os.path.join(ssh, "authorized_keys"), "w") as out:
            out.write(public.read())
        for path in (ssh, out.name):
            os.chown(path, self._user.uid, self._user.gid)
        os.chmod(out.name, 0o600)

    def listen(self, namespace, address, port=22):
        with namespace.inside():
            self._listener = socket.create_server((address, port))
        threading.Thread(target=self._accept, name="lab-ssh", daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._children.append(subprocess.Popen(
                    ["dropbear", "-i", "-s", "-r", self._host_key], stdin=connection, stdout=connection,
                    stderr=subprocess.DEVNULL))

    def close(self):
        if self._listener:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        for child in self._children:
            child.kill()
            child.wait()

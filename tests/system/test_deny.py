# SPDX-License-Identifier: Apache-2.0
"""What is not allowed: nothing of it leaves, it is on record, and the sandbox learns why at once and in its own protocol."""

import re

import pytest

from lab import METADATA, v4, v6


def nothing_left(capture, lab):
    """Not one packet left the host, and no server of the internet saw anything."""
    assert capture.packets == []
    assert (lab.dns.queries, lab.web.requests, lab.web.hellos, lab.raw.seen, lab.metadata.requests) == ([], [], [], [], [])


def test_name(lab, who):
    with lab.capture() as capture:
        result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "https://bad.test/"], user=who)
    assert result.rc == 6, result
    nothing_left(capture, lab)
    denied = [record for record in result.of("decision") if record["verdict"] == "deny"]
    assert {(record["door"], record["host"], record["reason"]) for record in denied} == {("dns", "bad.test", "not_allowed")}
    assert "bad.test" in result.err and "--allow bad.test" in result.err


def test_sni(lab, who):
    """A TLS client that goes to an address of its own choice gets the alert access_denied."""
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            for address in sys.argv[1:]:
                try:
                    with tcp(address, 443) as sock:
                        Tls("bad.test").handshake(sock, at_once)
                except ssl.SSLError as error:
                    show(reason=error.reason)
        """, v4("web"), v6("web"), user=who)
    assert result.shown == [{"reason": "TLSV1_ALERT_ACCESS_DENIED"}] * 2, result
    nothing_left(capture, lab)
    denied = result.of("decision", door="transparent", host="bad.test", verdict="deny", reason="not_allowed", name_from="sni")
    assert {record["dst"] for record in denied} == {f"{v4('web')}:443", f"[{v6('web')}]:443"}, result


def test_allowed_sni_at_a_foreign_address_is_dialled_by_name(lab, who):
    """The address that the sandbox chose is never dialled."""
    with lab.capture() as capture:
        result = lab.netgate(["--allow", "ok.test"],
                             ["curl", "-sS", "--resolve", f"ok.test:443:{v4('other')}", "https://ok.test/hello"], user=who)
    assert result.out == "hello from ok.test\n", result
    assert not capture.to(v4("other")) and not capture.to(v6("other"))
    assert {request.address for request in lab.web.requests} <= {v4("web"), v6("web")}


def test_http(lab, who):
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            for address in sys.argv[1:]:
                (status, headers, body), = http(address, 80, b"GET /secret HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
                show(status=status, reason=headers.get("x-netgate-reason"), body=body.decode())
        """, v4("web"), v6("web"), user=who)
    nothing_left(capture, lab)
    for seen in result.shown:
        assert (seen["status"], seen["reason"]) == (403, "not_allowed"), result
        assert "bad.test" in seen["body"] and "--allow" not in seen["body"], result
        assert result.of("decision", conn=int(re.search(r"conn (\d+) in the log", seen["body"])[1])), result
    assert len(result.of("decision", door="transparent", host="bad.test", reason="not_allowed", path="/secret")) == 2


def test_no_name(lab, who):
    """TLS without SNI, and bytes of no known protocol, to an address without a rule."""
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            context = ssl.create_default_context()
            context.check_hostname = False
            for address, port in ((sys.argv[1], 443), (sys.argv[2], 443)):
                try:
                    with tcp(address, port) as sock:
                        Tls(None, context=context).handshake(sock, at_once)
                except ssl.SSLError as error:
                    show(end=error.reason)
            show(end=ending(sys.argv[1], 9999, b"\\0\\1\\2 something"))
        """, v4("web"), v6("web"), user=who)
    assert [seen["end"] for seen in result.shown] == ["TLSV1_ALERT_ACCESS_DENIED"] * 2 + ["reset"], result
    nothing_left(capture, lab)
    decisions = result.of("decision", verdict="deny")
    assert {(record["dst"], record["reason"]) for record in decisions} == {
        (f"{v4('web')}:443", "no_name"), (f"[{v6('web')}]:443", "no_name"), (f"{v4('web')}:9999", "no_name")}, result


def test_port(lab, who):
    """An allowed name on a port that no rule gives."""
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            for port in (22, 5432):
                show(end=ending("ok.test", port))
        """, user=who)
    assert result.shown == [{"end": "reset"}] * 2, result
    nothing_left(capture, lab)
    for port in (22, 5432):
        assert result.of("decision", host="ok.test", port=port, verdict="deny", reason="port_not_allowed"), result
    assert "--allow ok.test:22" in result.err


def test_other_protocol_on_443_and_80(lab, who):
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            for port in (443, 80):
                with tcp("ok.test", port) as sock:
                    sock.sendall(b"SSH-2.0-smuggler\\r\\n")
                    show(end=fate(sock)[0])
        """, user=who)
    nothing_left(capture, lab)
    reasons = {record["port"]: record["reason"] for record in result.of("decision", door="transparent", verdict="deny")}
    assert reasons == {443: "not_tls", 80: "not_http"}, result


def test_deny_rule_beats_allow(lab, who):
    result = lab.netgate(["--allow", "*.wild.test", "--deny", "x.wild.test"],
                         ["sh", "-c", "curl -sS https://a_b.wild.test/hello; curl -sS https://x.wild.test/hello"], user=who)
    assert (result.rc, result.out) == (6, "hello from a_b.wild.test\n"), result
    assert result.of("decision", door="dns", host="x.wild.test", verdict="deny", reason="denied_by_rule")


def test_empty_policy_allows_nothing(lab, who):
    with lab.capture() as capture:
        result = lab.netgate([], ["curl", "-sS", "https://ok.test/"], user=who)
    assert result.rc == 6, result
    nothing_left(capture, lab)


def test_metadata_service(lab, who):
    """By address, by a name that resolves to it, with and without the lookup."""
    with lab.capture() as capture:
        result = lab.python(["--allow", "meta.test"], """
            (status, headers, _), = http(sys.argv[1], 80, b"GET /latest/meta-data/ HTTP/1.1\\r\\nHost: " +
                                         sys.argv[1].encode() + b"\\r\\n\\r\\n")
            show(status=status, reason=headers.get("x-netgate-reason"))
            (status, headers, _), = http("meta.test", 80, b"GET /latest/ HTTP/1.1\\r\\nHost: meta.test\\r\\n\\r\\n")
            show(status=status, reason=headers.get("x-netgate-reason"))
        """, METADATA, user=who)
    assert lab.metadata.requests == [] and not capture.to(METADATA), result
    first, second = result.shown
    assert first["status"] in (400, 403) and first["reason"] in ("no_name", "bad_name", "not_allowed", "bogus_destination"), result
    assert (second["status"], second["reason"]) == (403, "private_address"), result
    dial = result.one("dial", host="meta.test")
    assert dial["outcome"] == "private_address" and dial["addr"].startswith(METADATA)


@pytest.mark.parametrize("family,address", [("AF_INET", v4("raw")), ("AF_INET6", v6("raw"))])
def test_udp(lab, who, family, address):
    """Five datagrams to one port and three to another: refused at once, exactly counted, none leaves."""
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            for port, count in ((9999, 5), (123, 3)):
                sock = socket.socket(getattr(socket, sys.argv[1]), socket.SOCK_DGRAM)
                sock.settimeout(TIMEOUT)
                sock.connect((sys.argv[2], port))
                refused = 0
                for number in range(count):
                    sock.send(b"secret-in-udp")
                    try:
                        sock.recv(100)
                    except (ConnectionRefusedError, PermissionError, OSError):
                        refused += 1
                show(port=port, refused=refused)
        """, family, address, user=who)
    assert result.shown == [{"port": 9999, "refused": 5}, {"port": 123, "refused": 3}], result
    nothing_left(capture, lab)
    counts = {}
    for record in result.of("drop"):
        assert (record["proto"], record["reason"]) == ("udp", "udp"), record
        key = (record["dst"], record["port"])
        counts[key] = counts.get(key, 0) + record["count"]
    assert counts == {(address, 9999): 5, (address, 123): 3}, result


def test_flood_is_counted_exactly(lab, who):
    """Most packets of a flood are never looked at one by one, and the counts on record add up all the same."""
    with lab.capture() as capture:
        result = lab.python([], """
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sent = 0
            for number in range(20_000):
                try:
                    sock.sendto(b"flood", (sys.argv[1], 1000 + number % 3000))
                    sent += 1
                except OSError:
                    pass
            # Where the queue to the other end of the link is full, the link throws them away.
            with open("/proc/net/dev") as links:
                lost = [int(line.split()[12]) for line in links if "eth0:" in line][0]
            show(sent=sent - lost)
        """, v4("raw"), user=who)
    nothing_left(capture, lab)
    drops = [record for record in result.of("drop") if record["reason"] == "udp"]
    assert sum(record["count"] for record in drops) == result.shown[0]["sent"], result.err
    assert result.one("end")["drops"] == result.shown[0]["sent"]


@pytest.mark.parametrize("url,flag", [
    ("https://bad.test/hello", "--allow bad.test"), ("http://bad.test/hello", "--allow bad.test"),
    ("http://ok.test:8080/hello", "--allow ok.test:8080"), (f"http://{v4('web')}/hello", f"--allow {v4('web')}:80"),
])
def test_the_flag_that_would_allow_it_does(lab, url, flag):
    """The summary names a flag; with exactly that one the same command works."""
    denied = lab.netgate(["--allow", "ok.test"] if "8080" in url else [], ["curl", "-sS", "-f", url])
    assert denied.rc != 0 and f"to allow: {flag}" in denied.err, denied
    allowed = lab.netgate(flag.split(), ["curl", "-sS", "-f", url])
    assert allowed.rc == 0 and allowed.out.startswith("hello from "), allowed


def test_quic(lab, who):
    """UDP to 443 has a reason of its own."""
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.settimeout(TIMEOUT)
            sock.connect(("ok.test", 443))
            sock.send(bytes([0xc3, 0, 0, 0, 1]) + bytes(1195))
            try:
                sock.recv(100)
            except OSError as error:
                show(errno=error.errno)
        """, user=who)
    nothing_left(capture, lab)
    drop = result.one("drop", reason="quic")
    assert drop["count"] == 1 and drop["proto"] == "udp", result
    assert result.shown[0]["errno"] in (111, 113, 13), result


def test_icmp(lab, who):
    """The sandbox can't even make an ICMP socket, or its echo request is dropped and counted; none leaves."""
    with lab.capture() as capture:
        result = lab.netgate(["--allow", "ok.test"], ["ping", "-c", "2", "-i", "0.2", "-W", "1", v4("raw")], user=who)
    assert result.rc not in (0, 125), result
    nothing_left(capture, lab)
    sent = sum(record["count"] for record in result.of("drop", proto="icmp"))
    assert sent == (0 if "permitted" in result.err else 2), result


def test_raw_and_packet_sockets_are_refused(lab, who):
    result = lab.python(["--allow", "ok.test"], """
        for family, kind, proto in ((socket.AF_INET, socket.SOCK_RAW, 255), (socket.AF_PACKET, socket.SOCK_RAW, 0),
                                    (40, socket.SOCK_STREAM, 0), (38, socket.SOCK_SEQPACKET, 0)):
            try:
                socket.socket(family, kind, proto)
                show(error="none")
            except OSError as error:
                show(error=error.strerror)
    """, user=who)
    assert "none" not in [seen["error"] for seen in result.shown[:3]], result


def test_bogus_destinations(lab, who):
    """Loopback, multicast, link-local and broadcast addresses of the world outside the sandbox."""
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], """
            for address, port in (("224.0.0.251", 5353), ("255.255.255.255", 9), ("169.254.1.1", 53000)):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                try:
                    sock.sendto(b"x", (address, port))
                    show(sent=address)
                except OSError as error:
                    show(refused=address)
        """, user=who)
    nothing_left(capture, lab)
    sent = [seen["sent"] for seen in result.shown if "sent" in seen]
    recorded = sum(record["count"] for record in result.of("drop"))
    assert recorded == len(sent), result


def test_the_host_itself_is_out_of_reach(lab, who):
    """Services on the host's own addresses, loopback and router included."""
    lab.dns.add("self.test", a=["203.0.114.2"])
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test", "--allow", "loopback.test", "--allow", "self.test"], """
            for name in ("loopback.test", "self.test"):
                (status, headers, _), = http(name, 80, b"GET / HTTP/1.1\\r\\nHost: " + name.encode() + b"\\r\\n\\r\\n")
                show(status=status, reason=headers.get("x-netgate-reason"))
        """, user=who)
    assert result.shown == [{"status": 403, "reason": "private_address"}] * 2, result
    assert not [packet for packet in capture.packets if packet.proto == "tcp"]


def test_proxy_variables_of_the_host_are_not_passed_on(lab, who):
    """They name what is out of reach here, and the gate needs none."""
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "https://ok.test/hello"], user=who,
                         env={"https_proxy": "http://127.0.0.1:3128", "ALL_PROXY": "socks5://127.0.0.1:1080"})
    assert result.out == "hello from ok.test\n", result

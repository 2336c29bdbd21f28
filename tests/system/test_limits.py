# SPDX-License-Identifier: Apache-2.0
"""What a job may use up: upload to the byte, open and new connections, names, idle time; and all of it on record."""

import os
import signal
import subprocess
from datetime import datetime

import pytest

from lab import v4, wait_for

SERVFAIL = 2
CAP = 1_000_000


def refused(result, reason):
    """How many connections a limit refused, singly and summed up."""
    return sum(record.get("count", 1) for record in result.of("decision", reason=reason, verdict="deny"))


def received(lab, due=CAP):
    """What the raw servers got, once it is what is due or more, and every connection is over there too."""
    got = lambda: sum(seen.received for seen in lab.raw.seen)
    wait_for(lambda: got() >= due and all(seen.end for seen in lab.raw.seen), f"{due} bytes at the servers, and the ends of {lab.raw.seen}")
    return got()


@pytest.fixture(scope="module")
def silent_web(whole_lab):
    """post.test takes whatever is sent to its port 80."""
    whole_lab.dns.add("post.test", a=[v4("raw")])
    with whole_lab.raw.listening(whole_lab.inet, whole_lab.raw.mute, v4("raw"), port=80):
        yield


@pytest.mark.parametrize("piece", [1 << 20, 1000], ids=["splice", "copy"])
def test_upload_of_one_connection(lab, who, piece):
    """The server gets exactly the cap and then a reset, so that it can't take it for the whole."""
    result = lab.python(["--allow", "raw.test:9", "--max-upload", "1MB"], """
        end = "none"
        with tcp("raw.test", 9) as sock:
            try:
                for _ in range(4_000_000 // int(sys.argv[1])):
                    sock.sendall(pattern(int(sys.argv[1])))
                end = fate(sock)[0]
            except ConnectionError:
                end = "reset"
        show(end=end)
        show(again=ending("raw.test", 9, b"x"))
    """, str(piece), user=who)
    assert result.shown == [{"end": "reset"}, {"again": "reset"}], result
    assert received(lab) == CAP and [seen.end for seen in lab.raw.seen] == ["reset"]
    close = result.one("close")
    assert (close["up"], close["end"]) == (CAP, "limit_upload"), result
    cut, *later = result.of("decision", reason="limit_upload", verdict="deny")
    # A refused client may try the name's other address too.
    assert cut["conn"] == close["conn"] and 1 <= len(later) <= 2, result
    assert {record["host"] for record in (cut, *later)} == {"raw.test"}
    assert "limit_upload" in result.err, result


def test_upload_of_exactly_the_cap_is_whole(lab):
    result = lab.python(["--allow", "raw.test:9", "--max-upload", "1MB"], """
        with tcp("raw.test", 9) as sock:
            sock.sendall(pattern(1_000_000))
            sock.shutdown(socket.SHUT_WR)
            show(answer=read_all(sock).decode().split()[0])
    """)
    assert result.shown == [{"answer": str(CAP)}], result
    close = result.one("close")
    assert (close["up"], close["end"]) == (CAP, "client") and not result.of("decision", verdict="deny"), result


def test_upload_of_many_connections(lab):
    """It is the job's: many small ones are one large one."""
    result = lab.python(["--allow", "raw.test:9", "--max-upload", "10kB"], """
        ends = []
        for _ in range(20):
            try:
                with tcp("raw.test", 9) as sock:
                    sock.sendall(pattern(999))
                    sock.shutdown(socket.SHUT_WR)
                    ends.append(len(read_all(sock)) > 0)
            except OSError:
                ends.append(False)
        show(ends=ends)
    """)
    assert result.shown == [{"ends": [True] * 10 + [False] * 10}], result
    closes = result.of("close")
    assert [close["up"] for close in closes] == [999] * 10 + [10] and received(lab, 10_000) == 10_000, result
    assert closes[-1]["end"] == "limit_upload"
    assert 10 <= len(result.of("decision", reason="limit_upload", door="transparent")) <= 1 + 2 * 9, result


def test_upload_of_connections_at_once(lab):
    result = lab.python(["--allow", "raw.test:9", "--max-upload", "1MB"], """
        import threading
        def send():
            try:
                with tcp("raw.test", 9) as sock:
                    for _ in range(200):
                        sock.sendall(pattern(10_000))
                    fate(sock)
            except ConnectionError:
                pass
        threads = [threading.Thread(target=send) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    assert sum(close["up"] for close in result.of("close")) == received(lab) == CAP, result


@pytest.mark.parametrize("framing", ["length", "chunked", "small-chunks"])
def test_upload_in_http(lab, silent_web, who, framing):
    """Heads count too; the client is told; what went is exact."""
    result = lab.python(["--allow", "post.test", "--max-upload", "100kB"], """
        head = b"POST / HTTP/1.1\\r\\nHost: post.test\\r\\n"
        if sys.argv[1] == "length":
            data = head + b"Content-Length: 500000\\r\\n\\r\\n" + pattern(500_000)
        else:
            size = 100 if sys.argv[1] == "small-chunks" else 50_000
            data = head + b"Transfer-Encoding: chunked\\r\\n\\r\\n" + (b"%x\\r\\n" % size + bytes(size) + b"\\r\\n") * (500_000 // size)
        with tcp("post.test", 80) as sock:
            sock.sendall(data)
            stream = sock.makefile("rb")
            status, headers, _ = response(stream)
            show(status=status, reason=headers["x-netgate-reason"])
        try:
            status, headers, _ = http("post.test", 80, b"GET / HTTP/1.1\\r\\nHost: post.test\\r\\n\\r\\n")[0]
            show(status=status, reason=headers["x-netgate-reason"])
        except ConnectionError:
            show(status=0)
    """, framing, user=who)
    assert result.shown == [{"status": 403, "reason": "limit_upload"}] * 2, result
    assert received(lab, 100_000) == 100_000
    close = result.one("close")
    assert (close["up"], close["end"]) == (100_000, "limit_upload"), result


def test_head_that_does_not_fit_is_not_sent(lab):
    """What was judged goes out whole or not at all."""
    result = lab.python(["--allow", "ok.test", "--max-upload", "200B"], """
        request = b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n"
        large = b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nX: " + b"x" * 200 + b"\\r\\n\\r\\n"
        for raw in (request, large, request):
            show(status=http("ok.test", 80, raw)[0][0])
        try:
            Tls("ok.test").handshake(tcp("ok.test", 443), at_once)
        except ssl.SSLError as error:
            show(error="ACCESS_DENIED" in str(error).upper())
    """)
    assert result.shown == [{"status": 200}, {"status": 403}, {"status": 200}, {"error": True}], result
    assert [len(request.head) for request in lab.web.requests] == [38, 38] and lab.web.hellos == []
    assert sum(close["up"] for close in result.of("close")) == 76, result


def test_open_connections(lab, who):
    """The third of two at once is reset; when one is over, there is room again."""
    result = lab.python(["--allow", "raw.test:7", "--max-connections", "2"], """
        def is_served(sock):
            try:
                sock.sendall(b"x")
                return sock.recv(1) == b"x"
            except ConnectionError:
                return False
        held = [tcp("raw.test", 7) for _ in range(2)]
        show(served=[is_served(sock) for sock in held])
        show(third=ending("raw.test", 7, b"x"))
        held.pop().close()
        while True:
            try:
                with tcp("raw.test", 7) as sock:
                    if is_served(sock):
                        break
            except ConnectionError:
                pass
        show(again=is_served(held[0]))
    """, user=who)
    assert result.shown == [{"served": [True, True]}, {"third": "reset"}, {"again": True}], result
    denied = result.of("decision", reason="limit_connections")
    assert denied and {record["host"] for record in denied} == {"raw.test"}, result


def test_as_many_connections_as_descriptors(lab, who):
    """
    Tunnels, two descriptors each, up to what netgate may have. One more is reset and on record, and nothing else ends there: the
    gate's DNS answers, over TCP too, and what is open goes on.
    """
    most = 600  # of which some are kept for everything else
    script = """
        held = []
        def is_served(sock):
            sock.sendall(b"\\0")  # nothing that a protocol could begin with
            return sock.recv(1) == b"\\0"
        while True:
            try:
                sock = tcp("raw.test", 7)  # which may be reset before connect() has returned
                is_served(sock)
            except ConnectionError:
                break
            held.append(sock)
        show(held=len(held))
        show(address=socket.gethostbyname("raw.test"))
        with tcp("10.200.0.1", 53) as dns:
            query = dns_query("raw.test")
            dns.sendall(len(query).to_bytes(2, "big") + query)
            show(dns=len(take(dns, int.from_bytes(take(dns, 2), "big"))) > 30)
        show(serve=all(is_served(sock) for sock in held))
        held.pop().close()
        while True:
            try:
                with tcp("raw.test", 7) as sock:
                    show(again=is_served(sock))
                    break
            except ConnectionError:
                pass
    """
    with lab.start(["--allow", "raw.test:7"], lab.script(script), user=who, wrap=["prlimit", f"--nofile={most}:{most}"]) as running:
        result = running.finish()
    held, address, *rest = result.shown
    assert 100 <= held["held"] <= most / 4, result
    assert address["address"].startswith("198.18.") and rest == [{"dns": True}, {"serve": True}, {"again": True}], result
    assert {record["reason"] for record in result.of("decision") if record["verdict"] == "deny"} == {"limit_connections"}, result
    assert len(result.of("close")) >= held["held"] + 1 and not result.of("gap"), result


def test_rate_in_a_flood(lab):
    """Refusals are counted to the last one, and the log does not grow with them."""
    result = lab.python(["--allow", "raw.test:7", "--max-rate", "5/s"], """
        address = socket.gethostbyname("raw.test")
        begun = time.monotonic()
        for _ in range(3000):
            sock = socket.socket()
            try:
                sock.connect((address, 7))
            except ConnectionError:
                pass
            sock.close()
        show(seconds=time.monotonic() - begun)
    """)
    # netgate may still be at work on the last of them when the script has made it.
    times = [datetime.fromisoformat(record["time"].replace("Z", "+00:00")) for record in result.records]
    seconds = max(result.shown[0]["seconds"], (times[-1] - times[0]).total_seconds())
    admitted = {record["conn"] for record in result.of("decision", door="transparent")
                if record["reason"] != "limit_rate" and "conn" in record}
    assert 5 <= len(admitted) <= 5 * (seconds + 3), (seconds, result)
    end = result.one("end")
    assert refused(result, "limit_rate") + len(admitted) == end["accepts"] >= 3000, result
    sums = [record for record in result.of("decision", reason="limit_rate") if "count" in record]
    assert 1000 <= len(result.of("decision", reason="limit_rate")) - len(sums) <= 1001 + seconds + 2, result
    assert 1 <= len(sums) <= seconds + 3 and {record["host"] for record in sums} == {"raw.test"}, result
    assert "limit_rate" in result.err


def test_names(lab, who):
    """Each name counts once, looked up or only connected to; one above is not looked up anywhere."""
    result = lab.python(["--allow", "*.wild.test", "--allow", "ok.test", "--max-names", "2"], """
        for name in ("x.wild.test", "x.wild.test", "ok.test", "a_b.wild.test"):
            show(rcode=dns_read(dns_udp(dns_query(name)))["rcode"])
        for name in ("ok.test", "secret.wild.test"):
            raw = b"GET /hello HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % name.encode()
            status, headers, _ = http(sys.argv[1], 80, raw)[0]
            show(status=status, reason=headers.get("x-netgate-reason"))
    """, v4("web"), user=who)
    assert result.shown == [{"rcode": 0}] * 3 + [{"rcode": SERVFAIL}, {"status": 200, "reason": None},
                                                 {"status": 403, "reason": "limit_names"}], result
    assert [record["host"] for record in result.of("decision", reason="limit_names")] == ["a_b.wild.test", "secret.wild.test"]
    assert {query.name for query in lab.dns.queries} <= {"ok.test"}


def test_requests_in_one_turn(lab):
    """The second of two requests that netgate sees at the same time has what the first one left, which is not enough for its head: nothing of it is sent."""
    request = b"GET /hello HTTP/1.1\r\nHost: ok.test\r\n\r\n"
    script = lab.script(f"""
        kept = [tcp("ok.test", 80) for _ in range(2)]
        for sock in kept:
            sock.sendall({request})
            read_until(sock, b"hello from ok.test\\n")
        show(ready=True)
        sys.stdin.readline()
        for sock in kept:
            sock.sendall({request})
        show(sent=True)
        show(codes=[read_until(sock, b"\\r\\n").decode().split()[1] for sock in kept])
    """)
    with lab.start(["--allow", "ok.test", "--max-upload", f"{3 * len(request) + 10}B"], script, stdin=subprocess.PIPE) as running:
        running.next()
        proxies = [pid for pid, name in running.processes().items() if name == "netgate" and pid != running.process.pid]
        for pid in proxies:
            os.kill(pid, signal.SIGSTOP)
        try:
            running.ask()
        finally:
            for pid in proxies:
                os.kill(pid, signal.SIGCONT)
        (shown,) = running.finish().shown
    assert shown == {"codes": ["200", "403"]} or shown == {"codes": ["403", "200"]}
    assert sorted(record["up"] for record in running.records if record["type"] == "close") == [len(request), 2 * len(request)]
    assert [(record["verdict"], record["reason"]) for record in running.records if record["type"] == "decision" and "conn" in record] == [("allow", "rule")] * 3 + [("deny", "limit_upload")]


@pytest.mark.parametrize("port", [7, 80])
def test_idle(lab, who, port):
    """Ends what does not move, and only that."""
    result = lab.python(["--allow", "raw.test:7", "--allow", "ok.test", "--idle", "3s"], """
        port = int(sys.argv[1])
        data, answer = (b"x", b"x") if port == 7 else (b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n", b"hello from ok.test\\n")
        with tcp("raw.test" if port == 7 else "ok.test", port) as sock:
            begun = moved = time.monotonic()
            while moved < begun + 5:
                moved = time.monotonic()
                sock.sendall(data)
                read_until(sock, answer)
            show(end=fate(sock)[0], idle=time.monotonic() - moved)
    """, str(port), user=who)
    (shown,) = result.shown
    assert shown["end"] in ("reset", "eof") and shown["idle"] > 2.9, result
    assert result.one("close")["end"] == "idle", result


def test_policy_file(lab):
    """The same in a file; of the file's and the flag's the smaller one counts. Its time limit is the command's."""
    path = f"{lab.folder}/limits.yaml"
    with open(path, "w") as out:
        out.write("version: 1\nallow: [raw.test:9]\nlimits:\n  upload: 5kB\n  duration: 5s\n")
    result = lab.python(["--policy", path, "--max-upload", "6kB"], """
        with tcp("raw.test", 9) as sock:
            sock.sendall(pattern(8000))
            show(end=fate(sock)[0])
        while True:
            time.sleep(1)
    """)
    assert result.rc == 124 and result.shown == [{"end": "reset"}], result
    assert result.one("close")["up"] == received(lab, 5000) == 5000, result


# ---- limits of single rules ----

INSIDE = """
GATE = "10.200.0.1"

def reach(door, name, port):
    if door == "transparent":
        return tcp(name, port)
    sock = tcp(GATE, 3128)
    if door == "connect":
        sock.sendall(f"CONNECT {name}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
        assert b" 200 " in read_until(sock, b"\\r\\n\\r\\n")
    else:
        sock.sendall(b"\\5\\1\\0" + struct.pack("!BBBBB", 5, 1, 0, 3, len(name)) + name.encode() + struct.pack("!H", port))
        answer = take(sock, 12)
        if answer[3]:
            raise ConnectionResetError(answer)
    return sock

def is_served(sock):
    try:
        sock.sendall(b"\\0") # no word of HTTP's
        return sock.recv(1) == b"\\0"
    except ConnectionError:
        return False

"""


def policy(lab, text, name="rules.yaml"):
    path = f"{lab.folder}/{name}"
    with open(path, "w") as out:
        out.write("version: 1\n" + text)
    return ["--policy", path]


@pytest.mark.parametrize("door", ["transparent", "connect", "socks5"])
@pytest.mark.parametrize("piece", [1 << 20, 1000], ids=["splice", "copy"])
def test_upload_of_a_rule(lab, piece, door):
    """To the byte, over several connections; the record names the rule. Others have the rest of the job's."""
    args = policy(lab, "allow:\n  - {host: raw.test, ports: [9], limits: {upload: 1MB}}\n  - banner.test:9\n"
                       "limits: {upload: 1500kB}\n")
    result = lab.python(args, INSIDE + """
for name, count in (("raw.test", 300_000), ("raw.test", 4_000_000), ("banner.test", 4_000_000)):
    with reach(sys.argv[2], name, 9) as sock:
        try:
            for at in range(0, count, int(sys.argv[1])):
                sock.sendall(pattern(min(int(sys.argv[1]), count - at)))
            sock.shutdown(socket.SHUT_WR)
            fate(sock)
        except ConnectionError:
            pass
""", str(piece), door)
    closes = result.of("close")
    assert [(close["host"], close["up"]) for close in closes if close["up"]] == [
        ("raw.test", 300_000), ("raw.test", 700_000), ("banner.test", 500_000)], result
    assert received(lab, 1_500_000) == 1_500_000
    cuts = result.of("decision", reason="limit_upload", verdict="deny", door=door)
    assert [(cut["host"], cut.get("rule")) for cut in cuts] == [
        ("raw.test", args[1] + ":3"), ("banner.test", None)], result


def test_upload_of_a_rule_in_http(lab, silent_web):
    """A head that does not fit is not sent, a body is cut to the byte; on one connection of the front door each host has its own."""
    args = policy(lab, "allow:\n  - {host: post.test, limits: {upload: 100kB}}\n  - {host: ok.test, limits: {upload: 200B}}\n")
    result = lab.python(args, """
        def ask(raw):
            with tcp("10.200.0.1", 3128) as sock:
                sock.sendall(raw)
                return response(sock.makefile("rb"))
        get = b"GET http://ok.test/hello HTTP/1.1\\r\\nHost: ok.test\\r\\n"
        with tcp("10.200.0.1", 3128) as sock:
            stream = sock.makefile("rb")
            for raw in (get + b"\\r\\n", get + b"X: " + b"x" * 200 + b"\\r\\n\\r\\n"):
                sock.sendall(raw)
                status, headers, _ = response(stream)
                show(status=status, reason=headers.get("x-netgate-reason"))
        status, headers, _ = ask(b"POST http://post.test/ HTTP/1.1\\r\\nHost: post.test\\r\\nContent-Length: 500000\\r\\n\\r\\n" + bytes(500_000))
        show(status=status, reason=headers.get("x-netgate-reason"))
        show(status=ask(get + b"\\r\\n")[0])
    """)
    assert result.shown == [{"status": 200, "reason": None}, {"status": 403, "reason": "limit_upload"},
                            {"status": 403, "reason": "limit_upload"}, {"status": 200}], result
    assert received(lab, 100_000) == 100_000
    assert [record["rule"] for record in result.of("decision", reason="limit_upload")] == [args[1] + ":4", args[1] + ":3"], result


@pytest.mark.parametrize("door", ["transparent", "connect", "socks5"])
def test_open_connections_of_a_rule(lab, door):
    """The third of two; another rule's are not counted; what is over makes room."""
    args = policy(lab, "allow:\n  - {host: raw.test, ports: [7], limits: {connections: 2}}\n  - banner.test:7\n")
    result = lab.python(args, INSIDE + """
def third():
    try:
        return is_served(reach(sys.argv[1], "raw.test", 7))
    except (ConnectionError, AssertionError, EOFError):
        return False
held = [reach(sys.argv[1], "raw.test", 7) for _ in range(2)]
other = [reach(sys.argv[1], "banner.test", 7) for _ in range(4)]
show(served=[is_served(sock) for sock in held + other])
show(third=third())
held.pop().close()
while not third():
    pass
show(again=is_served(held[0]))
""", door)
    assert result.shown == [{"served": [True] * 6}, {"third": False}, {"again": True}], result
    denied = result.of("decision", reason="limit_connections")
    assert denied and {(record["host"], record["rule"]) for record in denied} == {("raw.test", args[1] + ":3")}, result


def test_a_connection_counts_once(lab):
    """Requests that one rule decides, over one connection of the front door and to several hosts; then another rule's."""
    args = policy(lab, "allow:\n  - {host: \"*.wild.test\", limits: {connections: 1, rate: 1/s}}\n"
                       "  - {host: ok.test, limits: {connections: 1}}\n")
    result = lab.python(args, """
        def get(sock, host):
            sock.sendall(f"GET http://{host}/hello HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
            return response(sock.makefile("rb"))[0]
        one, two = tcp("10.200.0.1", 3128), tcp("10.200.0.1", 3128)
        show(one=[get(one, host) for host in ("x.wild.test", "x.wild.test", "a_b.wild.test", "x.wild.test")])
        show(two=get(two, "x.wild.test"))
        two = tcp("10.200.0.1", 3128)
        show(ok=get(two, "ok.test"))
        show(move=get(one, "ok.test"))
        one = tcp("10.200.0.1", 3128)
        two.close()
        begun = time.monotonic()
        while get(one, "ok.test") != 200:
            one = tcp("10.200.0.1", 3128)
            assert time.monotonic() < begun + 60
        show(moved=get(tcp("10.200.0.1", 3128), "ok.test"))
    """)
    assert result.shown == [{"one": [200] * 4}, {"two": 403}, {"ok": 200}, {"move": 403}, {"moved": 403}], result


def test_rate_of_a_rule(lab):
    args = policy(lab, "allow:\n  - {host: raw.test, ports: [7], limits: {rate: 5/s}}\n  - banner.test:7\n")
    result = lab.python(args, """
        begun = time.monotonic()
        for name in ("raw.test", "banner.test"):
            address = socket.gethostbyname(name)
            served = 0
            for _ in range(60):
                try:
                    with tcp(address, 7) as sock:
                        sock.sendall(b"\\0") # no word of HTTP's
                        served += sock.recv(1) == b"\\0"
                except ConnectionError:
                    pass
            show(served=served, seconds=time.monotonic() - begun)
    """)
    raw, banner = result.shown
    assert 5 <= raw["served"] <= 5 * (raw["seconds"] + 2) and banner["served"] == 60, result
    denied = result.of("decision", reason="limit_rate", door="transparent")
    assert len(denied) + raw["served"] == 60 and {record["rule"] for record in denied} == {args[1] + ":3"}, result


def test_names_of_a_rule(lab):
    """Distinct names below a wildcard; the job's other names are left alone, and the rule's first ones stay usable."""
    args = policy(lab, "allow:\n  - {host: \"*.wild.test\", limits: {names: 2}}\n  - ok.test\n")
    result = lab.python(args, """
        for name in ("x.wild.test", "a_b.wild.test", "x.wild.test", "third.wild.test", "ok.test"):
            show(rcode=dns_read(dns_udp(dns_query(name)))["rcode"])
        for name in ("x.wild.test", "fourth.wild.test", "ok.test"):
            raw = b"GET /hello HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % name.encode()
            show(status=http(sys.argv[1], 80, raw)[0][0])
    """, v4("web"))
    assert result.shown == [{"rcode": code} for code in (0, 0, 0, SERVFAIL, 0)] + [
        {"status": 200}, {"status": 403}, {"status": 200}], result
    assert [(record["host"], record["rule"]) for record in result.of("decision", reason="limit_names")] == [
        ("third.wild.test", args[1] + ":3"), ("fourth.wild.test", args[1] + ":3")], result


def test_idle_of_a_rule(lab):
    """The rule's connection ends, the other one goes on."""
    args = policy(lab, "allow:\n  - {host: raw.test, ports: [7], limits: {idle: 1s}}\n  - banner.test:7\n")
    result = lab.python(args, INSIDE + """
other = tcp("banner.test", 7)
with tcp("raw.test", 7) as sock:
    show(served=is_served(sock))
    begun = time.monotonic()
    show(end=fate(sock)[0], idle=time.monotonic() - begun)
show(served=is_served(other))
""")
    assert [shown.get("served") for shown in result.shown] == [True, None, True], result
    assert 0.9 < result.shown[1]["idle"] < 30, result
    assert [(close["host"], close["end"]) for close in result.of("close")] == [("raw.test", "idle"), ("banner.test", "client")], result


def test_second_hello_counts_for_the_rule(lab):
    """An address rule first, then the name in the hello: both rules' limits, one after the other."""
    args = policy(lab, f"allow:\n  - {{cidr: {v4('web')}/32, ports: [8443], limits: {{upload: 1MB}}}}\n"
                       "  - {host: ok.test, ports: [8443], limits: {upload: 100B}}\n")
    result = lab.python(args, """
        for name in ("ok.test", "other.test"):
            try:
                sock = tcp(sys.argv[1], 8443)
                Tls(name).handshake(sock, at_once)
                show(end="made")
            except (ssl.SSLError, ConnectionError) as error:
                show(end=str(getattr(error, "reason", "reset")))
    """, v4("web"))
    assert [shown["end"] for shown in result.shown] == ["TLSV1_ALERT_ACCESS_DENIED", "made"], result
    denied = result.one("decision", reason="limit_upload")
    assert (denied["host"], denied["rule"]) == ("ok.test", args[1] + ":4"), result


def test_limits_on_record(lab):
    """The start record has the job's, as a policy says them."""
    args = policy(lab, "allow: [ok.test]\nlimits: {upload: 5000kB, names: 7}\n")
    result = lab.netgate([*args, "--timeout", "100", "--max-upload", "6MB"], ["true"])
    assert result.one("start")["limits"] == {"upload": "5MB", "names": "7", "duration": "1m40s"}, result
    assert "limits" not in lab.netgate(["--allow", "ok.test"], ["true"]).one("start")


def test_one_job_does_not_starve_another(lab):
    """A flood in one sandbox; ten attempts in another one all are made, and all are on record. How long they take is held against ten without the flood."""
    attempts = """
        for number in range(10):
            begun = time.monotonic()
            show(status=http("ok.test", 80, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")[0][0],
                 ms=(time.monotonic() - begun) * 1000)
    """
    usual = lab.python(["--allow", "ok.test"], attempts)
    middle = lambda result: sorted(shown["ms"] for shown in result.shown)[5]
    with lab.start(["--allow", "raw.test:7", "--max-rate", "5/s"], lab.script("""
        address = socket.gethostbyname("raw.test")
        show(ready=True)
        while True:
            sock = socket.socket()
            try:
                sock.connect((address, 7))
            except ConnectionError:
                pass
            sock.close()
    """)) as flood:
        assert flood.next() == {"ready": True}
        result = lab.python(["--allow", "ok.test"], attempts)
    assert [shown["status"] for shown in result.shown] == [200] * 10, result
    assert middle(result) < 500 + 20 * middle(usual), (usual, result)
    assert len(result.of("decision", door="transparent", verdict="allow")) == len(result.of("close")) == 10, result

# SPDX-License-Identifier: Apache-2.0
"""The audit log: every attempt is in it, before it has any effect, without a hole, and nothing in it can be forged."""

import hashlib
import json
import os
import subprocess
from datetime import datetime

import pytest

from lab import read_log, v4, wait_for


def check_log(path):
    """`seq` counts from its first value without a hole, each line is a record, and the lines chain to the head in `end`."""
    with open(path, "rb") as log:
        lines = log.read().split(b"\n")
    assert lines.pop() == b"", "the last line is complete"
    head = hashlib.sha256(b"").digest()
    records = []
    for line in lines:
        record = json.loads(line.decode("utf-8"))
        assert all(byte >= 0x20 for byte in line)
        assert {"v", "seq", "time", "job", "type"} <= set(record), record
        if record["type"] == "end":
            assert record["head"] == head.hex()
        head = hashlib.sha256(head + line).digest()
        records.append(record)
    first = records[0]["seq"]
    assert [record["seq"] for record in records] == list(range(first, first + len(records)))
    assert records[0]["type"] == "start" and records[-1]["type"] == "end"
    return records


def test_shape(lab, who):
    result = lab.netgate(["--allow", "ok.test", "--job", "nightly-42"],
                         ["sh", "-c", "curl -sS https://ok.test/hello; curl -sS https://bad.test/"], user=who)
    records = check_log(result.log)
    assert {record["job"] for record in records} == {"nightly-42"}
    start, end = records[0], records[-1]
    assert start["mode"] == "enforce" and start["rules"] == 1 and start["command"][:2] == ["sh", "-c"]
    assert start["uid"] == (who.uid if who else 0)
    assert end["exit"] == 6 and end["allowed"] == 1 and end["connections"] == 1 and end["lost"] == 0
    assert end["syns"] == end["accepts"]
    times = [record["time"] for record in records]
    assert times == sorted(times)


def test_the_decision_comes_before_any_effect(lab):
    """The record's time is before the look-up's first packet, and that before the dial's."""
    with lab.capture() as capture:
        result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "http://ok.test/hello"])
    assert result.rc == 0, result
    decision = result.one("decision", door="transparent")
    at = datetime.fromisoformat(decision["time"].replace("Z", "+00:00")).timestamp()
    query = min(packet.time for packet in capture.packets if packet.dport == 53)
    syn = min(packet.time for packet in capture.packets if packet.proto == "tcp")
    assert at < query < syn
    order = [(record["type"], record.get("door")) for record in result.records]
    assert order.index(("decision", "transparent")) < order.index(("dial", None)) < order.index(("close", None))


def test_every_attempt(lab, who):
    """Twelve attempts of all sorts: as many records, each of the right kind."""
    lab.dns.add("gone.test", rcode=3)
    result = lab.python(["--allow", "ok.test", "--allow", "raw.test:9", "--allow", "gone.test"], """
        web = sys.argv[1]

        def reset(sock):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

        reset(tcp(web, 443))                                     # 1 connect and reset
        tcp(web, 443).close()                                    # 2 connect and close
        with tcp(web, 443) as sock:                              # 3 half a hello
            sock.sendall(Tls("bad.test").hello()[:40])
        with tcp(web, 443) as sock:                              # 4 a denied name
            sock.sendall(Tls("bad.test").hello())
            fate(sock)
        with tcp(web, 80) as sock:                               # 5 a denied Host
            sock.sendall(b"GET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
            fate(sock)
        ending(web, 22)                                          # 6 no name at all
        dns_udp(dns_query("bad.test"))                           # 7 a denied look-up
        http("ok.test", 80, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n")  # 8 an allowed look-up or two, and
        http("gone.test", 80, b"GET / HTTP/1.1\\r\\nHost: gone.test\\r\\n\\r\\n")  # 9 a dial that fails
        with tcp("raw.test", 9) as sock:                         # 10 allowed by port
            sock.sendall(b"x")
        with tcp("ok.test", 443) as sock:                        # 11 a handshake that the client gives up
            sock.sendall(Tls("ok.test").hello())
            sock.recv(1)
        with tcp("ok.test", 443) as sock:                        # 12 not TLS
            sock.sendall(b"SSH-2.0-client\\r\\n")
            fate(sock)
    """, v4("web"), user=who)
    assert result.rc == 0, result
    check_log(result.log)
    decisions = result.of("decision", door="transparent")
    assert len({record["conn"] for record in decisions}) == 11, result
    found = [(record["verdict"], record["reason"]) for record in decisions]
    denials = ["client_gone"] * 3 + ["not_allowed"] * 2 + ["no_name", "not_tls"]
    assert sorted(reason for verdict, reason in found if verdict == "deny") == sorted(denials), result
    assert [verdict for verdict, _ in found].count("allow") == 4
    assert len(result.of("close")) == 4
    assert [record["outcome"] for record in result.of("dial", host="gone.test")] == ["dns_failed"]
    assert len(result.of("decision", door="dns", host="bad.test")) == 1
    end = result.one("end")
    assert end["accepts"] == 11 and end["syns"] == 11, result


@pytest.mark.parametrize("length", [63, 253])
def test_long_names_are_whole(lab, length):
    name = ("a" * 63 + ".") * 3 + "b" * 61 if length == 253 else "n" * 58 + ".test"
    assert len(name) == length
    result = lab.python([], """
        with tcp(sys.argv[2], 443) as sock:
            sock.sendall(Tls(sys.argv[1]).hello())
            fate(sock)
    """, name, v4("web"))
    assert result.one("decision", door="transparent")["host"] == name, result


FORGERIES = [b'x"}\n{"v":1,"seq":9,"type":"end"}\n', b"\x1b[2J\x1b]0;title\x07", b"a\r\nb", b"\\u0000\\", b"\xff\xfe\x80", b"\0nul",
             "ünï.test".encode(), b"y" * 250]


@pytest.mark.parametrize("raw", FORGERIES, ids=range(len(FORGERIES)))
def test_forging(lab, raw):
    """Bytes that look like records or terminal commands: still a line an event, and nothing raw on the terminal."""
    result = lab.python(["--verbose"], """
        raw = bytes.fromhex(sys.argv[1])
        server_name = bytes([0]) + len(raw).to_bytes(2, "big") + raw
        extension = b"\\0\\0" + (len(server_name) + 2).to_bytes(2, "big") + len(server_name).to_bytes(2, "big") + server_name
        body = b"\\3\\3" + bytes(32) + b"\\0" + b"\\0\\2\\x13\\1" + b"\\1\\0" + len(extension).to_bytes(2, "big") + extension
        handshake = b"\\1" + len(body).to_bytes(3, "big") + body
        with tcp(sys.argv[2], 443) as sock:
            sock.sendall(b"\\x16\\3\\1" + len(handshake).to_bytes(2, "big") + handshake)
            fate(sock)
        with tcp(sys.argv[2], 80) as sock:
            sock.sendall(b"GET /" + raw + b" HTTP/1.1\\r\\nHost: " + raw + b"\\r\\n\\r\\n")
            fate(sock)
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.sendto(dns_query("x.test") + raw, (dns_server(), 53))
        sock.sendto(struct.pack("!6H", 7, 256, 1, 0, 0, 0) + bytes([min(len(raw), 63)]) + raw[:63] + b"\\0\\0\\1\\0\\1", (dns_server(), 53))
        dns_udp(dns_query("last.test"))
    """, raw.hex(), v4("web"))
    assert result.rc == 0, result
    records = check_log(result.log)
    assert all(record["verdict"] == "deny" for record in records if record["type"] == "decision"), result
    assert len({record["conn"] for record in records if record.get("door") == "transparent"}) == 2, result
    assert all(character.isprintable() or character == "\n" for character in result.err), repr(result.err)


def test_log_to_standard_output(lab, who):
    result = lab.netgate(["--allow", "ok.test", "--log", "-"], ["true"], log=None, user=who)
    kinds = [record["type"] for record in result.shown]
    assert kinds == ["start", "end"], result


def test_default_place(lab, who):
    """A private file in the state directory (/var/log/netgate for root), whose path is printed."""
    mounts = lab.host.mounts(tmpfs={"/var/log": "16m"})
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "https://ok.test/hello"], log=None, user=who, mounts=mounts)
    (path,) = [line.split()[2] for line in result.err.splitlines() if line.startswith("netgate: log: ")]
    assert os.path.dirname(path) == (f"{lab.state(who)}/netgate" if who else "/var/log/netgate"), result
    shown = subprocess.run(["nsenter", f"--mount={mounts.path}", "sh", "-c", 'stat -c "%a %u" "$1" && cat "$1"', "sh", path],
                           capture_output=True, check=True, timeout=60).stdout
    mode, _, text = shown.partition(b"\n")
    assert mode.decode() == f"600 {who.uid if who else 0}"
    copy = os.path.join(lab.folder, "copy.jsonl")
    with open(copy, "wb") as out:
        out.write(text)
    check_log(copy)


def test_log_is_appended(lab):
    path = os.path.join(lab.folder, "twice.jsonl")
    for _ in range(2):
        assert lab.netgate([], ["true"], log=path).rc == 0
    assert [record["type"] for record in read_log(path)] == ["start", "end"] * 2


@pytest.mark.parametrize("path", ["/proc/version", "/nonexistent/log", "/dev/full", "."])
def test_unusable_log(lab, path):
    """No log, no job: the command does not start."""
    result = lab.netgate(["--allow", "ok.test"], ["echo", "started"], log=path)
    assert (result.rc, result.out) == (125, ""), result
    assert result.err.startswith("netgate: ") and "log" in result.err, result


def test_log_is_out_of_reach(lab, who):
    """The command can neither read nor write its own log or the folder it lies in."""
    result = lab.netgate([], ["sh", "-c", 'ls -l "$XDG_STATE_HOME"; cat "$XDG_STATE_HOME"/*; echo x >>"$1"', "sh", "LOG"],
                         user=who)
    assert '"type"' not in result.out, result
    check_log(result.log)


def test_full_disk(lab):
    """When the log can't grow, nothing new is allowed; when it can again, records say how many are missing."""
    mounts = lab.host.mounts(tmpfs={"/mnt": "256k"})
    inside = ["nsenter", f"--mount={mounts.path}"]
    script = """
        address = socket.gethostbyname("ok.test")
        for line in sys.stdin:
            with tcp(address, 80) as sock:
                sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n")
                status, headers, _ = response(sock.makefile("rb"))
                show(status=status, reason=headers.get("x-netgate-reason"))
    """
    with lab.start(["--allow", "ok.test"], lab.script(script), log="/mnt/log", mounts=mounts,
                   stdin=subprocess.PIPE) as running:
        assert running.ask()["status"] == 200
        subprocess.run([*inside, "sh", "-c", "cat /dev/zero >/mnt/filler"], stderr=subprocess.DEVNULL, timeout=60)
        statuses = []
        while not statuses or statuses[-1]["status"] == 200:
            statuses.append(running.ask())
            assert len(statuses) < 3000, "the log grows without end on a full disk"
        served = len(lab.web.requests)
        assert statuses[-1]["reason"] == "log_unavailable"
        assert running.ask()["reason"] == "log_unavailable"
        assert len(lab.web.requests) == served, "nothing leaves without a record"
        subprocess.run([*inside, "rm", "/mnt/filler"], check=True, timeout=60)
        assert running.ask()["status"] == 200
        text = subprocess.run([*inside, "cat", f"/proc/{running.process.pid}/root/mnt/log"], capture_output=True,
                              timeout=60).stdout
        result = running.finish()
    assert result.rc == 0, result
    records = [json.loads(line) for line in text.decode().splitlines()]
    assert [record["seq"] for record in records] == list(range(records[0]["seq"], records[0]["seq"] + len(records)))
    gaps = [record for record in records if record["type"] == "gap"]
    assert sum(record["lost"] for record in gaps) >= 2, gaps
    allowed = [record for record in records if record["type"] == "decision" and record.get("door") == "transparent"
               and record["verdict"] == "allow"]
    assert len(allowed) >= len(lab.web.requests)


def test_full_disk_in_full(lab):
    """What ends and what goes on while nothing can be recorded: every attempt is a denial, an open connection is left alone, all is counted."""
    mounts = lab.host.mounts(tmpfs={"/mnt": "3m"})
    inside = ["nsenter", f"--mount={mounts.path}"]
    script = """
        address = socket.gethostbyname("ok.test")
        echo = tcp("raw.test", 7)
        kept = tcp(address, 80).makefile("rwb")

        def ask(stream):
            stream.write(b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
            stream.flush()
            status, headers, _ = response(stream)
            return status, headers.get("x-netgate-reason")

        def new():
            with tcp(address, 80) as sock:
                return ask(sock.makefile("rwb"))

        def name(name):
            return dns_read(dns_udp(dns_query(name)))["rcode"]

        for line in sys.stdin:
            echo.sendall(b"still here\\n")
            show(kept=ask(kept) if line == "all\\n" else None, echo=read_until(echo, b"\\n").decode(), new=new(), denied=name("bad.test"),
                 allowed=name("ok.test"), other=ending(sys.argv[1], 22))
    """
    with lab.start(["--allow", "ok.test", "--allow", "raw.test:7"], lab.script(script, v4("web")), log="/mnt/log", mounts=mounts,
                   stdin=subprocess.PIPE) as running:
        before = running.ask("all")
        assert before == {"kept": [200, None], "echo": "still here\n", "new": [200, None], "denied": 3, "allowed": 0, "other": "reset"}
        subprocess.run([*inside, "sh", "-c", "cat /dev/zero >/mnt/filler"], stderr=subprocess.DEVNULL, timeout=60)
        for _ in range(3000):  # what had been reserved is used up
            if (seen := running.ask("some"))["new"] != [200, None] and seen["allowed"] != 0:
                break
        served, looked_up = len(lab.web.requests), len(lab.dns.queries)
        full = [running.ask("some") for _ in range(3)]
        kept = running.ask("all")["kept"]
        assert kept == [503, "log_unavailable"], kept
        for seen in full:
            assert seen["new"] == [503, "log_unavailable"] and seen["echo"] == "still here\n" and seen["other"] == "reset", seen
            assert seen["denied"] == seen["allowed"] == 2, seen  # SERVFAIL
        assert (len(lab.web.requests), len(lab.dns.queries)) == (served, looked_up), "nothing leaves without a record"
        subprocess.run([*inside, "rm", "/mnt/filler"], check=True, timeout=60)
        assert running.ask("some")["new"] == [200, None]
        copy = os.path.join(lab.folder, "full.jsonl")
        result = running.finish(b"")
        with open(copy, "wb") as out:
            out.write(subprocess.run([*inside, "cat", "/mnt/log"], capture_output=True, timeout=60).stdout)
    assert result.rc == 0, result
    records = check_log(copy)
    lost = sum(record["lost"] for record in records if record["type"] == "gap")
    assert lost == records[-1]["lost"] > 0, records[-1]
    assert f"netgate: {lost} records could not be written to the log\n" in result.err, result
    assert result.err.count("the log can't be written (No space left on device): nothing new is allowed until it can") == 1, result
    # Each allowed request that was served is on record. The disk may be full between a decision and its dial, which then is not made.
    dialled = {record["conn"] for record in records if record["type"] == "dial" and record["outcome"] == "connected"}
    allowed = [record for record in records if record["type"] == "decision" and record["verdict"] == "allow" and record["proto"] == "http"]
    assert len([record for record in allowed if record["conn"] in dialled]) == len(lab.web.requests)
    assert len({record["conn"] for record in allowed} - dialled) <= 1, allowed


def test_log_reader_gone(lab):
    """--log - into a pipe whose reader goes away: as with a full disk, and for good; netgate says so at the end."""
    read, write = os.pipe()
    script = """
        address = socket.gethostbyname("ok.test")
        for line in sys.stdin:
            with tcp(address, 80) as sock:
                sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
                status, headers, _ = response(sock.makefile("rb"))
            print(status, headers.get("x-netgate-reason"), file=sys.stderr, flush=True)
    """
    with lab.start(["--allow", "ok.test"], lab.script(script), log="-", stdin=subprocess.PIPE, stdout=write) as running:
        os.close(write)
        running.process.stdin.write(b"\n")
        running.process.stdin.flush()
        assert running.process.stderr.readline() == b"200 None\n"
        os.close(read)
        running.process.stdin.write(b"\n")
        running.process.stdin.flush()
        lines = [running.process.stderr.readline() for _ in range(2)]
        assert sorted(lines) == [b"503 log_unavailable\n", b"netgate: the log can't be written (Broken pipe): nothing new is allowed until it can\n"]
        served = len(lab.web.requests)
        result = running.finish(b"")
    assert served == 1 and result.rc == 125 and "the end of this job could not be recorded" in result.err, result


def test_killed_proxy_leaves_whole_lines(lab):
    """kill -9 of the proxy after a decision: it is in the file."""
    with lab.start(["--allow", "raw.test:4444"], lab.script("""
        sock = tcp("raw.test", 4444)
        sock.sendall(b"\\0")
        show(connected=True)
        fate(sock)
    """)) as running:
        running.next()
        wait_for(lambda: [seen.received for seen in lab.raw.of("mute")] == [1], "the byte")
        os.kill(running.child(), 9)
        result = running.finish()
    assert result.rc == 125, result
    assert result.one("decision", door="transparent")["verdict"] == "allow"


def test_verify(lab):
    """netgate verify: a whole log passes; a changed, removed, added or cut line does not."""
    result = lab.netgate(["--allow", "ok.test"], ["sh", "-c", "curl -sS http://ok.test/hello; curl -s http://bad.test/"])
    netgate = os.path.join(lab.programs(), "netgate")
    good = subprocess.run([netgate, "verify", result.log], capture_output=True, text=True, timeout=60)
    assert good.returncode == 0, good
    with open(result.log) as log:
        lines = log.readlines()
    bad = {"changed": [line.replace("bad.test", "mad.test") for line in lines], "removed": lines[:2] + lines[3:],
           "swapped": lines[:1] + lines[2:3] + lines[1:2] + lines[3:], "cut": lines[:-1] + [lines[-1][:-20]],
           "added": lines[:-1] + [lines[-2], lines[-1]], "end missing": lines[:-1]}
    for what, changed in bad.items():
        path = os.path.join(lab.folder, "changed.jsonl")
        with open(path, "w") as out:
            out.writelines(changed)
        done = subprocess.run([netgate, "verify", path], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0, (what, done)
        assert done.stdout or done.stderr, what


def test_verify_says_what_went_wrong(lab):
    """1 is a broken log; a question that can't be answered is 2. Options stand anywhere, and nothing is said twice."""
    result = lab.netgate(["--allow", "ok.test", "--job", "j"], ["true"])
    netgate = os.path.join(lab.programs(), "netgate")
    with open(result.log) as log:
        lines = log.readlines()
    head = hashlib.sha256(hashlib.sha256(b"").digest() + lines[0].rstrip("\n").encode()).hexdigest()
    broken = os.path.join(lab.folder, "broken.jsonl")
    with open(broken, "w") as out:
        out.writelines([lines[0], lines[1].replace('"seq":2', '"seq":3')])

    def verify(*args):
        return subprocess.run([netgate, "verify", *args], capture_output=True, text=True, timeout=60)

    for args, status in (([result.log], 0), (["--job", "j", result.log, f"--head={head}"], 0), (["--head", head, "--job", "j", result.log], 0),
                         ([result.log, "--head", "0" * 64], 1), ([broken], 1), ([result.log, "--head", "abc"], 2),
                         ([result.log, "--job", "k"], 2), ([result.log, "--nonsense", "x"], 2), ([result.log, result.log], 0), ([], 2),
                         (["/nonexistent"], 2), ([lab.folder], 2), (["--job", "j"], 2)):
        done = verify(*args)
        assert done.returncode == status, (args, done)
        assert bool(done.stderr) == (status == 2), (args, done)
    assert verify(broken).stdout.count("seq 3 where 2 was due") == 1


def summed(records):
    """How many attempts these records stand for."""
    return sum(record.get("count", 1) for record in records)


def test_sums_while_it_runs(lab, tmp_path):
    """Whoever reads the log of a job that still runs sees its floods, too."""
    log = str(tmp_path / "log")
    script = """
        for _ in range(1500):
            dns_udp(dns_query("flood.test"))
        show(asked=1500)
        sys.stdin.readline()
    """
    with lab.start([], lab.script(script), log=log, stdin=subprocess.PIPE) as running:
        assert running.next() == {"asked": 1500}
        wait_for(lambda: sum(record.get("count", 1) for record in read_log(log) if record["type"] == "decision") == 1500, "all of them")
        assert "end" not in {record["type"] for record in read_log(log)}
        result = running.finish(b"\n")
    assert result.rc == 0 and any("count" in record for record in result.of("decision")), result


def test_flood_of_denied_connections(lab):
    """Thousands of refusals: each name is on record, the counts are exact, and the log stays small. What is allowed is there whole."""
    result = lab.python(["--allow", "ok.test"], """
        def denied(host):
            try:
                with tcp(sys.argv[1], 80) as sock:
                    sock.sendall(f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
                    fate(sock)
            except ConnectionError:
                pass
        begun = time.monotonic()
        for number in range(5000):
            denied("flood.test" if number % 50 else f"n{number}.test")
            if number % 500 == 0:
                show(status=http("ok.test", 80, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")[0][0])
        show(seconds=time.monotonic() - begun)
    """, v4("web"))
    *answers, last = result.shown
    assert answers == [{"status": 200}] * 10, result
    denied = result.of("decision", verdict="deny")
    sums = [record for record in denied if "count" in record]
    assert summed(denied) == result.one("end")["denied"] == 5000, result
    assert {record["host"] for record in denied} == {f"n{number}.test" for number in range(0, 5000, 50)} | {"flood.test"}
    assert all(record["host"] == "flood.test" and record["port"] == 80 and "conn" not in record for record in sums), result
    assert 1 <= len(sums) <= last["seconds"] + 3 and len(denied) <= 1001 + 100 + 2 * (last["seconds"] + 3), result
    assert len(result.of("decision", verdict="allow", door="transparent")) == len(result.of("close")) == 10, result
    # Each connection that has a decision has its process; of the others it is counted.
    whose = result.of("process")
    assert summed(whose) <= result.one("end")["accepts"] + 30 and len(whose) < 2000, len(whose)
    assert any(record.get("unknown") == "flood" for record in whose), result
    assert "flood.test:80" in result.err and "4900 attempts" in result.err, result
    check_log(result.log)


def test_flood_of_denied_lookups(lab):
    """Names that nobody has: at most so many of them are on record one by one, and the rest is counted."""
    result = lab.python(["--allow", "ok.test"], """
        import select
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.connect((dns_server(), 53))
        answers = 0
        begun = time.monotonic()
        for number in range(20_000):
            sock.send(dns_query(f"secret-{number}.exfil.test" if number % 2 else "again.test", ident=number & 0xffff))
            if number - answers >= 20 or number == 19_999:
                while answers <= number - 10 or (number == 19_999 and answers < 20_000):
                    sock.recv(4096)
                    answers += 1
        show(answers=answers, seconds=time.monotonic() - begun, ok=socket.gethostbyname("ok.test"))
    """)
    (shown,) = result.shown
    assert shown["answers"] == 20_000, result
    end = result.one("end")
    denied = result.of("decision", door="dns", verdict="deny")
    assert summed(denied) == end["queries_denied"] >= 20_000, result
    assert end["queries"] - end["queries_denied"] == len(result.of("decision", door="dns", verdict="allow")) >= 1, result
    again = [record for record in denied if record.get("host") == "again.test"]
    assert 10_000 - summed(again) <= 0 and len(again) <= 1002 + 2 * (shown["seconds"] + 3), result
    singles = [record for record in denied if "count" not in record]
    assert 4096 <= len(singles) <= 4096 + 1001 + shown["seconds"] + 3, len(singles)
    assert len(denied) <= len(singles) + 40 * (shown["seconds"] + 3), (len(singles), len(denied))
    assert sum(record["count"] for record in denied if "count" in record and "host" not in record) > 0, result
    assert os.path.getsize(result.log) < 5_000_000
    check_log(result.log)

# SPDX-License-Identifier: Apache-2.0
"""The explicit front doors: HTTP proxy and SOCKS5 on the gate's own address, on both ports, told apart by the first byte."""

import os
import subprocess
import textwrap

import pytest

from lab import PORTS, pattern, v4, v6, wait_for

GATE = "10.200.0.1"
GATE6 = "fd6e:6574:6761:7465::1"
HTTP = f"http://{GATE}:3128"

# Helpers for the scripts that run in the sandbox.
INSIDE = """
GATE = "10.200.0.1"

def connect(target, head="", early=b"", port=3128, gate=GATE):
    \"\"\"Asks for a tunnel; returns the socket and the head of the answer.\"\"\"
    sock = tcp(gate, port)
    raw = b"CONNECT " + target.encode("latin-1") + b" HTTP/1.1\\r\\n" + head.encode() + b"\\r\\n"
    sock.sendall(raw + early)
    return sock, read_until(sock, b"\\r\\n\\r\\n")

def status(answer):
    lines = answer.decode("latin-1").split("\\r\\n")
    reason = [line.split(": ")[1] for line in lines if line.lower().startswith("x-netgate-reason")]
    return int(lines[0].split()[1]), reason[0] if reason else None

def socks_request(name, port, command=1, kind=None):
    raw = name if isinstance(name, bytes) else name.encode()
    if kind is None:
        return struct.pack("!BBBBB", 5, command, 0, 3, len(raw)) + raw + struct.pack("!H", port)
    return struct.pack("!BBBB", 5, command, 0, kind) + raw + struct.pack("!H", port)

def socks(name, port, early=b"", send=at_once, gate_port=1080, **more):
    sock = tcp(GATE, gate_port)
    send(sock, b"\\5\\1\\0")
    assert take(sock, 2) == b"\\5\\0"
    send(sock, socks_request(name, port, **more) + early)
    answer = take(sock, 10)
    assert answer[0] == 5, answer
    return sock, answer[1]

def tls_in(sock, name):
    \"\"\"A TLS handshake and a request inside a tunnel: the body, or how it was refused.\"\"\"
    tls = Tls(name)
    if name is None:
        tls = Tls(None, context=loose())
    try:
        tls.handshake(sock, at_once)
        out = tls.exchange(sock, b"GET /hello HTTP/1.1\\r\\nHost: " + (name or "ok.test").encode() + b"\\r\\nConnection: close\\r\\n\\r\\n")
        return out.decode().rpartition("\\r\\n\\r\\n")[2]
    except ssl.SSLError as error:
        return error.reason
    except ConnectionResetError:
        return "reset"

def loose():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

"""


def run(lab, args, script, *script_args, **kwargs):
    result = lab.python(args, INSIDE + textwrap.dedent(script), *script_args, **kwargs)
    assert result.rc == 0, result
    return result


def denials(result):
    return [(record["door"], record.get("host"), record.get("port"), record["reason"])
            for record in result.of("decision", verdict="deny")]


# ---- real clients ----


@pytest.mark.parametrize("options", [
    ["-x", HTTP], ["-p", "-x", HTTP], ["-x", f"http://[{GATE6}]:3128"], ["--socks5-hostname", f"{GATE}:1080"],
    ["--socks5-hostname", f"{GATE}:3128"], ["--socks5", f"{GATE}:1080"], ["-x", f"http://{GATE}:1080"],
])
@pytest.mark.parametrize("url", ["https://ok.test/hello", "http://ok.test/hello"])
def test_curl(lab, options, url):
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "-f", *options, url])
    assert (result.rc, result.out) == (0, "hello from ok.test\n"), result
    door = {"--socks5-hostname": "socks5", "--socks5": "socks5", "-p": "connect"}.get(options[0])
    door = door or ("connect" if url.startswith("https") else "http")
    first = result.of("decision", door=door, verdict="allow")[0]
    assert (first["host"], first["port"]) == ("ok.test", 443 if url.startswith("https") else 80), result
    close = result.one("close")
    assert close["host"] == "ok.test" and close["up"] > 0 and close["down"] > 0, result
    assert f"ok.test:{first['port']}" in result.err, result


def test_as_an_ordinary_user(lab, who):
    result = lab.netgate(["--allow", "ok.test"],
                         ["sh", "-c", f"curl -sS -x {HTTP} https://ok.test/hello && curl -sS -x {HTTP} http://ok.test/hello"],
                         user=who)
    assert result.out == "hello from ok.test\n" * 2, result


@pytest.mark.parametrize("options,url,door,said", [
    (["-x", HTTP], "https://bad.test/", "connect", "403"),
    (["-x", HTTP], "http://bad.test/", "http", "403"),
    (["--socks5-hostname", f"{GATE}:1080"], "https://bad.test/", "socks5", "(2)"),
])
def test_curl_is_told(lab, options, url, door, said):
    with lab.capture() as capture:
        result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "-D", "-", *options, url])
    assert said in result.out + result.err and not capture.packets, result
    port = 443 if url.startswith("https") else 80
    assert denials(result) == [(door, "bad.test", port, "not_allowed")], result
    assert "to allow: --allow bad.test" in result.err, result
    if door != "socks5":
        assert "X-Netgate-Reason: not_allowed" in result.out, result


def test_proxy_env(lab, who):
    """--proxy-env sets what clients look for; the clients then go through the doors."""
    lab.start_git()
    script = """
        env | grep -i _proxy= | sort
        curl -sS http://ok.test/hello
        curl -sS https://ok.test/hello
        git clone -q https://git.test/git/repo.git && cat repo/README
    """
    result = lab.netgate(["--proxy-env", "--allow", "ok.test", "--allow", "git.test"], ["sh", "-ec", script], user=who,
                         env={"HTTPS_PROXY": "http://192.0.2.1:1", "no_proxy": "*"})
    assert result.rc == 0, result
    *variables, plain, tls, git = result.out.splitlines()
    values = {"http_proxy": HTTP, "https_proxy": HTTP, "all_proxy": f"socks5h://{GATE}:1080",
              "no_proxy": "localhost,127.0.0.1,::1"}
    assert sorted(variables) == sorted([f"{name}={value}" for name, value in values.items()] +
                                       [f"{name.upper()}={value}" for name, value in values.items()]), result
    assert (plain, tls, git) == ("hello from ok.test", "hello from ok.test", "lab"), result
    assert {record["door"] for record in result.of("decision")} == {"http", "connect"}, result


def test_node(lab):
    """Node's own http module, an absolute-form request and a CONNECT."""
    script = """
        const http = require("http"), tls = require("tls");
        http.get({host: "10.200.0.1", port: 3128, path: "http://ok.test/hello", headers: {Host: "ok.test"}}, answer => {
          answer.on("data", data => process.stdout.write(data));
          answer.on("end", () => {
            const asked = http.request({host: "10.200.0.1", port: 3128, method: "CONNECT", path: "ok.test:443",
                                        headers: {Host: "ok.test:443"}});
            asked.on("connect", (answer, socket) => {
              const secure = tls.connect({socket, servername: "ok.test"}, () =>
                secure.write("GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n"));
              let all = "";
              secure.on("data", data => all += data);
              secure.on("end", () => { process.stdout.write(all.split("\\r\\n\\r\\n")[1]); process.exit(0); });
            });
            asked.end();
          });
        });
    """
    result = lab.netgate(["--allow", "ok.test"], ["node", "-e", script])
    assert (result.rc, result.out) == (0, "hello from ok.test\n" * 2), result


def test_ssh_through_connect(lab):
    """The server speaks first, through a ProxyCommand as `nc -X connect` does it."""
    proxy = """
import os, select, socket, sys
sock = socket.create_connection(("10.200.0.1", 3128))
sock.sendall(f"CONNECT {sys.argv[1]}:{sys.argv[2]} HTTP/1.0\\r\\n\\r\\n".encode())
head = b""
while not head.endswith(b"\\r\\n\\r\\n"):
    head += sock.recv(1)
if b" 200 " not in head:
    sys.exit(head.decode())
while True:
    for source in select.select([0, sock], [], [])[0]:
        data = os.read(0, 65536) if source == 0 else sock.recv(65536)
        if not data:
            sys.exit(0)
        sock.sendall(data) if source == 0 else os.write(1, data)
"""
    server = lab.start_ssh()
    workspace = lab.workspace()
    for name, text in (("proxy.py", proxy), ("key", open(server.client_key).read())):
        with open(os.path.join(workspace, name), "w") as out:
            out.write(text)
    os.chmod(os.path.join(workspace, "key"), 0o600)
    command = ["ssh", "-F", "none", "-i", "key", "-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=known",
               "-o", "BatchMode=yes", "-o", "ProxyCommand=/usr/bin/python3 proxy.py %h %p", f"{lab.user.name}@ssh.test",
               "wc -c; echo done"]
    result = lab.netgate(["--allow", "ssh.test:22"], command, stdin=pattern(1_000_000), workspace=workspace)
    assert result.out.split() == ["1000000", "done"], result
    record = result.one("decision")
    assert (record["door"], record["host"], record["port"], record["name_from"]) == ("connect", "ssh.test", 22, "connect"), result


# ---- one rule, every door ----


def test_parity(lab):
    """The same denied name through six doors: six denials with the same reason."""
    with lab.capture() as capture:
        result = run(lab, ["--allow", "ok.test"], """
            connect("bad.test:443")
            sock = tcp(GATE, 3128)
            sock.sendall(b"GET http://bad.test/ HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
            show(http=status(read_until(sock, b"\\r\\n\\r\\n")))
            show(socks=socks("bad.test", 443)[1])
            http(sys.argv[1], 80, b"GET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
            try:
                Tls("bad.test").handshake(tcp(sys.argv[1], 443), at_once)
            except ssl.SSLError as error:
                show(tls=error.reason)
            show(dns=dns_read(dns_udp(dns_query("bad.test")))["rcode"])
        """, v4("web"))
    assert result.shown == [{"http": [403, "not_allowed"]}, {"socks": 2}, {"tls": "TLSV1_ALERT_ACCESS_DENIED"}, {"dns": 3}], result
    assert not capture.packets
    assert denials(result) == [("connect", "bad.test", 443, "not_allowed"), ("http", "bad.test", 80, "not_allowed"),
                               ("socks5", "bad.test", 443, "not_allowed"), ("transparent", "bad.test", 80, "not_allowed"),
                               ("transparent", "bad.test", 443, "not_allowed"), ("dns", "bad.test", None, "not_allowed")], result
    assert len(result.of("process")) >= 5


@pytest.mark.parametrize("port,reason", [(22, "port_not_allowed"), (8443, "port_not_allowed")])
def test_port_scope(lab, port, reason):
    result = run(lab, ["--allow", "ok.test"], """
        port = int(sys.argv[1])
        show(connect=status(connect(f"ok.test:{port}")[1]), socks=socks("ok.test", port)[1])
    """, str(port))
    assert result.shown == [{"connect": [403, reason], "socks": 2}], result
    assert denials(result) == [("connect", "ok.test", port, reason), ("socks5", "ok.test", port, reason)], result


# ---- CONNECT ----


def test_connect_answer_and_early_bytes(lab, who):
    """Exactly a status line and an empty line; a hello in the same segment, and a head in many, lose nothing."""
    result = run(lab, ["--allow", "ok.test"], """
        tls = Tls("ok.test")
        sock, answer = connect("ok.test:443", "Host: ok.test:443\\r\\n", early=tls.hello())
        show(answer=answer.decode())
        tls.handshake(sock, lambda sock, data: data and sock.sendall(data))
        show(body=tls.exchange(sock, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n").decode()[-19:])
        sock = tcp(GATE, 3128)
        byte_by_byte(sock, b"CONNECT ok.test:443 HTTP/1.1\\r\\n\\r\\n")
        read_until(sock, b"\\r\\n\\r\\n")
        show(body=tls_in(sock, "ok.test"))
    """, user=who)
    assert result.shown == [{"answer": "HTTP/1.1 200 Connection established\r\n\r\n"}, {"body": "hello from ok.test\n"},
                            {"body": "hello from ok.test\n"}], result
    allowed = result.of("decision", verdict="allow")
    assert [(record["door"], record["name_from"]) for record in allowed] == [("connect", "connect"), ("connect", "sni")] * 2, result
    assert len(result.of("close")) == 2, result


@pytest.mark.parametrize("head,version", [("Host: ok.test\r\n", "1.1"), ("Host: ok.test:443\r\n", "1.1"), ("", "1.1"), ("", "1.0"),
                                          ("Host: OK.test\r\nProxy-Authorization: Basic eA==\r\nContent-Length: 0\r\n", "1.1")])
def test_connect_host_forms(lab, head, version):
    result = run(lab, ["--allow", "ok.test"], """
        sock = tcp(GATE, 3128)
        sock.sendall(f"CONNECT ok.test:443 HTTP/{sys.argv[2]}\\r\\n{sys.argv[1]}\\r\\n".encode())
        show(status=status(read_until(sock, b"\\r\\n\\r\\n"))[0], body=tls_in(sock, "ok.test"))
    """, head, version)
    assert result.shown == [{"status": 200, "body": "hello from ok.test\n"}], result


@pytest.mark.parametrize("target", [
    "ok.test", "ok.test:", "ok.test:0", "ok.test:65536", "ok.test:0443", "ok.test:443x", ":443", "[ok.test]:443", "[[ok.test]]:443",
    "[ok.test:443", "[::1]]:443", "ok.test@bad.test:443", "bad.test%2f.ok.test:443", "bad.test#.ok.test:443", "bad.test\\.ok.test:443",
    "[fe80::1%25eth0]:443", "http://ok.test:443", "http://ok.test/", "/", "ok.test:443/", "ok..test:443", "-", "ok.test\x00:443",
    "ok.test\x7f:443", "ok.test\xe9:443", "127.1:443", "0x7f.1:443", "2130706433:443", ".ok.test:443", "ok.test..:443",
])
def test_connect_bad_targets(lab, target):
    with lab.capture() as capture:
        result = run(lab, ["--allow", "ok.test", "--allow", "*.ok.test"], """
            sock, answer = connect(sys.argv[1].encode().decode("unicode_escape"))
            show(status=status(answer))
        """, target.encode("unicode_escape").decode())
    (seen,) = result.shown
    assert seen["status"][0] == 400 and seen["status"][1] in ("http_malformed", "host_mismatch", "bad_name"), result
    assert not capture.packets and not result.of("decision", verdict="allow"), result
    assert len(result.of("decision", verdict="deny")) == 1, result


@pytest.mark.parametrize("target,literal", [("203.0.114.80:443", "203.0.114.80:443"), (f"[{v6('web')}]:443", f"[{v6('web')}]:443"),
                                            ("198.18.200.200:443", "198.18.200.200:443"), (f"{GATE}:3128", f"{GATE}:3128"),
                                            ("0.0.0.0:80", "0.0.0.0:80"), ("[::ffff:127.0.0.1]:3128", "[::ffff:127.0.0.1]:3128"),
                                            (f"[{GATE6}]:1080", f"[{GATE6}]:1080")])
def test_connect_to_an_address_without_a_rule(lab, target, literal):
    """Also the gate's own: no loop."""
    result = run(lab, ["--allow", "ok.test"], "show(status=status(connect(sys.argv[1])[1]))", target)
    assert result.shown == [{"status": [403, "no_name"]}], result
    record = result.one("decision", door="connect", reason="no_name")
    assert record["dst"] == literal and not result.of("dial"), result


def test_address_rule(lab):
    """Through CONNECT and SOCKS5 as through anything: the address is dialled."""
    result = run(lab, ["--allow", f"{v4('raw')}:7/tcp", "--allow", f"[{v6('raw')}]:7", "--allow", f"{v4('web')}:80"], """
        for sock in (connect("203.0.114.90:7")[0], socks(socket.inet_aton(sys.argv[1]), 7, kind=1)[0],
                     socks(socket.inet_pton(socket.AF_INET6, sys.argv[2]), 7, kind=4)[0], socks(sys.argv[1], 7)[0]):
            sock.sendall(b"ping\\n")
            show(echo=take(sock, 5).decode())
        (code, _, body), = http(GATE, 3128, b"GET http://" + sys.argv[3].encode() + b"/hello HTTP/1.1\\r\\nHost: " +
                                sys.argv[3].encode() + b"\\r\\n\\r\\n")
        show(code=code)
    """.replace("203.0.114.90", v4("raw")), v4("raw"), v6("raw"), v4("web"))
    assert result.shown == [{"echo": "ping\n"}] * 4 + [{"code": 200}], result


def test_synthetic_address_is_its_name(lab):
    """A client that looks up first and then asks for the address: it means the name."""
    result = run(lab, ["--allow", "ok.test"], """
        address = socket.gethostbyname("ok.test")
        sock, answer = connect(address + ":443")
        show(status=status(answer)[0], body=tls_in(sock, "ok.test"))
        sock, reply = socks(socket.inet_aton(address), 443, kind=1)
        show(reply=reply, body=tls_in(sock, "ok.test"))
        (code, _, body), = http(GATE, 3128, b"GET http://" + address.encode() + b"/hello HTTP/1.1\\r\\nHost: " + address.encode() + b"\\r\\n\\r\\n")
        show(code=code)
        sock, answer = connect(address + ":443")
        show(other=tls_in(sock, "other.test"))
    """)
    assert result.shown[:2] == [{"status": 200, "body": "hello from ok.test\n"}, {"reply": 0, "body": "hello from ok.test\n"}], result
    assert result.shown[2] == {"code": 200} and result.shown[3] == {"other": "TLSV1_ALERT_ACCESS_DENIED"}, result
    mismatch = result.one("decision", verdict="deny", reason="name_mismatch")
    assert (mismatch["host"], mismatch["dns_name"]) == ("other.test", "ok.test"), result


@pytest.mark.parametrize("door", ["connect", "socks5"])
def test_another_sni_inside(lab, door):
    """It is cut and both names are on record; both being allowed changes nothing."""
    result = run(lab, ["--allow", "ok.test", "--allow", "other.test"], """
        for name in ("bad.test", "other.test", None):
            sock = connect("ok.test:443")[0] if sys.argv[1] == "connect" else socks("ok.test", 443)[0]
            show(end=tls_in(sock, name))
    """, door)
    assert result.shown == [{"end": "TLSV1_ALERT_ACCESS_DENIED"}] * 3, result
    assert lab.web.hellos == [], result
    denied = result.of("decision", verdict="deny", door=door)
    assert [(record["host"], record.get(f"{door}_host"), record["reason"]) for record in denied] == [
        ("bad.test", "ok.test", "name_mismatch"), ("other.test", "ok.test", "name_mismatch"), ("ok.test", None, "no_name")], result
    assert [record["end"] for record in result.of("close")] == ["name_mismatch", "name_mismatch", "denied"], result
    assert all(record["up"] == 0 for record in result.of("close")), result


@pytest.mark.parametrize("data,reason", [("SSH-2.0-OpenSSH_9\r\n", "not_tls"), ("\x00\x01\x02", "not_tls"),
                                         ("GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n", "not_tls"), ("\x16\x03\x01\x00\x05\x02aaaa", "tls_malformed"),
                                         ("EHLO me\r\n", "not_tls"), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "upgrade")])
def test_not_tls_on_443(lab, data, reason):
    result = run(lab, ["--allow", "ok.test"], """
        data = bytes.fromhex(sys.argv[1])
        for sock in (connect("ok.test:443")[0], socks("ok.test", 443)[0]):
            sock.sendall(data)
            show(end=fate(sock)[0])
        try:
            show(end=fate(connect("ok.test:443", early=data)[0])[0])
        except ConnectionResetError:
            show(end="reset")
    """, data.encode("latin-1").hex())
    assert [door for door, *_ in denials(result)] == ["connect", "socks5", "connect"], result
    assert {record["reason"] for record in result.of("decision", verdict="deny")} == {reason}, result
    assert lab.web.hellos == [] and all(record["up"] == 0 for record in result.of("close")), result


def test_http_inside_a_tunnel_on_80(lab):
    """Its Host is the name that was asked for, in each request; other bytes are refused."""
    result = run(lab, ["--allow", "ok.test", "--allow", "other.test"], """
        sock, _ = connect("ok.test:80")
        stream = sock.makefile("rb")
        for host in ("ok.test", "ok.test:80", "other.test"):
            sock.sendall(b"GET /hello HTTP/1.1\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
            code, headers, body = response(stream)
            show(code=code, reason=headers.get("x-netgate-reason"))
        sock, _ = socks("ok.test", 80)
        sock.sendall(b"SSH-2.0-x\\r\\n")
        show(end=fate(sock)[0])
        sock, _ = connect("ok.test:80")
        sock.sendall(b"CONNECT other.test:443 HTTP/1.1\\r\\n\\r\\n")
        show(nested=status(read_until(sock, b"\\r\\n\\r\\n")))
    """)
    assert result.shown == [{"code": 200, "reason": None}, {"code": 200, "reason": None}, {"code": 403, "reason": "name_mismatch"},
                            {"end": "reset"}, {"nested": [400, "http_malformed"]}], result
    assert {request.headers["host"] for request in lab.web.requests} == {"ok.test", "ok.test:80"}
    mismatch = result.one("decision", reason="name_mismatch")
    assert (mismatch["host"], mismatch["connect_host"]) == ("other.test", "ok.test"), result


@pytest.mark.parametrize("data", [b"GET /\r\n", b"SSH-2.0-x y\r\n", b"FOO bar\r\nGET / HTTP/1.1\r\nHost: bad.test\r\n\r\n"])
def test_what_only_begins_like_http_on_80(lab, data):
    result = run(lab, ["--allow", "ok.test"], """
        for sock in (connect("ok.test:80")[0], socks("ok.test", 80)[0]):
            sock.sendall(bytes.fromhex(sys.argv[1]))
            show(end=fate(sock)[0])
    """, data.hex())
    assert result.shown == [{"end": "reset"}] * 2, result
    assert {record["reason"] for record in result.of("decision", verdict="deny")} == {"not_http"}, result
    assert all(record["up"] == 0 for record in result.of("close")), result


def test_socks_in_one_flight_with_its_end(lab):
    """Greeting, request and FIN at once: judged by its name, not lost as a client that went away."""
    result = run(lab, ["--allow", "ok.test"], """
        for name in ("bad.test", "ok.test"):
            sock = socket.create_connection((GATE, 1080), TIMEOUT)
            sock.sendall(b"\\x05\\x01\\x00" + socks_request(name, 443))
            sock.shutdown(socket.SHUT_WR)
            fate(sock)
        show(done=True)
    """)
    assert result.one("decision", door="socks5", host="bad.test")["reason"] == "not_allowed", result
    assert result.of("decision", door="socks5", host="ok.test", verdict="allow"), result


def test_next_answer_waits_for_the_last_one(lab):
    """A client that takes nothing for longer than a head may take: the denial of its second request stays behind the first answer."""
    result = run(lab, ["--allow", "ok.test"], """
        socks_ = []
        for _ in range(8):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((GATE, 3128))
            sock.sendall(b"GET http://ok.test/bytes?n=70000 HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n"
                         b"GET http://bad.test/ HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
            socks_.append(sock)
        time.sleep(11)  # the client's own pace, beyond the deadline of a head
        for sock in socks_:
            stream = sock.makefile("rb")
            first, second = response(stream), response(stream)
            show(first=first[0], clean=b"HTTP/1.1" not in first[2], length=len(first[2]), second=second[0])
    """)
    assert result.shown == [{"first": 200, "clean": True, "length": 70000, "second": 403}] * 8, result


def test_any_bytes_and_server_first(lab):
    """A port of a rule's own: the server may speak first; `/tcp`: anything, also on 443."""
    result = run(lab, ["--allow", "raw.test:7/tcp", "--allow", f"raw.test:{PORTS['banner']}"], """
        for sock in (connect("raw.test:7", early=b"GET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")[0],
                     socks("raw.test", 7, early=b"GET / HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")[0]):
            show(echo=take(sock, 34).decode())
        for sock in (connect("raw.test:%s" % sys.argv[1])[0], socks("raw.test", int(sys.argv[1]))[0]):
            show(banner=len(sock.recv(100)) > 0)
    """, str(PORTS["banner"]))
    assert result.shown == [{"echo": "GET / HTTP/1.1\r\nHost: bad.test\r\n\r\n"}] * 2 + [{"banner": True}] * 2, result


def test_failures_are_told_before_the_tunnel(lab):
    """Nothing listens, no such name, an address that is not public: 502, 502, 403; 5, 4, 2."""
    result = run(lab, ["--allow", "ok.test:9", "--allow", "gone.test", "--allow", "private.test", "--allow", "meta.test", "--allow", "loopback.test"], """
        for name, port in (("ok.test", 9), ("gone.test", 443), ("private.test", 443), ("meta.test", 80), ("loopback.test", 80)):
            show(connect=status(connect(f"{name}:{port}")[1]), socks=socks(name, port)[1])
    """)
    assert result.shown == [{"connect": [502, "connect_failed"], "socks": 5}, {"connect": [502, "dns_failed"], "socks": 4}] + [
        {"connect": [403, "private_address"], "socks": 2}] * 3, result
    assert lab.metadata.requests == []
    assert {record["end"] for record in result.of("close")} == {"connect_failed"}, result


def test_quiet_client(lab):
    """One that says nothing in its tunnel, and one that says nothing at all, are ended and recorded."""
    result = run(lab, ["--allow", "ok.test"], """
        socks_in = [connect("ok.test:443")[0], tcp(GATE, 3128), tcp(GATE, 1080), tcp(GATE, 3128)]
        socks_in[2].sendall(b"\\5")
        socks_in[3].sendall(b"CONNECT ok.test:4")
        show(ends=[fate(sock)[0] for sock in socks_in])
        connect("ok.test:443")[0].close()
        tcp(GATE, 1080).close()
    """)
    assert result.shown == [{"ends": ["reset", "reset", "reset", "eof"]}], result
    reasons = sorted((record["door"], record["reason"]) for record in result.of("decision", verdict="deny"))
    assert reasons == [("connect", "hello_timeout"), ("http", "client_gone"), ("http", "hello_timeout"), ("http", "hello_timeout"),
                       ("socks5", "hello_timeout")], result


# ---- absolute-form ----


def test_several_hosts_on_one_connection(lab, who):
    """Each request is judged, goes to its own server in origin-form, and is answered in turn."""
    result = run(lab, ["--allow", "ok.test", "--allow", "other.test", "--allow", "ok.test:8080"], """
        sock = tcp(GATE, 3128)
        stream = sock.makefile("rb")
        for url in ("http://ok.test/hello?a=1", "http://other.test/hello", "http://ok.test:8080/hello", "http://ok.test", "http://OK.test:80/hello"):
            authority = url.split("/")[2]
            sock.sendall(f"GET {url} HTTP/1.1\\r\\nHost: {authority}\\r\\n\\r\\n".encode())
            show(code=response(stream)[0])
        sock.sendall(b"GET http://bad.test/secret HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n")
        code, headers, body = response(stream)
        show(code=code, reason=headers["x-netgate-reason"], rest=len(stream.read()))
    """, user=who)
    assert [seen["code"] for seen in result.shown[:3]] == [200, 200, 200] and result.shown[4] == {"code": 200}, result
    assert result.shown[5] == {"code": 403, "reason": "not_allowed", "rest": 0}, result
    seen = [(request.line, request.headers["host"], request.port) for request in lab.web.requests]
    assert seen == [("GET /hello?a=1 HTTP/1.1", "ok.test", 80), ("GET /hello HTTP/1.1", "other.test", 80),
                    ("GET /hello HTTP/1.1", "ok.test:8080", 8080), ("GET / HTTP/1.1", "ok.test", 80),
                    ("GET /hello HTTP/1.1", "OK.test:80", 80)], result
    decisions = [(record["door"], record["host"], record["port"], record["verdict"]) for record in result.of("decision")]
    assert decisions == [("http", "ok.test", 80, "allow"), ("http", "other.test", 80, "allow"), ("http", "ok.test", 8080, "allow"),
                         ("http", "ok.test", 80, "allow"), ("http", "ok.test", 80, "allow"), ("http", "bad.test", 80, "deny")], result
    assert [record["host"] for record in result.of("close")] == ["ok.test", "other.test", "ok.test", "ok.test"], result


def test_hop_by_hop(lab):
    """What is meant for the proxy ends here; what a client or server lists in Connection too."""
    result = run(lab, ["--allow", "ok.test"], """
        (code, _, _), = http(GATE, 3128, b"GET http://ok.test/hello HTTP/1.1\\r\\nHost: ok.test\\r\\nProxy-Authorization: Basic c2VjcmV0\\r\\n"
            b"Proxy-Connection: keep-alive\\r\\nTE: trailers\\r\\nKeep-Alive: timeout=5\\r\\nX-A: secret\\r\\nX-B: kept\\r\\n"
            b"Connection: X-A, keep-alive\\r\\nUpgrade: h2c\\r\\nAccept: */*\\r\\n\\r\\n")
        show(code=code)
        (code, headers, _), = http(GATE, 3128, b"GET http://ok.test/hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: Host, X-A\\r\\n\\r\\n")
        show(code=code)
        sock = tcp(GATE, 3128)
        sock.sendall(b"GET http://ok.test/hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n")
        show(rest=read_all(sock).decode())
    """)
    assert result.shown[0] == {"code": 200} and result.shown[1] == {"code": 400}, result
    first, last = lab.web.requests
    assert first.head == b"GET /hello HTTP/1.1\r\nHost: ok.test\r\nX-B: kept\r\nAccept: */*\r\n\r\n", first.head
    assert last.head == b"GET /hello HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n", last.head
    assert result.shown[2]["rest"].count("Connection: close") == 1, result


@pytest.mark.parametrize("line,host,reason", [
    ("GET / HTTP/1.1", "ok.test", "http_malformed"), ("OPTIONS * HTTP/1.1", "ok.test", "http_malformed"),
    ("GET https://ok.test/ HTTP/1.1", "ok.test", "http_malformed"), ("GET ftp://ok.test/ HTTP/1.1", "ok.test", "http_malformed"),
    ("GET urn:x:y HTTP/1.1", "ok.test", "http_malformed"), ("GET gopher://ok.test/ HTTP/1.1", "ok.test", "http_malformed"),
    ("GET cache_object://ok.test/ HTTP/1.1", "ok.test", "http_malformed"), ("GET http:///x HTTP/1.1", "ok.test", "host_mismatch"),
    ("GET http://ok.test/", "ok.test", "http_malformed"), ("GET http://ok.test/ HTTP/2.0", "ok.test", "http_malformed"),
    ("PRI * HTTP/2.0", "ok.test", "upgrade"), ("GET http://ok.test/ HTTP/1.1", "bad.test", "host_mismatch"),
    ("GET http://bad.test/ HTTP/1.1", "ok.test", "host_mismatch"), ("GET http://ok.test:80@bad.test/ HTTP/1.1", "ok.test", "host_mismatch"),
    ("GET http://bad.test#.ok.test/ HTTP/1.1", "ok.test", "http_malformed"), ("GET http://bad.test%2f.ok.test/ HTTP/1.1", "ok.test", "host_mismatch"),
    ("connect http://ok.test:443/ HTTP/1.1", "ok.test:443", "http_malformed"),
])
def test_bad_requests(lab, line, host, reason):
    with lab.capture() as capture:
        result = run(lab, ["--allow", "ok.test"], """
            sock = tcp(GATE, 3128)
            sock.sendall(f"{sys.argv[1]}\\r\\nHost: {sys.argv[2]}\\r\\n\\r\\n".encode())
            show(status=status(read_until(sock, b"\\r\\n\\r\\n")))
        """, line, host)
    (seen,) = result.shown
    assert seen["status"][1] == reason and seen["status"][0] == (403 if reason == "upgrade" else 400), result
    assert not capture.packets and [record["reason"] for record in result.of("decision")] == [reason], result


def test_smuggled_request(lab):
    """A second request in the first one's body is a body; with doubtful framing nothing goes on."""
    result = run(lab, ["--allow", "ok.test"], """
        inner = b"GET http://bad.test/ HTTP/1.1\\r\\nHost: bad.test\\r\\n\\r\\n"
        (code, _, body), = http(GATE, 3128, b"POST http://ok.test/upload HTTP/1.1\\r\\nHost: ok.test\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(inner) + inner)
        show(code=code, bytes=json.loads(body)["bytes"])
        (code, headers, _), = http(GATE, 3128, b"POST http://ok.test/upload HTTP/1.1\\r\\nHost: ok.test\\r\\nContent-Length: 6\\r\\n"
                                   b"Transfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n" + inner)
        show(code=code, reason=headers["x-netgate-reason"])
        with tcp(GATE, 3128) as sock:
            sock.sendall(b"POST http://ok.test/upload HTTP/1.1\\r\\nHost: ok.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n" + inner)
            stream = sock.makefile("rb")
            show(codes=[response(stream)[0] for _ in range(2)])
    """)
    assert result.shown == [{"code": 200, "bytes": 49}, {"code": 400, "reason": "http_malformed"}, {"codes": [200, 403]}], result
    assert {request.headers["host"] for request in lab.web.requests} == {"ok.test"}
    assert ("http", "bad.test", 80, "not_allowed") in denials(result), result


def test_half_a_request(lab):
    """A broken body is about the host that it went to; half a head is about nobody."""
    result = run(lab, ["--allow", "ok.test"], """
        with tcp(GATE, 3128) as sock:
            sock.sendall(b"POST http://ok.test/upload HTTP/1.1\\r\\nHost: ok.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n")
            show(status=status(read_until(sock, b"\\r\\n\\r\\n")))
        with tcp(GATE, 3128) as sock:
            sock.sendall(b"GET http://ok.test/hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\nGET http://bad.t")
            show(code=response(sock.makefile("rb"))[0])
            sock.shutdown(socket.SHUT_WR)
            show(status=status(read_until(sock, b"\\r\\n\\r\\n")))
    """)
    assert result.shown == [{"status": [400, "http_malformed"]}, {"code": 200}, {"status": [400, "http_malformed"]}], result
    broken, half = result.of("decision", verdict="deny")
    assert (broken["host"], broken["port"]) == ("ok.test", 80) and "dst" not in broken, result
    assert half["dst"] == f"{GATE}:3128" and "host" not in half, result


def test_bodies_pipelining_head_and_http10(lab):
    result = run(lab, ["--allow", "ok.test", "--allow", "other.test"], """
        raw = b"".join(b"GET http://%s/bytes?n=%d HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % (host, n, host)
                       for n, host in ((1000, b"ok.test"), (2000, b"other.test"), (3000, b"ok.test")))
        show(lengths=[len(body) for _, _, body in http(GATE, 3128, raw, 3)])
        with tcp(GATE, 3128) as sock:
            stream = sock.makefile("rb")
            sock.sendall(b"HEAD http://ok.test/bytes?n=1000 HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
            while stream.readline() != b"\\r\\n":
                pass
            data = pattern(300_000)
            sock.sendall(b"POST http://ok.test/upload HTTP/1.1\\r\\nHost: ok.test\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: X-End\\r\\n\\r\\n")
            sock.sendall(b"%x\\r\\n" % len(data) + data + b"\\r\\n0\\r\\nX-End: yes\\r\\n\\r\\n")
            answer = json.loads(response(stream)[2])
            show(bytes=answer["bytes"], trailers=answer["trailers"])
            sock.sendall(b"POST http://ok.test/upload HTTP/1.1\\r\\nHost: ok.test\\r\\nContent-Length: 5\\r\\nExpect: 100-continue\\r\\n\\r\\n")
            show(interim=stream.readline().decode())
            stream.readline()
            sock.sendall(b"hello")
            show(code=response(stream)[0])
        with tcp(GATE, 3128) as sock:
            sock.sendall(b"GET http://ok.test/hello HTTP/1.0\\r\\nConnection: keep-alive\\r\\n\\r\\n")
            show(ten=read_all(sock).decode()[-19:])
        with tcp(GATE, 3128) as sock:
            sock.sendall(b"GET http://ok.test/until-close?n=50000 HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
            out = read_all(sock)
            show(close=b"connection: close" in out.lower(), length=len(out.split(b"\\r\\n\\r\\n", 1)[1]))
    """)
    assert result.shown == [{"lengths": [1000, 2000, 3000]}, {"bytes": 300_000, "trailers": {"x-end": "yes"}},
                            {"interim": "HTTP/1.1 100 Continue\r\n"}, {"code": 200}, {"ten": "hello from ok.test\n"},
                            {"close": True, "length": 50000}], result
    ten = [request for request in lab.web.requests if request.line.endswith("HTTP/1.0")]
    assert [request.headers for request in ten] == [{"host": "ok.test", "connection": "close"}], result


def test_early_final_answer(lab):
    """The server answers 413 before the body is there: the client gets it, and the connection ends."""
    result = run(lab, ["--allow", "ok.test"], """
        with tcp(GATE, 3128) as sock:
            sock.sendall(b"POST http://ok.test/early HTTP/1.1\\r\\nHost: ok.test\\r\\nContent-Length: 1000000\\r\\nExpect: 100-continue\\r\\n\\r\\n")
            begun = time.monotonic()
            code, headers, _ = response(sock.makefile("rb"))
            show(code=code, connection=headers.get("connection"), quick=time.monotonic() - begun < 9)  # before a head's deadline
    """)
    (seen,) = result.shown
    assert seen["code"] in (404, 413, 417) and seen["connection"] == "close" and seen["quick"], result


def test_websocket(lab):
    """By absolute-form: Connection and Upgrade go on; after 101 the connection is a tunnel."""
    result = run(lab, ["--allow", "ok.test"], """
        with tcp(GATE, 3128) as sock:
            sock.sendall(b"GET http://ok.test/ws HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
                         b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nProxy-Connection: keep-alive\\r\\n\\r\\n")
            head = read_until(sock, b"\\r\\n\\r\\n").decode().lower()
            show(code=head.split()[1], upgrade="upgrade: websocket" in head, connection="connection: upgrade" in head)
        with tcp(GATE, 3128) as sock:
            sock.sendall(b"GET http://ok.test/ HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\nHTTP2-Settings: x\\r\\n\\r\\n")
            show(h2c=status(read_until(sock, b"\\r\\n\\r\\n")))
    """)
    assert result.shown == [{"code": "101", "upgrade": True, "connection": True}, {"h2c": [403, "upgrade"]}], result


def test_connect_behind_a_request(lab):
    """A kept proxy connection may become a tunnel."""
    result = run(lab, ["--allow", "ok.test"], """
        with tcp(GATE, 3128) as sock:
            stream = sock.makefile("rb", buffering=0)
            sock.sendall(b"GET http://ok.test/hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\nCONNECT ok.test:443 HTTP/1.1\\r\\n\\r\\n")
            show(code=response(stream)[0])
            show(status=status(read_until(sock, b"\\r\\n\\r\\n"))[0], body=tls_in(sock, "ok.test"))
    """)
    assert result.shown == [{"code": 200}, {"status": 200, "body": "hello from ok.test\n"}], result


async def once(exchange):
    """Answers as if it kept the connection, and closes it."""
    await exchange.drain_body()
    await exchange.reply(b"once\n")
    exchange.close = True


def test_client_connection_outlives_upstream(lab):
    """A server that ends its side between two requests costs the client nothing."""
    lab.web.routes["/once"] = once
    script = lab.script(INSIDE + textwrap.dedent("""
        with tcp(GATE, 3128) as sock:
            stream = sock.makefile("rb")
            for _ in range(3):
                sock.sendall(b"GET http://ok.test/once HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
                show(code=response(stream)[0])
                sys.stdin.readline()
    """))
    with lab.start(["--allow", "ok.test"], script, stdin=subprocess.PIPE) as running:
        for number in range(3):
            assert (running.ask() if number else running.next()) == {"code": 200}
            wait_for(lambda: sum(record["type"] == "close" for record in running.records) > number)
        result = running.finish(b"\n")
    assert [record["end"] for record in result.of("close")] == ["upstream"] * 3, result


def test_redirect(lab):
    """Each hop is judged on its own."""
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "-L", "-x", HTTP, "-o", "/dev/null", "-w", "%{http_code}", "http://ok.test/redirect?to=http://bad.test/"])
    assert result.out == "403", result
    assert [(record["host"], record["verdict"]) for record in result.of("decision")] == [("ok.test", "allow"), ("bad.test", "deny")], result


# ---- SOCKS ----


def test_socks_byte_by_byte(lab, who):
    result = run(lab, ["--allow", "ok.test"], """
        sock, reply = socks("ok.test", 443, send=byte_by_byte)
        show(reply=reply, body=tls_in(sock, "ok.test"))
        sock = tcp(GATE, 3128)
        tls = Tls("ok.test")
        sock.sendall(b"\\5\\2\\2\\0" + socks_request("ok.test", 443) + tls.hello())
        show(greeting=take(sock, 2).hex(), reply=take(sock, 10).hex())
        tls.handshake(sock, lambda sock, data: data and sock.sendall(data))
        show(body=tls.exchange(sock, b"GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n").decode()[-19:])
    """, user=who)
    assert result.shown == [{"reply": 0, "body": "hello from ok.test\n"}, {"greeting": "0500", "reply": "05000001000000000000"},
                            {"body": "hello from ok.test\n"}], result


@pytest.mark.parametrize("name", [b"bad.test\0.wild.test", b"", b"ok.test:443", b"a b.wild.test", b"ok%2etest", b"\xff.wild.test", b"a" * 255,
                                  b"ok.test\r\n", b".wild.test", b"[ok.test]", b"127.1", b"user@ok.test"])
def test_socks_bad_names(lab, name):
    with lab.capture() as capture:
        result = run(lab, ["--allow", "*.wild.test", "--allow", "ok.test"], """
            show(reply=socks(bytes.fromhex(sys.argv[1]), 443)[1])
        """, name.hex())
    assert result.shown == [{"reply": 2}], result
    assert not capture.packets and lab.dns.queries == [], result
    (record,) = result.of("decision")
    assert (record["door"], record["reason"], record["port"]) == ("socks5", "bad_name", 443), result
    assert record["raw_name"] == "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in name), result


def test_socks_what_is_not_served(lab):
    """BIND, UDP ASSOCIATE, SOCKS4, 4a, other address types, authentication, broken messages: answered and recorded."""
    with lab.capture() as capture:
        result = run(lab, ["--allow", "ok.test"], """
            for command in (2, 3, 0, 9):
                show(reply=socks("ok.test", 443, command=command)[1])
            for kind, address in ((0, b""), (2, b""), (5, b"abcd")):
                show(reply=socks(address, 443, kind=kind)[1])
            def raw(data):
                with tcp(GATE, 1080) as sock:
                    sock.sendall(data)
                    return fate(sock)
            show(four=raw(b"\\4\\1\\0\\x50\\x01\\x02\\x03\\x04\\0")[1].hex(), four_a=raw(b"\\4\\1\\0\\x50\\0\\0\\0\\1\\0ok.test\\0")[1].hex())
            show(auth=raw(b"\\5\\1\\2")[1].hex(), none=raw(b"\\5\\0")[0], reserved=raw(b"\\5\\1\\0\\5\\1\\1\\3")[1].hex(),
                 version=raw(b"\\5\\1\\0\\4\\1\\0\\3")[1].hex())
            show(literal=socks(socket.inet_aton(sys.argv[1]), 443, kind=1)[1], zero=socks("ok.test", 0)[1])
        """, v4("web"))
    assert [seen["reply"] for seen in result.shown[:7]] == [7] * 4 + [8] * 3, result
    assert result.shown[7] == {"four": "005b000000000000", "four_a": "005b000000000000"}, result
    assert result.shown[8] == {"auth": "05ff", "none": "reset", "reserved": "050005010001000000000000", "version": "050005010001000000000000"}, result
    assert result.shown[9] == {"literal": 2, "zero": 2}, result
    assert not capture.packets
    assert [reason for _, _, _, reason in denials(result)] == ["socks_unsupported"] * 10 + ["socks_malformed"] * 3 + ["no_name", "port_not_allowed"], result
    assert {door for door, *_ in denials(result)} == {"socks5"}


# ---- the whole ----


def test_audit_mode(lab):
    result = lab.netgate(["--audit"], ["sh", "-c", f"curl -sS -x {HTTP} https://ok.test/hello; curl -sS -x {HTTP} http://ok.test/hello; "
                                       f"curl -sS --socks5-hostname {GATE}:1080 https://ok.test/hello"])
    assert result.out == "hello from ok.test\n" * 3, result
    assert {record["would"] for record in result.of("decision")} == {"not_allowed"}, result


def test_random_bytes(lab):
    """A short fuzz of both ports: each connection ends, each has its record, the proxy lives."""
    result = run(lab, ["--allow", "ok.test"], """
        import random
        random.seed(7)
        seeds = [b"CONNECT ok.test:443 HTTP/1.1\\r\\n\\r\\n", b"GET http://ok.test/hello HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n",
                 b"\\5\\1\\0" + socks_request("ok.test", 443), b"\\4\\1\\0\\x50\\0\\0\\0\\1\\0ok.test\\0", b"\\x16\\3\\1\\0\\5"]
        for number in range(300):
            data = bytearray(random.choice(seeds) + random.choice(seeds))
            for _ in range(random.randrange(4)):
                data[random.randrange(len(data))] = random.randrange(256)
            with tcp(GATE, random.choice((3128, 1080))) as sock:
                try:
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                    fate(sock)
                except OSError:
                    pass
        show(status=status(connect("ok.test:443")[1])[0])
    """)
    assert result.shown == [{"status": 200}], result
    end = result.one("end")
    conns = {record["conn"] for record in result.of("decision")}
    assert conns == set(range(1, end["accepts"] + 1)), result
    allowed = sum(1 for record in result.of("dial", outcome="connected"))
    assert len(result.of("close")) >= allowed, result

# SPDX-License-Identifier: Apache-2.0
"""The main job with the clients that people use: what is allowed works as without netgate, the same as root and as a user."""

import hashlib
import os

import pytest

from lab import pattern, v4, v6


def allowed(result, host, count=None):
    """The command succeeded, and every TCP decision is an allowed one on `host`. Returns those decisions."""
    assert result.rc == 0, result
    decisions = [record for record in result.of("decision") if record["door"] == "transparent"]
    assert decisions and all(record["verdict"] == "allow" and record["host"] == host for record in decisions), result
    assert count is None or len(decisions) == count, result
    return decisions


def test_curl_https(lab, who):
    with lab.capture() as capture:
        result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "https://ok.test/hello"], user=who)
    assert result.out == "hello from ok.test\n", result
    (decision,) = allowed(result, "ok.test", 1)
    assert decision["proto"] == "tls" and decision["port"] == 443
    assert decision["name_from"] == "sni" and decision["reason"] == "rule" and "--allow ok.test" in decision["rule"]
    dials = result.of("dial", conn=decision["conn"])
    assert "connected" in [dial["outcome"] for dial in dials]
    assert result.one("close", conn=decision["conn"])["down"] > 0
    web = {(v4("web"), 443), (v6("web"), 443)}
    assert {(dst, port) for proto, dst, port in capture.destinations() if proto == "tcp"} <= web
    assert {(dst, port) for proto, dst, port in capture.destinations() if proto != "tcp"} == {(v4("dns"), 53)}
    assert {query.name for query in lab.dns.queries} == {"ok.test"}


def test_curl_h2(lab, who):
    lab.start_h2()
    result = lab.netgate(["--allow", "h2.test"],
                         ["curl", "-sS", "-o", "got", "-w", "%{http_version} %{size_download}", "https://h2.test/?n=2000000"],
                         user=who)
    assert result.out == "2 2000000", result
    (decision,) = allowed(result, "h2.test", 1)
    assert decision["alpn"] == "h2,http/1.1"  # as offered


def test_curl_http(lab, who):
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "http://ok.test/hello"], user=who)
    assert result.out == "hello from ok.test\n", result
    (decision,) = allowed(result, "ok.test", 1)
    assert (decision["proto"], decision["method"], decision["path"]) == ("http", "GET", "/hello")
    assert decision["name_from"] == "host" and decision["port"] == 80


def test_curl_two_families(lab, who):
    for family, number in (("-4", v4("web")), ("-6", v6("web"))):
        lab.reset()
        result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", family, "https://ok.test/hello"], user=who)
        assert result.out == "hello from ok.test\n", result
        assert lab.web.requests, "whichever family the sandbox uses, upstream is netgate's choice"


def test_ipv4_only_upstream(lab, who):
    """A client that prefers IPv6 works although the host has none."""
    for family in ("-4", "-6"):
        lab.reset()
        result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", family, "https://ok.test/hello"], user=who,
                             host=lab.v4only)
        assert result.out == "hello from ok.test\n", result
        assert {request.address for request in lab.web.requests} == {v4("web")}


def test_wildcard(lab, who):
    result = lab.netgate(["--allow", "*.wild.test"], ["curl", "-sS", "https://a_b.wild.test/hello"], user=who)
    assert result.out == "hello from a_b.wild.test\n", result
    allowed(result, "a_b.wild.test", 1)


def test_python_urllib(lab, who):
    result = lab.python(["--allow", "ok.test"], """
        import urllib.request
        for url in ("https://ok.test/hello", "http://ok.test/hello"):
            print(urllib.request.urlopen(url).read().decode(), end="")
    """, user=who)
    assert result.out == "hello from ok.test\n" * 2, result
    allowed(result, "ok.test", 2)


def test_node_fetch(lab, who):
    script = """
        const first = await fetch("https://ok.test/hello");
        process.stdout.write(await first.text());
        const body = "x".repeat(100000);
        const second = await fetch("https://ok.test/upload", { method: "POST", body });
        console.log((await second.json()).bytes);
    """
    result = lab.netgate(["--allow", "ok.test"], ["node", "--input-type=module", "-e", script], user=who)
    assert result.out == "hello from ok.test\n100000\n", result
    allowed(result, "ok.test")


def test_openssl_s_client(lab, who):
    command = "printf 'GET /hello HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: close\\r\\n\\r\\n' | " \
              "openssl s_client -quiet -verify_return_error -CAfile ca.pem -servername ok.test -connect ok.test:443 2>err"
    result = lab.netgate(["--allow", "ok.test"], ["sh", "-c", command], user=who)
    assert result.out.endswith("hello from ok.test\n"), result
    allowed(result, "ok.test", 1)


def test_openssl_resumption(lab, who):
    """TLS 1.2, a session kept and taken up again, with SNI and, where the address has the name, without."""
    lab.start_h2()
    base = "openssl s_client -tls1_2 -CAfile ca.pem -verify_return_error -connect h2.test:443"
    script = f"{base} -servername h2.test -sess_out s </dev/null >first 2>&1 && " \
             f"{base} -servername h2.test -sess_in s </dev/null >second 2>&1 && " \
             f"{base} -noservername -sess_in s </dev/null >third 2>&1; echo $?; grep -h '^New\\|^Reused' first second third"
    result = lab.netgate(["--allow", "h2.test"], ["sh", "-c", script], user=who)
    lines = result.out.splitlines()
    assert lines[0] == "0" and [line.split(",")[0] for line in lines[1:3]] == ["New", "Reused"], result
    decisions = allowed(result, "h2.test", 3)
    assert [decision["name_from"] for decision in decisions] == ["sni", "sni", "dns"]


def test_git_clone_and_push_over_https(lab, who):
    lab.start_git()
    script = """set -e
        git clone -q https://git.test/git/repo.git copy
        cd copy
        branch=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
        git checkout -q -b $branch
        head -c 3000000 /dev/urandom >big
        git add big
        git -c user.name=x -c user.email=x@ok.test commit -qm big
        git push -q origin $branch
        git ls-remote origin refs/heads/$branch | cut -f1
        git rev-parse HEAD"""
    result = lab.netgate(["--allow", "git.test"], ["sh", "-c", script], user=who, env={"GIT_CONFIG_GLOBAL": "/dev/null"})
    allowed(result, "git.test")
    pushed, local = result.out.split()
    assert pushed == local


def test_ssh_by_name(lab, who):
    server = lab.start_ssh()
    workspace = lab.workspace(who)
    key = os.path.join(workspace, "key")
    with open(server.client_key) as source, open(key, "w") as copy:
        copy.write(source.read())
    os.chmod(key, 0o600)
    if who:
        os.chown(key, who.uid, who.gid)
    command = ["ssh", "-F", "none", "-i", "key", "-o", "StrictHostKeyChecking=accept-new", "-o",
               "UserKnownHostsFile=known", "-o", "BatchMode=yes", f"{lab.user.name}@ssh.test", "wc -c; echo done"]
    data = pattern(1_000_000)
    result = lab.netgate(["--allow", "ssh.test:22"], command, stdin=data, user=who, workspace=workspace)
    assert result.out.split() == ["1000000", "done"], result
    (decision,) = allowed(result, "ssh.test", 1)
    assert decision["port"] == 22 and decision["name_from"] == "dns"
    assert result.one("close", conn=decision["conn"])["up"] > 1_000_000


def test_psql_by_name(lab, who):
    """psql asks for TLS with its own message first, is told no, and goes on in clear text."""
    result = lab.netgate(["--allow", "db.test:5432"],
                         ["psql", "-h", "db.test", "-U", "someone", "-d", "base", "-Atc", "select 'hello'"], user=who)
    assert result.out == "select 'hello'\n", result
    (decision,) = allowed(result, "db.test", 1)
    assert decision["port"] == 5432 and decision["name_from"] == "dns"


def test_pip(lab, who):
    result = lab.netgate(["--allow", "pip.test"],
                         ["/usr/bin/python3", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "download",
                          "--no-deps", "-q", "-d", "got", "--index-url", "https://pip.test/simple/", "labpackage"],
                         user=who)
    allowed(result, "pip.test")
    assert [request.path for request in lab.web.requests] == ["/simple/labpackage/", "/packages/labpackage-1.0-py3-none-any.whl"]


def test_apt(lab, who):
    """apt pipelines its requests over plain HTTP."""
    script = """set -e
        mkdir -p lists/partial cache/archives/partial etc
        echo 'deb [trusted=yes] http://apt.test/apt ./' >etc/sources.list
        touch status
        apt="apt-get -qq -o Dir::State=$PWD -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache -o Dir::Etc=$PWD/etc
            -o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::By-Hash=no"
        $apt update
        $apt download lab-package-0 lab-package-1 lab-package-2
        ls *.deb | wc -l"""
    result = lab.netgate(["--allow", "apt.test"], ["sh", "-c", script], user=who)
    assert result.out.split()[-1:] == ["3"], result
    allowed(result, "apt.test")
    assert result.err.count("E: ") == 0


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_redirect_to_a_denied_host(lab, who, scheme):
    """The redirect is followed by the client, and the gate has its own word on it."""
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sSL", f"{scheme}://ok.test/redirect?to={scheme}://bad.test/stolen"],
                         user=who)
    assert result.rc == 6, result
    assert result.of("decision", door="dns", host="bad.test", verdict="deny", reason="not_allowed")
    assert lab.web.seen("/stolen") == []


def test_upload_with_curl(lab, who):
    workspace = lab.workspace(who)
    data = pattern(3_000_000)
    with open(os.path.join(workspace, "data"), "wb") as out:
        out.write(data)
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "-T", "data", "https://ok.test/upload"], user=who,
                         workspace=workspace)
    assert result.shown[0] | {"chunks": 0} == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "chunks": 0,
                                               "trailers": {}}, result

# SPDX-License-Identifier: Apache-2.0
"""The lab itself: without netgate everything gets through and is seen, so that "nothing was seen" means something elsewhere."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from lab import DEAD, METADATA, pattern, v4, v6, wait_for

SEND = "import socket,sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sys.argv[3].encode(), (sys.argv[1], int(sys.argv[2])))"


def test_only_the_router_is_on_link(lab):
    for host in (lab.host, lab.v4only):
        routes = host.net.run("ip", "-4", "route", "show").splitlines()
        assert [route.split()[0] for route in routes] in (["default", "203.0.114.0/30"], ["default", "203.0.114.4/30"])
        links = json.loads(host.net.run("ip", "-j", "link"))
        assert sorted(link["ifname"] for link in links) == ["eth0", "lo"]
    links = json.loads(lab.inet.run("ip", "-j", "link"))
    assert {link["ifname"] for link in links} == {"lo"} | {host.name for host in lab.hosts}


def test_capture_sees_every_protocol(lab):
    with lab.capture() as capture:
        lab.on_host(["/usr/bin/python3", "-c", SEND, v4("raw"), "9999", "secret-in-udp"], check=True)
        lab.on_host(["ping", "-c", "2", "-i", "0.01", "-p", "73656372", v4("raw")], check=True)
        lab.on_host(["curl", "-sS", f"http://{METADATA}/latest/secret-in-http"], check=True)
        lab.on_host(["getent", "ahosts", "secret-in-dns.test"])
    assert len(capture.to(v4("raw"), "udp", 9999)) == 1
    assert len(capture.to(v4("raw"), "icmp")) == 2
    assert capture.to(METADATA, "tcp", 80)
    for secret in (b"secret-in-udp", b"secret-in-http", b"secret-in-dns"):
        assert capture.contains(secret), secret
    assert not capture.contains(b"never-sent")
    assert {query.name for query in lab.dns.asked("secret")} == {"secret-in-dns.test"}
    assert [request.path for request in lab.metadata.requests] == ["/latest/secret-in-http"]


def test_a_quiet_link_has_no_noise(lab):
    with lab.capture() as capture:
        lab.on_host(["true"], check=True)
    assert capture.packets == []


def test_dead_address_answers_nothing(lab):
    done = lab.on_host(["curl", "-sS", "--connect-timeout", "0.3", f"http://{v4(DEAD)}/"])
    assert done.returncode == 28, done


def test_dns(lab):
    lab.dns.add("chain.test", cname="ok.test")
    done = lab.on_host(["getent", "ahostsv4", "chain.test"], check=True)
    assert v4("web") in done.stdout
    assert {(query.name, query.qtype, query.transport) for query in lab.dns.queries} >= {("chain.test", "A", "udp")}
    assert lab.on_host(["getent", "ahosts", "missing.test"]).returncode == 2


def test_web(lab):
    data = os.path.join(lab.folder, "upload")
    with open(data, "wb") as out:
        out.write(pattern(300_000))
    digest = hashlib.sha256(pattern(300_000)).hexdigest()
    for extra in ([], ["-H", "Transfer-Encoding: chunked"]):
        done = lab.on_host(["curl", "-sS", *extra, "--data-binary", f"@{data}", "https://ok.test/upload"], check=True)
        assert json.loads(done.stdout)["sha256"] == digest
    done = lab.on_host(["curl", "-sS", "-o", data + ".down", "https://ok.test/bytes?n=300000"], check=True)
    with open(data + ".down", "rb") as got:
        assert hashlib.sha256(got.read()).hexdigest() == digest
    assert lab.on_host(["curl", "-sS", "https://ok.test/cut"]).returncode == 18
    assert lab.on_host(["curl", "-sSL", "http://ok.test/redirect?to=https://other.test/"]).stdout == "hello from other.test\n"
    chunked = lab.on_host(["curl", "-sS", "-o", data + ".down", "http://ok.test/chunked?n=10&size=1000"], check=True)
    with open(data + ".down", "rb") as got:
        assert got.read() == pattern(10_000)
    assert chunked.stdout == ""
    assert [request.sni for request in lab.web.requests] == ["ok.test"] * 4 + [None, "other.test", None]


def test_certificate_is_checked(lab):
    assert lab.on_host(["curl", "-sS", "--resolve", f"wrong.invalid:443:{v4('web')}", "https://wrong.invalid/"]).returncode == 60


def test_h2(lab):
    lab.start_h2()
    done = lab.on_host(["curl", "-sS", "--data-binary", "abc", "https://h2.test/"], check=True)
    assert json.loads(done.stdout) == {"version": "2.0", "bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}


def test_ipv4_only_host(lab):
    done = lab.on_host(["curl", "-sS", "https://ok.test/"], host=lab.v4only, check=True)
    assert done.stdout == "hello from ok.test\n"
    assert lab.on_host(["curl", "-sS", f"http://[{v6('web')}]/"], host=lab.v4only).returncode == 7
    assert {request.address for request in lab.web.requests} == {v4("web")}


@pytest.mark.parametrize("signal", [9, 15])
def test_nothing_stays_behind_when_the_lab_is_killed(signal):
    """Namespaces and processes go with their owner; a leftover user and folder go with the next lab."""
    script = "from lab import Lab; lab = Lab(); lab.start_h2(); print(lab.folder, lab._h2.pid, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}) as child:
        folder, node = child.stdout.readline().split()
        assert os.path.isdir(folder)
        child.send_signal(signal)
    wait_for(lambda: not os.path.exists(f"/proc/{node}"), "the end of the lab's HTTP/2 server")
    name = f"ngl{child.pid}-1"
    subprocess.run([sys.executable, "-c", "from lab import Lab; Lab().close()"], check=True,
                   env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))})
    assert not os.path.exists(folder)
    with open("/etc/passwd") as passwd:
        assert not any(line.startswith(name + ":") for line in passwd)

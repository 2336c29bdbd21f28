# SPDX-License-Identifier: Apache-2.0
"""QUIC is refused, and its record names the host that was wanted: datagrams of the fuzzing corpus, sent from the sandbox."""

import os
import subprocess

import pytest

from lab import v4, v6, wait_for
from lab.lab import TOP
from test_deny import nothing_left

CORPUS = os.path.join(TOP, "tests", "fuzz", "corpus", "fuzz_quic_initial")
HEADERS = {"AF_INET": 28, "AF_INET6": 48}
ADDRESSES = {"AF_INET": v4("raw"), "AF_INET6": v6("raw")}

# From one port, which is not connected and so learns nothing of a refusal.
SEND = """
    def send(*datagrams, host=sys.argv[2], port=443):
        with socket.socket(getattr(socket, sys.argv[1]), socket.SOCK_DGRAM) as sock:
            for datagram in datagrams:
                sock.sendto(bytes.fromhex(datagram), (host, port))
"""


def corpus(name):
    with open(os.path.join(CORPUS, name), "rb") as file:
        return file.read()


def run(lab, who, text, *names, family="AF_INET"):
    """A script in the sandbox that has send(), and these datagrams in `datagrams`; nothing of what it does may leave."""
    script = SEND + "    datagrams = sys.argv[3:]\n" + text
    with lab.capture() as capture:
        result = lab.python(["--allow", "ok.test"], script, family, ADDRESSES[family], *[corpus(name).hex() for name in names],
                            user=who)
    assert result.rc == 0, result
    nothing_left(capture, lab)
    return result


def totals(result, key):
    """{quic_name or None: sum of `key`} over the records of QUIC."""
    sums = {}
    for record in result.of("drop", reason="quic"):
        name = record.get("quic_name")
        sums[name] = sums.get(name, 0) + record[key]
    return sums


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_names(lab, who, family):
    """The Initials of RFC 9001 and RFC 9369, and one ClientHello in two datagrams whose frames are out of order."""
    names = ["rfc9001-a2", "rfc9369-a2", "split-1", "split-2", "retry"]
    result = run(lab, who, """
    v1, v2, first, second, retry = datagrams
    send(v1)
    send(v2)
    send(first, second)
    send(second, first)
    send(retry)
    """, *names, family=family)
    size = {name: len(corpus(name)) + HEADERS[family] for name in names}
    assert totals(result, "count") == {"example.com": 2, "split.test": 4, None: 1}, result
    assert totals(result, "bytes") == {"example.com": size["rfc9001-a2"] + size["rfc9369-a2"], None: size["retry"],
                                       "split.test": 2 * (size["split-1"] + size["split-2"])}, result
    for record in result.of("drop", reason="quic"):
        assert (record["proto"], record["dst"], record["port"]) == ("udp", ADDRESSES[family], 443), record
    assert "denied  example.com:443/udp (QUIC)" in result.err, result
    assert "denied  split.test:443/udp (QUIC)" in result.err, result


def test_refused_at_the_first_datagram(lab, who):
    """A client whose ClientHello needs two datagrams hears the refusal before it sends the second: the name is in the first."""
    result = run(lab, who, """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(TIMEOUT)
        sock.connect((sys.argv[2], 443))
        sock.send(bytes.fromhex(datagrams[0]))
        try:
            sock.recv(1)
        except ConnectionRefusedError:
            show(refused=True)
    """, "early-1")
    assert result.shown == [{"refused": True}], result
    assert totals(result, "count") == {"early.test": 1}, result


def test_half_a_hello(lab, who):
    """Half a ClientHello without a name in it is on record by itself, without waiting for the job's end."""
    script = lab.script(SEND + """
    send(sys.argv[3])
    show(sent=True)
    sys.stdin.readline()
    """, "AF_INET", v4("raw"), corpus("split-2").hex())
    with lab.start(["--allow", "ok.test"], script, stdin=subprocess.PIPE, user=who) as running:
        assert running.next() == {"sent": True}
        wait_for(lambda: any(record["type"] == "drop" for record in running.records), "the record")
        result = running.finish(b"\n")
    assert totals(result, "count") == {None: 1}, result
    assert totals(result, "bytes") == {None: len(corpus("split-2")) + HEADERS["AF_INET"]}


def test_junk(lab, who):
    """Nothing that a datagram says can end the gate: each byte of an Initial changed, and cut everywhere. All are counted."""
    result = run(lab, who, """
    datagram = bytes.fromhex(datagrams[0])
    sent = 0
    for at in range(0, len(datagram), 7):
        changed = bytearray(datagram)
        changed[at] ^= 0x41
        send(bytes(changed).hex(), datagram[:at].hex())
        sent += 2
    show(sent=sent)
    send(datagram.hex(), port=444)
    show(alive=[info[4][0] for info in socket.getaddrinfo("ok.test", 443, socket.AF_INET, socket.SOCK_STREAM)])
    """, "rfc9001-a2")
    assert totals(result, "count") == {None: result.shown[0]["sent"]}, result
    assert result.shown[1]["alive"], result
    udp = result.one("drop", reason="udp", port=444)
    assert udp["count"] == 1 and "quic_name" not in udp
    end = result.one("end")
    assert end["drops"] == sum(record["count"] for record in result.of("drop"))

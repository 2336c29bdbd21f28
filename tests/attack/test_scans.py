# SPDX-License-Identifier: Apache-2.0
"""Well-known tools, as they come. Those that make their own packets need root."""

import pytest

from lab import v4

from .packets import SECRET

TARGET = v4("other")
# technique: command, {reasons} that root must leave on record; what a bare command leaves, None when the tool needs root
TOOLS = {
    "nmap -sS (SYN scan)": (["nmap", "-n", "-Pn", "-sS", "-p", "22,80,443,8080", "--max-retries", "0", "--host-timeout", "60s", TARGET], {"half_open"}, None),
    "nmap -sU (UDP scan)": (["nmap", "-n", "-Pn", "-sU", "-p", "123,161,443,514", "--max-retries", "0", "--host-timeout", "60s", TARGET], {"udp", "quic"}, None),
    "nmap -sO (IP protocols)": (["nmap", "-n", "-Pn", "-sO", "-p", "1,2,4,41,47,50,132", "--max-retries", "0", "--host-timeout", "60s", TARGET], {"ip_protocol", "icmp"}, None),
    "nmap -sX (Xmas scan)": (["nmap", "-n", "-Pn", "-sX", "-p", "80,443", "--max-retries", "0", "--host-timeout", "60s", TARGET], {"malformed"}, None),
    "nmap -sT -sV (services)": (["nmap", "-n", "-Pn", "-sT", "-sV", "--version-light", "-p", "80", "--max-retries", "0", "--host-timeout", "60s", "--script-timeout", "1s", TARGET], {"no_name"}, {"no_name"}),
    "nmap -f (fragments), -D (decoys)": (["nmap", "-n", "-Pn", "-sS", "-f", "-D", "203.0.114.80", "-p", "443", "--max-retries", "0", "--host-timeout", "60s", TARGET], {"malformed", "spoofed"}, None),
    "hping3 SYN flood": (["hping3", "-q", "-i", "u100", "-c", "500", "-S", "-p", "443", TARGET], {"half_open"}, None),
    "hping3 UDP with data": (["hping3", "-q", "-i", "u1000", "-c", "50", "--udp", "-p", "9999", "-d", "200", "-e", SECRET.decode(), TARGET], {"udp"}, None),
    "hping3 ICMP with data": (["hping3", "-q", "-i", "u1000", "-c", "50", "--icmp", "-d", "200", "-e", SECRET.decode(), TARGET], {"icmp"}, None),
    "hping3 fragments": (["hping3", "-q", "-i", "u1000", "-c", "20", "-S", "-p", "443", "-f", "-d", "100", TARGET], {"malformed"}, None),
    "hping3 all flags": (["hping3", "-q", "-i", "u1000", "-c", "20", "-SAFRPUXY", "-p", "443", TARGET], {"malformed"}, None),
    "hping3 spoofed sources (LAND and others)": (["hping3", "-q", "-i", "u1000", "-c", "20", "-S", "-p", "443", "-a", TARGET, TARGET], {"spoofed"}, None),
    "hping3 random sources": (["hping3", "-q", "-i", "u1000", "-c", "20", "--rand-source", "-S", "-p", "443", TARGET], {"spoofed"}, None),
    "hping3 record route": (["hping3", "-q", "-i", "u1000", "-c", "5", "-G", "--icmp", TARGET], {"malformed"}, None),
    "hping3 raw IP": (["hping3", "-q", "-i", "u1000", "-c", "20", "--rawip", "-H", "253", "-d", "100", TARGET], {"ip_protocol"}, None),
    "traceroute by TTL": (["nmap", "-n", "-Pn", "-sn", "--traceroute", "-PE", "--max-retries", "0", "--host-timeout", "60s", TARGET], {"icmp"}, None),
}


@pytest.mark.parametrize("technique", TOOLS)
def test_tool(attack, technique):
    argv, as_root, as_bare = TOOLS[technique]
    with attack(technique) as attempt:
        done = attempt.run(argv, until=lambda: attempt.records("decision", reason="no_name"))
    reasons = {record["reason"] for kind in ("drop", "decision") for record in attempt.result.of(kind)}
    expected = as_root if attempt.root else as_bare
    if expected is None:
        assert not reasons - {"client_gone"} and ("root" in done.out + done.err or "ermitted" in done.err or "rror" in done.err), done
        attempt.refused("needs root")
        return
    assert expected <= reasons, (reasons, done)
    attempt.note(", ".join(f"`{reason}`" for reason in sorted(expected)))

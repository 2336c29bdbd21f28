# SPDX-License-Identifier: Apache-2.0
"""Another interface for a sandbox that exists: a veth pair between it and a host of the lab."""

import contextlib
import subprocess

NAME = "later"
HOST, BOX = {"4": "192.0.2.1", "6": "2001:db8::1"}, {"4": "192.0.2.2", "6": "2001:db8::2"}
EVERYWHERE = {"in4", "in6", "out4", "out6"}


class Late:
    """`netns`: the path of the sandbox's network namespace; `host`: what is at the other end. `name`, `index`: of the interface in the sandbox."""

    def __init__(self, host, netns, name=NAME, index=None):
        self.host, self.netns, self.name, self.index = host, netns, name, index

    def _run(self, argv, inside):
        return subprocess.run(self.host.command([*(["nsenter", f"--net={self.netns}"] if inside else []), *argv]),
                              capture_output=True, text=True, timeout=60)

    @contextlib.contextmanager
    def added(self, up=True):
        """The interface, with addresses of both families at both ends; without `up` it is down in the sandbox, and has none there."""
        index = f"index {self.index}" if self.index else ""
        self.host.net.ip(f"link add {NAME} type veth peer name {self.name} {index} netns {self.netns}")
        try:
            self.host.net.ip(f"link set {NAME} up", f"addr add {HOST['4']}/30 dev {NAME}", f"addr add {HOST['6']}/64 dev {NAME} nodad")
            if up:
                done = self._run(["sh", "-ec", f"echo 0 >/proc/sys/net/ipv6/conf/{self.name}/disable_ipv6; ip link set {self.name} up; "
                                  f"ip addr add {BOX['4']}/30 dev {self.name}; ip addr add {BOX['6']}/64 dev {self.name} nodad"], True)
                assert done.returncode == 0, done
            yield
        finally:
            self.host.net.ip(f"link del {NAME}")

    def reached(self):
        """Which ways and families a ping had an answer: EVERYWHERE, if nothing is in its way."""
        ways = [(way + family, to[family]) for way, to in (("in", BOX), ("out", HOST)) for family in "46"]
        return {what for what, to in ways if self._run(["ping", "-c", "1", "-W", "1", to], what.startswith("out")).returncode == 0}


__all__ = ["EVERYWHERE", "NAME", "Late"]

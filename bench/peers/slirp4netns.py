# SPDX-License-Identifier: Apache-2.0
"""slirp4netns: a user-mode network that lets everything through."""

import os

from common import tune
from lab.ns import NetNS

from . import SERVER, Peer


class Slirp4netns(Peer):
    title = "slirp4netns"
    note = "no allowlist"
    program = "slirp4netns"
    kinds = ("tls", "http", "dns")
    judges = False
    per_job = True

    def start(self):
        self.net = NetNS()
        tune(self.net.path)
        ready, write = os.pipe()
        try:
            self.run([self.find(), "--configure", "--mtu=65520", "--disable-host-loopback", f"--ready-fd={write}",
                      "--netns-type=path", self.net.path, "tap0"], pass_fds=[write])
        finally:
            os.close(write)
        with open(ready, "rb") as done:
            if done.read(1) != b"1":
                raise RuntimeError("slirp4netns did not start")

    def client(self):
        return self.place.client(SERVER, net=self.net)

    def resolver(self):
        return SERVER

    def stop(self):
        super().stop()
        self.net.close()

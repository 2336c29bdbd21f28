# SPDX-License-Identifier: Apache-2.0
"""No proxy: the gate's kernel forwards packets. All others are measured against it."""

from . import SERVER, Peer


class Direct(Peer):
    title = "direct"
    note = "routed, no proxy"
    kinds = ("tls", "http", "dns", "flood")
    judges = False

    def start(self):
        pass

    def client(self):
        return self.place.client(SERVER)

    def resolver(self):
        return SERVER

    def pids(self):
        return []

# SPDX-License-Identifier: Apache-2.0
"""pasta (of passt): a user-mode network that lets everything through."""

import os
import subprocess

from common import Client, family, name, tune_client

from . import SERVER, Peer


class Pasta(Peer):
    title = "pasta"
    note = "no allowlist"
    program = "pasta"
    kinds = ("tls", "http", "dns")
    judges = False
    per_job = True

    def start(self):
        """As an ordinary user: as root it becomes nobody, who can't set up root's namespace."""
        client = self.place.bench.helper("client")
        self.run([self.find(), "-f", "--config-net", "--no-map-gw", "-D", SERVER, "-i", "eth0", "-t", "none", "-u", "none",
                  "-T", "none", "-U", "none", "--", client, SERVER], user=self.place.lab.user,
                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._client = Client(self._process)
        tune_client(self._process.pid)

    def client(self):
        return self._client

    def resolver(self):
        return SERVER

    def pids(self):
        return [pid for pid in family(self._process.pid) if os.path.exists(f"/proc/{pid}") and name(pid) != "client"]

    def stop(self):
        if self._process:
            self._client.close()
            self._process = None

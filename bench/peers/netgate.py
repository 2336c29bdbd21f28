# SPDX-License-Identifier: Apache-2.0
"""netgate, with its defaults: the client is the command in its sandbox. The log goes to a file."""

import os
import shutil
import subprocess

from common import RAW_PORT, Client, family, name, tune_client

from . import HOST, SERVER, Peer

GATE = "10.200.0.1"


class Netgate(Peer):
    title = "netgate"
    note = "names, each request, every record"
    kinds = ("tls", "http", "dns", "flood")
    per_job = True

    def start(self):
        place = self.place
        workspace = place.lab.workspace()
        shutil.copy(place.bench.helper("client"), workspace)
        script = f'set -- $(getent ahostsv4 {HOST}) && exec ./client "$1"'
        self.running = place.lab.start(
            ["-q", "--resolver", SERVER, "--allow", HOST, "--allow", f"{HOST}:{RAW_PORT}"], ["sh", "-c", script],
            host=place.host, workspace=workspace, stdin=subprocess.PIPE, stderr=None)
        self._process = self.running.process
        self._client = Client(self._process)
        tune_client(self._process.pid)

    def client(self):
        """The only one: ending it ends netgate."""
        return self._client

    def resolver(self):
        return GATE

    def pids(self):
        """Everything but the command: whose a connection is, too, is found out at netgate's expense."""
        return [pid for pid in family(self._process.pid) if os.path.exists(f"/proc/{pid}") and name(pid) != "client"]

    def stop(self):
        if self._process:
            self._client.close()
            self._process = None

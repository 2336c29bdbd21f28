# SPDX-License-Identifier: Apache-2.0
"""mitmproxy without interception of TLS: by the name in CONNECT, and by each request's URI."""

import re

from . import HOST, Peer

SCRIPT = """from mitmproxy import http
ALLOWED = {{"{host}"}}


def http_connect(flow):
    if flow.request.host not in ALLOWED:
        flow.response = http.Response.make(403)


def request(flow):
    if flow.request.host not in ALLOWED:
        flow.response = http.Response.make(403)
"""


class Mitmproxy(Peer):
    title = "mitmproxy"
    note = "TLS passed through; the name in CONNECT, each request's URI"
    program = "mitmdump"
    port = 8080
    proxy = True

    def prepare(self):
        self.script = self.write("allow.py", SCRIPT.format(host=HOST))

    def command(self):
        return [self.find(), "--listen-host", self.place.address, "-p", str(self.port), "-q", "-s", self.script,
                "--set", f"confdir={self.place.folder}/conf", "--set", "block_global=false", "--set", "stream_large_bodies=1m",
                "--ignore-hosts", f"^{re.escape(HOST)}$"]

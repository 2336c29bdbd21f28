# SPDX-License-Identifier: Apache-2.0
"""sniproxy: by SNI. Of a connection with HTTP it looks at the first request only, so requests are not measured."""

import re

from . import HOST, SERVER, Peer

CONFIG = """user root
pidfile {folder}/sniproxy.pid
error_log {{
  filename {folder}/sniproxy.err
  priority notice
}}
resolver {{
  nameserver {server}
  mode ipv4_only
}}
listener {address}:443 {{
  proto tls
  table allow
}}
table allow {{
  ^{pattern}$ *:443
}}
"""


class Sniproxy(Peer):
    title = "sniproxy"
    note = "SNI"
    program = "sniproxy"
    version = ("-V",)
    kinds = ("tls",)

    def prepare(self):
        self.config = self.write("sniproxy.conf", CONFIG.format(
            address=self.place.address, pattern=re.escape(HOST), server=SERVER, folder=self.place.folder))

    def command(self):
        return [self.find(), "-f", "-c", self.config]

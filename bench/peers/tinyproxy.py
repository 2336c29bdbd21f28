# SPDX-License-Identifier: Apache-2.0
"""tinyproxy: by the name in CONNECT. It closes after each request, so requests are not measured."""

import re

from . import HOST, Peer

CONFIG = """Port 8888
Listen {address}
Timeout 600
MaxClients 9500
Filter "{filter}"
FilterDefaultDeny Yes
FilterExtended On
ConnectPort 443
LogLevel Error
LogFile "{folder}/tinyproxy.log"
PidFile "{folder}/tinyproxy.pid"
"""


class Tinyproxy(Peer):
    title = "tinyproxy"
    note = "the name in CONNECT"
    program = "tinyproxy"
    version = ("-v",)
    port = 8888
    proxy = True
    kinds = ("tls",)

    def prepare(self):
        names = self.write("filter", f"^{re.escape(HOST)}$\n")
        self.config = self.write("tinyproxy.conf", CONFIG.format(address=self.place.address, filter=names,
                                                                 folder=self.place.folder))

    def command(self):
        return [self.find(), "-d", "-c", self.config]

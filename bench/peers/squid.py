# SPDX-License-Identifier: Apache-2.0
"""Squid: transparent, with a peek at the SNI (a rule of nftables redirects to it); and as the proxy that clients ask."""

import subprocess

from . import HOST, SERVER, Peer

COMMON = """
visible_hostname bench
cache deny all
cache_log {folder}/cache.log
access_log none
pid_filename {folder}/squid.pid
max_filedescriptors 20000
workers 1
pinger_enable off
shutdown_lifetime 1 seconds
sslcrtd_program /bin/true
coredump_dir {folder}
dns_nameservers {server}
cache_effective_user proxy
server_persistent_connections on
acl names dstdomain {host}
acl CONNECT method CONNECT
acl p443 port 443
"""
EXPLICIT = """
http_port {address}:3128
http_access deny !names
http_access deny CONNECT !p443
http_access allow names
http_access deny all
"""
INTERCEPT = """
http_port {address}:3128
https_port {address}:3129 name=3129 intercept ssl-bump tls-cert={folder}/ca.pem generate-host-certificates=off
http_port {address}:3130 name=3130 intercept
acl sni ssl::server_name {host}
acl step1 at_step SslBump1
acl tls myportname 3129
ssl_bump peek step1
ssl_bump splice sni
ssl_bump terminate all
http_access allow tls CONNECT p443
http_access deny !names
http_access allow names
http_access deny all
"""
RULES = """table ip squid {
  chain pre {
    type nat hook prerouting priority dstnat
    iifname "cl0" tcp dport 443 redirect to :3129
    iifname "cl0" tcp dport 80 redirect to :3130
  }
}
"""


class Squid(Peer):
    program = "squid"
    version = ("-v",)
    port = 3128
    template = None

    def prepare(self):
        words = {"address": self.place.address, "host": HOST, "server": SERVER, "folder": self.place.folder}
        # Its shared memory has one name on a machine, so that two of it need names of their own.
        self.config = self.write("squid.conf", (COMMON + self.template).format(**words))

    def command(self):
        return [self.find(), "-n", f"bench{self.place.host.number}", "-N", "-f", self.config]


class Explicit(Squid):
    title = "Squid, CONNECT"
    note = "the name in CONNECT, each request's URI"
    proxy = True
    template = EXPLICIT


class Intercept(Squid):
    title = "Squid, intercept"
    note = "peek and splice by SNI, each request's Host; NAT"
    template = INTERCEPT

    def prepare(self):
        super().prepare()
        folder = self.place.folder
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=bench", "-days", "2", "-keyout", f"{folder}/ca.pem", "-out", f"{folder}/cert.pem"],
                       check=True, capture_output=True, timeout=60)
        with open(f"{folder}/cert.pem") as cert, open(f"{folder}/ca.pem", "a") as both:
            both.write(cert.read())
        self.place.host.net.run("nft", "-f", self.write("rules.nft", RULES))

    def client(self):
        return self.place.client(SERVER)

    def stop(self):
        if self._process:
            self.place.host.net.run("nft", "delete", "table", "ip", "squid")
        super().stop()

# SPDX-License-Identifier: Apache-2.0
"""HAProxy: TCP mode by SNI, with a look-up of the name and splice(2); HTTP mode by each request's Host.

One thread: with two, a look-up of do-resolve costs ten times as much when there is one connection at a time, and nothing is won with many.
"""

from . import HOST, SERVER, Peer

CONFIG = """
global
  maxconn 9200
  maxpipes 600
  nbthread 1
resolvers dns
  nameserver n1 {server}:53
  hold valid 10s
  timeout resolve 1s
  timeout retry 1s
defaults
  timeout connect 5s
  timeout client 5m
  timeout server 5m
frontend sni
  mode tcp
  option splice-auto
  bind {address}:443 backlog 4096
  tcp-request inspect-delay 5s
  acl hello req.ssl_hello_type 1
  acl ok req.ssl_sni -i {host}
  tcp-request content reject if hello !ok
  tcp-request content do-resolve(txn.dst,dns,ipv4) req.ssl_sni if hello ok
  tcp-request content reject if hello ok !{{ var(txn.dst) -m found }}
  tcp-request content set-dst var(txn.dst) if hello ok
  tcp-request content set-dst-port int(443) if hello ok
  tcp-request content accept if hello ok
  tcp-request content reject if WAIT_END
  default_backend any
backend any
  mode tcp
  option splice-auto
  server clear 0.0.0.0:0
frontend http
  mode http
  option splice-auto
  bind {address}:80 backlog 4096
  acl ok hdr(host) -i {host}
  http-request deny if !ok
  http-request do-resolve(txn.dst,dns,ipv4) hdr(host)
  http-request deny if !{{ var(txn.dst) -m found }}
  http-request set-dst var(txn.dst)
  http-request set-dst-port int(80)
  default_backend web
backend web
  mode http
  option splice-auto
  http-reuse safe
  server clear 0.0.0.0:0
"""


class Haproxy(Peer):
    title = "HAProxy"
    note = "SNI, do-resolve, splice; each request's Host"
    program = "haproxy"
    version = ("-v",)

    def prepare(self):
        self.config = self.write("haproxy.cfg", CONFIG.format(address=self.place.address, host=HOST, server=SERVER))

    def command(self):
        return [self.find(), "-db", "-f", self.config]

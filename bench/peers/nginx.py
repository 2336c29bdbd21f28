# SPDX-License-Identifier: Apache-2.0
"""nginx: the stream module reads the SNI, the HTTP module each request's Host, with connections to the server that stay."""

from . import HOST, SERVER, Peer

CONFIG = """
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off; worker_processes 2; worker_rlimit_nofile 20000; pid {folder}/nginx.pid; error_log {folder}/nginx.err;
events {{ worker_connections 9900; }}
stream {{
  resolver {server} ipv6=off valid=10s;
  map $ssl_preread_server_name $up {{ default ""; {host} {host}:443; }}
  server {{ listen {address}:443 backlog=4096; ssl_preread on; proxy_pass $up; proxy_connect_timeout 5s; proxy_half_close on;
    proxy_buffer_size 64k; }}
}}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; client_max_body_size 0; keepalive_requests 1000000000;
  map $host $web {{ default ""; {host} allowed; }}
  upstream allowed {{ server {host}:80; keepalive 64; keepalive_requests 1000000000; }}
  server {{ listen {address}:80 backlog=4096;
    location / {{ if ($web = "") {{ return 403; }} proxy_pass http://$web; proxy_http_version 1.1; proxy_set_header Host $host;
      proxy_set_header Connection ""; proxy_buffering off; proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k;
      proxy_request_buffering off; }} }}
}}
"""


class Nginx(Peer):
    title = "nginx"
    note = "stream ssl_preread; http by each request's Host"
    program = "nginx"
    version = ("-v",)

    def prepare(self):
        self.config = self.write("nginx.conf", CONFIG.format(address=self.place.address, host=HOST, server=SERVER,
                                                             folder=self.place.folder))

    def command(self):
        return [self.find(), "-p", self.place.folder, "-c", self.config]

"""nginx as a plain proxy that looks at nothing: the limit every gateway is compared with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from benchmarks.subjects.base import AbsentError, Launch

_CONFIG: Final = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 8192; multi_accept on; }}
http {{
  access_log off;
  tcp_nodelay on;
  keepalive_requests 100000000;
  keepalive_timeout 600s;
  client_max_body_size 64m;
  client_body_buffer_size 128k;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream mock {{
    server 127.0.0.1:{upstream};
    keepalive 2048;
    keepalive_requests 100000000;
    keepalive_timeout 600s;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location = /livez {{ return 200 "ok"; }}
    location / {{
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"""


class Nginx:
    name = "nginx"
    label = "nginx (proxy_pass, looks at nothing)"

    def launch(self, folder: Path, port: int, upstream_port: int) -> Launch | None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
        if program is None:
            raise AbsentError("nginx is not installed (apt-get install nginx-light)")
        config = folder / "nginx.conf"
        config.write_text(_CONFIG.format(folder=folder, port=port, upstream=upstream_port))
        return Launch([program, "-p", str(folder), "-c", str(config)])

    def install(self) -> None:
        if shutil.which("nginx", path="/usr/bin:/usr/sbin:/usr/local/sbin") is None:
            raise AbsentError("install nginx with the system's package manager")

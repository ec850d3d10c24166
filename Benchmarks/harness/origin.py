"""The origin of every proxy: one nginx on the client's core, with a port for each that asks, so that it can say who asked."""

import contextlib
import itertools
import os

from .processes import CLIENT_CORE, free_ports, process, wait_for_port

SIZES = [1024, 16384, 262144, 1 << 20, 4 << 20, 64 << 20]
# More than there are servers at one time; the first is that of the benchmark itself.
PORTS = 16
# Bodies of /k/N are 1 to 4 KiB long, by the last digit of N; those of /n/N about 1 KiB.
PAD = "".join(chr(97 + i % 26) for i in range(340))
REALISTIC_FIELDS = {
    "Content-Language": "en",
    "Vary": "Accept-Encoding",
    "X-Request-Id": "6f1d8a52-3c0e-4f5b-9b7a-2d41c6e0a913",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: https://images.example; frame-ancestors 'none'",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Last-Modified": "Tue, 01 Jul 2025 10:00:00 GMT",
}


def pattern(size):
    """The body of /files/SIZE: byte i is i modulo 251."""
    unit = bytes(range(251))
    return (unit * (size // 251 + 1))[:size]


def write_files(folder):
    os.makedirs(folder)
    for size in SIZES:
        path = os.path.join(folder, str(size))
        with open(path, "wb") as file:
            file.write(pattern(size))
        os.utime(path, (1751364000, 1751364000))


def configuration(folder, ports):
    user = f"user {os.environ.get('USER', 'root')};" if os.geteuid() == 0 else ""
    pads = "\n".join(f'~{digit}$ "{"$unit" * (digit + 3)}";' for digit in range(10))
    fields = "\n".join(f'add_header {name} "{value}";' for name, value in REALISTIC_FIELDS.items())
    listen = " ".join(f"listen 127.0.0.1:{port} backlog=4096;" for port in ports)
    return f"""daemon off; {user} worker_processes 1; pid {folder}/nginx.pid; error_log stderr;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    log_format asked "$server_port $request_uri"; access_log {folder}/asked asked;
    default_type application/octet-stream; sendfile on; tcp_nopush on; etag on;
    keepalive_requests 1000000000; keepalive_timeout 1h; open_file_cache max=100; open_file_cache_valid 1h;
    client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    map $uri $unit {{ default "{PAD}"; }}
    map $uri $pad {{ {pads} }}
    server {{
        {listen} root {folder};
        location /files/ {{ add_header Cache-Control max-age=86400; }}
        location /pass/ {{ alias {folder}/files/; add_header Cache-Control no-store; }}
        location /cold/ {{ rewrite ^ /files/1048576 break; add_header Cache-Control max-age=86400; }}
        location /json/ {{
            default_type application/json; add_header Cache-Control max-age=86400;
            return 200 '{{"data": {{"text": "$unit$unit$unit"}}}}';
        }}
        location ~ ^/n/(?<key>[0-9]+)$ {{
            default_type text/plain; add_header Cache-Control max-age=86400; add_header ETag '"$key"';
            return 200 "key $key\\n$unit$unit$unit";
        }}
        location ~ ^/k/(?<key>[0-9]+)$ {{
            default_type text/html; add_header Cache-Control "public, max-age=86400"; add_header ETag '"$key"';
            {fields}
            return 200 "key $key\\n$pad";
        }}
    }}
}}
"""


class Origin:
    def __init__(self, folder, ports):
        self.port, self.ports, self.log = ports[0], itertools.cycle(ports[1:]), os.path.join(folder, "asked")
        self.offset = 0

    def asked(self, port):
        """What has been asked at a port, since the last time that this was asked of any port."""
        with open(self.log) as text:
            text.seek(self.offset)
            lines = text.readlines()
            self.offset = text.tell()
        return [line.split()[1] for line in lines if line.startswith(f"{port} ")]


@contextlib.contextmanager
def origin(bench):
    folder, ports = bench.scratch("origin"), free_ports(PORTS)
    log, file = os.path.join(folder, "log"), os.path.join(folder, "nginx.conf")
    write_files(os.path.join(folder, "files"))
    with open(file, "w") as text:
        text.write(configuration(folder, ports))
    with process(["nginx", "-p", folder, "-c", file, "-e", log], log, core=CLIENT_CORE) as child:
        wait_for_port(ports[0], child, log)
        yield Origin(folder, ports)

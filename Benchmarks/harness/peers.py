"""The caching proxies of Debian, each as a reverse proxy with one worker before the origin, set up to be as fast as it can be.

All keep connections open to clients and to the origin, hold 1 KiB to 64 MiB objects, and pass on what the client sends.
"""

import contextlib
import os
import pwd
import resource
import shutil

from .processes import SERVER_CORE, Server, free_port, process, tail, wait_for_port

SPACE = 512 << 20


def own(folder, user):
    """Some of them leave root at once, and must be able to write."""
    if os.geteuid() == 0:
        shutil.chown(folder, user)


def exists(user):
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwnam(user))
    return False


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


@contextlib.contextmanager
def nginx(bench, logged=False, identity=None):
    """proxy_cache: files, sent with sendfile from the page cache; open files are remembered."""
    folder, port, origin = bench.scratch("nginx"), free_port(), next(bench.origin.ports)
    secure = free_port() if identity else 0
    tls = f"""listen 127.0.0.1:{secure} ssl backlog=4096; ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {identity}/certificate.pem; ssl_certificate_key {identity}/key.pem;""" if identity else ""
    user = f"user {os.environ.get('USER', 'root')};" if os.geteuid() == 0 else ""
    access = f"access_log {folder}/access.log combined buffer=64k flush=1s;" if logged else "access_log off;"
    temporary = "".join(
        f"{name}_temp_path {folder}/{name}; " for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = write(folder, "nginx.conf", f"""daemon off; {user} worker_processes 1; pid {folder}/nginx.pid; error_log stderr;
worker_rlimit_nofile 16384;
events {{ worker_connections 12000; }}
http {{
    {access} {temporary}
    sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 1h;
    open_file_cache max=20000 inactive=1h; open_file_cache_valid 1h;
    proxy_cache_path {folder}/cache levels=1:2 keys_zone=c:64m max_size=4g inactive=1d use_temp_path=off;
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 256; keepalive_requests 1000000000; }}
    proxy_http_version 1.1; proxy_set_header Connection "";
    server {{
        listen 127.0.0.1:{port} backlog=4096; {tls}
        location / {{ proxy_pass http://origin; proxy_cache c; proxy_cache_lock on; proxy_cache_lock_timeout 60s; }}
        location /pass/ {{
            proxy_pass http://origin; proxy_buffers 16 32k; proxy_buffer_size 32k; proxy_busy_buffers_size 64k;
            proxy_max_temp_file_size 0;
        }}
    }}
}}
""")
    with process(["nginx", "-p", folder, "-c", file, "-e", f"{folder}/log"], f"{folder}/log", core=SERVER_CORE) as child:
        wait_for_port(port, child, f"{folder}/log")
        yield Server("nginx", port, [child], origin, f"{folder}/log", f"{folder}/access.log", secure=secure)


@contextlib.contextmanager
def haproxy(bench, logged=False, identity=None):
    """Its cache is in memory, and made for small objects."""
    folder, port, origin = bench.scratch("haproxy"), free_port(), next(bench.origin.ports)
    secure = free_port() if identity else 0
    tls = f"bind 127.0.0.1:{secure} backlog 4096 ssl crt {identity}/both.pem alpn http/1.1" if identity else ""
    log = "log stdout format raw local0" if logged else ""
    option = "log global\n option httplog" if logged else ""
    file = write(folder, "haproxy.cfg", f"""global
 nbthread 1
 maxconn {min(12000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 100)}
 {log}
cache c
 total-max-size {SPACE >> 20}
 max-object-size {SPACE >> 2}
 max-age 86400
 process-vary on
defaults
 mode http
 timeout connect 5s
 timeout client 1h
 timeout server 60s
 timeout http-keep-alive 1h
 http-reuse always
 {option}
frontend f
 bind 127.0.0.1:{port} backlog 4096
 {tls}
 http-request cache-use c
 http-response cache-store c
 default_backend b
backend b
 server origin 127.0.0.1:{origin}
""")
    with process(["haproxy", "-db", "-f", file], f"{folder}/log", core=SERVER_CORE) as child:
        wait_for_port(port, child, f"{folder}/log")
        yield Server("HAProxy", port, [child], origin, f"{folder}/log", f"{folder}/log", secure=secure)


@contextlib.contextmanager
def varnish(bench, logged=False):
    """Storage in memory.  Its own rules pass requests with cookies on, so these are left out."""
    folder, port, origin = bench.scratch("varnish"), free_port(), next(bench.origin.ports)
    work, log = os.path.join(folder, "work"), f"{folder}/log"
    file = write(folder, "drydock.vcl", f"""vcl 4.1;
backend origin {{ .host = "127.0.0.1"; .port = "{origin}"; }}
sub vcl_recv {{ return (hash); }}
""")
    command = ["varnishd", "-F", "-j", "none", "-a", f"127.0.0.1:{port}", "-f", file, "-s", f"malloc,{SPACE}", "-n", work,
               "-p", "thread_pools=1", "-p", "timeout_idle=3600", "-p", "listen_depth=4096"]  # fmt: skip
    with contextlib.ExitStack() as stack:
        child = stack.enter_context(process(command, log, core=SERVER_CORE))
        wait_for_port(port, child, log)
        children = [child]
        if logged:
            command = ["varnishncsa", "-n", work, "-w", f"{folder}/access.log"]
            children.append(stack.enter_context(process(command, log, core=SERVER_CORE)))
        yield Server("Varnish", port, children, origin, log, f"{folder}/access.log")


@contextlib.contextmanager
def squid(bench, logged=False):
    """Everything in cache_mem, no disk."""
    folder, port, origin = bench.scratch("squid"), free_port(), next(bench.origin.ports)
    own(folder, "proxy")
    user = "cache_effective_user proxy" if os.geteuid() == 0 and exists("proxy") else ""
    log = f"access_log stdio:{folder}/access.log logformat=combined\nbuffered_logs on" if logged else "access_log none"
    file = write(folder, "squid.conf", f"""http_port 127.0.0.1:{port} accel no-vhost defaultsite=bench.example
cache_peer 127.0.0.1 parent {origin} 0 no-query no-digest no-netdb-exchange originserver name=origin
cache_peer_access origin allow all
never_direct allow all
http_access allow all
cache_mem {SPACE} bytes
maximum_object_size 128 MB
maximum_object_size_in_memory 128 MB
collapsed_forwarding on
client_persistent_connections on
server_persistent_connections on
client_idle_pconn_timeout 1 hour
max_filedescriptors 16384
pid_filename {folder}/squid.pid
cache_log {folder}/cache.log
coredump_dir {folder}
shutdown_lifetime 0 seconds
pinger_enable off
cache_store_log none
{user}
{log}
""")
    with process(["squid", "-N", "-f", file], f"{folder}/log", core=SERVER_CORE) as child:
        wait_for_port(port, child, f"{folder}/cache.log")
        yield Server("Squid", port, [child], origin, f"{folder}/cache.log", f"{folder}/access.log")


RECORDS = """CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.accept_threads INT 0
CONFIG proxy.config.task_threads INT 1
CONFIG proxy.config.cache.threads_per_disk INT 4
CONFIG proxy.config.cache.ram_cache.size INT {space}
CONFIG proxy.config.cache.ram_cache_cutoff INT 134217728
CONFIG proxy.config.cache.min_average_object_size INT 8000
CONFIG proxy.config.http.cache.http INT 1
CONFIG proxy.config.http.cache.required_headers INT 2
CONFIG proxy.config.http.cache.cache_responses_to_cookies INT 1
CONFIG proxy.config.http.insert_squid_x_forwarded_for INT 0
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 3600
CONFIG proxy.config.http.keep_alive_no_activity_timeout_out INT 3600
CONFIG proxy.config.net.connections_throttle INT 14000
CONFIG proxy.config.net.listen_backlog INT 4096
CONFIG proxy.config.url_remap.remap_required INT 1
CONFIG proxy.config.reverse_proxy.enabled INT 1
CONFIG proxy.config.http.cache.open_write_fail_action INT 5
CONFIG proxy.config.cache.enable_read_while_writer INT 1
CONFIG proxy.config.http.background_fill_active_timeout INT 0
CONFIG proxy.config.http.background_fill_completed_threshold FLOAT 0.0
CONFIG proxy.config.log.logging_enabled INT {logging}
CONFIG proxy.config.log.logfile_dir STRING {folder}/log
CONFIG proxy.config.log.rolling_enabled INT 0
CONFIG proxy.config.admin.user_id STRING trafficserver
"""
LOGGING = """logging:
  formats:
    - name: combined
      format: '%<chi> - %<caun> [%<cqtn>] "%<cqtx>" %<pssc> %<pscl> "%<{Referer}cqh>" "%<{User-agent}cqh>"'
  logs:
    - filename: access
      format: combined
      mode: ascii
"""


@contextlib.contextmanager
def traffic_server(bench, logged=False):
    """One event thread; the RAM cache before a cache file, from a folder of its own."""
    folder, port, origin = bench.scratch("trafficserver"), free_port(), next(bench.origin.ports)
    for name in ("etc", "log", "run", "cache", "var"):
        os.makedirs(os.path.join(folder, name))
        own(os.path.join(folder, name), "trafficserver")
    os.chmod(folder, 0o755)
    shutil.copytree("/etc/trafficserver/body_factory", f"{folder}/etc/body_factory")
    shutil.copy("/etc/trafficserver/ip_allow.yaml", f"{folder}/etc/ip_allow.yaml")
    write(folder, "etc/records.config", RECORDS.format(port=port, space=SPACE, folder=folder, logging=3 if logged else 0))
    write(folder, "etc/remap.config", f"map / http://127.0.0.1:{origin}/\n")
    write(folder, "etc/storage.config", f"{folder}/cache 2G\n")
    write(folder, "etc/logging.yaml", LOGGING)
    root = write(folder, "runroot.yaml", f"""prefix: {folder}
exec_prefix: /usr
bindir: /usr/bin
sbindir: /usr/sbin
sysconfdir: {folder}/etc
datadir: {folder}/cache
includedir: /usr/include
libdir: /usr/lib/trafficserver
libexecdir: /usr/lib/trafficserver/modules
localstatedir: {folder}/var
runtimedir: {folder}/run
logdir: {folder}/log
cachedir: {folder}/cache
""")
    log = f"{folder}/output"
    with process(["traffic_server", f"--run-root={root}"], log, core=SERVER_CORE) as child:
        try:
            wait_for_port(port, child, log)
        except Exception as error:
            raise type(error)(f"{error}\n{tail(f'{folder}/log/diags.log')}") from None
        yield Server("Traffic Server", port, [child], origin, log, f"{folder}/log/access.log")


PEERS = {"nginx": nginx, "HAProxy": haproxy, "Varnish": varnish, "Squid": squid, "Traffic Server": traffic_server}

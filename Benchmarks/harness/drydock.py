"""Drydock itself: the release binary with a configuration for the workload, one loop unless the workload is about loops."""

import contextlib
import os
import re
import socket

from .asking import HOST
from .processes import SERVER_CORE, Failure, Server, free_port, process, wait_for_port

PREFIXES = ("files", "k", "n", "cold", "pass")
RULES = 1000


def services(origin, is_disk):
    """The origin by the prefixes of its paths, and by the host that a browser would name."""
    def service(name, match, path, more=""):
        return f'  - {{ name: {name}, match: {{ {match} }}, base_url: "http://127.0.0.1:{origin}{path}"{more} }}'

    tiers = "" if is_disk else ", cache: { disk: false }"
    lines = [service(name, f"prefix: /{name}", f"/{name}", tiers) for name in PREFIXES]
    lines.append(service("none", "prefix: /none", "/pass", ", cache: { mode: none }"))
    lines.append(service("mapped", "prefix: /mapped", "/json", tiers + ", response: { map: { text: data.text } }"))
    lines.append(service("shop", f"host: {HOST}", "", tiers))
    return "\n".join(lines)


def demo_service(folder):
    """A service with 1,000 rules; /demo/things/N/… is answered by the N-th of them."""
    rules = "\n".join(
        f"      - {{ name: rule{n}, path: /things/{n}/:id, demo: {{ file: body }} }}" for n in range(RULES)
    )
    return f"""  - name: demo
    match: {{ prefix: /demo }}
    demo: {{ enabled: true, files: {folder}, headers: {{ Content-Type: application/octet-stream }} }}
    endpoints:
{rules}
"""


def late_service(paths, first, step):
    """A service whose answer to /late/N comes `first` and N times `step` milliseconds after the request."""
    endpoints = "\n".join(
        f"      - {{ name: late{n}, path: /{n}, demo: {{ body: late, latency: {first + n * step}ms }} }}" for n in range(paths)
    )
    return f"""  - name: late
    match: {{ prefix: /late }}
    demo: {{ enabled: true }}
    endpoints:
{endpoints}
"""


def configure(
    bench, origin, logged=False, loops="1", memory="512MiB", max_object="8MiB", is_disk=False, demo=None, delays=None,
    connections=20_000, more="", identity=None, secure=0, authority=None,
):  # fmt: skip
    """A folder with a configuration; `demo` is the body of demo answers, `delays` are the words of `late_service`, `more` are further services,
    in which `ORIGIN` stands for the origin's port; `identity` has a certificate for clients that speak TLS at the port `secure`; `authority` is a
    local authority, by which tunnels to the host of a service are read.  Gives the folder, the file and the port."""
    folder, port = bench.scratch("drydock"), free_port()
    tls = f"tls: {{ certificate: {identity}/certificate.pem, key: {identity}/key.pem }}" if identity else ""
    also = f', "https://127.0.0.1:{secure}"' if identity else ""
    reads = f"ca: {authority}\nforward: {{ allow: [{HOST}], intercept: {{ hosts: [{HOST}] }} }}" if authority else ""
    text = f"""listen: [127.0.0.1:{port}{also}]
{tls}
{reads}
admin: unix:{folder}/admin.sock
loops: {loops}
name: drydock
limits: {{ connections: {connections}, per_client: {connections}, idle: 1h }}
log: {{ level: warning, access: {f'{folder}/access.log, format: combined' if logged else 'off'} }}
cache:
  memory: {{ size: {memory}, objects: 2000000, max_object: {max_object} }}
"""
    if is_disk:
        text += f"  disk: {{ path: {folder}/disk, size: 4GiB, min_free: 1MiB }}\n"
    text += f"services:\n{services(origin, is_disk)}\n"
    if demo is not None:
        with open(os.path.join(folder, "body"), "wb") as body:
            body.write(demo)
        text += demo_service(folder)
    if delays is not None:
        text += late_service(*delays)
    text += more.replace("ORIGIN", str(origin))
    file = os.path.join(folder, "drydock.yaml")
    with open(file, "w") as output:
        output.write(text)
    return folder, file, port


@contextlib.contextmanager
def drydock(bench, core=SERVER_CORE, wrapper=(), binary=None, environment=None, **options):
    """`wrapper` is a program and its options that run the binary; the other options are those of the configuration."""
    origin = next(bench.origin.ports)
    secure = free_port() if options.get("identity") else 0
    folder, file, port = configure(bench, origin, secure=secure, **options)
    log, command = os.path.join(folder, "log"), [*wrapper, binary or bench.binary, "serve", "-c", file]
    with process(command, log, core=core, **(environment or {})) as child:
        wait_for_port(port, child, log)
        yield Server("Drydock", port, [child], origin, log, f"{folder}/access.log", admin=f"{folder}/admin.sock",
                     secure=secure)  # fmt: skip


def metric(server, name):
    """One of the daemon's own metrics."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(server.admin)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    found = re.search(rf"^{name} (\d+)", text, re.MULTILINE)
    if not found:
        raise Failure(f"Drydock has no metric {name}")
    return int(found[1])

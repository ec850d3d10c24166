"""Clients that speak TLS 1.3: hits over connections kept alive, handshakes, and connections at rest, with one P-256 certificate for all; and
the same inside of tunnels that Drydock reads."""

import contextlib
import os
import subprocess

from . import goals
from .asking import HOST, Ask
from .bench import compile_c
from .client import run, secure_wrk
from .contest import Entry, Result, Verdict, Workload
from .drydock import drydock
from .memory import settled
from .peers import haproxy, nginx
from .processes import CLIENT_CORE, Failure

KIB = 1024
CONNECTIONS, WARMING, LIMIT = 4_000, 64, 18 * KIB
STARTS = {goals.US: drydock, "nginx": nginx, "HAProxy": haproxy}


def identity(bench):
    """A key and a certificate of its own, in one file and in two; the same for every server."""
    folder = os.path.join(bench.folder, "identity")
    if not os.path.exists(folder):
        os.makedirs(folder)
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                   "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                   "-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem"]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        with open(f"{folder}/both.pem", "w") as both:
            for name in ("certificate", "key"):
                with open(f"{folder}/{name}.pem") as part:
                    both.write(part.read())
        # The key is Drydock's and the peers', which leave root only after they have read it.
        os.chmod(f"{folder}/key.pem", 0o600)
    return folder


def over_tls(start):
    """The same server, with a second port where clients speak TLS."""
    return lambda bench: start(bench, identity=identity(bench))


def entries(question):
    return [Entry(name, over_tls(start), question) for name, start in STARTS.items()]


def hits():
    for size, limit in ((KIB, 0.80), (16 * KIB, 0.70), (256 * KIB, 0.75)):
        yield Workload(f"tls-{size >> 10}k", f"TLS 1.3, kept alive, memory hit, {size >> 10} KiB", entries(Ask(f"/files/{size}")),
                       [goals.at_most(limit, "nginx"), goals.compared("HAProxy")], secure_wrk())  # fmt: skip


def shake(kind, host=None):
    """`host` is where tunnels lead to in which everything is asked; none by default."""
    size = KIB

    def load(server, question, seconds):
        port, more = (server.port, [host]) if host else (server.secure, [])
        return run([shaker(), str(port), question.path, str(size), str(seconds), kind, *more], seconds)

    return load


def shaker():
    return compile_c("shake", "-lssl", "-lcrypto")


def handshakes():
    for kind, title in (("full", "full handshake"), ("resumed", "resumed handshake")):
        yield Workload(f"tls-{kind}", f"TLS 1.3, {title}, memory hit of 1 KiB, close", entries(Ask(f"/files/{KIB}")),
                       [goals.at_most(1.05, "nginx"), goals.compared("HAProxy")], shake(kind))  # fmt: skip


def reading(bench):
    """Drydock with an authority of its own, which reads the tunnels to the host of a service."""
    authority = os.path.join(bench.scratch("authority"), "ca")
    subprocess.run([bench.binary, "ca", "create", "--ca", authority], check=True, capture_output=True)
    return drydock(bench, authority=authority)


def tunnels():
    question, listener = Ask(f"/files/{KIB}"), "its TLS listener"
    yield Workload("tls-tunnel", "inside of a tunnel, kept alive, memory hit, 1 KiB",
                   [Entry(goals.US, reading, question, load=shake("kept", HOST)),
                    Entry(listener, over_tls(drydock), question, load=shake("kept"))],
                   [goals.at_most(1.10, listener)])  # fmt: skip
    yield Workload("tls-tunnel-new", "a new tunnel, full handshake, memory hit of 1 KiB, close",
                   [Entry(goals.US, reading, question)], [goals.within(600)], shake("full", HOST))  # fmt: skip


class Idle:
    name = "tls-idle"
    title = f"{CONNECTIONS:,} idle TLS connections"

    def run(self, bench):
        result = Result(self.name, self.title)
        for name, start in STARTS.items():
            with over_tls(start)(bench) as server:
                with resting(server, WARMING):
                    pass
                before = settled(server)
                with resting(server, CONNECTIONS):
                    each = (settled(server) - before) / CONNECTIONS
            result.notes.append(f"{name}: {each:.0f} bytes of anonymous memory a connection")
            if name == goals.US:
                result.verdicts.append(Verdict(f"at most {LIMIT:,} bytes each", f"{each:.0f} bytes", each <= LIMIT))
        return result


@contextlib.contextmanager
def resting(server, connections):
    """Connections that each have had an answer of 1 KiB, and stay open."""
    words = [str(server.secure), "/files/1024", str(KIB), str(connections), "hold"]
    with subprocess.Popen(["taskset", "-c", CLIENT_CORE, shaker(), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:  # fmt: skip
        try:
            if not child.stdout.readline():
                raise Failure(f"{server.name}: {child.stderr.read().decode().strip()}")
            yield
        finally:
            child.stdin.close()


GROUPS = {"tls": lambda: [*hits(), *handshakes(), *tunnels(), Idle()]}

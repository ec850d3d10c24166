"""What Drydock's memory is used for: an idle daemon, connections at rest, stored entries."""

import contextlib
import statistics
import subprocess
import time

from . import goals
from .asking import Ask, ask
from .bench import compile_c
from .client import crowd, walk
from .contest import Result, Verdict
from .drydock import drydock, metric
from .peers import PEERS
from .processes import CLIENT_CORE, Failure

CONNECTIONS, ENTRIES, WARMING = 10_000, 100_000, 2_000
# HAProxy reserves two descriptors a connection, and many machines allow 20,000.
PEERS_CONNECTIONS = 8_000


@contextlib.contextmanager
def resting(server, connections):
    """Connections that each have had an answer of 1 KiB, and stay open."""
    words = [str(server.port), "/files/1024", str(connections), "1024", "hold"]
    command = ["taskset", "-c", CLIENT_CORE, compile_c("crowd"), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            if not child.stdout.readline():
                raise Failure(f"{server.name}: {child.stderr.read().decode().strip()}")
            yield
        finally:
            child.stdin.close()


class Idle:
    name = "idle"
    title = f"{CONNECTIONS:,} idle keep-alive connections"

    def run(self, bench):
        result = Result(self.name, self.title)
        for name, start in ((goals.US, drydock), *PEERS.items()):
            with start(bench) as server:
                try:
                    each = one_server(server, CONNECTIONS if name == goals.US else PEERS_CONNECTIONS)
                except Failure as failure:
                    if name == goals.US:
                        raise
                    result.notes.append(f"{name}: {str(failure).splitlines()[-1]}")
                    continue
            result.notes.append(f"{name}: {each:.0f} bytes of anonymous memory a connection")
            if name == goals.US:
                result.verdicts.append(Verdict("at most 2,048 bytes each", f"{each:.0f} bytes", each <= 2048))
        return result


def one_server(server, connections):
    crowd(server, "/files/1024", 64, 1024)
    before = settled(server)
    with resting(server, connections):
        return (settled(server) - before) / connections


def settled(server):
    """Anonymous bytes, once they do not change any more."""
    last = -1
    for _ in range(20):
        time.sleep(1)
        now = server.memory()[1]
        if now == last:
            break
        last = now
    return now


class Resident:
    name = "resident"
    title = "anonymous memory of an idle daemon"

    def run(self, bench):
        result, sizes = Result(self.name, self.title), []
        for _ in range(bench.rounds):
            with drydock(bench, loops="auto", core=None, is_disk=True) as server:
                sizes.append(settled(server) / (1 << 20))
        middle = statistics.median(sizes)
        result.verdicts = [Verdict("RssAnon at most 15 MiB, as many loops as cores", f"{middle:.1f} MiB", middle <= 15)]
        return result


class Entries:
    name = "entries"
    title = f"{ENTRIES:,} stored entries in memory"

    def run(self, bench):
        result = Result(self.name, self.title)
        with drydock(bench, memory="4GiB") as server:
            # What the fetches need, as many at once as below, is there before the entries are counted.
            walk(server, Ask("/k/"), WARMING, 0)
            before, warmed = settled(server), metric(server, "drydock_memory_entries")
            filled = walk(server, Ask("/n/"), ENTRIES, 0)
            stored = metric(server, "drydock_memory_entries") - warmed
            if stored < ENTRIES:
                raise Failure(f"{stored} entries instead of {ENTRIES}")
            grown = settled(server) - before
        # Head and body as the origin sends them.
        own = sum(length(bench, key) * count for key, count in ((5, 10), (50, 90), (500, 900), (5000, 9000), (50000, 90000)))
        each = (grown - own) / ENTRIES
        result.notes = [f"{grown / ENTRIES:.0f} bytes an entry, of which head and body {own / ENTRIES:.0f}; "
                        f"answers were {filled['bytes'] / ENTRIES:.0f} bytes"]  # fmt: skip
        result.verdicts = [Verdict("at most 200 bytes each besides head and body", f"{each:.0f} bytes", each <= 200)]
        return result


def length(bench, key):
    answer = ask(bench.origin.port, Ask(f"/n/{key}"))
    head = sum(len(name) + len(value) + 4 for name, value in answer.fields.items()) + len("HTTP/1.1 200 OK\r\n\r\n")
    return head + len(answer.body)

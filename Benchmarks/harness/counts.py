"""Allocations and instructions per request, which do not depend on how busy the machine is.

Both are differences: what a daemon needs for 2N requests less what it needs for N in a time that is just as long, so that all that
is done once falls out, and so does what a daemon does every second, whether it is asked or not.
Instructions are those of user space, as callgrind counts them.
"""

import dataclasses
import functools
import os
import re
import socket
import struct
import subprocess
import time

from .asking import REALISTIC, Ask, ask
from .bench import bare_loop, compile_c
from .contest import Result, Verdict
from .drydock import RULES, drydock
from .origin import pattern
from .processes import Failure

ASKED_WHILE_ALLOCATING, ASKED_UNDER_CALLGRIND = 10_000, 2_000
ALLOWED = 0.05
ATTEMPTS = 3
# Kinds of answers besides hits.
PASSED, DEMO = "request that is passed on", "demo answer"
# What the head of each says.
SAID = {"hit": b"; hit", PASSED: b"; fwd=", DEMO: b"\r\nDrydock-Demo: "}


@dataclasses.dataclass
class Way:
    """What is asked for, and how many instructions it may take: about a tenth more than it did when that was written, and for
    what is passed on, where little can be lost at a time, a thirtieth."""

    name: str
    title: str
    limit: int | None
    path: str
    fields: tuple = ()
    is_logged: bool = False
    # From a file that stays open, and not from memory.
    is_disk: bool = False
    kind: str = "hit"

    def start(self, bench, **options):
        disk = {"is_disk": True, "max_object": "512KiB"} if self.is_disk else {}
        rules = {"demo": pattern(1 << 10)} if self.kind == DEMO else {}
        return drydock(bench, logged=self.is_logged, **disk, **rules, **options)


WAYS = (
    Way("1k", "1 KiB", 4_529, "/files/1024"),
    # A mapped response is stored as it is answered: a hit of it takes what any hit takes.
    Way("mapped", "1 KiB, mapped", 4_529, "/mapped/1024"),
    Way("16k", "16 KiB", 4_300, "/files/16384"),
    Way("fields", "12 request and 15 response fields", 10_300, "/k/7", REALISTIC),
    Way("304", "304", 8_600, "/files/1024", (("If-None-Match", '"6863b1a0-400"'),)),
    Way("log", "1 KiB with access log", 9_500, "/files/1024", is_logged=True),
    # A part of it, so that sending takes no time.
    Way("disk", "100 bytes of 1 MiB on the disk", 15_000, "/files/1048576", (("Range", "bytes=0-99"),), is_disk=True),
    # A call is listed as long as it is under way, for who begins to listen to events.
    Way("pass", "16 KiB", 38_200, "/pass/16384", kind=PASSED),
    # The rule is found among the others, and the outcome drawn.
    Way("demo", "1 KiB, 1,000 rules", 6_700, f"/demo/things/{RULES // 2}/7", kind=DEMO),
)


def requests(port, way, number):
    """Sequential requests on one connection, with as little of Python in the way as possible."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in way.fields)
    wanted = SAID[way.kind]
    host = "" if "Host:" in lines else f"Host: 127.0.0.1:{port}\r\n"
    request = f"GET {way.path} HTTP/1.1\r\n{host}{lines}\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        for _ in range(number):
            client.sendall(request)
            received = b""
            while b"\r\n\r\n" not in received:
                received += client.recv(65536) or fail("the connection was closed while it was counted")
            head, _, rest = received.partition(b"\r\n\r\n")
            if wanted not in head:
                fail(f"not a {way.kind} while it was counted:\n{head.decode('latin-1')}")
            is_empty = head.startswith(b"HTTP/1.1 304")
            left = 0 if is_empty else int(re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)[1]) - len(rest)
            while left > 0:
                left -= len(client.recv(65536) or fail("the connection was closed while it was counted"))


def timed_requests(port, way, number, seconds=0):
    """The same, and then a rest until so many seconds have passed; gives how many it were."""
    begin = time.monotonic()
    requests(port, way, number)
    time.sleep(max(0, begin + seconds - time.monotonic()))
    return time.monotonic() - begin


def fail(text):
    raise Failure(text)


def warm(port, way):
    """The whole is stored before conditions and parts are asked; a file stays open when it has been asked for some times."""
    fields = tuple(field for field in way.fields if not field[0].startswith("If-") and field[0] != "Range")
    for _ in range(6 if way.is_disk else 2):
        ask(port, Ask(way.path, fields))
        time.sleep(0.2 if way.is_disk else 0)


def allocations(bench, way):
    counter, file = compile_c("malloc_count.so", "-shared", "-fPIC"), os.path.join(bench.scratch("count"), "count")

    def count():
        with open(file, "rb") as data:
            return struct.unpack("=Q", data.read(8))[0]

    with way.start(bench, environment={"LD_PRELOAD": counter, "MALLOC_COUNT": file}) as server:
        warm(server.port, way)
        requests(server.port, way, ASKED_WHILE_ALLOCATING)
        before = count()
        seconds = timed_requests(server.port, way, 2 * ASKED_WHILE_ALLOCATING)
        middle = count()
        timed_requests(server.port, way, ASKED_WHILE_ALLOCATING, seconds)
        after = count()
    if before == 0:
        raise Failure("the allocation counter was not loaded")
    return ((middle - before) - (after - middle)) / ASKED_WHILE_ALLOCATING


def instructions(bench, start, way):
    """All instructions of a server that `start` runs under callgrind, twice."""
    totals, seconds = [], 0
    for number in (2 * ASKED_UNDER_CALLGRIND, ASKED_UNDER_CALLGRIND):
        folder = bench.scratch("callgrind")
        wrapper = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--quiet")
        with start(bench, wrapper=wrapper) as server:
            warm(server.port, way)
            seconds = timed_requests(server.port, way, number, seconds)
        with open(f"{folder}/out") as text:
            totals.append(int(re.search(r"^(?:summary|totals): (\d+)", text.read(), re.MULTILINE)[1]))
    return (totals[0] - totals[1]) / ASKED_UNDER_CALLGRIND


def without_symbols(bench, binary):
    """callgrind reads a binary's debug information at each start, which takes long."""
    path = os.path.join(bench.scratch("binary"), "drydock")
    subprocess.run(["objcopy", "--strip-debug", binary, path], check=True)
    return path


class Count:
    def __init__(self, way):
        self.way, self.name, self.title = way, f"counts-{way.name}", f"allocations and instructions of a {way.kind}, {way.title}"

    def run(self, bench):
        result, way = Result(self.name, self.title), self.way
        mallocs = allocations(bench, way)
        for _ in range(ATTEMPTS - 1):
            if way.kind == PASSED or mallocs < ALLOWED:
                break
            result.notes.append(f"counted again after {mallocs:.2f} allocations")
            mallocs = allocations(bench, way)
        if way.kind == PASSED:
            result.notes.append(f"{mallocs:.1f} allocations")
        else:
            result.verdicts.append(Verdict("no allocation", f"{mallocs:.2f}", mallocs < ALLOWED))
        binary = without_symbols(bench, bench.binary)
        start = functools.partial(way.start, binary=binary)
        ours = instructions(bench, start, way)
        for _ in range(ATTEMPTS - 1):
            if not way.limit or ours <= way.limit:
                break
            # What a daemon does now and then may fall into one of the two runs alone.
            result.notes.append(f"counted again after {ours:,.0f} instructions")
            ours = instructions(bench, start, way)
        goal = f"at most {way.limit:,} instructions" if way.limit else "instructions"
        result.verdicts.append(Verdict(goal, f"{ours:,.0f}", way.limit and ours <= way.limit))
        if way.path.startswith("/files/") and not way.fields:
            bare = instructions(bench, functools.partial(bare_loop, size=int(way.path.rpartition("/")[2])), way)
            result.notes.append(f"the bare loop has {bare:,.0f} instructions")
        return result

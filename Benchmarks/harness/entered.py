"""How many files of Sources a reader enters with a request: those of which the daemon runs instructions for each one.

They are counted with callgrind from the debug information of the release binary, in which a function that was inlined still has its own
file.  A file belongs to a request if twice as many requests take at least one instruction a request more in it.
"""

import collections
import dataclasses
import os
import re
import shutil
import socket
import subprocess

from .contest import Result, Verdict
from .counts import fail, without_symbols
from .drydock import drydock

ASKED, ATTEMPTS = 30, 3
IS_OURS = re.compile(r"^(?!.*/(?:checkouts|swift-syntax)/).*/Sources/\w+/.*\.swift:")
COST = re.compile(r"(0x[0-9a-f]+) \d+ (\d+)$")


@dataclasses.dataclass
class Walk:
    """A request that is walked through: where it goes, `%d` being another number each time, what the answer says, and at most how many files."""

    name: str
    title: str
    path: str
    said: bytes
    limit: int


# Before chapters were merged by concept the same count gave 52 and 265; what is counted by route, and told to those who watch, has added 2 and 3.
WALKS = (
    Walk("hit", "a hit from memory", "/files/1024", b"; hit", 40),
    Walk("miss", "a miss that is retried, mapped and stored on the disk", "/walk/%d", b"; fwd=uri-miss; fwd-status=200; stored", 185),
)
SERVICE = """  - name: walk
    match: { prefix: /walk }
    base_url: "http://127.0.0.1:ORIGIN/json"
    retry: { count: 2 }
    response: { map: { text: data.text } }
"""


def costs_of_addresses(path, binary):
    """Instructions by address within a program, as a profile of callgrind has them; what a call costs is told apart from it."""
    costs, is_called, is_ours = collections.Counter(), False, False
    with open(path, encoding="utf-8", errors="replace") as text:
        for line in text:
            if line.startswith("ob="):
                is_ours = line[3:].rstrip() == binary
            elif line.startswith("calls="):
                is_called = True
            elif cost := COST.match(line):
                if is_ours and not is_called:
                    costs[int(cost[1], 16)] += int(cost[2])
                is_called = False
    return costs


def files_of(binary, addresses):
    """The files of Sources whose code stands at each address, those of inlined functions among them."""
    # Debian has it by itself, and a toolchain of Swift brings it along.
    beside = os.path.join(os.path.dirname(os.path.realpath(shutil.which("swift") or "")), "llvm-symbolizer")
    found = subprocess.run(
        [shutil.which("llvm-symbolizer") or beside, "--inlines", "--functions=none", f"--obj={binary}"],
        input="".join(f"{address:#x}\n" for address in addresses), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    blocks = found.stdout.split("\n\n")
    return [{line.partition("/Sources/")[2].partition(":")[0] for line in block.split("\n") if IS_OURS.search(line)} for block in blocks]


def asked(port, walk, numbers):
    """One request after another on one connection."""
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        for number in numbers:
            path = walk.path % number if "%d" in walk.path else walk.path
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            received = b""
            while b"\r\n\r\n" not in received:
                received += client.recv(65536) or fail("the connection was closed")
            head, _, rest = received.partition(b"\r\n\r\n")
            if walk.said not in head:
                fail(f"not {walk.title}:\n{head.decode('latin-1')}")
            left = int(re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)[1]) - len(rest)
            while left > 0:
                left -= len(client.recv(65536) or fail("the connection was closed"))


def callgrind(folder):
    return [
        "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no", "--quiet",
    ]  # fmt: skip


def costs_of_files(folder, stripped, binary):
    """Instructions by file of a program that callgrind has run, which was `binary` without its debug information."""
    costs, by_file = costs_of_addresses(f"{folder}/out", stripped), collections.Counter()
    for address, files in zip(costs, files_of(binary, costs)):
        for file in files:
            by_file[file] += costs[address]
    return by_file


class Entered:
    """The walk of a request through the daemon."""

    def __init__(self, walk):
        self.walk, self.name, self.title = walk, f"entered-{walk.name}", f"files of Sources that {walk.title} enters"

    def costs(self, bench, stripped, rounds):
        """Instructions by file of so many rounds of requests, and of what precedes them."""
        folder = bench.scratch("callgrind")
        with drydock(bench, wrapper=callgrind(folder), binary=stripped, is_disk=True, more=SERVICE) as server:
            # What is made once is made before.
            asked(server.port, dataclasses.replace(self.walk, said=b"HTTP/1.1 200 "), range(3))
            asked(server.port, self.walk, range(100, 100 + rounds * ASKED))
        return costs_of_files(folder, stripped, bench.binary)

    def run(self, bench):
        result, stripped = Result(self.name, self.title), without_symbols(bench, bench.binary)
        files = None
        # What a daemon does now and then may fall into one of the two runs alone: what belongs to each request is found each time.
        for _ in range(ATTEMPTS):
            once, twice = self.costs(bench, stripped, 1), self.costs(bench, stripped, 2)
            found = {file for file in twice if twice[file] - once[file] >= ASKED}
            files = found if files is None else files & found
            if len(files) <= self.walk.limit:
                break
        modules = collections.Counter(file.partition("/")[0] for file in files)
        result.notes.append(", ".join(f"{name} {count}" for name, count in modules.most_common()))
        if os.environ.get("DRYDOCK_NAME_FILES"):
            result.notes.append(" ".join(sorted(files)))
        result.verdicts.append(Verdict(f"at most {self.walk.limit} files", f"{len(files)}", 0 < len(files) <= self.walk.limit))
        return result

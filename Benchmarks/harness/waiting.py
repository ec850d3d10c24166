"""Demo answers that wait: what each costs while it does, how punctual they are, and how soon all is set back."""

import json
import resource
import socket
import statistics
import subprocess
import time

from .bench import compile_c
from .contest import Result, Verdict
from .drydock import drydock
from .memory import settled
from .processes import CLIENT_CORE, Failure

WANTED, PATHS, STEP, FIRST = 100_000, 1000, 10, 10_000
# Descriptors that the daemon and the client need besides the connections.
SPARE = 200
RESETS = 21


def possible():
    """As many connections as one process may have open."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard - SPARE)


class Waiting:
    name = "waiting"
    title = f"{WANTED:,} demo answers that wait at once, over 10 s"

    def run(self, bench):
        result, count = Result(self.name, self.title), possible()
        with drydock(bench, delays=(PATHS, FIRST, STEP), connections=count + 50) as server:
            words = [str(server.port), "/late/", str(count), str(PATHS), str(STEP)]
            command = ["taskset", "-c", CLIENT_CORE, compile_c("waiting"), *words]
            before = settled(server)
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
                if child.stdout.readline().strip() != "waiting":
                    raise Failure(f"waiting: {child.stderr.read().strip()}")
                each = (server.memory()[1] - before) / count
                out, errors = child.communicate(timeout=120)
            if child.returncode:
                raise Failure(f"waiting: {errors.strip()}")
            measured = json.loads(out)
            reset = resets(server)
        if count < WANTED:
            result.notes.append(f"{count:,} at once: no process here may have more files open (RLIMIT_NOFILE)")
        result.notes.append(
            f"ms later than stated: p50 {measured['p50']:.2f}, p99 {measured['p99']:.2f}, last {measured['last']:.2f}"
        )
        result.verdicts = [
            Verdict("p99 of the delay error under 2 ms", f"{measured['p99']:.2f} ms", measured["p99"] < 2),
            Verdict("under 4,096 bytes each", f"{each:.0f} bytes", each < 4096),
            Verdict("a reset between tests under 5 ms", f"{reset:.2f} ms", reset < 5),
        ]
        return result


def resets(server):
    """The median of milliseconds from the order to its answer, after each has something to set back."""
    times = []
    for _ in range(RESETS):
        start = time.monotonic()
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(server.admin)
            s.sendall(b"POST /v1/demo/reset?journal HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        if not text.startswith("HTTP/1.1 200"):
            raise Failure(f"a reset was refused: {text}")
        times.append((time.monotonic() - start) * 1000)
    return statistics.median(times)

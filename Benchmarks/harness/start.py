"""How long a daemon takes from its start to its first answer."""

import os
import statistics
import time

from .asking import Ask, ask
from .contest import Result, Verdict
from .drydock import configure
from .processes import SERVER_CORE, Failure, process, tail

LIMIT, STARTS = 50, 11


class Start:
    name = "start"
    title = "start to first answer, empty"

    def run(self, bench):
        result, times = Result(self.name, self.title), []
        for _ in range(STARTS):
            folder, file, port = configure(bench, bench.origin.port, is_disk=True)
            log, start = os.path.join(folder, "log"), time.monotonic()
            with process([bench.binary, "serve", "-c", file], log, core=SERVER_CORE) as child:
                wait_for_answer(port, child, log)
                times.append((time.monotonic() - start) * 1000)
        middle = statistics.median(times)
        result.notes = ["ms: " + " ".join(f"{one:.0f}" for one in times),
                        "with a million entries on disk: `Benchmarks/disk-scale` measures it"]  # fmt: skip
        result.verdicts = [Verdict(f"at most {LIMIT} ms", f"{middle:.1f} ms", middle <= LIMIT)]
        return result


def wait_for_answer(port, child, log):
    """Asks again and again, until the daemon gives what it has from the origin."""
    end = time.monotonic() + 20
    while child.poll() is None and time.monotonic() < end:
        try:
            if ask(port, Ask("/files/1024")).status == 200:
                return
        except Failure:
            time.sleep(0.0005)
    raise Failure(f"no first answer:\n{tail(log)}")

"""A cold key that a crowd asks for at once: how often the origin is asked, and how long until the last client is done."""

import contextlib
import statistics

from . import goals
from .client import crowd
from .contest import Result, Verdict
from .drydock import drydock
from .peers import PEERS
from .processes import Failure

CLIENTS, SIZE, LIMIT = 1000, 1 << 20, 1.3


class Cold:
    name = "cold"
    title = "cold key, 1,000 clients at once, 1 MiB"

    def run(self, bench):
        result = Result(self.name, self.title)
        measured = {name: [] for name in (goals.US, *PEERS)}
        with contextlib.ExitStack() as stack:
            servers = {name: stack.enter_context(start(bench)) for name, start in ((goals.US, drydock), *PEERS.items())}
            for server in servers.values():
                crowd(server, "/cold/warm", 1, SIZE)
            for number in range(bench.rounds):
                for name, server in servers.items():
                    try:
                        measured[name].append(one_round(bench, server, f"/cold/{number}"))
                    except Failure as failure:
                        if name == goals.US:
                            raise
                        result.notes.append(f"{name}: {str(failure).splitlines()[-1]}")
        for name, rounds in measured.items():
            if rounds:
                result.notes.append(note(name, rounds))
        ours = measured[goals.US]
        fetches = [one["fetches"] for one in ours]
        ratio = statistics.median(one["cold"] / one["hit"] for one in ours)
        result.verdicts = [
            Verdict("one fetch", " ".join(map(str, fetches)), set(fetches) == {1}),
            Verdict(f"last client done within {LIMIT} × the time of the same bytes as hits", f"{ratio:.2f} ×", ratio <= LIMIT),
        ]
        return result


def one_round(bench, server, path):
    bench.origin.asked(server.origin)
    cold = crowd(server, path, CLIENTS, SIZE)
    fetches = len(bench.origin.asked(server.origin))
    hit = crowd(server, path, CLIENTS, SIZE)
    return {"fetches": fetches, "cold": cold["last"], "hit": hit["last"], "first": cold["first"]}


def note(name, rounds):
    def all_of(what):
        return " ".join(f"{one[what]:.0f}" for one in rounds)

    ratio = statistics.median(one["cold"] / one["hit"] for one in rounds)
    return (f"{name}: fetches {all_of('fetches')}; the last client is done after {all_of('cold')} ms, as hits after "
            f"{all_of('hit')} ms: {ratio:.2f} ×")  # fmt: skip

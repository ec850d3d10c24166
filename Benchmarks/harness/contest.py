"""One workload, done by several servers in turn: warmed, watched while it is measured, and judged by its goals."""

import contextlib
import dataclasses
import statistics
import threading
from collections.abc import Callable

from .asking import Answer, Ask, ask, check
from .client import wrk
from .processes import Failure


# Requests that are under way at the end of a round, and single ones besides it.
SLACK = 200


@dataclasses.dataclass
class Entry:
    """A server in a workload: what starts it, and what it is asked."""

    name: str
    start: Callable
    question: Ask
    # Where other questions than `question` are checked while keys are asked for.
    samples: tuple = ()
    # Fills the cache; without it the question is asked twice.
    fill: Callable | None = None
    # What the answers must equal, where they are not the origin's.
    wanted: Answer | None = None
    # Who asks, where it is not the workload's load.
    load: Callable | None = None

    def questions(self):
        return self.samples or (self.question,)


@dataclasses.dataclass
class Workload:
    name: str
    title: str
    entries: list
    goals: list
    load: Callable = dataclasses.field(default_factory=wrk)
    # Whether the origin must not be asked anything; else it must be asked for each answer.
    is_hit: bool = True
    # Requests are counted by the bytes that arrived: some are under way at the start and the end of a round.
    is_large: bool = False
    is_logged: bool = False


@dataclasses.dataclass
class Result:
    """What a workload came to: for each server its rounds, for each goal what was measured, in words."""

    name: str
    title: str
    rounds: dict = dataclasses.field(default_factory=dict)
    verdicts: list = dataclasses.field(default_factory=list)
    # Lines about what has no rounds.
    notes: list = dataclasses.field(default_factory=list)
    failure: str = ""


@dataclasses.dataclass
class Verdict:
    goal: str
    measured: str
    # None where there is no goal.
    is_held: bool | None


def median(rounds, what):
    return statistics.median(one[what] for one in rounds)


def ratios(rounds, name, reference, what="cpu"):
    return [one[what] / other[what] for one, other in zip(rounds[name], rounds[reference], strict=True)]


class Watcher:
    """Asks single questions while a round is measured, and keeps the first failure."""

    def __init__(self, server, questions, answers, interval):
        self.server, self.questions, self.answers, self.interval = server, questions, answers, interval
        self.stop, self.failure, self.count, self.bytes = threading.Event(), None, 0, 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stop.wait(self.interval):
            question = self.questions[self.count % len(self.questions)]
            try:
                self.bytes += check(self.server, question, self.answers[question])
            except Failure as failure:
                self.failure = failure
                return
            self.count += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def one_round(bench, workload, entry, server, answers):
    # Large answers are checked once in a round, or else the check would be a part of what is measured.
    interval = bench.seconds / 3 if workload.is_large else 0.25
    bench.origin.asked(server.origin)
    with Watcher(server, entry.questions(), answers, interval) as watcher:
        before = server.cpu()
        result = (entry.load or workload.load)(server, entry.question, bench.seconds)
        cpu = server.cpu() - before
    if cpu <= 0:
        raise Failure("it used less time than the kernel counts: let rounds be longer")
    if watcher.failure:
        raise Failure(f"during the measurement: {watcher.failure}")
    asked = bench.origin.asked(server.origin)
    if workload.is_hit and asked:
        raise Failure(f"it asked the origin {len(asked)} times during the measurement, first for {asked[0]}")
    if not workload.is_hit and not result["requests"] <= len(asked) <= result["requests"] + SLACK:
        raise Failure(f"it gave {result['requests']} answers, and asked the origin {len(asked)} times")
    requests = result["requests"] + watcher.count
    if workload.is_large:
        requests = (result["bytes"] + watcher.bytes) / len(answers[entry.question].body)
    resident, anonymous = server.memory()
    return {"rate": requests / result["seconds"], "cpu": cpu / requests * 1e6, "p50": result["p50"], "p99": result["p99"],
            "resident": resident, "anonymous": anonymous, "requests": result["requests"]}  # fmt: skip


def prepare(bench, workload, entry, server, answers):
    """Until the origin is not asked any more: some servers store a moment after the answer, and some not at the first time."""
    def repeat(step):
        for _ in range(20):
            bench.origin.asked(server.origin)
            step()
            if not bench.origin.asked(server.origin):
                break

    if entry.fill:
        repeat(lambda: entry.fill(server, entry.question))
    for question in entry.questions():
        check(server, question, answers[question], first=True)
    if workload.is_hit:
        repeat(lambda: (entry.load or workload.load)(server, entry.question, 1))
    else:
        workload.load(server, entry.question, 1)
    for question in entry.questions():
        check(server, question, answers[question])


def lines(path):
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def named(step, bench, workload, entry, server, answers):
    """A step with one server, which says whose it was when it fails."""
    try:
        return step(bench, workload, entry, server, answers)
    except Failure as failure:
        raise Failure(f"{entry.name}: {failure}") from None


def run(bench, workload):
    result = Result(workload.name, workload.title, {entry.name: [] for entry in workload.entries})
    servers = []
    with contextlib.ExitStack() as stack:
        for entry in workload.entries:
            wanted = {one: entry.wanted or ask(bench.origin.port, one) for one in {entry.question, *entry.samples}}
            servers.append((entry, stack.enter_context(entry.start(bench)), wanted))
            named(prepare, bench, workload, *servers[-1])
        for _ in range(bench.rounds):
            for entry, server, wanted in servers:
                result.rounds[entry.name].append(named(one_round, bench, workload, entry, server, wanted))
    if workload.is_logged:
        for entry, server, _ in servers:
            wanted, got = sum(one["requests"] for one in result.rounds[entry.name]), lines(server.access_log)
            if got < wanted:
                raise Failure(f"{entry.name} logged {got} of at least {wanted} answers")
    result.verdicts = [verdict for goal in workload.goals for verdict in goal(result.rounds)]
    return result

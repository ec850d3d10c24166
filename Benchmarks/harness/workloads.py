"""The table of workloads: what is asked of whom, and the goals.  Works that are not rounds of requests have modules of their own."""

import functools

from . import goals
from .asking import REALISTIC, Answer, Ask, ask
from .bench import bare_loop
from .client import walk, wrk, zipf
from .contest import Entry, Workload
from .drydock import RULES, drydock
from .origin import pattern
from .peers import PEERS, nginx
from .processes import BOTH_CORES

KIB, MIB = 1024, 1 << 20
NAMES = tuple(PEERS)
FEW_KEYS = 10_000
KEY_COUNTS = (1_000, 100_000, 1_000_000)


def size_name(size):
    return f"{size >> 20} MiB" if size >= MIB else f"{size >> 10} KiB"


def everyone(question, peers=NAMES, **options):
    """Drydock and the peers, all asked the same."""
    entries = [Entry(goals.US, functools.partial(drydock, **options), question)]
    return entries + [Entry(name, functools.partial(PEERS[name], **options), question) for name in peers]


def hits():
    for size, limit in ((KIB, 1.15), (16 * KIB, 1.15), (256 * KIB, 1.10)):
        question = Ask(f"/files/{size}")
        entries = [Entry("bare loop", functools.partial(bare_loop, size=size), question), *everyone(question)]
        wanted = [goals.at_most(limit, "bare loop"), goals.below(*NAMES)]
        if size == KIB:
            wanted.append(goals.best(*NAMES))
        yield Workload(f"hits-{size >> 10}k", f"memory hit, {size_name(size)}", entries, wanted)


def logged():
    yield Workload("logged", "memory hit, 1 KiB, with access logs", everyone(Ask(f"/files/{KIB}"), logged=True),
               [goals.compared(*NAMES)], is_logged=True)  # fmt: skip


def fill_all(keys):
    return lambda server, question: walk(server, Ask(question.path.rstrip("0123456789"), question.fields), keys, 0)


def realistic():
    entries = everyone(Ask("/k/0", REALISTIC))
    samples = tuple(Ask(f"/k/{n}", REALISTIC) for n in range(0, FEW_KEYS, 97))
    for entry in entries:
        entry.samples, entry.fill = samples, fill_all(FEW_KEYS)
    yield Workload("realistic", "memory hit, realistic, 10,000 keys", entries,
               [goals.below(*NAMES)], zipf(FEW_KEYS))  # fmt: skip


def conditional():
    # The origin's nginx makes this tag of the file's time and length.
    unchanged = (("If-None-Match", '"6863b1a0-400"'),)
    yield Workload("not-modified", "304 to If-None-Match", filled(everyone(Ask("/files/1024?0", unchanged))), [goals.below(*NAMES)],
               lambda server, question, seconds: walk(server, Ask("/files/1024?", unchanged), 1, seconds))  # fmt: skip
    part = Ask(f"/files/{256 * KIB}", (("Range", "bytes=100000-101023"),))
    with_ranges = tuple(name for name in NAMES if name != "HAProxy")
    yield Workload("range", "1 KiB range of 256 KiB", filled(everyone(part, with_ranges)),
               [goals.below(*with_ranges)])  # fmt: skip


def filled(entries):
    """The whole is fetched before a part or a condition is asked for."""
    for entry in entries:
        entry.fill = lambda server, question: ask(server.port, Ask(question.path))
    return entries


def disk():
    for size, connections in ((MIB, 64), (64 * MIB, 8)):
        question = Ask(f"/files/{size}", cache_status=r"; hit; .*detail=disk")
        entries = [Entry(goals.US, functools.partial(drydock, is_disk=True, max_object="512KiB"), question),
                   Entry("nginx", nginx, question)]  # fmt: skip
        yield Workload(f"disk-{size >> 20}m", f"disk hit, {size_name(size)}, in the page cache", entries,
                   [goals.at_most(1.1, "nginx")], wrk(connections), is_large=size > MIB)  # fmt: skip


def passed():
    whole = (KIB, goals.at_most(1.5, "nginx")), (16 * KIB, goals.at_most(1.2, "nginx")), (
        256 * KIB, goals.below("nginx")), (4 * MIB, goals.below("nginx"))  # fmt: skip
    for size, goal in whole:
        yield pass_workload(f"pass-{size_name(size).replace(' ', '')[:-2].lower()}", f"pass-through, {size_name(size)}",
                        Ask(f"/pass/{size}", cache_status="; fwd="), goal, size)  # fmt: skip
    yield pass_workload("pass-fields", "pass-through, 1 KiB, 12 request fields",
                    Ask(f"/pass/{KIB}", REALISTIC, "; fwd="), goals.at_most(2.0, "nginx"), KIB)  # fmt: skip
    workload = pass_workload("pass-none", "pass-through, 1 KiB, cache.mode none", Ask(f"/pass/{KIB}"), goals.at_most(1.5, "nginx"), KIB)
    workload.entries[0].question = Ask(f"/none/{KIB}", cache_status="; fwd=")
    workload.entries[0].wanted = Answer(200, pattern(KIB), {"content-type": "application/octet-stream"})
    yield workload


def pass_workload(name, title, question, goal, size):
    entries = [Entry(goals.US, drydock, question), Entry("nginx", nginx, question)]
    load = wrk(64 if size < MIB else 16)
    return Workload(name, title, entries, [goal], load, is_hit=False, is_large=size > MIB)


def demo():
    answer = Answer(200, pattern(KIB), {"content-type": "application/octet-stream"})
    start = functools.partial(drydock, demo=answer.body)
    rule = Ask(f"/demo/things/{RULES // 2}/7", cache_status="")
    yield Workload("demo", "demo answer, 1 KiB, 1,000 rules", [
        Entry("demo answer", start, rule, wanted=answer), Entry("memory hit", start, Ask(f"/files/{KIB}"))],
        [goals.at_most(1.25, "memory hit", name="demo answer")])  # fmt: skip


def loops():
    question = Ask(f"/files/{KIB}")
    bare, entries = Answer(200, pattern(KIB), {}), []
    for count in ("1", "2"):
        # The same cores for all: a second loop shares them with the client, which costs the bare loop, too.
        entries.append(Entry(f"bare loop × {count}", functools.partial(bare_loop, size=KIB, loops=int(count), core=BOTH_CORES), question,
                             wanted=bare))  # fmt: skip
        entries.append(Entry(f"{goals.US} × {count}", functools.partial(drydock, loops=count, core=BOTH_CORES), question))
    yield Workload("loops", "memory hit, 1 KiB, two loops", entries,
                   [goals.at_most(1.15, "bare loop × 2", name=f"{goals.US} × 2"), goals.second_loop(5)])  # fmt: skip


def keys():
    """Asked for at random by walk.c, which checks that each answer is its key's."""
    question, entries = Ask("/n/0"), []
    # The bare loop's bodies begin like the origin's; the rest is its pattern.
    first = Answer(200, b"key 0\n" + pattern(KIB)[6:], {})
    for count in KEY_COUNTS:
        load = functools.partial(ask_keys, count)
        entries.append(Entry(f"bare loop {count:,}", functools.partial(bare_loop, size=KIB, keys=count), question,
                             wanted=first, load=load))  # fmt: skip
        entries.append(Entry(f"{goals.US} {count:,}", functools.partial(drydock, memory="8GiB"), question,
                             fill=fill_all(count), load=load))  # fmt: skip
    yield Workload("keys", "memory hit, 1 KiB, keys at random", entries, [goals.growth(KEY_COUNTS, 5)])


def ask_keys(count, server, question, seconds):
    return walk(server, Ask("/n/", question.fields), count, seconds)


GROUPS = {"hits": hits, "logged": logged, "realistic": realistic, "conditional": conditional, "disk": disk, "pass": passed,
          "demo": demo, "loops": loops, "keys": keys}  # fmt: skip

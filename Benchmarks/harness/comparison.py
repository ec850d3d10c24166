"""Two checkouts of Drydock against each other: hits in turn, and instructions per hit."""

import argparse
import contextlib
import functools
import os
import subprocess
import sys
import tempfile

from . import contest, counts, goals, report
from .asking import Ask
from .bench import TOOLS, TOP, check_machine, look_for_servers, running
from .contest import Entry, Workload
from .drydock import drydock
from .processes import Failure, output

SIZES = (1024, 16384)
BUILD = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--product", "drydock"]


def built(folder):
    print(f"building {folder}", file=sys.stderr, flush=True)
    try:
        subprocess.run(BUILD, cwd=folder, check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError:
        raise Failure(f"{folder} does not build") from None
    return os.path.join(folder, ".build/release/drydock")


@contextlib.contextmanager
def binary_of(what):
    """A binary, a folder with a checkout, or what git knows by that name; the last two are built."""
    if os.path.isfile(what):
        yield os.path.abspath(what)
    elif os.path.isdir(what):
        yield built(os.path.abspath(what))
    else:
        with tempfile.TemporaryDirectory(prefix="drydock-compare-") as folder:
            checkout = os.path.join(folder, "checkout")
            done = output(["git", "-C", TOP, "worktree", "add", "--detach", checkout, what])
            if done.returncode != 0:
                raise Failure(f"{what} is no binary, no folder and no revision: {done.stderr.strip()}")
            try:
                yield built(checkout)
            finally:
                subprocess.run(["git", "-C", TOP, "worktree", "remove", "--force", checkout], check=False)


def workload(size, binaries):
    entries = [Entry(name, functools.partial(drydock, binary=binary), Ask(f"/files/{size}")) for name, binary in binaries.items()]
    return Workload(f"hits-{size >> 10}k", f"memory hit, {size >> 10} KiB", entries, [goals.ratio("new", "old")])


def instructions(bench, binaries):
    rows = [("instructions per hit", "old", "new", "new ÷ old")]
    stripped = {name: counts.without_symbols(bench, binary) for name, binary in binaries.items()}
    for way in counts.WAYS:
        old, new = (counts.instructions(bench, functools.partial(way.start, binary=stripped[which]), way)
                    for which in ("old", "new"))  # fmt: skip
        rows.append((way.title, f"{old:.0f}", f"{new:.0f}", f"{new / old:.3f}"))
    return rows


def main():
    parser = argparse.ArgumentParser(prog="compare", description="Two versions of Drydock: CPU and instructions per hit.")
    parser.add_argument("old", help="a revision that git knows, a folder with a checkout, or a binary")
    parser.add_argument("new", help="the same")
    parser.add_argument("--rounds", type=int, default=5, help="of each (default 5)")
    parser.add_argument("--seconds", type=int, default=3, help="of a round (default 3)")
    options = parser.parse_args()
    look_for_servers()
    with contextlib.ExitStack() as stack:
        binaries = {"old": stack.enter_context(binary_of(options.old)), "new": stack.enter_context(binary_of(options.new))}
        check_machine(TOOLS, *binaries.values())
        bench = stack.enter_context(running(binaries["new"], options.rounds, options.seconds))
        results = [contest.run(bench, workload(size, binaries)) for size in SIZES]
        print(report.table([report.HEADING, *(row for result in results for row in report.medians(result))]))
        print("\n" + report.goals(results) + "\n", flush=True)
        print(report.table(instructions(bench, binaries)))
    return 0

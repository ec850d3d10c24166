"""The command: what is run, in which order, and what is written."""

import argparse
import os
import sys
import traceback

from . import contest, report, secure, special, workloads
from .bench import COUNTING_TOOLS, HERE, SECURE_TOOLS, TOOLS, TOP, check_machine, look_for_servers, running
from .processes import Failure

GROUPS = {**workloads.GROUPS, **secure.GROUPS, **special.GROUPS}


def arguments():
    parser = argparse.ArgumentParser(prog="bench", description="Drydock beside a bare loop and Debian's caching proxies.")
    parser.add_argument("--only", help=f"groups or single workloads, comma-separated; groups: {', '.join(GROUPS)}")
    parser.add_argument("--binary", default=os.path.join(TOP, ".build/release/drydock"), help="the release binary")
    parser.add_argument("--rounds", type=int, default=5, help="of each server (default 5)")
    parser.add_argument("--seconds", type=int, default=3, help="of a round (default 3)")
    parser.add_argument("--quick", action="store_true", help="two rounds of one second, to try it")
    parser.add_argument("--write", action="store_true", help="writes Benchmarks/RESULTS.md")
    parser.add_argument("--list", action="store_true", help="names every workload")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 2, 1
    if options.rounds < 1 or options.seconds < 1:
        parser.error("at least one round of one second")
    return options


def chosen(only):
    """The workloads that are wanted: (group, workload) in the order of the table."""
    wanted = only.split(",") if only else list(GROUPS)
    found = [(group, workload) for group, make in GROUPS.items() for workload in make() if group in wanted or workload.name in wanted]
    for name in wanted:
        if not any(name in (group, workload.name) for group, workload in found):
            raise Failure(f"there is no group or workload '{name}'; --list names them all")
    return found


def run_one(bench, workload):
    """A workload that fails is a result, too, and the others go on."""
    print(f"{workload.name}: {workload.title}", file=sys.stderr, flush=True)
    try:
        return contest.run(bench, workload) if isinstance(workload, contest.Workload) else workload.run(bench)
    except Failure as failure:
        return contest.Result(workload.name, workload.title, failure=str(failure))
    except Exception as error:
        traceback.print_exc()
        return contest.Result(workload.name, workload.title, failure=f"{type(error).__name__}: {error}")


def main():
    options = arguments()
    look_for_servers()
    wanted = chosen(options.only)
    if options.list:
        for group, workload in wanted:
            print(f"{group:12} {workload.name:14} {workload.title}")
        return 0
    groups = {group for group, _ in wanted}
    tools = COUNTING_TOOLS if groups <= {"counts", "entered"} else SECURE_TOOLS if groups == {"tls"} else TOOLS
    check_machine(tools, options.binary)
    results = []
    with running(options.binary, options.rounds, options.seconds) as bench:
        for _, workload in wanted:
            results.append(run_one(bench, workload))
            print(report.summary(results[-1]), file=sys.stderr, flush=True)
        text = report.markdown(results, report.surroundings(bench))
    print(text)
    if options.write:
        with open(os.path.join(HERE, "RESULTS.md"), "w") as file:
            file.write(text)
    missed = any(one.failure or any(verdict.is_held is False for verdict in one.verdicts) for one in results)
    return 1 if missed else 0

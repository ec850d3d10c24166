"""The report: one table of medians and ratios, the goals, what was measured with, and the raw rounds, as Markdown."""

import os
import platform
import re
import statistics
import time

from .bench import TOP
from .contest import median, ratios
from .goals import US
from .processes import output

PROGRAMS = {
    "nginx": ["nginx", "-v"],
    "HAProxy": ["haproxy", "-v"],
    "Varnish": ["varnishd", "-V"],
    "Squid": ["squid", "-v"],
    "Traffic Server": ["traffic_server", "-V"],
    "wrk": ["wrk", "-v"],
    "libevent": ["pkg-config", "--modversion", "libevent_core"],
    "valgrind": ["valgrind", "--version"],
    "gcc": ["cc", "--version"],
    "Swift": ["swift", "--version"],
}


def versions(binary):
    rows = []
    for name, command in PROGRAMS.items():
        done = output(command)
        found = re.search(r"\d+\.\d+[.0-9]*[-+~.\w]*", done.stdout + done.stderr)
        rows.append((name, found[0].rstrip(".") if found else "not there"))
    return [(US, output([binary, "--version"]).stdout.strip()), *rows]


def surroundings(bench):
    commit = output(["git", "-C", TOP, "log", "-1", "--format=%H"]).stdout.strip()
    dirty = output(["git", "-C", TOP, "status", "--porcelain"]).stdout.strip()
    with open("/proc/cpuinfo") as text:
        model = re.search(r"model name\s*: (.*)", text.read())
    with open("/proc/meminfo") as text:
        memory = int(re.search(r"MemTotal:\s+(\d+)", text.read())[1]) >> 20
    return [
        ("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ("commit", (commit or "unknown") + (" and changes that are not committed" if dirty else "")),
        ("machine", f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {memory} GiB"),
        ("kernel", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("rounds", f"{bench.rounds} of {bench.seconds} s for each server, in turn"),
        *versions(bench.binary),
    ]


def table(rows):
    """Markdown that can be read as it is: the first row is the heading, columns are as wide as they must be."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def mebibytes(count):
    return f"{count / (1 << 20):.1f}"


def medians(result, ours=None):
    """A row for each server of a work; the ratio is the CPU per request of `ours` to the server's, round by round."""
    ours = ours or next((name for name in (US, "demo answer", "two loops") if name in result.rounds), None)
    for name, rounds in result.rounds.items():
        ratio = "" if ours is None else f"{statistics.median(ratios(result.rounds, ours, name)):.2f}"
        rate, cpu = median(rounds, "rate"), median(rounds, "cpu")
        yield (result.title, name, f"{rate:.0f}" if rate >= 100 else f"{rate:.1f}", f"{cpu:.2f}", ratio,
               f"{median(rounds, 'p50'):.2f}", f"{median(rounds, 'p99'):.2f}", mebibytes(median(rounds, "resident")),
               mebibytes(median(rounds, "anonymous")))  # fmt: skip


HEADING = ("work", "server", "requests/s", "CPU µs/request", "our CPU ÷ its", "p50 ms", "p99 ms", "resident MiB",
           "anonymous MiB")  # fmt: skip


HELD = {True: "held", False: "**NOT held**", None: "no goal"}


def goals(results):
    rows = [("work", "goal", "measured", "")]
    for result in results:
        if result.failure:
            rows.append((result.title, "", "**failed**: " + result.failure.splitlines()[0].replace("|", "/"), "**NOT held**"))
        rows += [(result.title, one.goal, one.measured, HELD[one.is_held]) for one in result.verdicts]
    return table(rows)


def raw(results):
    rows = [("work", "server", "CPU µs/request", "requests/s", "p50 ms", "p99 ms")]
    for result in results:
        for name, rounds in result.rounds.items() if not result.failure else ():
            def listed(what, digits, rounds=rounds):
                return " ".join(f"{one[what]:.{digits}f}" for one in rounds)

            rows.append((result.title, name, listed("cpu", 2), listed("rate", 0), listed("p50", 2), listed("p99", 2)))
    return table(rows)


def summary(result):
    """What a work came to, for who waits."""
    lines = [table([HEADING, *medians(result)])] if result.rounds and not result.failure else []
    lines += [f"- {note}" for note in result.notes]
    lines += [f"- {one.goal}: {one.measured}: {HELD[one.is_held]}" for one in result.verdicts]
    return "\n".join(lines + [f"- failed: {result.failure}"] * bool(result.failure)) + "\n"


def markdown(results, around):
    parts = [
        "# Results\n\nWritten by `Benchmarks/bench --write`; [Documentation/speed.md](../Documentation/speed.md) says what each "
        "row means and how it is measured.",
        table([("measured with", ""), *around]),
        "## Goals\n\n" + goals(results),
        "## Medians\n\n" + table([HEADING, *(row for result in results if not result.failure for row in medians(result))]),
    ]
    notes = [f"- {result.title}: {note}" for result in results for note in result.notes]
    if notes:
        parts.append("## What has no rounds of requests\n\n" + "\n".join(notes))
    parts.append("## Every round\n\n" + raw(results))
    return "\n\n".join(parts) + "\n"

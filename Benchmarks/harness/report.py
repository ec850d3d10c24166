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
    dirty = output(["git", "-C", TOP, "status", "--porcelain", "--", ".", ":!Benchmarks/RESULTS.md"]).stdout.strip()
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


def ours_for(name, rounds):
    """Whose CPU stands against this server's in the table."""
    same_keys = name.replace("bare loop", US)
    return next((one for one in (US, "demo answer", f"{US} × 2", "new", same_keys) if one in rounds), None)


def medians(result):
    """A row for each server of a workload; the ratio is Drydock's CPU per request to the server's, round by round."""
    title = result.title
    for name, rounds in result.rounds.items():
        ours = ours_for(name, result.rounds)
        ratio = f"{statistics.median(ratios(result.rounds, ours, name)):.2f}" if ours else ""
        rate, cpu = median(rounds, "rate"), median(rounds, "cpu")
        yield (title, name, f"{rate:.0f}" if rate >= 100 else f"{rate:.1f}", f"{cpu:.2f}", ratio,
               f"{median(rounds, 'p50'):.2f}", f"{median(rounds, 'p99'):.2f}", mebibytes(median(rounds, "resident")),
               mebibytes(median(rounds, "anonymous")))  # fmt: skip
        title = ""


HEADING = ("workload", "server", "requests/s", "CPU µs/request", "our CPU ÷ its", "p50 ms", "p99 ms", "resident MiB",
           "anonymous MiB")  # fmt: skip
HELD = {True: "held", False: "**NOT held**", None: "no goal"}


def goals(results):
    rows = [("workload", "goal", "measured", "")]
    for result in results:
        mine = [(one.goal, one.measured, HELD[one.is_held]) for one in result.verdicts]
        if result.failure:
            mine = [("", "**failed**: " + " ".join(result.failure.split())[:300].replace("|", "/"), "**NOT held**")]
        rows += [("" if number else result.title, *one) for number, one in enumerate(mine)]
    return table(rows)


def raw(results):
    rows = [("workload", "server", "CPU µs/request", "requests/s", "p50 ms", "p99 ms")]
    for result in results:
        title = result.title
        for name, rounds in result.rounds.items() if not result.failure else ():
            rows.append((title, name, *(listed(rounds, what) for what in ("cpu", "rate", "p50", "p99"))))
            title = ""
    return table(rows)


def listed(rounds, what):
    return " ".join(f"{one[what]:.{0 if what == 'rate' else 2}f}" for one in rounds)


def summary(result):
    """What a workload came to, for who waits."""
    lines = [table([HEADING, *medians(result)])] if result.rounds and not result.failure else []
    lines += [f"- {note}" for note in result.notes]
    lines += [f"- {one.goal}: {one.measured}: {HELD[one.is_held]}" for one in result.verdicts]
    return "\n".join(lines + [f"- failed: {result.failure}"] * bool(result.failure)) + "\n"


def markdown(results, around):
    parts = [
        "# Results\n\nWritten by `Benchmarks/bench --write`; [Documentation/internals/speed.md](../Documentation/internals/speed.md) says what each "
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

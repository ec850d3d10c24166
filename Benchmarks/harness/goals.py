"""The goals: each takes the rounds of a workload, and says what was measured and whether that holds."""

import statistics

from .contest import Verdict, median, ratios

US = "Drydock"


def at_most(limit, reference, name=US, what="cpu", words="CPU"):
    """A ratio to another server, round by round."""

    def goal(rounds):
        ratio = statistics.median(ratios(rounds, name, reference, what))
        return [Verdict(f"{words} at most {limit:.2f} × {reference}", f"{ratio:.2f} ×", ratio <= limit)]

    return goal


def within(limit, name=US):
    """A bound of CPU time for each request, in microseconds."""

    def goal(rounds):
        found = median(rounds[name], "cpu")
        return [Verdict(f"CPU at most {limit} µs", f"{found:.0f} µs", found <= limit)]

    return goal


def below(*others, what="cpu", words="CPU"):
    """Less than each of the others."""

    def goal(rounds):
        by_name = {name: statistics.median(ratios(rounds, US, name, what)) for name in others}
        closest = max(by_name, key=by_name.get)
        whom = "every peer" if len(others) > 1 else others[0]
        return [Verdict(f"{words} below {whom}", f"{by_name[closest]:.2f} × {closest}", by_name[closest] < 1)]

    return goal


def best(*others, what="p99"):
    """A median that is not above the best median of the others."""

    def goal(rounds):
        first = min(others, key=lambda name: median(rounds[name], what))
        ours, theirs = median(rounds[US], what), median(rounds[first], what)
        measured = f"{ours:.2f} ms, {first} {theirs:.2f} ms"
        return [Verdict(f"{what} not above the best peer's", measured, ours <= theirs)]

    return goal


def ratio(name, reference, what="cpu", words="CPU"):
    """No goal: a ratio."""

    def goal(rounds):
        found = statistics.median(ratios(rounds, name, reference, what))
        return [Verdict(f"{words} of {name} to {reference}", f"{found:.3f} ×", None)]

    return goal


def compared(*others, what="cpu", words="CPU"):
    """No goal: how it stands to each of the others."""

    def goal(rounds):
        parts = [f"{statistics.median(ratios(rounds, US, name, what)):.2f} × {name}" for name in others]
        return [Verdict(f"{words}", ", ".join(parts), None)]

    return goal


def second_loop(points):
    """How much more a hit costs with two loops than with one, against how much more it costs the bare loop."""

    def goal(rounds):
        ours, limit = (
            (statistics.median(ratios(rounds, f"{name} × 2", f"{name} × 1", "cpu")) - 1) * 100 for name in (US, "bare loop")
        )
        yield Verdict(f"CPU grows with a second loop by at most {points} points more than the bare loop's",
                      f"{ours:+.0f} %, bare loop {limit:+.0f} %", ours <= limit + points)  # fmt: skip

    return goal


def growth(counts, points):
    """How much more a hit costs with more keys than with the fewest, against how much more it costs the bare loop."""

    def grown(rounds, name, count):
        few, many = rounds[f"{name} {counts[0]:,}"], rounds[f"{name} {count:,}"]
        return (statistics.median(more["cpu"] / less["cpu"] for less, more in zip(few, many, strict=True)) - 1) * 100

    def goal(rounds):
        for count in counts[1:]:
            ours, limit = grown(rounds, US, count), grown(rounds, "bare loop", count)
            yield Verdict(f"CPU grows from {counts[0]:,} to {count:,} keys by at most {points} points more than the bare loop's",
                          f"{ours:+.0f} %, bare loop {limit:+.0f} %", ours <= limit + points)  # fmt: skip

    return goal

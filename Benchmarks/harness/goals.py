"""The goals: each takes the rounds of a work, and says what was measured and whether that holds."""

import statistics

from .contest import Verdict, median, ratios

US = "Drydock"


def at_most(limit, reference, name=US, what="cpu", words="CPU"):
    """A ratio to another server, round by round."""

    def goal(rounds):
        ratio = statistics.median(ratios(rounds, name, reference, what))
        return [Verdict(f"{words} at most {limit:.2f} × {reference}", f"{ratio:.2f} ×", ratio <= limit)]

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


def growth(points):
    """How much more a hit costs with more keys, against how much more it costs the bare loop."""

    def goal(rounds):
        verdicts = []
        for keys in ("100,000", "1,000,000"):
            ours = [big["cpu"] / small["cpu"] for small, big in zip(rounds[f"{US} 1,000"], rounds[f"{US} {keys}"], strict=True)]
            bare = [big["cpu"] / small["cpu"] for small, big in
                    zip(rounds["bare loop 1,000"], rounds[f"bare loop {keys}"], strict=True)]  # fmt: skip
            mine, limit = (statistics.median(ours) - 1) * 100, (statistics.median(bare) - 1) * 100
            verdicts.append(Verdict(f"CPU grows from 1,000 to {keys} keys by at most {points} points more than the bare loop's",
                                    f"{mine:+.0f} %, bare loop {limit:+.0f} %", mine <= limit + points))  # fmt: skip
        return verdicts

    return goal

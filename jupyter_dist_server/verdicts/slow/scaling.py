"""How work scales with the number of ranks, and where the rest of the time went."""

from __future__ import annotations

import msgspec

from .time_account import Account

_GOOD = 0.9
"""The efficiency from which no loss is worth a sentence."""
_MOST = 0.5
_PARTS = ("compute", "input", "communication", "waiting", "other")


class Run(msgspec.Struct, frozen=True):
    """The same work on some ranks."""

    ranks: int
    seconds: float
    account: Account | None
    """The average rank's, from a profiled run; `None` if that failed."""
    notices: tuple[str, ...] = ()
    """From the start of its pool."""

    def spent(self, part: str) -> float:
        """Return the seconds of a part, from `_PARTS`."""
        return self.seconds * self.part(part)

    def part(self, part: str) -> float:
        """Return a part of the time, from 0 to 1."""
        return self.account.part(getattr(self.account, part)) if self.account else 0.0


class Scaling(msgspec.Struct, frozen=True):
    """Runs of the same work, the one with the fewest ranks first.

    If `weak`, each rank does the same, however many there are; else they share the work.
    """

    runs: list[Run]
    weak: bool = False

    def efficiency(self, run: Run) -> float:
        """Return the part of the ideal speed-up that is reached."""
        first = self.runs[0]
        ideal = 1.0 if self.weak else run.ranks / first.ranks
        return first.seconds / run.seconds / ideal

    def speed_up(self, run: Run) -> float:
        """Return how many times as much is done in the same time as on the fewest ranks."""
        return self.efficiency(run) * run.ranks / self.runs[0].ranks

    def lost(self, run: Run, part: str) -> float:
        """Return the seconds by which a part takes longer than it should."""
        first = self.runs[0]
        return run.spent(part) - first.spent(part) * self._ideal_time(run)

    def lost_in_all(self, run: Run) -> float:
        """Return the seconds by which a run takes longer than it should."""
        return run.seconds - self.runs[0].seconds * self._ideal_time(run)

    def _ideal_time(self, run: Run) -> float:
        return 1.0 if self.weak else self.runs[0].ranks / run.ranks


def scaling_sentence(scaling: Scaling) -> str:
    """Return how fast the most ranks are, and what keeps them from being faster."""
    first, last = scaling.runs[0], scaling.runs[-1]
    what = "do" if last.ranks > 1 else "does"
    if scaling.weak:
        fast = f"{what} {scaling.speed_up(last):.1f} times as much in the same time as"
    else:
        fast = f"are {scaling.speed_up(last):.1f} times as fast as"
    efficiency = scaling.efficiency(last)
    said = f"{_ranks(last)} {fast} {_ranks(first)}: efficiency {_percent(efficiency)}."
    if efficiency >= _GOOD:
        return said
    if not (first.account and last.account):
        return f"{said} Where the rest went is not known, as the ranks could not be profiled."
    lost = {part: scaling.lost(last, part) for part in _PARTS}
    most = max(lost, key=lambda part: lost[part])
    if lost[most] < _MOST * scaling.lost_in_all(last):
        return f"{said} No single part explains most of the loss."
    return f"{said} Most of the loss is {_IN_WORDS[most]}: {_seconds(lost[most])} of a run."


def scaling_rows(scaling: Scaling) -> list[tuple[str, ...]]:
    """Return a table: a header, and a row for each number of ranks."""
    rows: list[tuple[str, ...]] = [("ranks", "time", "speed-up", "efficiency", *_PARTS)]
    for run in scaling.runs:
        parts = [_percent(run.part(part)) if run.account else "-" for part in _PARTS]
        speed_up = f"{scaling.speed_up(run):.2f}"
        efficiency = _percent(scaling.efficiency(run))
        rows.append((str(run.ranks), _seconds(run.seconds), speed_up, efficiency, *parts))
    return rows


def scaling_notices(scaling: Scaling) -> list[str]:
    """Return the notices of the pools, each once, with the numbers of ranks if not all have it."""
    about: dict[str, list[Run]] = {}
    for run in scaling.runs:
        for notice in run.notices:
            about.setdefault(notice, []).append(run)
    return [
        notice if runs == scaling.runs else f"{_ranks_of(runs)}: {notice}"
        for notice, runs in about.items()
    ]


_IN_WORDS = {
    "compute": "compute, which takes longer than its share",
    "input": "input",
    "communication": "communication",
    "waiting": "waiting for other ranks",
    "other": "Python code between operations",
}


def _ranks(run: Run) -> str:
    return f"{run.ranks} rank{'s' if run.ranks > 1 else ''}"


def _ranks_of(runs: list[Run]) -> str:
    return ", ".join([*(str(run.ranks) for run in runs[:-1]), _ranks(runs[-1])])


def _percent(part: float) -> str:
    return f"{part:.0%}".replace("%", " %")


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"

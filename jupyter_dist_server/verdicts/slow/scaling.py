"""How work scales with the number of ranks, and how fast the links between them are."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...common.units import count_ranks, format_bytes, format_percent, format_seconds
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
    timed: str = "run"
    """What the seconds are those of: a run, or a step."""

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
    said = f"{count_ranks(last.ranks)} {fast} {count_ranks(first.ranks)}"
    said += f": efficiency {format_percent(efficiency)}."
    if efficiency >= _GOOD:
        return said
    if not (first.account and last.account):
        return f"{said} Where the rest went is not known, as the ranks could not be profiled."
    lost = {part: scaling.lost(last, part) for part in _PARTS}
    most = max(lost, key=lambda part: lost[part])
    if lost[most] < _MOST * scaling.lost_in_all(last):
        return f"{said} No single part explains most of the loss."
    seconds = format_seconds(lost[most])
    return f"{said} Most of the loss is {_IN_WORDS[most]}: {seconds} of a {scaling.timed}."


def scaling_rows(scaling: Scaling) -> list[tuple[str, ...]]:
    """Return a table: a header, and a row for each number of ranks."""
    rows: list[tuple[str, ...]] = [("ranks", "time", "speed-up", "efficiency", *_PARTS)]
    for run in scaling.runs:
        parts = [format_percent(run.part(part)) if run.account else "-" for part in _PARTS]
        speed_up = f"{scaling.speed_up(run):.2f}"
        efficiency = format_percent(scaling.efficiency(run))
        rows.append((str(run.ranks), format_seconds(run.seconds), speed_up, efficiency, *parts))
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


def _ranks_of(runs: list[Run]) -> str:
    return ", ".join([*(str(run.ranks) for run in runs[:-1]), count_ranks(runs[-1].ranks)])


# -- the links ----------------------------------------------------------------------------------


class LinkTime(msgspec.Struct, frozen=True):
    """How long an ``all_reduce`` takes."""

    nbytes: int
    seconds: float
    device: str
    """``cpu`` or ``cuda``."""


def algorithm_bandwidth(time: LinkTime) -> float:
    """Return the bytes of the tensor per second."""
    return time.nbytes / time.seconds


def bus_bandwidth(time: LinkTime, ranks: int) -> float:
    """Return the bytes that each link carries per second, as nccl-tests computes it.

    It can be compared with the speed of the links, whatever the number of ranks; see
    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md.
    """
    return algorithm_bandwidth(time) * 2 * (ranks - 1) / ranks


def link_sentence(times: Sequence[LinkTime], ranks: int, backend: str) -> str:
    """Return what the links do at best."""
    best = max(times, key=lambda time: bus_bandwidth(time, ranks))
    speed, size = _gigabytes(bus_bandwidth(best, ranks)), format_bytes(best.nbytes)
    where = "the CPU" if best.device == "cpu" else "GPUs"
    what = f"up to {speed} of bus bandwidth, at {size}"
    return f"all_reduce on {ranks} ranks: {what} ({backend}, on {where})."


def link_rows(times: Sequence[LinkTime], ranks: int) -> list[tuple[str, ...]]:
    """Return a table: a header, and a row for each size."""
    rows: list[tuple[str, ...]] = [("size", "time", "algorithm bandwidth", "bus bandwidth")]
    for time in times:
        rows.append(
            (
                format_bytes(time.nbytes),
                f"{time.seconds * 1e6:.0f} µs",
                _gigabytes(algorithm_bandwidth(time)),
                _gigabytes(bus_bandwidth(time, ranks)),
            )
        )
    return rows


def _gigabytes(speed: float) -> str:
    return f"{speed / 1e9:.3g} GB/s"

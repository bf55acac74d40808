"""Sets of moments, as intervals: sorted, and none of them touches another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

Interval = tuple[float, float]
"""From when until when."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the moments that are in any of some intervals."""
    joined: list[Interval] = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > begin:
            joined.append((begin, end))
    return joined


def common(first: list[Interval], second: list[Interval]) -> list[Interval]:
    """Return the moments that are in both."""
    return [
        (max(b, begin), min(e, end)) for begin, end in first for b, e in within(second, begin, end)
    ]


def without(first: list[Interval], second: list[Interval]) -> list[Interval]:
    """Return the moments of the first that are not in the second."""
    left = []
    for begin, end in first:
        at = begin
        for b, e in within(second, begin, end):
            if b > at:
                left.append((at, b))
            at = e
        if end > at:
            left.append((at, end))
    return left


def within(intervals: list[Interval], begin: float, end: float) -> Iterator[Interval]:
    """Yield what lies between two moments."""
    place = bisect_right(intervals, (begin, begin))
    if place and intervals[place - 1][1] > begin:
        place -= 1
    while place < len(intervals) and intervals[place][0] < end:
        b, e = intervals[place]
        if min(e, end) > max(b, begin):
            yield max(b, begin), min(e, end)
        place += 1


def length(intervals: Iterable[Interval]) -> float:
    """Return for how long they last."""
    return sum(end - begin for begin, end in intervals)


def coarse(intervals: list[Interval], most: int) -> list[Interval]:
    """Return at most so many: those with the least time between them become one."""
    if len(intervals) <= most:
        return intervals
    gaps = [after[0] - before[1] for before, after in pairwise(intervals)]
    largest = sorted(range(len(gaps)), key=gaps.__getitem__)[len(gaps) - most + 1 :]
    lasts = [*sorted(largest), len(intervals) - 1]
    firsts = [0, *(place + 1 for place in lasts)]
    return [(intervals[a][0], intervals[b][1]) for a, b in zip(firsts, lasts, strict=False)]

"""What the GPUs did: a ring buffer of samples, and a coarser one that reaches further back.

Both have as many rows. The fine one has a row for each `step` (1 s) of the last `keep` seconds
(15 min); a row of the coarse one sums up `COARSER` of those (24 s), so that it reaches 24 times as
far back (6 h). A value that was not read in a row's time is the one that was read last.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import groupby

from .metrics import BY_NAME, Value

COARSER = 24
"""Rows of the fine ring that make one row of the coarse ring."""
Column = tuple[str, str]
"""A GPU's UUID and a metric's name."""


@dataclass(frozen=True)
class HistoryRows:
    """What was sampled in an interval."""

    step: float
    times: list[float]
    """Starts of the rows; times without a sample have no row."""
    gpus: dict[str, dict[str, list[Value]]]
    """By UUID and metric, one value for each row."""


class History:
    """Samples of all GPUs: a row for each `step` of the last `keep` seconds, and coarser ones."""

    def __init__(self, keep: float = 900.0, step: float = 1.0) -> None:
        self.keep = keep
        self.step = step
        rows = max(1, math.ceil(keep / step))
        self._fine = _Ring(step, rows)
        self._coarse = _Ring(step * COARSER, rows)
        self._words: list[str] = []
        """Texts are kept as their place in this list."""

    def add(self, time: float, values: Mapping[str, Mapping[str, Value]]) -> bool:
        """Add values by UUID and metric; tell whether empty columns have been dropped, if any."""
        numbers: dict[Column, float] = {}
        for uuid, of_gpu in values.items():
            for name, value in of_gpu.items():
                if value is not None:
                    numbers[uuid, name] = self._number(value)
        self._fine.add(time, numbers)
        if not self._coarse.add(time, numbers):
            return False
        for column in list(self._fine.columns):
            if self._fine.is_empty(column) and self._coarse.is_empty(column):
                del self._fine.columns[column], self._coarse.columns[column]
        return True

    def query(
        self,
        since: float | None = None,
        until: float = math.inf,
        step: float | None = None,
        uuids: Collection[str] | None = None,
        metrics: Collection[str] | None = None,
    ) -> HistoryRows:
        """Return the rows of an interval, oldest first; by default all at full resolution.

        `until` is excluded. Rows that are too old for the fine ring come from the coarse one. With
        `step`, each row of the answer sums up that many seconds.
        """
        border = self._fine.begin
        parts = [(self._fine, self._fine.rows(-math.inf if since is None else since, until))]
        if since is not None and since < border:
            parts.insert(0, (self._coarse, self._coarse.rows(since, min(until, border))))
        times = [time for ring, rows in parts for time in ring.cut(ring.times, rows)]
        gpus: dict[str, dict[str, list[Value]]] = {}
        groups = _groups(times, step) if step else None
        for uuid, name in self._fine.columns:
            if (uuids is None or uuid in uuids) and (metrics is None or name in metrics):
                columns = (ring.cut(ring.columns[uuid, name], rows) for ring, rows in parts)
                cells = [cell for column in columns for cell in column]
                if groups is not None:
                    cells = [_sum_up(name, cells[rows.start : rows.stop]) for rows in groups]
                gpus.setdefault(uuid, {})[name] = self._values(name, cells)
        if groups is not None and step:
            times = [times[rows.start] // step * step for rows in groups]
        return HistoryRows(step or self.step, [round(time, 3) for time in times], gpus)

    @property
    def gpus(self) -> set[str]:
        """The UUIDs of the GPUs in the history."""
        return {uuid for uuid, _ in self._fine.columns}

    @property
    def begin(self) -> float:
        """Start of the oldest row; infinite if there is none."""
        return min(self._fine.begin, self._coarse.begin)

    @property
    def fine_begin(self) -> float:
        """Start of the oldest row at full resolution; infinite if there is none."""
        return self._fine.begin

    @property
    def end(self) -> float:
        """Start of the newest row; minus infinity if there is none."""
        return self._fine.end

    def _number(self, value: float | str) -> float:
        if not isinstance(value, str):
            return value
        if value not in self._words:
            self._words.append(value)
        return self._words.index(value)

    def _values(self, name: str, cells: list[float]) -> list[Value]:
        if BY_NAME[name].text:
            return [None if math.isnan(cell) else self._words[int(cell)] for cell in cells]
        digits = BY_NAME[name].digits or None  # without any, they become integers
        return [None if math.isnan(cell) else round(cell, digits) for cell in cells]


class _Ring:
    """Rows of equal length in time; the newest overwrites the oldest.

    Rows are numbered from the first that was ever added. Each column is an array, so that a chart
    is one slice; missing values are NaN.
    """

    def __init__(self, step: float, size: int) -> None:
        self.columns: dict[Column, array[float]] = {}
        self._step = step
        self._size = size
        self.times = array("d", [math.nan]) * size
        self._oldest = 0
        self._written = 0
        self._merged: dict[Column, int] = {}
        """By column, the samples in the newest row: nodes are sampled one by one."""

    @property
    def begin(self) -> float:
        return self._at(self._oldest) if self._written > self._oldest else math.inf

    @property
    def end(self) -> float:
        return self._at(self._written - 1) if self._written > self._oldest else -math.inf

    def add(self, time: float, numbers: Mapping[Column, float]) -> bool:
        """Add a sample to the newest row, or begin a row; tell whether one has begun."""
        if time < self.end - 1.0:  # more than a busy process is late: the clock was set back
            while self.end > time:
                self._written -= 1
        begins = time >= self.end + self._step - 0.1  # ticks jitter
        if begins:
            self._merged = {}
            place = self._written % self._size
            self.times[place] = time
            self._written += 1
            self._oldest = max(self._oldest, self._written - self._size)
            for cells in self.columns.values():
                cells[place] = math.nan
        place = (self._written - 1) % self._size
        for column, number in numbers.items():
            if column not in self.columns:
                self.columns[column] = array("d", [math.nan]) * self._size
            cells = self.columns[column]
            self._merged[column] = self._merged.get(column, 0) + 1
            if BY_NAME[column[1]].averaged and not math.isnan(cells[place]):
                number = cells[place] + (number - cells[place]) / self._merged[column]
            cells[place] = number
        return begins

    def is_empty(self, column: Column) -> bool:
        return all(map(math.isnan, self.columns[column]))

    def rows(self, since: float, until: float) -> range:
        """Return the rows that begin from `since` until before `until`."""
        kept = range(self._oldest, self._written)
        first = bisect_left(kept, since, key=self._at)
        last = bisect_left(kept, until, lo=first, key=self._at)
        return kept[first:last]

    def _at(self, row: int) -> float:
        return self.times[row % self._size]

    def cut(self, cells: array[float], rows: range) -> array[float]:
        first, last = rows.start % self._size, rows.stop % self._size
        if not rows:
            return array("d")
        return cells[first:last] if first < last else cells[first:] + cells[:last]


def _groups(times: list[float], step: float) -> list[range]:
    """Group the places of `times` that fall into the same multiple of `step`."""
    groups = groupby(range(len(times)), key=lambda place: times[place] // step)
    places = [list(group) for _, group in groups]
    return [range(group[0], group[-1] + 1) for group in places]


def _sum_up(name: str, cells: list[float]) -> float:
    """Return the mean of a metric's cells, or the last one; NaN if there is none."""
    known = [cell for cell in cells if not math.isnan(cell)]
    if not known:
        return math.nan
    return sum(known) / len(known) if BY_NAME[name].averaged else known[-1]

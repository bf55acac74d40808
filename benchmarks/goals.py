"""What each measure must reach, and what we would like it to."""

from __future__ import annotations

from dataclasses import dataclass

BEST_PEER = "best peer"
Columns = dict[str, dict[str, float]]
"""Values by measure, by system."""


@dataclass(frozen=True)
class Bound:
    """A limit for a value of ours: a number, or that many times another system's measure."""

    factor: float
    of: str = ""
    key: str = ""

    def __str__(self) -> str:
        if not self.of:
            return f"{self.factor:,g}"
        return self.of if self.factor == 1 else f"{self.factor:g} × {self.of}"


@dataclass(frozen=True)
class Row:
    key: str
    label: str
    must: tuple[Bound, ...] = ()
    goal: tuple[Bound, ...] = ()
    more_is_better: bool = False

    def best(self, columns: Columns, peers: list[str], key: str = "") -> tuple[str, float] | None:
        """Return the best peer and its value; none if no peer has one."""
        key = key or self.key
        found = {name: columns[name][key] for name in peers if key in columns.get(name, {})}
        if not found:
            return None
        name = (max if self.more_is_better else min)(found, key=lambda name: found[name])
        return name, found[name]

    def limit(self, bound: Bound, columns: Columns, peers: list[str]) -> float | None:
        """Return a bound as a number; none if what it refers to was not measured."""
        if not bound.of:
            return bound.factor
        if bound.of == BEST_PEER:
            best = self.best(columns, peers, bound.key)
            return best and bound.factor * best[1]
        reference = columns.get(bound.of, {}).get(bound.key or self.key)
        return None if reference is None else bound.factor * reference

    def verdict(
        self, bounds: tuple[Bound, ...], value: float, columns: Columns, peers: list[str]
    ) -> str:
        """Return the bounds in words, each with whether a value keeps to it."""
        words = []
        for bound in bounds:
            limit = self.limit(bound, columns, peers)
            if limit is None:
                met = "not measured"
            elif (value >= limit) if self.more_is_better else (value <= limit):
                met = "met"
            else:
                met = "**missed**"
            words.append(f"{'≥' if self.more_is_better else '≤'} {bound}: {met}")
        return "; ".join(words)


_UNCHANGED = (Bound(1.15),)
"""What counts as the same: two medians of the same cell differ by up to this."""

ROWS = (
    Row(
        "cold_s",
        "start to first cell done on all ranks, s",
        (Bound(0.5, BEST_PEER),),
        (Bound(2.0),),
    ),
    Row(
        "warm_s",
        "the same for a second pool, s",
        (Bound(0.25, BEST_PEER, "cold_s"),),
        (Bound(0.8),),
    ),
    Row(
        "pass_ms",
        "`pass`, ms",
        (Bound(1, "jupyter-distributed"), Bound(1, "ipyparallel"), Bound(0.5, "N kernels")),
        (Bound(1, "monarch"),),
    ),
    Row(
        "reduce_ms",
        "`dist.all_reduce` of one element, ms",
        (Bound(1, "ipyparallel"),),
        (Bound(1, "monarch"),),
    ),
    Row("cpu_ms", "processor time of a rank for `pass`, ms", (Bound(1.5),), (Bound(1.0),)),
    Row("lasting_ratio", "`pass` after 2,000 cells ÷ before", _UNCHANGED),
    Row("first_ms", "first printed line visible, ms", (Bound(50),), (Bound(20),)),
    Row(
        "lines_s",
        "lines printed per second",
        (Bound(1, "N kernels"),),
        (Bound(600_000),),
        more_is_better=True,
    ),
    Row("wrong_lines", "lines lost, duplicated, broken or out of order", (Bound(0),)),
    Row("wire", "bytes on the wire per character", (Bound(1.5),)),
    Row(
        "pull_mib_s",
        "array from a rank to the notebook, MiB/s",
        (Bound(450),),
        (Bound(1000),),
        more_is_better=True,
    ),
    Row(
        "push_mib_s",
        "array to all ranks, MiB/s in total",
        (Bound(2000),),
        (Bound(5000),),
        more_is_better=True,
    ),
    Row("ranks_mib", "PSS of the ranks, MiB", (Bound(475),), (Bound(285),)),
    Row("rest_mib", "PSS of everything else, MiB"),
    Row("growth_ratio", "`pass` after 40,000 lines ÷ before", _UNCHANGED),
    Row("death_ms", "`kill -9` of a rank until the notebook reports it, ms", (Bound(200),)),
    Row("replace_s", "`%dist_restart --ranks 1`, s", (Bound(1),)),
    Row("stop_first_ms", "first Stop of `time.sleep` until the cell has ended, ms"),
    Row(
        "stop_ms",
        "further ones, ms",
        (Bound(50),),
        (Bound(1, "ipyparallel"), Bound(1, "N kernels")),
    ),
    Row("stop_collective_ms", "Stop in a collective that lacks a rank, ms", (Bound(1000),)),
    Row("stop_stuck_s", "Stop of a rank in C code that holds the GIL, s", (Bound(5),)),
    Row("why_ms", "`%dist_why` while a rank is missing in a barrier, ms", (Bound(2000),)),
    Row("blocked_ratio", "`pass` while the server hangs ÷ before", _UNCHANGED),
    Row("blocked_worst_ms", "maximum of these, ms"),
)

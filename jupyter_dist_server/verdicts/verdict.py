"""A verdict: what is wrong with a pool, and the remedies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ..common.rank_specs import format_ranks

Kind = Literal[
    "never_joined",
    "not_joined_yet",
    "mismatch",
    "order",
    "message",
    "slow",
    "holds_gil",
    "stopped",
    "silent",
    "contradiction",
]


class Remedy(msgspec.Struct, frozen=True):
    """What a user can do about it."""

    label: str
    magic: str
    restarts: list[int] = []
    """The ranks that lose their variables."""


class Verdict(msgspec.Struct, frozen=True):
    """Why the ranks of a pool make no progress."""

    kind: Kind
    sentence: str
    """What is known, with ranks, collective, cell and line."""
    ranks: list[int]
    """The ranks that the others wait for, or that differ."""
    stuck: bool
    """Whether it will not end by itself; a rank that is busy may still come."""
    remedies: list[Remedy] = []
    hint: str = ""
    """What to do next, in one sentence."""
    op: str | None = None
    """The collective or message, such as ``all_reduce #7``."""
    cell: str | None = None
    """``In[9]``, where that was begun."""
    line: int | None = None

    since: float | None = None
    """When that was begun, in seconds since 1970."""

    @property
    def concerns_all(self) -> bool:
        """Whether ranks wait for one that is missing, which is said unasked."""
        return self.kind not in ("slow", "holds_gil")

    @property
    def is_doubtful(self) -> bool:
        """Whether the next look may find another one, so that it is not said yet: see `explain`."""
        return self.kind in ("holds_gil", "silent", "contradiction")

    @property
    def text(self) -> str:
        """The sentence, and what to do."""
        return f"{self.sentence} {self.hint}".rstrip()


def name(ranks: Iterable[int], capital: bool = True) -> str:
    """Return ``Rank 1``, or ``Ranks 0-2``."""
    chosen = list(ranks)
    word = "Rank" if len(chosen) == 1 else "Ranks"
    return f"{word if capital else word.lower()} {format_ranks(chosen)}"


def restart(ranks: Iterable[int]) -> Remedy:
    """Return the remedy for ranks that do not continue by themselves."""
    chosen = list(ranks)
    label = f"Restart {name(chosen, capital=False)}"
    return Remedy(label, f"%dist_restart --ranks {format_ranks(chosen)}", chosen)


INTERRUPT = Remedy("Interrupt", "%dist_interrupt")
STOP = "Stop the cell to free the ranks; their variables are kept."

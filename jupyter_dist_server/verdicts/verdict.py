"""A verdict: what is wrong with a pool, and the remedies."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..common.rank_specs import format_ranks, name_ranks

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


def restart(ranks: list[int]) -> Remedy:
    """Return the remedy for ranks that do not continue by themselves."""
    magic = f"%dist_restart --ranks {format_ranks(ranks)}"
    return Remedy(f"Restart {name_ranks(ranks)}", magic, ranks)


INTERRUPT = Remedy("Interrupt", "%dist_interrupt")
STOP = "Stop the cell to free the ranks; their variables are kept."

"""Requests of clients about variables of ranks, and replies, on the control channel."""

from __future__ import annotations

from typing import Literal

import msgspec

from .rank_messages import RankReply, RankRequest


class Leaf(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor, an array or a simple value, and where it is in a variable."""

    path: str
    """For users: ``model.layer4.bn1.running_mean``."""
    expression: str
    """Python code that returns it on the rank."""
    type: str
    shape: tuple[int, ...] | None = None
    """`None` if it has none."""
    dtype: str = ""
    device: str = ""
    nbytes: int = 0
    shard: str = ""
    """The part of a DTensor that this rank holds; empty for anything else."""
    text: str = ""
    """A short simple value as code."""
    digest: str = ""
    """Equal if the contents are equal; empty if they cannot be compared."""


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable of a rank, with digests if `checked`."""

    name: str
    type: str
    leaves: list[Leaf]
    checked: bool = True


class VariablesRequest(RankRequest, frozen=True):
    """Report what variables hold, and a digest of each content.

    `values` asks for short simple values as text, `only_trained` for modules and optimizers only.
    """

    kind = "dist_variables_request"
    names: list[str]
    """Names, or expressions such as ``model.layer4``; if there are none, all of the user's."""
    only_trained: bool = False
    largest: int | None = None
    """Bytes: a larger variable has no digests, as these would take long."""
    values: bool = True


class VariablesReply(RankReply, frozen=True, kw_only=True):
    """What they hold; nothing unless the status is ``ok``."""

    status: Literal["ok", "busy", "missing", "failed"]
    """``busy`` if a cell runs, or ran meanwhile."""
    why: str = ""
    """The missing name, or the error."""
    variables: list[Variable] = msgspec.field(default_factory=list)
    random: dict[str, str] = msgspec.field(default_factory=dict)
    """Digests of the states of random number generators, by library."""
    cells: list[int] = msgspec.field(default_factory=list)
    """The notebook's numbers of the cells that this rank ran last; 0 for one without."""
    ran: int = 0
    """How many cells it has run."""

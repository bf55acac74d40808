"""Requests of clients about the memory of ranks, and replies, on the control channel."""

from __future__ import annotations

import msgspec

from .evidence import CodePlace
from .rank_messages import RankReply, RankRequest, TorchMemory


class MemoryRequest(RankRequest, frozen=True):
    """Report what memory is used, and by which variables; between cells."""

    kind = "dist_memory_request"


class Held(msgspec.Struct, frozen=True):
    """The memory that a variable holds in tensors and arrays."""

    name: str
    nbytes: int
    gradients: int
    """The bytes of these that are gradients."""
    cell: int | None = None
    """The notebook's number of the cell that made the variable, if known."""


class Allocated(msgspec.Struct, frozen=True):
    """What one line of the user's code has allocated on a GPU."""

    place: CodePlace
    nbytes: int


class Exhausted(msgspec.Struct, frozen=True):
    """A GPU when its memory was exhausted."""

    by_line: list[Allocated]
    """What was allocated then, the largest amount first."""
    snapshot: str
    """A file for torch's viewer; empty if it could not be written."""
    allocated: int = 0
    """Bytes that torch had allocated; 0 if that is not known."""


class MemoryReply(RankReply, frozen=True, kw_only=True):
    """The memory that a rank uses."""

    busy: bool
    """Whether a cell runs; then variables are not reported."""
    resident: int
    """The resident set of the process, in bytes."""
    proportional: int | None
    """The same, with shared pages counted in part; `None` where that is not known."""
    torch: TorchMemory | None = None
    """`None` unless CUDA is in use."""
    held: list[Held] = msgspec.field(default_factory=list)
    """Variables that hold tensors or arrays, the largest first."""
    in_all: int = 0
    """Bytes of all of these, with shared ones counted once."""
    exhausted: Exhausted | None = None
    """If that happened in the last cell."""


class EstimateRequest(RankRequest, frozen=True):
    """Report how much memory a training step takes, without running it; between cells."""

    kind = "dist_estimate_request"
    model: str
    optimizer: str
    batch: str
    """Expressions; the model is called with the batch, or with the items of a tuple or dict."""


class EstimateReply(RankReply, frozen=True, kw_only=True):
    """The most memory that a step takes at one time, in bytes; or why that is not known."""

    failure: str = ""
    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    other: int = 0
    """Buffers, the batch, and temporary results."""
    peak: int = 0
    """The sum of these at that time."""

"""Requests of clients for the profile of a cell, and replies, on the control channel.

Times are in seconds; moments are in seconds since 1970.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ...rank_specs import MAX_RANKS
from ...time_intervals import Interval
from .rank_messages import RankReply, RankRequest

SpentOn = Literal["annotation", "input", "gpu", "place"]
"""A ``record_function`` of the user, a DataLoader, kernels on the GPU, or a line of the cell."""


class Spent(msgspec.Struct, frozen=True):
    """How long a rank did something; one moment may count for several things."""

    on: SpentOn
    name: str
    """Its name for users, such as ``data`` or ``time.sleep, In[4] line 7``."""
    seconds: float


class CollectiveTime(msgspec.Struct, frozen=True, kw_only=True):
    """When a rank was in a collective."""

    group: str
    """Its process group; empty if not known."""
    number: int
    """Counted in its group, or, if the group is not known, in the profile."""
    op: str
    begin: float
    end: float
    exposed: float
    """The part of this time in which the rank did nothing else."""
    before: list[Spent]
    """What the rank did between the end of the previous collective and this one's begin."""


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """From what next steps follow; of all measured steps together, where nothing else is said."""

    operations: int = 0
    """Operations of torch that are no part of another one; on a GPU, kernels."""
    on_gpu: bool = False
    collectives: int = 0
    bytes: float = 0.0
    """Of the input of a collective, on average."""
    workers: int | None = None
    """Of the DataLoader that a batch was taken from; `None` if there is none."""
    cores: int = 1
    """Cores that this rank may use for itself."""
    has_ddp: bool = False
    """Whether a model is wrapped in `DistributedDataParallel`."""
    pauses: float = 0.0
    """Seconds in which Python collected garbage."""
    compiles: int = 0
    """How often `torch.compile` compiled a graph."""
    growth: float = 0.0
    """Bytes that a step leaves allocated, if each one leaves more."""
    grows: str = ""
    """A container that got longer in each step: ``losses``, or ``losses, In[5] line 7``."""


class ProfileRequest(RankRequest, frozen=True):
    """Report the profile of the last cell with one. Its trace comes with the reply."""

    kind = "dist_profile_request"


class RankProfile(RankReply, frozen=True, kw_only=True):
    """Where the time of a rank went; its trace, compressed with gzip, is the reply's buffer."""

    status: Literal["ok", "none", "failed"]
    why: str = ""
    ahead: float = 0.0
    """Seconds by which the times in the trace are ahead; in times here, they are subtracted."""
    started: float = 0.0
    """When the cell began."""
    begin: float = 0.0
    end: float = 0.0
    """Of the steps that are measured."""
    steps: int = 0
    """How many steps these are; 0 if the cell has none, and counts as one."""
    durations: list[float] = msgspec.field(default_factory=list)
    """Of the measured steps, of at most 1,000."""
    dropped: int = 0
    """Steps at the begin that are left out, as they warm up."""
    compute: float = 0.0
    """Operations of torch, except input; on a GPU, kernels."""
    input: float = 0.0
    communication: float = 0.0
    """Collectives and messages, also while something else was done."""
    exposed: float = 0.0
    """The part of this in which nothing else was done."""
    computing: list[Interval] = msgspec.field(default_factory=list)
    """When that was; times that are close to each other are joined."""
    communicating: list[Interval] = msgspec.field(default_factory=list)
    """When it only communicated, or waited for other ranks."""
    copies: float = 0.0
    """Copying between the CPU and the GPU while nothing else was done."""
    spent: list[Spent] = msgspec.field(default_factory=list)
    """What most of the rest was spent on, including copying."""
    collectives: list[CollectiveTime] = msgspec.field(default_factory=list)
    left_out: int = 0
    """Collectives that are not listed, as there are too many."""
    facts: StepFacts = StepFacts()
    memory: int = 0
    """The most bytes that torch had allocated at one time; 0 if it was not recorded."""


Moment = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
Duration = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
Spans = Annotated[list[tuple[Moment, Moment]], msgspec.Meta(max_length=500)]


class LaneSeconds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a rank did what; joined times may be longer."""

    compute: Duration
    communication: Duration
    waiting: Duration


class Lanes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a rank did when, in the profiled steps of a cell; it waits for other ranks."""

    compute: Spans
    communication: Spans
    waiting: Spans
    seconds: LaneSeconds


class RankLanes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lanes of one rank, and when its steps began and ended."""

    rank: int
    start: Moment
    end: Moment
    lanes: Lanes


class LanesRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a notebook tells its server about a cell that was profiled."""

    ranks: Annotated[list[RankLanes], msgspec.Meta(max_length=MAX_RANKS)]

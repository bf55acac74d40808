"""What a rank tells about itself when its pool makes no progress."""

from __future__ import annotations

from typing import Literal

import msgspec

from .rank_messages import RankReply, RankRequest


class Group(msgspec.Struct, frozen=True):
    """A process group, as the ranks that made it know it."""

    ranks: list[int]
    name: str = ""
    """Its `group_desc`; empty for one without a name."""


class CodePlace(msgspec.Struct, frozen=True):
    """A line of the user's code; the file of a cell is ``In[9]``."""

    file: str
    line: int
    source: str = ""
    """The line, without surrounding space."""


class Collective(msgspec.Struct, frozen=True):
    """One collective, or message from rank to rank, that a rank has begun."""

    group: str
    number: int
    """Counted in its group, by all members alike; messages are counted separately."""
    op: str
    tensors: list[str]
    """Its input, such as ``20 × float32``."""
    begun: float
    """In seconds since 1970."""
    done: bool
    """Also if it failed."""
    completed: bool = False
    """Whether torch says that it succeeded; for gloo it does not say so."""
    is_message: bool = False
    backend: str = ""
    """Such as ``nccl``: if a group has several (``cpu:gloo,cuda:nccl``), each counts separately."""
    place: CodePlace | None = None
    """Where it was begun; not known if the rank holds the GIL."""


class Frame(msgspec.Struct, frozen=True):
    """One call on the stack of the thread that runs cells."""

    module: str
    function: str
    place: CodePlace
    call: str | None = None
    """What it is calling now, as in the code: ``time.sleep``."""
    own: bool = False


class Message(msgspec.Struct, frozen=True):
    """A message that the main thread waits to send, or to receive, from any rank if `None`."""

    op: str
    peer: int | None


Condition = Literal["answers", "dead", "stopped", "starved", "holds_gil", "silent"]
"""Whether a rank responds, and if not, why: `starved` gets no processor, `silent` is unknown."""


class RankEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one rank, from itself or, if it does not answer, from outside."""

    condition: Condition = "answers"
    why: str = ""
    stack: list[Frame] = []
    """The cell's, the innermost frame first; empty between cells."""
    native: str = ""
    """The C function that the main thread is in, where py-spy has told it."""
    cell: int | None = None
    idle: bool = False
    ended: str = ""
    """The error that ended its last cell, in one line."""
    message: Message | None = None
    groups: dict[str, Group] = {}
    making: str = ""
    """The key of the group that `new_group` makes now; it is among `groups`."""
    collectives: list[Collective] = []
    """The last ones, also of each group, and all not done; none if torch does not record them."""


Evidence = dict[int, RankEvidence]


class DumpRequest(RankRequest, frozen=True):
    """Send what torch's flight recorder has, in the form that torch's ``torchfrtrace`` reads."""

    kind = "dist_dump_request"


class DumpReply(RankReply, frozen=True):
    """That, pickled, in the only buffer; none if torch does not record."""


class EvidenceRequest(RankRequest, frozen=True):
    """Tell what you do, and which collectives you have begun."""

    kind = "dist_evidence_request"


class EvidenceReply(RankReply, frozen=True):
    """That."""

    evidence: RankEvidence
    group_since: float
    """When the pool's group was made: older collectives are of another one."""

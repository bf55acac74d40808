"""Requests of clients to ranks, and replies: the contents of our own Jupyter messages."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeVar

import msgspec

from ..jupyter_messages import Content


class RankRequest(msgspec.Struct, frozen=True):
    """The content of a request; the type of its message is `kind`."""

    kind: ClassVar[str]
    channel: ClassVar[str] = "control"

    @property
    def content(self) -> Content:
        """What goes into the Jupyter message."""
        content: Content = msgspec.to_builtins(self, str_keys=True)
        return content


class RankReply(msgspec.Struct, frozen=True):
    """The content of a reply; the type of its message is that of the request, with ``_reply``."""


Request = TypeVar("Request", bound=RankRequest)
Reply = TypeVar("Reply", bound=RankReply)

# -- cells ------------------------------------------------------------------------------------


class ProfileOptions(msgspec.Struct, frozen=True):
    """How a cell is profiled."""

    steps: int | None = None
    """How many steps of an optimizer are profiled; `None` for all."""
    memory: bool = False


class CellRequest(RankRequest, frozen=True, kw_only=True):
    """Run a cell. It is answered by Jupyter's ``execute_reply``."""

    kind = "dist_cell_request"
    channel = "cells"
    code: str
    allow_stdin: bool
    execution_count: int | None
    """The number that tracebacks give the cell."""
    cell_id: str | None
    limit: int
    """Characters that this rank may show."""
    largest_display: int
    """Bytes that one display may have: the client does nothing else while it reads one."""
    file: str
    """The name of the file with the complete output, without the rank and the folder."""
    profile: ProfileOptions | None = None
    source: str | None = None
    """The editor's path of the cell, while the debugger is on."""


# -- the state of a rank ----------------------------------------------------------------------


class Whereabouts(msgspec.Struct, frozen=True):
    """Where the main thread is in the cell that it runs; by default it runs none."""

    line: int | None = None
    """In the cell, or in `file`."""
    call: str | None = None
    """The function called there, even by a library, that waits for other ranks."""
    backward: bool = False
    """Whether gradients are computed, which may wait, too."""
    asks: bool = False
    file: str = ""
    """The script or function that the cell runs; empty for the cell itself."""
    has_failed: bool = False
    """Whether the cell's code has ended, and its error is being shown."""
    debugged: bool = False
    """Whether the debugger has stopped it there."""

    @property
    def is_waiting(self) -> bool:
        """Whether it may wait for other ranks, and cannot react to an interrupt."""
        return bool(self.call) or self.backward


class TorchMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of torch on a rank's GPU, in bytes."""

    uuid: str = ""
    """The GPU's, according to CUDA."""
    allocated: int
    reserved: int
    peak: int = 0
    """The most that was allocated at one time since the rank started."""
    total: int = 0


class RankReport(msgspec.Struct, frozen=True):
    """The process of a rank, from inside."""

    pid: int
    host_pid: int
    """The pid where ``/proc`` was mounted."""
    memory: int
    """In bytes; a part of the pages that it shares with other processes."""
    gpu: TorchMemory | None
    """`None` unless CUDA is in use."""
    cpu: float = 0.0
    """Seconds of processor time that it has used."""


Activity = Literal["idle", "busy"]


class StatusRequest(RankRequest, frozen=True):
    """Report your status, whatever the main thread does."""

    kind = "dist_status_request"


class RankStatus(RankReply, frozen=True, kw_only=True):
    """The status of a rank."""

    rank: int
    state: Activity
    since: float
    """When it came into this state, in seconds since 1970."""
    cell: int | None
    """The notebook's number of the cell that it runs, or ran last."""
    cell_id: str | None
    msg_id: str | None
    """The id of the request that runs it."""
    whereabouts: Whereabouts
    calls: int
    """How many collectives it has begun."""
    group: str | None
    """The same on all ranks if they form one process group; `None` if it is broken."""
    world_size: int
    """Of that group."""
    report: RankReport


class StackRequest(RankRequest, frozen=True):
    """Report the stacks of all Python threads."""

    kind = "dist_stack_request"


class StackReply(RankReply, frozen=True):
    """The stacks, as tracebacks."""

    text: str


# -- stopping ---------------------------------------------------------------------------------


class CancelRequest(RankRequest, frozen=True):
    """Interrupt a cell that runs, or skip it if it has not begun."""

    kind = "dist_cancel_request"
    msg_id: str
    """The id of the request that runs it; if empty, whatever runs is interrupted."""
    sent: float = 0.0
    """Whatever began later is not meant; seconds since 1970, 0 for whatever runs."""


class CancelReply(RankReply, frozen=True):
    """Whether the cell was running, and where the main thread was."""

    running: bool
    since: float
    whereabouts: Whereabouts
    group: str = ""
    """The process group that was last asked for."""


class BreakRequest(RankRequest, frozen=True):
    """End every wait for other ranks. There is no reply."""

    kind = "dist_break_request"
    generation: int
    """How often ranks had been replaced; a newer process group is left alone."""
    group: str = ""
    """The only group to be broken; empty for any."""
    sent: float = 0.0
    """By the first node's monotonic clock; a group asked for since is left alone."""


class RegroupRequest(RankRequest, frozen=True):
    """Make the process group together with all other ranks."""

    kind = "dist_regroup_request"
    channel = "shell"
    name: str
    """The same on all ranks, and never used before in this pool."""
    generation: int
    until: float
    """When no rank waits for it any more, in seconds since 1970."""
    world_size: int
    """Of the pool, which may have been resized."""
    sent: float = 0.0
    """By the first node's monotonic clock."""


class RegroupReply(RankReply, frozen=True):
    """Whether there is a group."""

    failure: str
    """Why not; empty if there is."""
    wrapped: list[str] = []
    """If the size of the pool is new: variables whose modules still have a group of the old one."""


# -- values -----------------------------------------------------------------------------------


class SharedAddress(msgspec.Struct, frozen=True):
    """What another process needs to open a `SharedMemory`."""

    pid: int
    descriptor: int
    name: str


class PushRequest(RankRequest, frozen=True):
    """Set variables; with `call`, keep a function and its arguments for `dist_call`."""

    kind = "dist_push_request"
    sizes: list[int]
    """Of the pickle's buffers, in bytes."""
    call: str | None
    memory: SharedAddress | None
    """Where the buffers are; `None` if they come with the message."""


class PullRequest(RankRequest, frozen=True):
    """Return the value of an expression; with `call`, what a function has returned."""

    kind = "dist_pull_request"
    expression: str
    call: str | None
    memory: dict[int, SharedAddress]
    """By rank, where a large pickle is to be written."""
    parcel: str = ""
    """The name under which a large pickle is kept for `LoadRequest` without such memory."""


ValueStatus = Literal["ok", "missing", "failed", "unsendable", "unreadable", "no_memory"]
"""Whether a value was moved; ``no_memory`` asks for the buffers in a message."""


class ValueReply(RankReply, frozen=True):
    """The result of a push or a pull."""

    status: ValueStatus
    why: str = ""
    sizes: list[int] = []
    """Of a pulled pickle's buffers, in bytes."""
    devices: list[str] = []
    """Where its tensors were, except the CPU."""
    shared: bool = False
    """Whether it is in the shared memory; otherwise it comes with the message."""
    kept: bool = False
    """Whether it is in the parcel instead."""


class ForgetRequest(RankRequest, frozen=True):
    """Drop a call and its result. There is no reply."""

    kind = "dist_forget_request"
    call: str


# -- at the border ----------------------------------------------------------------------------

T = TypeVar("T", bound=msgspec.Struct)


def read_content(content: object, form: type[T]) -> T:
    """Read the content of a message; raises `ValueError` if it has another form."""
    return msgspec.convert(content, form, str_keys=True)

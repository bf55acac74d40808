"""The record of a pool, as REST, the stream, the panel and the magics show it."""

from __future__ import annotations

import socket
import time
from enum import Enum
from typing import Any

import msgspec
from msgspec import field

from .agents.agent_messages import GpuReference as GpuReference
from .agents.agent_messages import Parked, Snapshot
from .agents.attachment import Attachment
from .failure_reason import Reason
from .offers import InLine


class PoolState(str, Enum):
    """Slurm's states of a job; a pool is an interactive job."""

    PENDING = "PENDING"
    CONFIGURING = "CONFIGURING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    COMPLETED = "COMPLETED"

    @property
    def has_ranks(self) -> bool:
        """Whether its ranks are there, be they parked or not."""
        return self in (PoolState.RUNNING, PoolState.SUSPENDED)

    @property
    def ended(self) -> bool:
        """Whether no process of the pool is left."""
        return self in (PoolState.CANCELLED, PoolState.FAILED, PoolState.COMPLETED)


class RankRecord(msgspec.Struct):
    """One rank: where it is and what it does."""

    rank: int
    local_rank: int
    device: str
    """``"cpu"`` or ``"cuda:I"``, with I counted inside ``CUDA_VISIBLE_DEVICES``."""
    gpu: GpuReference | None
    pid: int | None = None
    start_ticks: int | None = None
    """Identifies the process together with the pid; see `ProcessRef`."""
    state: str = "starting"
    """``starting``, ``idle``, ``busy`` or ``dead``."""
    since: float = field(default_factory=time.time)
    cell: int | None = None
    """The notebook's number of the cell that it runs, or ran last."""
    cell_id: str | None = None
    """The notebook's id of that cell, which stays when the kernel restarts."""
    msg_id: str | None = None
    """The id of the request that runs that cell, the same on all of its ranks."""
    exit: str | None = None
    """Why it is dead, in words."""
    stderr: list[str] = []
    """The last lines that it wrote, if it died unasked."""
    node: str = ""
    """The machine it is on, if the pool has several."""

    def note_activity(
        self,
        state: str,
        cell: int | None,
        cell_id: str | None = None,
        msg_id: str | None = None,
        since: float | None = None,
    ) -> bool:
        """Note that a living rank is ``idle`` or ``busy`` since a time; tell whether that is new.

        `cell`, `cell_id` and `msg_id` are of the cell that it runs, or ran last. By default, the
        time is now; what is older than the present state is ignored.
        """
        if since is not None and since < self.since:
            return False
        last = self.state, self.cell, self.cell_id, self.msg_id
        new = self.state in ("idle", "busy") and last != (state, cell, cell_id, msg_id)
        if new:
            self.state, self.cell, self.cell_id, self.msg_id = state, cell, cell_id, msg_id
            self.since = since or time.time()
        return new


class Progress(msgspec.Struct):
    """How far a start is."""

    phase: str = ""
    ready: int = 0
    reason: str | msgspec.UnsetType = msgspec.UNSET
    """While it waits for GPUs: who has them."""
    line: InLine | msgspec.UnsetType | None = msgspec.UNSET


class Resizing(msgspec.Struct, frozen=True):
    """A pool that is to have another number of ranks."""

    num_ranks: int
    reason: str = ""
    """What it waits for."""
    line: InLine | None = None
    """Its place in line, if that is GPUs."""
    failure: Reason | None = None
    """Why it kept its size."""


class Parking(msgspec.Struct, frozen=True):
    """A pool that is being parked, or resumed."""

    resume: bool
    """Whether it is being resumed."""
    reason: str = ""
    """What it waits for, or does."""
    line: InLine | None = None
    """Its place in line, if that is GPUs."""
    failure: Reason | None = None
    """Why it stayed as it was."""


class PoolRecord(msgspec.Struct):
    """One pool; `version` grows with each change."""

    id: str
    kernel_id: str | None
    name: str
    world_size: int
    backend: str
    placement: str
    start_method: str
    python: str
    cwd: str
    time_limit: float | None = None
    """Seconds for which it may run."""
    ends_by: float | None = None
    idle_limit: float | None = None
    """Seconds after which it is stopped if no cell runs, and its GPUs do nothing."""
    idle_since: float | None = None
    """Since when that is so; `None` in the first minute."""
    park_after: float | None = None
    """Seconds of idle time after which it is parked, once somebody waits for one of its GPUs."""
    wanted_ranks: int | None = None
    """How many ranks were asked for, if fewer were enough to start with."""
    leases: str | None = None
    """How its GPUs are leased: ``exclusive`` or ``shared``; `None` if it has none."""
    folder: str = ""
    host: str = field(default_factory=socket.gethostname)
    engine: str = "local"
    """What started its ranks on other nodes than `host`, if there are any."""
    engine_job: str = ""
    """The id of the engine's job, as in Slurm, in which it runs."""
    node_map: tuple[tuple[str, int | str | None], ...] | None = None
    """The node of each rank, and its GPU there, if that was requested."""
    state: PoolState = PoolState.PENDING
    version: int = 0
    generation: int = 0
    reason: Reason | None = None
    notices: list[str] = []
    progress: Progress = field(default_factory=Progress)
    resizing: Resizing | None = None
    parking: Parking | None = None
    parked: Parked | None = None
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    orphaned: float | None = None
    """Since when its kernel is gone; after a grace time it is stopped."""
    attachments: list[Attachment] = []
    lost_nodes: list[str] = []
    """Nodes that cannot be used: they cannot be reached, or their agents have ended."""
    ranks: list[RankRecord] = []

    def take(self, snapshot: Snapshot) -> None:
        """Note what the agent says; whether a living rank is busy is known from the rank."""
        replaced = snapshot.generation != self.generation
        for rank, said in zip(self.ranks, snapshot.ranks, strict=False):
            is_new = replaced and said.pid != rank.pid
            if is_new:
                rank.cell = rank.cell_id = rank.msg_id = None
            if is_new or said.state in ("dead", "starting"):
                rank.state, rank.since = said.state, said.since
            elif rank.state == "starting":
                rank.state, rank.since = "idle", said.since
            rank.pid, rank.start_ticks = said.pid, said.start_ticks
            rank.exit, rank.stderr = said.exit, said.stderr
            rank.cell_id = snapshot.last_cells.get(rank.rank, rank.cell_id)
            rank.device, rank.gpu = said.device, said.gpu or rank.gpu
        self.generation = snapshot.generation
        self.start_method, self.backend = snapshot.start_method, snapshot.backend
        self.attachments = snapshot.attachments
        self.lost_nodes = snapshot.lost_nodes
        self.parked = snapshot.parked
        self.name = snapshot.name or self.name
        self.time_limit, self.ends_by = snapshot.time.limit, snapshot.time.ends_by
        self.notices += [n for n in snapshot.notices if n not in self.notices]

    def all_dead(self) -> None:
        """Note that no rank is left."""
        for rank in self.ranks:
            if rank.state != "dead":
                rank.state, rank.since = "dead", time.time()

    @property
    def other_nodes(self) -> list[str]:
        """The nodes of its ranks other than `host`."""
        nodes = dict.fromkeys(rank.node for rank in self.ranks if rank.node)
        return list(nodes)[1:]

    def to_json(self) -> dict[str, Any]:
        """Return the record as the REST API shows it."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown

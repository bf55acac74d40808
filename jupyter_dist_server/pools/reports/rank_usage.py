"""The resource usage of the ranks of all pools, read only while a client needs it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil

from ...client.ranks.gather_evidence import Standstill, gather_evidence
from ...client.ranks.rank_connection import RankConnection, read_reply
from ...common.background_tasks import Tasks
from ...common.patience import patience
from ...common.processes.process_memory import ProcessMemory
from ...common.processes.process_ref import ProcessRef
from ...common.protocol.jupyter_messages import Message
from ...common.protocol.pool_record import PoolRecord, RankRecord
from ...common.protocol.ranks.collectives import UNCOUNTED
from ...common.protocol.ranks.rank_messages import RankStatus, StatusRequest, Whereabouts
from ...verdicts.explain_hang import explain
from ...verdicts.verdict import Verdict
from ..pool import Pool
from ..pool_manager import PoolManager

_LOG = logging.getLogger(__name__)

_Place = tuple[Whereabouts, int | None, int]
"""A collective: where it was called, in which cell, and how many were begun before."""
_Rank = tuple[str, int | None, int | None]
"""A process: its node, its pid and its start there."""


@dataclass
class StoppedAt:
    """A line in a cell or a file."""

    file: str
    """``In[9]`` for a cell."""
    line: int


@dataclass
class Usage:
    """What one rank uses and does; what is not known is `None`."""

    rank: int
    pid: int
    host_pid: int | None
    cpu: float | None
    """Percent of one core."""
    memory: int
    """In bytes; of pages that it shares with other processes, its part."""
    gpu_uuid: str | None
    allocated: int | None
    """Torch's memory on its GPU in bytes, as is `reserved`."""
    reserved: int | None
    line: int | None
    """The line of the cell that it runs."""
    call: str | None
    """The collective that it is in."""
    calls: int | None
    """How many collectives it has begun."""
    waiting_since: float | None
    """Since when it waits in this one."""
    stopped: StoppedAt | None = None
    """Where the debugger has stopped it."""


@dataclass
class _Seen:
    """What is known of the ranks of one pool."""

    connection: RankConnection
    asked: dict[int, asyncio.Future[Message]] = field(default_factory=dict)
    """Questions without an answer yet; their ranks are not asked again meanwhile."""
    standstill: Standstill = field(default_factory=Standstill)
    verdict: Verdict | None = None

    async def ask(self, ranks: list[int]) -> dict[int, RankStatus]:
        """Return the states of the ranks that answer in time."""
        new = [rank for rank in ranks if rank not in self.asked]
        self.asked |= self.connection.begin(StatusRequest.kind, {}, new)
        if self.asked:
            await asyncio.wait(self.asked.values(), timeout=patience.answer)
        done = {r: self.asked.pop(r) for r, said in list(self.asked.items()) if said.done()}
        messages = {r: said.result() for r, said in done.items() if not said.cancelled()}
        replies = {r: read_reply(r, message, RankStatus) for r, message in messages.items()}
        return {r: status for r, status in replies.items() if status}

    async def judge(
        self, record: PoolRecord, living: list[int], said: dict[int, RankStatus]
    ) -> Verdict | None:
        """Return why ranks wait, if some make no progress."""
        if not self.standstill.is_seen(said, living):
            return None
        for rank in record.ranks:
            if rank.state == "dead":
                self.connection.note_death(rank.rank, rank.exit or "")
        look = partial(gather_evidence, self.connection, record.ranks)
        verdict, _ = await explain(look, time.time(), self.standstill.since)
        return verdict if verdict and verdict.concerns_all else None


class RankUsage:
    """Looks at every rank regularly: psutil for its process, its control channel for its GPU."""

    def __init__(self, manager: PoolManager, interval: float = 2.0) -> None:
        self.latest: dict[str, list[Usage | None]] = {}
        """By pool ID, one for each rank; `None` for a rank that has no process."""
        self.verdicts: dict[str, Verdict] = {}
        """By pool ID, why its ranks wait."""
        self._manager = manager
        self._interval = interval
        self._wanted = 0
        self._listeners: set[Callable[[], None]] = set()
        self._seen: dict[tuple[str, int], _Seen] = {}
        """By pool and generation of its ranks: new ranks do not get the questions to old ones."""
        self._processes: dict[ProcessRef, tuple[psutil.Process, ProcessMemory]] = {}
        self._cpu: dict[_Rank, tuple[float, float]] = {}
        """Of a rank on another node: when it answered last, and its processor time then."""
        self._waits: dict[_Rank, tuple[_Place, float]] = {}
        """The collective that a rank was last seen in, and since when."""
        self._looking: asyncio.Task[None] | None = None
        self._tasks = Tasks()

    def want(self) -> Callable[[], None]:
        """Look from now on, until the caller calls what is returned."""
        self._wanted += 1
        if self._looking is None or self._looking.done():
            self._looking = self._tasks.add(self._look())
        released = False

        def release() -> None:
            nonlocal released
            self._wanted -= not released
            released = True

        return release

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each look that found a change; return what stops the calls."""
        self._listeners.add(callback)
        return lambda: self._listeners.discard(callback)

    async def close(self) -> None:
        """Stop looking."""
        await self._tasks.cancel()
        await self._forget(set())

    async def _look(self) -> None:
        while True:
            if not self._wanted:
                self.latest = {}
                await self._forget(set())
                if not self._wanted:  # nor while we let go
                    return
            try:
                await self._look_at_all()
            except Exception:  # the next look may go well
                _LOG.exception("Reading the usage of the ranks failed")
            await asyncio.sleep(self._interval)

    async def _look_at_all(self) -> None:
        running = [p for p in self._manager.live() if p.record.state.has_ranks]
        found = await asyncio.gather(*(self._look_at(pool) for pool in running))
        await self._forget({(p.record.id, p.record.generation) for p in running})
        latest = {pool.record.id: used for pool, used in zip(running, found, strict=True)}
        verdicts = {pool: seen.verdict for (pool, _), seen in self._seen.items() if seen.verdict}
        if latest != self.latest or verdicts != self.verdicts:
            self.latest, self.verdicts = latest, verdicts
            for listener in list(self._listeners):
                listener()

    async def _look_at(self, pool: Pool) -> list[Usage | None]:
        try:
            return await self._usage_of(pool)
        except Exception:  # the other pools must still be shown
            _LOG.exception("Reading the usage of the ranks of pool %s failed", pool.record.id)
            return [None] * pool.record.world_size

    async def _usage_of(self, pool: Pool) -> list[Usage | None]:
        record = pool.record
        key = record.id, record.generation
        try:
            if key not in self._seen:
                self._seen[key] = _Seen(RankConnection(Path(record.folder)))
                self._seen[key].connection.open()
            seen = self._seen[key]
            living = [rank.rank for rank in record.ranks if rank.state != "dead"]
            answers = await seen.ask(living)
            seen.verdict = await seen.judge(record, living, answers)
        except OSError:  # it has ended this very moment
            answers = {}
        ranks = list(record.ranks)
        said = [answers.get(rank.rank) for rank in ranks]
        return await asyncio.to_thread(lambda: list(map(self._usage, ranks, said)))

    def _usage(self, rank: RankRecord, said: RankStatus | None) -> Usage | None:
        used = self._elsewhere(rank, said) if rank.start_ticks is None else self._here(rank)
        if rank.pid is None or used is None:
            return None
        cpu, memory = used
        gpu = said.report.gpu if said else None
        at = said.whereabouts if said else Whereabouts()
        return Usage(
            rank=rank.rank,
            pid=rank.pid,
            host_pid=said.report.host_pid if said else None,
            cpu=cpu,
            memory=memory,
            gpu_uuid=_full_uuid(rank, gpu.uuid) if gpu else None,
            allocated=gpu.allocated if gpu else None,
            reserved=gpu.reserved if gpu else None,
            line=None if at.file else at.line,
            call=at.call,
            calls=said.calls if said and at.call not in {None, *UNCOUNTED} else None,
            waiting_since=self._waiting_since((rank.node, rank.pid, rank.start_ticks), said),
            stopped=_stopped(said) if said else None,
        )

    def _here(self, rank: RankRecord) -> tuple[float | None, int] | None:
        """Return the CPU and memory that a process of this machine uses."""
        if rank.pid is None or rank.start_ticks is None:
            return None
        reference = ProcessRef(rank.pid, rank.start_ticks)
        known = self._processes.get(reference)
        if known is None:
            process = reference.find()
            if process is None:
                return None
            self._processes[reference] = process, ProcessMemory(process)
        process, memory_of = self._processes[reference]
        try:
            # It measures since its last call, so the first one does not say anything.
            cpu, memory = process.cpu_percent(), memory_of.read()
        except psutil.NoSuchProcess:
            return None
        return cpu if known else None, memory

    def _elsewhere(
        self, rank: RankRecord, said: RankStatus | None
    ) -> tuple[float | None, int] | None:
        """Return the same for a rank on another node, as it reports."""
        if said is None:
            return None
        key, now = (rank.node, rank.pid, None), time.monotonic()
        since, before = self._cpu.get(key, (now, 0.0))
        self._cpu[key] = now, said.report.cpu
        cpu = None if since == now else 100 * (said.report.cpu - before) / (now - since)
        return cpu if cpu is None else round(max(0.0, cpu), 1), said.report.memory

    def _waiting_since(self, rank: _Rank, said: RankStatus | None) -> float | None:
        """Return when a rank was first seen in its present collective."""
        if said is None:
            return None  # it may still be there, but does not say so
        if said.whereabouts.call is None:
            self._waits.pop(rank, None)
            return None
        # They are counted: in a loop, the next one is another.
        place = said.whereabouts, said.cell, said.calls
        seen = self._waits.get(rank)
        if seen is None or seen[0] != place:
            seen = self._waits[rank] = place, time.time()
        return seen[1]

    async def _forget(self, kept: set[tuple[str, int]]) -> None:
        for key in set(self._seen) - kept:
            await self._seen.pop(key).connection.close()
        if not kept:
            self._processes.clear()
            self._cpu.clear()
            self._waits.clear()


def _stopped(said: RankStatus) -> StoppedAt | None:
    at = said.whereabouts
    if not at.debugged or at.line is None:
        return None
    return StoppedAt(at.file or f"In[{said.cell}]", at.line)


def _full_uuid(rank: RankRecord, uuid: str) -> str:
    """Return a UUID as NVML writes it: CUDA leaves out the kind of device."""
    assigned = rank.gpu.uuid if rank.gpu else ""
    return assigned if assigned.partition("-")[2] == uuid else f"GPU-{uuid}"

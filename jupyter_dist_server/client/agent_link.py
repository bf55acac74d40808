"""A connection to a pool's agent: its snapshots in, commands out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from ..common.background_tasks import within
from ..common.errors import DistError
from ..common.patience import patience
from ..common.peers import check_unix_peer
from ..common.pool_folder import AGENT_SOCKET
from ..common.processes.process_ref import ProcessRef, is_stopped
from ..common.processes.why_silent import PHRASES, why_each_silent, why_silent
from ..common.protocol.agents.agent_messages import (
    AgentNews,
    Command,
    Interrupt,
    LateRanks,
    LockGranted,
    LockHolderStopped,
    LockWanted,
    Log,
    LogLines,
    NodeGpus,
    Ping,
    RankState,
    Refused,
    Snapshot,
    decode_news,
    encode,
)
from ..common.protocol.failure_reason import Reason
from ..common.protocol.pool_file import CONFIG
from .execution_lock import ExecutionLock
from .ranks.rank_connection import rank_silent

_LOG = logging.getLogger(__name__)


def connect_to_agent(folder: Path, timeout: float) -> socket.socket:
    """Connect to an agent's socket; it blocks the calling thread.

    Raises `OSError` if no process listens there, or another user's.
    """
    agent = socket.socket(socket.AF_UNIX)
    try:
        agent.settimeout(timeout)
        agent.connect(str(folder / AGENT_SOCKET))
        check_unix_peer(agent)
    except BaseException:
        agent.close()
        raise
    return agent


def look_at_agent(folder: Path, timeout: float) -> Snapshot | None:
    """Return an agent's snapshot, or `None` if the agent is ending; it blocks the calling thread.

    Raises `OSError` as `connect_to_agent` does, or if the agent says nothing in time; `ValueError`
    if this is no snapshot of this version of the package.
    """
    with connect_to_agent(folder, timeout) as agent, agent.makefile("rb") as lines:
        line = lines.readline()
    if not line:
        return None
    snapshot = decode_news(line)
    if not isinstance(snapshot, Snapshot):
        raise ValueError("the agent began with something else than a snapshot")
    return snapshot


async def agent_silent(process: ProcessRef | None) -> Reason:
    """Say why an agent does not respond; its ranks may be well, but nobody looks after them."""
    cause = await why_silent(process)
    which, hint = "", "Stop the pool with %dist_shutdown, and start a new one with %dist_init."
    if process:
        which = f" (pid {process.pid})"
        if cause == "stopped":
            hint = f"Continue it with kill -CONT {process.pid}, or stop the pool: %dist_shutdown"
    if cause == "starved":
        hint = "Try again when other programs use the processors less."
    return Reason(
        "agent_silent", f"The pool's agent{which} does not respond: it is {PHRASES[cause]}.", hint
    )


def can_connect(folder: Path) -> bool:
    """Tell whether the files for connecting to an agent are there; not for an event loop."""
    return all((folder / name).exists() for name in (CONFIG, AGENT_SOCKET))


def folder_removed(folder: Path) -> Reason:
    """Say that an agent runs, but can no longer be connected to."""
    return Reason(
        "pool_unreachable",
        f"Files of the pool in {folder} were removed, so nothing can connect to it any more, and "
        "its ranks cannot be replaced.",
        "Stop the pool with %dist_shutdown, and start a new one with %dist_init.",
    )


def unreachable(folder: Path, error: OSError) -> DistError:
    """Return what to raise if an agent cannot be connected to."""
    if isinstance(error, FileNotFoundError):
        return folder_removed(folder).error()
    return DistError(
        "pool_unreachable",
        f"The pool does not respond: {error}.",
        "Stop it with %dist_shutdown and start a new one.",
    )


def _process_here(rank: RankState) -> ProcessRef | None:
    """Return the process of a rank, unless it is on another node."""
    return ProcessRef(rank.pid, rank.start_ticks) if rank.pid and rank.start_ticks else None


def _is_stopped_here(rank: RankState) -> bool:
    """See for ourselves, as its agent may be stopped, too, or be told nothing by a debugger."""
    process = _process_here(rank)
    return process is not None and is_stopped(process)


class AgentLink:
    """Follows one agent."""

    def __init__(self, on_snapshot: Callable[[Snapshot], None] = lambda _: None) -> None:
        self.snapshot: Snapshot | None = None
        """The newest one."""
        self.closed = asyncio.Event()
        """Set when the agent has gone."""
        self.first = asyncio.Event()
        self.lock = ExecutionLock(self.send)
        self.on_late: Callable[[list[int]], None] = lambda _: None
        """Called with ranks that did not stop for another client, while we have the lock."""
        self.on_gpus: Callable[[NodeGpus], None] = lambda _: None
        """Called with what samplers on other nodes say, after `WatchGpus`."""
        self._heard = asyncio.Event()
        """Set by the next message."""
        self._log: asyncio.Future[list[str]] | None = None
        self._on_snapshot = on_snapshot
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def connect(self, folder: Path) -> None:
        """Connect to the agent's socket; raises `OSError` as `connect_to_agent` does."""
        reader, self._writer = await asyncio.open_unix_connection(
            str(folder / AGENT_SOCKET), limit=1 << 24
        )
        try:
            check_unix_peer(self._writer.get_extra_info("socket"))
        except PermissionError:
            self._writer.close()
            raise
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                try:
                    self._hear(decode_news(line))
                except Exception:  # one bad line, or listener, must not look like the agent's death
                    _LOG.exception("Invalid message from a pool's agent: %r", line[:200])
        except ConnectionError:
            pass  # the agent was killed; `closed` says so
        except ValueError:
            _LOG.exception("A message from a pool's agent was too long")
        finally:
            self.first.set()
            self.closed.set()
            self._heard.set()
            self.lock.close()
            if self._log:
                self._log.cancel()

    def _hear(self, news: AgentNews) -> None:
        self._heard.set()
        self._heard = asyncio.Event()
        if isinstance(news, (LockGranted, LockWanted, LockHolderStopped)):
            self.lock.hear(news)
        elif isinstance(news, LateRanks):
            self.on_late(news.ranks)
        elif isinstance(news, LogLines):
            if self._log and not self._log.done():
                self._log.set_result(news.lines)
        elif isinstance(news, NodeGpus):
            self.on_gpus(news)
        elif isinstance(news, Refused):
            _LOG.warning("A pool's agent: %s", news.message)
        elif isinstance(news, Snapshot):
            self.snapshot = news
            self.first.set()
            self._on_snapshot(news)

    async def answers(self) -> bool:
        """Ask the agent for an answer; tell whether one came in time."""
        heard = self._heard
        self.send(Ping())
        with contextlib.suppress(asyncio.TimeoutError):
            await within(heard.wait(), patience.node)
        return heard.is_set() and not self.closed.is_set()

    async def is_silent(self) -> bool:
        """Ask the agent for an answer; tell whether it is there, but none came."""
        return not await self.answers() and not self.closed.is_set()

    async def silent_error(self) -> DistError:
        """Return what to raise if the agent does not respond."""
        return (await agent_silent(self.process)).error()

    async def acquire_lock(self, unless: asyncio.Event) -> bool:
        """Wait for the execution lock, however long others keep it, but not for a stuck agent."""
        if self.lock.is_held:
            return await self.lock.acquire(unless=unless)
        taking = asyncio.create_task(self.lock.acquire(unless=unless))
        try:
            while not (await asyncio.wait({taking}, timeout=2.0))[0]:
                if not await self.is_silent() or await why_silent(self.process) == "starved":
                    continue
                if not taking.done():
                    raise await self.silent_error()
        except BaseException:
            if not taking.cancel() and taking.result():
                self.lock.release()
            raise
        return taking.result()

    @property
    def process(self) -> ProcessRef | None:
        """The agent's, once it has spoken."""
        return self.snapshot.process if self.snapshot else None

    @property
    def generation(self) -> int:
        """How often ranks were started; 0 until the agent has spoken."""
        return self.snapshot.generation if self.snapshot else 0

    @property
    def is_parked(self) -> bool:
        """Whether ranks are parked, or may be."""
        return self.snapshot is not None and self.snapshot.parked is not None

    @property
    def lost_nodes(self) -> list[str]:
        """Nodes of the pool that cannot be used."""
        return self.snapshot.lost_nodes if self.snapshot else []

    def not_started(self, ranks: Iterable[int]) -> list[Reason]:
        """Return why replacements of some ranks did not start."""
        return [rank.failure for rank in self._states(ranks) if rank.failure]

    def stopped(self, ranks: Iterable[int]) -> list[int]:
        """Return the ranks among these that are stopped, by a signal or a debugger."""
        return [
            rank.rank
            for rank in self._states(ranks)
            if rank.state != "dead" and (rank.stopped or _is_stopped_here(rank))
        ]

    async def rank_silent(self, ranks: Collection[int]) -> DistError:
        """Return what to raise if some ranks do not respond."""
        states = self.snapshot.ranks if self.snapshot else []
        processes = {rank.rank: _process_here(rank) for rank in states if rank.rank in ranks}
        here = {rank: process for rank, process in processes.items() if process}
        causes = await why_each_silent(here)
        causes |= dict.fromkeys(self.stopped(ranks), "stopped")
        known = {rank: causes.get(rank, "unknown") for rank in sorted(ranks)}
        return rank_silent(known, len(states))

    def _states(self, ranks: Iterable[int]) -> list[RankState]:
        known, chosen = self.snapshot.ranks if self.snapshot else [], set(ranks)
        return [rank for rank in known if rank.rank in chosen]

    def interrupt(self, ranks: Iterable[int]) -> None:
        """Have SIGINT sent to ranks and to the subprocesses in their groups."""
        self.send(Interrupt(sorted(ranks)))

    async def log(self, rank: int) -> list[str] | None:
        """Return the last lines that a rank wrote; `None` if the agent ends meanwhile."""
        self._log = asyncio.get_running_loop().create_future()
        if self.closed.is_set():
            self._log.cancel()
        self.send(Log(rank))
        await asyncio.wait([self._log])
        return None if self._log.cancelled() else self._log.result()

    def send(self, command: Command) -> None:
        """Give a command."""
        if self._writer and not self.closed.is_set():
            self._writer.write(encode(command))

    async def close(self) -> None:
        """Hang up; the agent goes on."""
        if self._writer:
            self._writer.close()
        if self._reading:
            await asyncio.gather(self._reading, return_exceptions=True)

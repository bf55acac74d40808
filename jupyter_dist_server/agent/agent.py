"""The agent: it forks, monitors and reaps the ranks of one pool.

A zygote, which has imported torch, forks it in the notebook kernel's interpreter. It forks each
rank, so that ranks share the zygote's pages. It starts no thread and never opens CUDA: both would
make a fork unsafe. Whoever can reach the socket in the pool's private folder may send
commands, as JSON lines, and gets a snapshot at each change.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from ..common.files.inherited_lease import InheritedLease
from ..common.files.open_files import raise_limit
from ..common.folder import read_config
from ..common.node_clock import write_ahead
from ..common.processes.pool_processes import ended_now, reap_orphans
from ..common.processes.process_ref import (
    KILLED,
    RESTARTED,
    STOPPED,
    ProcessRef,
    adopt_descendants,
    call_ourselves,
)
from ..common.protocol.agents.agent_messages import (
    AcquireLock,
    Attach,
    Commands,
    Extend,
    Interrupt,
    Kill,
    Log,
    LogLines,
    NoteCell,
    NoteIdle,
    Ping,
    Pong,
    RankState,
    Refused,
    ReleaseLock,
    Rename,
    Restart,
    Snapshot,
    StartRanks,
    Stop,
    WatchGpus,
)
from ..common.protocol.agents.rank_start import Failed, Ready, decode_report
from ..common.protocol.nodes import PoolNode
from ..common.protocol.reason import Reason
from ..common.tasks import Tasks
from .attachments import Attachments
from .control_socket import Client, ControlSocket
from .exit_reasons import Deaths
from .first_node import FirstNode, stream_of
from .gpu_watchers import GpuWatchers
from .lock_queue import LockQueue
from .merging import merge, note_lost
from .node_sampler import NodeSampler
from .nodes import Nodes
from .rank_log import RankLogs
from .rank_processes import left_behind, read_report, signal_rank
from .starting import Starter
from .time_limit import TimeLimit

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""


class Agent:
    """State of the agent process.

    Parameters
    ----------
    folder : Path
        The pool's private folder, holding ``pool.json``.
    listener : socket.socket
        The control socket, already bound by the owner.
    lease : InheritedLease or None
        Of the pool's GPUs.
    orders : tuple of int or None
        Descriptors by which the first node's agent is heard and answered, on another node.
    """

    def __init__(
        self,
        folder: Path,
        listener: socket.socket,
        lease: InheritedLease | None = None,
        orders: tuple[int, int] | None = None,
    ) -> None:
        self.folder = folder
        self._lease = lease
        self.config = read_config(folder)
        self.listener = listener
        self._process = ProcessRef.of(os.getpid())
        self.world_size = self.config.world_size
        self._name = self.config.record.name
        self.starter = Starter(folder, self.config, self._on_report)
        self.failure: Reason | None = None
        self.stopping = False
        self._stopped = False
        self._endings: dict[int, str] = {}
        self._restarting = asyncio.Lock()
        self._wake = asyncio.Event()
        self._death = asyncio.Event()
        self._logs = RankLogs(folder)
        self._deaths = Deaths(self._logs)
        self._last_cells: dict[int, str] = {}
        self._control = ControlSocket(listener, self.snapshot, self._obey, self._on_gone)
        self._lock = LockQueue(self._control.tell)
        self._tasks = Tasks()
        self._gpus = GpuWatchers(self._control.tell)
        self._nodes = Nodes(
            folder, self.config, self._on_node, self._on_node_lost, self._control.tell, self._gpus
        )
        self._orders = orders
        self._node = self.config.nodes[self.config.node].name if orders else ""
        self._sampler = NodeSampler(self._node, self._gpus.tell)
        self._first_node = FirstNode(lambda: self._tasks.add(self.stop()))
        self._attachments = Attachments(
            self.config.owner,
            self.config.grace,
            changed=self._control.broadcast,
            abandoned=lambda: self._tasks.add(self.stop()),
        )
        self._limit = TimeLimit(
            self.config.record.time_limit,
            lease,
            changed=self._control.broadcast,
            over=lambda: self._tasks.add(self.stop()),
        )

    @property
    def ranks(self) -> list[RankState]:
        """What is known of each rank."""
        return self.starter.ranks

    # -- what ranks say ---------------------------------------------------------------------

    def _on_report(self, rank: int) -> None:
        """Read a rank's only message: ready, or why not. Its end is SIGCHLD's to tell."""
        reports = self.starter.reports
        line, descriptors = read_report(reports[rank])
        if line is None:
            return
        report = decode_report(line) if line else None
        record = self.ranks[rank]
        asyncio.get_running_loop().remove_reader(reports[rank])
        reports.pop(rank).close()
        self._logs.keep(rank, descriptors)
        if isinstance(report, Failed) and self.starter.whole:
            self._fail(rank, report)
        elif isinstance(report, Failed):
            record.exit = f"did not start: {report.message}"
        elif isinstance(report, Ready) and record.state == "starting":
            record.state, record.since = "idle", time.time()
        self._control.broadcast()

    def _on_child_end(self) -> None:
        """Reap every child that has ended; called on SIGCHLD."""
        changed = False
        for record in self._own(self.ranks):
            if record.pid is None or record.state == "dead":
                continue
            pid, status = os.waitpid(record.pid, os.WNOHANG)
            if not pid:
                continue
            was_starting = self.starter.whole and self.starter.is_starting
            wanted = self._endings.get(record.rank) or record.exit
            self._deaths.explain(record, status, wanted)
            changed = True
            if record.rank in self.starter.reports:
                self._on_report(record.rank)  # its last words may still be in the socket
            if was_starting and not self.stopping and not self.failure:
                self._fail(record.rank, Failed(record.exit or ""))
        reap_orphans({record.pid for record in self._own(self.ranks)} | self._helpers)
        if changed:
            self._death.set()
            self._control.broadcast()

    def _fail(self, rank: int, failure: Failed) -> None:
        self.failure = self._deaths.explain_failure(rank, failure)
        self._tasks.add(self.stop())

    def _own(self, ranks: Iterable[RankState]) -> list[RankState]:
        """Return those of some ranks that are on this node: only here, their pids are theirs."""
        return [record for record in ranks if record.rank in self.starter.own]

    # -- other nodes ------------------------------------------------------------------------

    def _on_node(self, node: PoolNode, said: Snapshot) -> None:
        if said.failure:
            where = f"On node {node.name}: {said.failure.message}"
            self._give_up(msgspec.structs.replace(said.failure, message=where))
        merge(self.starter, node, said)
        self._death.set()
        self._control.broadcast()

    @property
    def _helpers(self) -> set[int]:
        """Our children that are no ranks."""
        return self._nodes.pids | self._sampler.pids

    def _sample(self) -> None:
        """Have GPUs sampled on those nodes that somebody asks for."""
        if self._orders:
            self._sampler.follow(self._gpus.settings(self._node))
        else:
            self._nodes.sample()

    def _on_node_lost(self, why: Reason) -> None:
        if self.starter.whole and self.starter.is_starting and not self.stopping:
            self._give_up(why)  # as the other ranks would wait for those to meet them
        note_lost(self.ranks, self._nodes.why_lost)
        self._death.set()
        self._control.broadcast()

    def _give_up(self, why: Reason) -> None:
        self.failure = self.failure or why
        self._tasks.add(self.stop())

    # -- talking to owners and clients ------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return all that a client may want to know."""
        return Snapshot(
            process=self._process,
            generation=self.starter.generation,
            start_method=self.starter.method,
            backend=self.starter.backend,
            notices=self.starter.notices,
            failure=self.failure,
            stopping=self.stopping,
            attachments=self._attachments.all(),
            ranks=self.ranks,
            time=self._limit.state,
            addresses=self.starter.addresses(),
            name=self._name,
            last_cells=self._last_cells,
        )

    def _on_gone(self, client: Client) -> None:
        self._attachments.remove(client)
        self._lock.remove(client)
        self._limit.remove(client)
        self._gpus.remove(client)
        self._sample()

    def _obey(self, client: Client, command: Commands) -> None:
        self._first_node.note()
        if isinstance(command, Attach):
            self._attachments.add(client, command.attachment)
        elif isinstance(command, AcquireLock):
            self._lock.acquire(client)
        elif isinstance(command, ReleaseLock):
            self._lock.release(client)
        elif isinstance(command, Kill):
            self._kill(command)
        elif isinstance(command, Stop):
            self._tasks.add(self.stop())
        elif isinstance(command, Extend):
            self._limit.extend(command.seconds)
        elif isinstance(command, NoteIdle):
            self._limit.note_idle(client, command.since)
        elif isinstance(command, Rename):
            self._rename(command.names)
        elif isinstance(command, WatchGpus):
            self._gpus.note(client, command)
            self._sample()
        elif isinstance(command, Ping):
            if self._orders and command.ahead is not None:
                with contextlib.suppress(OSError):  # the disk is full: the last value stays
                    write_ahead(self.folder, command.ahead)
            self._control.tell(client, Pong(command.sent, time.time()))
        elif unknown := set(_ranks_of(command)) - set(range(self.world_size)):
            self._control.tell(client, Refused(f"there is no rank {min(unknown)}"))
        elif isinstance(command, Interrupt):
            for record in self._own(self.ranks[rank] for rank in command.ranks):
                signal_rank(record, signal.SIGINT)
            self._nodes.send(command.ranks, Interrupt)
        elif isinstance(command, NoteCell):
            dead = [rank for rank in command.ranks if self.ranks[rank].state == "dead"]
            self._last_cells |= dict.fromkeys(dead, command.cell_id)
            self._control.broadcast()
        elif isinstance(command, Log):
            if command.rank in self.starter.own:
                self._control.tell(client, LogLines(self._logs.lines(command.rank)))
            else:
                self._nodes.ask_log(client, command.rank)
        elif self.stopping:
            pass  # nothing is started any more
        elif isinstance(command, StartRanks):
            self._tasks.add(self._restart(command.ranks, command))
        else:
            self._tasks.add(self._restart(command.ranks or range(self.world_size)))

    def _rename(self, names: dict[str, str]) -> None:
        self._name = names.get(self._name, self._name)
        if self._lease:
            self._lease.tell(notebook=self._name)
        self._attachments.rename(names)

    # -- ending -----------------------------------------------------------------------------

    def _kill(self, asked: Kill) -> None:
        """Kill ranks at once; until it is reaped by us, nobody else can have a rank's pid."""
        ranks = asked.ranks or range(self.world_size)
        self._nodes.send(ranks, lambda mine: Kill(asked.pids, mine))
        for record in self._own(self.ranks):
            if record.rank in ranks and record.pid in asked.pids and record.state != "dead":
                self._endings[record.rank] = KILLED
                signal_rank(record, signal.SIGKILL)

    async def _restart(self, chosen: Collection[int], order: StartRanks | None = None) -> None:
        """Replace ranks, as the first node's agent has ordered if this is another one."""
        async with self._restarting:  # two notebooks may ask for the same rank
            if not order and self.starter.whole and self.starter.is_starting:
                chosen = range(self.world_size)  # as the others would wait for those to meet them
            self.starter.cancel(chosen)
            self._endings = dict.fromkeys(chosen, RESTARTED)
            self._last_cells = {r: id for r, id in self._last_cells.items() if r not in chosen}
            await self._end_ranks(chosen)
            if not self.stopping:
                self._endings = {}
                self._order(chosen, order)
                self._control.broadcast()

    async def stop(self) -> None:
        """End every rank and whatever they left behind, then let the main loop return."""
        if self.stopping:
            return
        self.stopping = True
        everybody = range(self.world_size)
        self._endings = {} if self.failure else dict.fromkeys(everybody, STOPPED)
        self.starter.cancel(everybody)
        self._control.broadcast()
        await asyncio.gather(self._end_ranks(everybody), self._nodes.close(), self._sampler.close())
        self._control.broadcast()
        self._stopped = True
        self._wake.set()

    async def _end_ranks(self, chosen: Collection[int]) -> None:
        own = self._own(self.ranks)
        ending = [record for record in own if record.rank in chosen]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for record in ending:
                signal_rank(record, number)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._all_dead(ending), GRACE)
        # The ranks themselves are reaped by `_on_child_end` alone.
        left = left_behind(
            ending, self.config.id, by_all=len(ending) == len(own), spared=self._helpers
        )
        await ended_now(left)

    async def _all_dead(self, ending: list[RankState]) -> None:
        while any(record.pid and record.state != "dead" for record in ending):
            self._death.clear()
            await self._death.wait()

    # -- the main loop ----------------------------------------------------------------------

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._on_child_end)
        loop.add_signal_handler(signal.SIGTERM, lambda: self._tasks.add(self.stop()))
        await self._control.open()
        if not self._orders:
            self._attachments.open()
            self._limit.open()
        if self._orders:
            head = self._tasks.add(self._control.converse(*await stream_of(*self._orders)))
            self._tasks.add(self._first_node.watch(head))
        if self.failure:
            self._tasks.add(self.stop())
        elif not self._orders:
            self._nodes.open()
            self._order(range(self.world_size))

    def _order(self, chosen: Collection[int], order: StartRanks | None = None) -> None:
        if order:
            self.starter.follow(order)
        else:
            self.starter.order(chosen)
            self._nodes.start(self.starter.as_order(chosen))
            note_lost(self.ranks, self._nodes.why_lost)
        self._wake.set()

    async def _has_next(self) -> bool:
        """Wait for a rank to start; false when the pool has ended."""
        while not self.starter.has_orders:
            if self._stopped:
                return False
            self._wake.clear()
            await self._wake.wait()
        return True

    def run(self) -> None:
        """Start the ranks and serve until the pool ends."""
        inherited = {int(name) for name in os.listdir("/dev/fd")}
        inherited -= {self.listener.fileno(), *(self._orders or ())}
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(self._open())
        if self._lease and (events := self._lease.fileno()) is not None:
            loop.add_reader(events, self._lease.mend)
        # The loop is paused while forking, so that a child never stands inside a callback.
        while loop.run_until_complete(self._has_next()):
            self.starter.start_next(inherited)  # none, if a restart came in the loop's last pass
            if not self.starter.has_orders:
                self._control.broadcast()
        shutil.rmtree(self.folder, ignore_errors=True)
        loop.run_until_complete(self._control.close())


def _ranks_of(command: Interrupt | Log | NoteCell | Restart | StartRanks) -> list[int]:
    return [command.rank] if isinstance(command, Log) else command.ranks


def serve(
    listener: socket.socket,
    lease: list[int],
    failure: Reason | None,
    orders: tuple[int, int] | None = None,
) -> None:
    """Be the agent of a listening control socket, which lies in the folder, until its pool ends.

    The descriptors of a lease are held as long. With a `failure`, only say why no rank can start.
    `orders` are descriptors for the first node's agent, on another node.
    """
    call_ourselves("dist-agent")
    raise_limit()  # for our ranks too, which have a connection to each other in every group
    held = InheritedLease(lease) if lease else None  # at once, and by no child of ours
    agent = Agent(Path(listener.getsockname()).parent, listener, held, orders)
    agent.failure = failure
    if not failure:
        agent.starter.prepare()
    adopt_descendants()
    agent.run()
    if held:
        held.close()

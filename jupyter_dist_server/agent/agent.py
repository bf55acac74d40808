"""The agent: it forks, monitors and reaps the ranks of one pool.

A zygote, which has imported torch, forks it in the notebook kernel's interpreter. It forks each
rank, so that ranks share the zygote's pages. It starts no thread and never opens CUDA: both would
make a fork unsafe. Every process that can reach the socket in the pool's private folder may send
commands, as JSON lines, and gets a snapshot at each change.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import time
from collections.abc import Collection
from pathlib import Path

import msgspec

from ..common.background_tasks import Tasks, any_of
from ..common.errors import DistError
from ..common.files.hand_over import take_over
from ..common.files.inherited_lease import InheritedLease
from ..common.patience import patience
from ..common.pool_folder import read_config, rewrite_config
from ..common.processes.process_ref import RESIZED, RESTARTED, STOPPED, ProcessRef
from ..common.protocol.agents import agent_messages as messages
from ..common.protocol.failure_reason import Reason, why_no_start
from ..common.protocol.node_addresses import PoolNode
from ..common.protocol.store_messages import StoreReply, StoreRequest
from .attachments import Attachments
from .command_handler import CommandHandler
from .control_socket import Client, ControlSocket
from .execution_lock_queue import LockQueue
from .group_store import serve_store
from .held_lease import HeldLease
from .nodes.agents_of_other_nodes import Nodes
from .nodes.first_node import FirstNode, stream_of
from .nodes.gpu_watchers import GpuWatchers
from .nodes.node_sampler import NodeSampler
from .nodes.smaller_pool import without_nodes
from .ranks.monitor_ranks import Ranks
from .resized_pool import resized
from .time_limit import TimeLimit

_LOG = logging.getLogger(__name__)


class Agent:
    """State of the agent process.

    `listener` is the control socket, bound by the owner. On another node than the first, `orders`
    are the descriptors that lead from and to the first node's agent.
    """

    def __init__(
        self,
        folder: Path,
        listener: socket.socket,
        lease: InheritedLease | None = None,
        orders: tuple[int, int] | None = None,
    ) -> None:
        self.folder = folder
        self.lease = HeldLease(folder, lease, lambda: self._control.broadcast())
        self.config = read_config(folder)
        self.listener = listener
        self._process = ProcessRef.of(os.getpid())
        self.failure: Reason | None = None
        self.stopping = False
        self._stopped = False
        self._restarting = asyncio.Lock()
        self._wake = asyncio.Event()
        self._tasks = Tasks()
        self._control = ControlSocket(listener, self.snapshot, self._obey, self._on_gone)
        self._ranks = Ranks(
            folder, self.config, self._control.broadcast, self._give_up, lambda: self._helpers
        )
        self.starter = self._ranks.starter
        self._lock = LockQueue(self._control.tell)
        self._gpus = GpuWatchers(self._control.tell)
        self._nodes = Nodes(
            folder,
            self.config,
            self._on_node,
            self._on_node_lost,
            self._control.tell,
            self._gpus,
            self._ask_store,
        )
        self._orders = orders
        self._first_node = FirstNode(lambda: self._tasks.add(self.stop()))
        self._node = self.config.nodes[self.config.node].name if orders else ""
        self._sampler = NodeSampler(self._node, self._gpus.tell)
        self._attachments = Attachments(
            self.config.owner,
            self.config.grace,
            changed=self._control.broadcast,
            abandoned=lambda: self._tasks.add(self.stop()),
        )
        self._limit = TimeLimit(
            self.config.record.time_limit,
            changed=self._on_time,
            over=lambda: self.stopping or self._tasks.add(self.stop()),
        )
        self._name = self.config.record.name
        self._handler = CommandHandler(
            control=self._control,
            ranks=self._ranks,
            nodes=self._nodes,
            attachments=self._attachments,
            lock=self._lock,
            limit=self._limit,
            gpus=self._gpus,
            sample=self._sample,
            store_answer=self._first_node.hear_store,
            answer=self._answer,
            rename=self._rename,
            describe=self._describe,
            restart=lambda *order: self._tasks.add(self._restart(*order)),
            resize=lambda order: self._tasks.add(self._resize(order)),
            park=lambda order: self._tasks.add(self.lease.obey(order)),
            stop=lambda: self._tasks.add(self.stop()),
        )

    # -- other nodes ------------------------------------------------------------------------

    def _on_node(self, node: PoolNode, said: messages.Snapshot) -> None:
        if said.failure:
            where = f"On node {node.name}: {said.failure.message}"
            why = msgspec.structs.replace(said.failure, message=where)
            if not self._ranks.are_all_starting:  # the other ranks keep their variables
                self._nodes.give_up(node, why)
                return
            self._give_up(why)
        self.starter.merge(node, said)
        self._control.broadcast()

    @property
    def _helpers(self) -> set[int]:
        """Our children that are not ranks."""
        return self._nodes.pids | self._sampler.pids

    def _sample(self) -> None:
        """Have GPUs sampled on the nodes that clients ask for."""
        if self._orders:
            self._sampler.follow(self._gpus.settings(self._node))
        else:
            self._nodes.sample()

    async def _ask_store(self, request: StoreRequest) -> StoreReply:
        return await self.starter.store.answer(request)

    def _on_node_lost(self, why: Reason) -> None:
        if self._ranks.are_all_starting:
            self._give_up(why)  # the other ranks would wait for these
        self._nodes.note_lost(self._ranks.all)
        self._control.broadcast()

    def _give_up(self, why: Reason) -> None:
        if not self.stopping:
            self.failure = self.failure or why
            self._tasks.add(self.stop())

    # -- talking to owners and clients ------------------------------------------------------

    def snapshot(self) -> messages.Snapshot:
        """Return all that a client may need."""
        return messages.Snapshot(
            process=self._process,
            generation=self.starter.generation,
            start_method=self.starter.method,
            backend=self.starter.backend,
            notices=self.starter.notices,
            failure=self.failure,
            stopping=self.stopping,
            attachments=self._attachments.all(),
            ranks=self._ranks.all,
            time=self._limit.state,
            addresses=self.starter.addresses(),
            name=self._name,
            last_cells=self._ranks.last_cells,
            lost_nodes=self._nodes.lost,
            parked=self.lease.parked,
        )

    def _on_gone(self, client: Client) -> None:
        self._attachments.remove(client)
        self._lock.remove(client)
        self._limit.remove(client)
        self._gpus.remove(client)
        self._sample()

    def _on_time(self) -> None:
        limit = self._limit.state
        self._describe(messages.DescribeLease(self._name, limit.ends_by, limit.idle_since))
        self._control.broadcast()

    def _describe(self, said: messages.DescribeLease) -> None:
        """Write the pool's name and end into the leases of all nodes, for other users."""
        self.lease.describe(said)
        self._nodes.describe(said)

    # -- what clients command, see `CommandHandler` -----------------------------------------

    def _obey(self, client: Client, command: messages.Commands) -> None:
        self._first_node.note()
        self._handler.obey(client, command)

    def _answer(self, client: Client, question: messages.Ping) -> None:
        if self._orders and question.ahead is not None:
            self._first_node.keep_ahead(self.folder, question.ahead)
        self._control.tell(client, messages.Pong(question.sent, time.time()))

    def _rename(self, names: dict[str, str]) -> None:
        self._name = names.get(self._name, self._name)
        self._attachments.rename(names)
        self._on_time()

    async def _restart(
        self, chosen: Collection[int], order: messages.StartRanks | None, without_lost: bool
    ) -> None:
        """Replace ranks; `order` comes from the first node's agent, if this is another one."""
        async with self._restarting:  # two notebooks may ask for the same rank
            if self.stopping:
                return  # nothing is started any more
            if not order and self._ranks.are_all_starting:
                chosen = self._ranks.everybody  # the others would wait for these ranks
            self._ranks.forget_cells(chosen)
            await self._ranks.end(chosen, RESTARTED)
            if not self.stopping:
                try:
                    if without_lost:
                        self._leave_out(self._nodes.lost)
                        chosen = self._ranks.everybody
                    self._order(chosen, order)
                except (DistError, OSError) as error:  # no rank runs any more
                    self._give_up(why_no_start(error))
                self._control.broadcast()

    async def _resize(self, order: messages.Resize) -> None:
        """Have more or fewer ranks; a pool that cannot stays as it is, and its log says why."""
        async with self._restarting:
            try:
                files = await take_over(self.folder) if order.leased else []
            except OSError as error:
                _LOG.error("The pool was not resized: its lease did not come: %s", error)
                return
            lease = InheritedLease(files) if files else None
            try:
                if self._ranks.are_all_starting:
                    raise DistError("not_resized", "All its ranks are being replaced.")
                config = resized(self.config, order.ranks)
                rewrite_config(self.folder, config)
            except DistError as error:
                _LOG.error("The pool was not resized: %s", error)
                if lease:
                    lease.close()
                return
            if lease:
                self.lease.absorb(lease)
            gone = range(config.world_size, self.config.world_size)
            fresh = range(self.config.world_size, config.world_size)
            self._ranks.forget_cells(gone)
            await self._ranks.end(gone, RESIZED)
            if self.stopping:
                return
            self.config = config
            self._ranks.resize(config)
            self._order(fresh)
            self.lease.keep_only({rank.gpu.uuid for rank in config.ranks if rank.gpu})
            self._control.broadcast()

    def _leave_out(self, nodes: Collection[str]) -> None:
        """Continue without some nodes; no rank runs here."""
        if {node.name for node in self.config.nodes}.intersection(nodes):
            config, kept = without_nodes(self.config, nodes)
            rewrite_config(self.folder, config)
            self.config = config
            self._ranks.renumber(self.config, kept)
            self._nodes.resize(self.config, kept)

    async def stop(self) -> None:
        """End all ranks and what they have started, then let the main loop return."""
        if self.stopping:
            self._attachments.first.set()  # the client that asks for it knows why
            return
        self.stopping = True
        self._control.broadcast()
        why = None if self.failure else STOPPED
        ending = self._ranks.end(self._ranks.everybody, why)
        await asyncio.gather(ending, self._nodes.close(), self._sampler.close())
        self._control.broadcast()
        if (self.failure or self._limit.state.over) and not self._orders:
            await any_of(self._attachments.first, within=patience.node)
        self._stopped = True
        self._wake.set()

    # -- the main loop ----------------------------------------------------------------------

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._ranks.on_child_end)
        loop.add_signal_handler(signal.SIGTERM, lambda: self._tasks.add(self.stop()))
        await self._control.open()
        ask = self._first_node.ask_store if self._orders else self._ask_store
        self._store = await serve_store(self.folder, ask)
        if self._orders:
            reader, writer = await stream_of(*self._orders)
            self._first_node.open(lambda question: self._control.tell(writer, question))
            head = self._tasks.add(self._control.converse(reader, writer))
            self._tasks.add(self._first_node.watch(head))
        else:
            self._attachments.open()
            self._limit.open()
        if self.failure:
            self._tasks.add(self.stop())
        elif not self._orders:
            self._nodes.open()
            try:
                self._order(self._ranks.everybody)
            except (DistError, OSError) as error:
                self._give_up(why_no_start(error))

    def _order(self, chosen: Collection[int], order: messages.StartRanks | None = None) -> None:
        if order:
            self._leave_out(order.left_out)
            self.starter.follow(order)
        else:
            self.starter.order(chosen)
            self._nodes.start(self.starter.as_order(chosen))
            self._nodes.note_lost(self._ranks.all)
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
        self.lease.open()
        # The loop is paused while forking, so that a child never stands inside a callback.
        while loop.run_until_complete(self._has_next()):
            self.starter.start_next(inherited)  # none, if a restart came in the loop's last pass
            if not self.starter.has_orders:
                self._control.broadcast()
        shutil.rmtree(self.folder, ignore_errors=True)
        loop.run_until_complete(self._control.close())

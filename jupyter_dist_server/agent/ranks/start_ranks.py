"""Starting the ranks of one pool."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec
import psutil

from ...common.pool_folder import REMOTE_CHANNELS
from ...common.processes.process_ref import ProcessRef, call_ourselves
from ...common.protocol.agents.agent_messages import RankState, Snapshot, StartRanks
from ...common.protocol.agents.rank_start import RankOrders
from ...common.protocol.failure_reason import Reason
from ...common.protocol.node_addresses import PoolNode, RankAddress
from ...common.protocol.pool_file import PoolFile
from ...rank import main as rank_process
from ..group_store import KeyValues
from .rank_environment import rank_environment
from .rank_processes import close_all_but, spawn

_HOST = "127.0.0.1"
_STORE = "JUPYTER_DIST_STORE"
"""``tcp`` makes the process group use torch's own store, which other users can reach."""


def preload() -> Reason | None:
    """Import what every rank needs; return why that is not possible."""
    try:
        rank_process.preload()
    except Exception as error:
        return rank_process.import_failure(error)
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so copying, pages shared with forks
    return None


class Starter:
    """Forks ranks, or spawns them; `ranks` has the state of all ranks, `own` those of this node.

    `generation` counts the starts of ranks; `whole` says whether the last one started all of them.
    """

    def __init__(self, folder: Path, config: PoolFile, on_report: Callable[[int], None]) -> None:
        self.ranks: list[RankState] = []
        self.reports: dict[int, socket.socket] = {}
        self.generation = 0
        self.whole = True
        self.method = config.start_method
        self.backend = config.backend
        self.notices: list[str] = []
        self._folder = folder
        self._config = config
        self._devices = [rank.device for rank in config.ranks]
        self._no_cuda = False
        self._nodes = config.nodes
        self.own = config.own
        self._on_report = on_report
        self._ordered: deque[int] = deque()
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self.store = KeyValues()
        """Of the process group; used on the first node."""
        self._reserved: list[socket.socket] = []
        """They keep the ports where programs on the ranks meet, and that of a TCP store."""
        self.ports = (0, 0, 0)
        """On the first node, these ports; 0 without a TCP store."""
        self._held: dict[int, dict[str, socket.socket]] = {}
        """They keep the ports of ranks with clients on another node, also through restarts."""

    def prepare(self) -> None:
        """Choose the devices, check that forking is safe, and note what ranks cannot do."""
        if set(self._devices) != {"cpu"} and (why := rank_process.no_cuda()):
            self._devices, self._no_cuda = ["cpu"] * len(self._devices), True
            self.backend = "none" if self.backend == "none" else "gloo"
            self.notices.append(f"{why}: ranks have GPU IDs, but run on the CPU.")
        threads = psutil.Process().num_threads()
        if self.method == "fork" and threads > 1:
            self.method = "spawn"
            self.notices.append(
                f"Importing torch left {threads} threads running, so the ranks were spawned "
                "instead of forked: this takes longer and shares no memory."
            )
        self.notices += rank_process.losses()

    @property
    def is_starting(self) -> bool:
        """Whether some ranks are not ready yet."""
        return any(rank.state == "starting" for rank in self.ranks)

    @property
    def has_orders(self) -> bool:
        """Whether ranks are still to be started."""
        return bool(self._ordered)

    def order(self, chosen: Collection[int]) -> None:
        """Ask for ranks to be started, in place of their predecessors if there are any."""
        size = self._config.world_size
        self.generation += 1
        self.whole = len(chosen) == size
        if self.whole:
            self.store = KeyValues()
            if not self._reserved:
                self._reserved = [_reserve_port(self._master) for _ in range(3)]
                if is_tcp := os.environ.get(_STORE) == "tcp":
                    self.notices.append(
                        "The process group uses torch's TCPStore (JUPYTER_DIST_STORE=tcp): other "
                        "users of this machine can reach it."
                    )
                master, jax, store = (held.getsockname()[1] for held in self._reserved)
                self.ports = (master, jax, store if is_tcp else 0)
        self._begin(chosen)

    def as_order(self, chosen: Collection[int]) -> StartRanks:
        """Return what other nodes are to do, after `order`."""
        return StartRanks(list(chosen), self.generation, self.whole, self.ports)

    def follow(self, order: StartRanks) -> None:
        """Obey an order of the first node's agent, which has ordered the same there."""
        self.generation, self.whole, self.ports = order.generation, order.whole, order.ports
        self._begin(order.ranks)

    @property
    def _master(self) -> str:
        return self._nodes[0].address if self._nodes else _HOST

    def _begin(self, chosen: Collection[int]) -> None:
        everybody = range(self._config.world_size)
        known = {record.rank: record for record in self.ranks}
        self.ranks = [
            self._new_state(rank, "starting")
            if rank in chosen
            else known.get(rank) or self._new_state(rank, "dead")
            for rank in everybody
        ]
        self._ordered.extend(rank for rank in chosen if rank in self.own)

    def _new_state(self, rank: int, state: str) -> RankState:
        # On the first node, the pool's record knows the GPU.
        gpu = self._config.ranks[rank].gpu if self._config.node else None
        node = next((node.name for node in self._nodes[1:] if rank in node.ranks), "")
        return RankState(rank, self._devices[rank], time.time(), state, gpu=gpu, node=node)

    def merge(self, node: PoolNode, said: Snapshot) -> None:
        """Note what another node's agent says of its ranks, if it knows of our last order."""
        new = [f"Node {node.name}: {notice}" for notice in said.notices]
        self.notices += [one for one in new if one not in self.notices]
        if said.generation == self.generation:
            for rank in node.ranks:
                # Without a start time, it cannot be taken for a process of this node.
                self.ranks[rank] = msgspec.structs.replace(
                    said.ranks[rank], start_ticks=None, node=node.name
                )

    def addresses(self) -> dict[int, RankAddress]:
        """Return where ranks of this node listen for clients on another; it stays the same."""
        if not self._config.node:
            return {}
        host = self._nodes[self._config.node].address
        if not self._held:
            self._held = {
                rank: {channel: _reserve_port(host) for channel in REMOTE_CHANNELS}
                for rank in self.own
            }
        return {
            rank: RankAddress(host, {name: held.getsockname()[1] for name, held in ports.items()})
            for rank, ports in self._held.items()
        }

    def renumber(self, config: PoolFile, kept: Sequence[int]) -> None:
        """Have fewer ranks from now on; none runs. `kept` are their earlier numbers."""
        self._config, self._nodes, self.own = config, config.nodes, config.own
        self._devices = [self._devices[old] for old in kept]
        self._held = {new: self._held[old] for new, old in enumerate(kept) if old in self._held}
        self.ranks = []
        for connection in self._folder.glob("rank-*.json"):  # of ranks that have other numbers now
            connection.unlink()

    def resize(self, config: PoolFile) -> None:
        """Have more or fewer ranks from now on; those that are left out have ended."""
        self._config, self.own = config, config.own
        new = config.ranks[len(self._devices) :]
        self._devices += ["cpu" if self._no_cuda else rank.device for rank in new]
        self._devices = self._devices[: config.world_size]
        self.ranks = self.ranks[: config.world_size]

    def cancel(self, chosen: Collection[int]) -> None:
        """Forget orders for some ranks."""
        self._ordered = deque(rank for rank in self._ordered if rank not in chosen)

    def start_next(self, inherited: set[int]) -> None:
        """Fork or spawn the next rank, if there is one. Does not return in a forked child."""
        if not self._ordered:
            return
        rank = self._ordered.popleft()
        ours, theirs = socket.socketpair()
        environment = rank_environment(
            rank,
            self._config.world_size,
            self._config.id,
            self.ports[:2],
            self._config.ranks[rank].mask,
            self._nodes,
        )
        orders = RankOrders(
            folder=str(self._folder),
            rank=rank,
            device=self._devices[rank],
            backend=self.backend,
            report=theirs.fileno(),
            tcp_store=(self._master, self.ports[2]) if self.ports[2] else None,
            environment=environment | self._config.thread_limits,
            parent=os.getpid(),
            alone=not self.whole,
            address=self.addresses().get(rank),
        )
        if self.method == "fork":
            pid = os.fork()
            if pid == 0:
                self._become_rank(orders, inherited)
        else:
            child = spawn(orders)
            pid = child.pid
            self._children[pid] = child
        theirs.close()
        ours.setblocking(False)
        self.reports[rank] = ours
        self.ranks[rank].pid = pid
        self.ranks[rank].start_ticks = ProcessRef.of(pid).start_ticks
        asyncio.get_event_loop().add_reader(ours, self._on_report, rank)

    def _become_rank(self, orders: RankOrders, inherited: set[int]) -> NoReturn:
        # The child must neither use nor finalise the agent's sockets and event loop: they share
        # one epoll set with the agent. It closes their descriptors and keeps the objects alive.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        close_all_but(inherited | {orders.report})
        asyncio.set_event_loop(None)
        call_ourselves(f"dist-rank-{orders.rank}")
        rank_process.run(orders, keep_alive=self)


def _reserve_port(host: str) -> socket.socket:
    """Return a socket that keeps a port from being given away, and lets a server bind it."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as torch's store and gRPC do
    reserved.bind((host, 0))
    return reserved

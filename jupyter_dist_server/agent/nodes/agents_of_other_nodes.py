"""The agents on a pool's other nodes, as the first node's agent sees them.

An engine starts them. Their stdin and stdout are the only connection: lines of JSON, as on an
agent's control socket. It needs no thread, which would make forks unsafe.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ...common.background_tasks import Tasks
from ...common.package_version import version
from ...common.patience import patience
from ...common.pool_folder import log_tail, write_addresses
from ...common.processes.python_command import python_command
from ...common.protocol.agents import agent_messages as messages
from ...common.protocol.failure_reason import Reason
from ...common.protocol.node_addresses import PoolNode, RankAddress
from ...common.protocol.node_messages import NodeOrders
from ...common.protocol.pool_file import PoolFile
from ...common.protocol.store_messages import StoreReply, StoreRequest
from ...engines.choose_engine import engine_for
from ...engines.start_failures import why_cancelled, why_not_started
from ..control_socket import Client
from .gpu_watchers import GpuWatchers
from .node_link import NodeLink, until_ended

_HINT = "See %dist_status, and whether the node can be reached; then start again."
_SLOW = "Check that the node can be reached; if it is slow, set a longer --timeout."
_MODULE = "jupyter_dist_server.agent.agent_on_other_node"
_START_SHARE = 0.75
"""Part of the pool's time to start in which another node's agent must answer: it imports torch."""


@dataclass(eq=False)
class Nodes:
    """The other nodes of a pool; on another node than the first, there are none."""

    _folder: Path
    _config: PoolFile
    _heard: Callable[[PoolNode, messages.Snapshot], None]
    _lost: Callable[[Reason], None]
    _tell: Callable[[Client, messages.LogLines], None]
    _gpus: GpuWatchers
    _ask_store: Callable[[StoreRequest], Awaitable[StoreReply]]
    _addresses: dict[int, RankAddress] = field(init=False, default_factory=dict)
    _left_out: list[str] = field(init=False, default_factory=list)
    _tasks: Tasks = field(init=False, default_factory=Tasks)
    _closing: bool = False
    _described: messages.DescribeLease | None = None

    def __post_init__(self) -> None:
        others = list(enumerate(self._config.nodes))[1:] if self._config.node == 0 else []
        self._links = [NodeLink(number, node) for number, node in others]

    def open(self) -> None:
        """Start the agents."""
        for link in self._links:
            self._tasks.add(self._follow(link))
        if self._links:
            self._tasks.add(self._beat())

    @property
    def pids(self) -> set[int]:
        """The local processes that stand for them."""
        return {link.process.pid for link in self._links if link.process}

    def note_lost(self, ranks: list[messages.RankState]) -> None:
        """Note that the ranks of lost nodes are dead."""
        lost = {rank: link for link in self._links if link.why_lost for rank in link.node.ranks}
        for record in ranks:
            if record.state != "dead" and (link := lost.get(record.rank)):
                record.failure = link.failure if record.state == "starting" else None
                record.state, record.since, record.exit = "dead", time.time(), link.why_lost

    @property
    def lost(self) -> list[str]:
        """The names of lost nodes."""
        return [link.node.name for link in self._links if link.why_lost]

    def resize(self, config: PoolFile, kept: Sequence[int]) -> None:
        """Forget the lost nodes; `kept` are the earlier numbers of the other ranks."""
        self._config = config
        self._left_out += self.lost
        self._links = [link for link in self._links if not link.why_lost]
        for number, link in enumerate(self._links, 1):
            link.number, link.node = number, config.nodes[number]
        known = self._addresses
        self._addresses = {new: known[old] for new, old in enumerate(kept) if old in known}
        write_addresses(self._folder, self._addresses)

    def start(self, order: messages.StartRanks) -> None:
        """Have ranks started; on a lost node, by another agent."""
        for place, link in enumerate(self._links):
            mine = [rank for rank in order.ranks if rank in link.node.ranks]
            if mine and link.why_lost:
                link = self._links[place] = NodeLink(link.number, link.node)
                self._tasks.add(self._follow(link))
            if link.order and not (link.trips or order.whole):  # it has not had that one yet
                mine = sorted({*mine, *link.order.ranks})
            # Without ranks too, as what a node says counts if it knows of the last order.
            link.order = msgspec.structs.replace(order, ranks=mine, left_out=self._left_out)
            if link.trips:
                link.send(link.order)

    def send(
        self, ranks: Collection[int], command: Callable[[list[int]], messages.Command]
    ) -> None:
        """Pass a command to the nodes of some ranks."""
        for link in self._links:
            if mine := [rank for rank in ranks if rank in link.node.ranks]:
                link.send(command(mine))

    def ask_log(self, client: Client, rank: int) -> None:
        """Send a client the last lines of a rank, once they arrive."""
        link = next(link for link in self._links if rank in link.node.ranks)
        if link.why_lost:
            self._tell(client, messages.LogLines([]))
        else:
            link.asked.append(client)
            link.send(messages.Log(rank))

    def sample(self) -> None:
        """Have GPUs sampled as the clients that display them want."""
        for link in self._links:
            settings = self._gpus.settings(link.node.name)
            if (link.is_up or link.why_lost) and link.sampled != settings:
                link.sampled = settings
                link.send(messages.WatchGpus(settings, [link.node.name]))
                if settings and link.failure:  # forgotten while no client asked
                    self._tell_trouble(link, link.failure)

    def describe(self, said: messages.DescribeLease) -> None:
        """Have the agents describe the pool to the users of their nodes."""
        self._described = said
        for link in self._links:
            if link.trips:
                self._describe(link)

    async def _follow(self, link: NodeLink) -> None:
        log = self._folder / f"node-{link.number}.log"
        ours, theirs = socket.socketpair()
        with theirs, log.open("wb") as file:
            python = self._config.node_python or sys.executable
            command = python_command(python, _MODULE)
            engine = engine_for({}, self._config.engine)
            try:
                gpus = {self._config.ranks[rank].device for rank in link.node.ranks} - {"cpu"}
                command, environment = engine.on_node(
                    link.node.name, command, len(gpus), self._environment()
                )
                link.process = subprocess.Popen(
                    command,
                    env=environment,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=file,
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                said = f"The engine {engine.name} does not work: {error}."
                self._lose(link, "no agent started on {node}", Reason("engine_failed", said))
                return
        reader, link.writer = await asyncio.open_unix_connection(sock=ours, limit=1 << 24)
        config = msgspec.structs.replace(self._config, node=link.number)
        link.writer.write(msgspec.json.encode(NodeOrders(version(), config)) + b"\n")
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                link.missed = 0
                self._take(link, line)
        await until_ended([link], patience.answer)  # the engine may still say why
        words = log_tail(log)
        if link.is_up:
            self._lose(link, why_cancelled(words) or "the agent on {node} ended")
        else:
            reason = why_not_started(link.node.name, python, version(), words)
            self._lose(link, why_cancelled(words) or "no agent started on {node}", reason)

    def _environment(self) -> dict[str, str]:
        """Return our environment, without the CUDA mask of this node."""
        environment = dict(os.environ)
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        visible = self._config.visible
        return environment | ({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})

    def _take(self, link: NodeLink, line: bytes) -> None:
        try:
            news = messages.decode_news(line)
        except ValueError:  # a line that something else printed
            return
        if isinstance(news, messages.LogLines) and link.asked:
            self._tell(link.asked.popleft(), news)
        elif isinstance(news, messages.Pong):
            link.note_trip(news.sent, news.answered, time.time())
            if len(link.trips) == 1:
                self._describe(link)
                self._ask(link)  # before it forks: its ranks report times by our clock
                if link.order:
                    link.send(link.order)
        elif isinstance(news, messages.NodeGpus):
            self._gpus.tell(news)
        elif isinstance(news, messages.StoreQuestion):
            self._tasks.add(self._answer_store(link, news))
        elif isinstance(news, messages.Snapshot):
            if not link.is_up:
                link.is_up = True
                self._addresses |= news.addresses
                write_addresses(self._folder, self._addresses)
                self._ask(link)
                self.sample()
            # If it ends although we have not said so, `_follow` knows why once it has ended.
            if not news.stopping or news.failure or self._closing:
                self._heard(link.node, link.on_our_clock(news))

    async def _answer_store(self, link: NodeLink, asked: messages.StoreQuestion) -> None:
        link.send(messages.StoreAnswer(asked.number, await self._ask_store(asked.request)))

    def _describe(self, link: NodeLink) -> None:
        if said := self._described:
            ends_by, idle_since = map(link.on_its_clock, (said.ends_by, said.idle_since))
            link.send(msgspec.structs.replace(said, ends_by=ends_by, idle_since=idle_since))

    def _ask(self, link: NodeLink) -> None:
        """Ping, and tell the node how far its clock is ahead."""
        link.send(messages.Ping(time.time(), link.ahead))

    async def _beat(self) -> None:
        """Ping all nodes each second; one that does not answer is lost."""
        limit = _START_SHARE * self._config.timeout
        while True:
            await asyncio.sleep(1.0)
            for link in self._links:
                if not link.is_up and time.monotonic() - link.begun > limit:
                    self._lose(link, f"{{node}} has not answered for {limit:.0f} s", hint=_SLOW)
                if link.is_up and not link.why_lost:
                    link.missed += 1
                    self._ask(link)
                    # Its agent must not end its ranks before they count as dead here.
                    if link.missed > 0.7 * patience.node:
                        since = time.strftime("%H:%M:%S", time.localtime(time.time() - link.missed))
                        self._lose(link, f"{{node}} has been unreachable since {since}")

    def give_up(self, node: PoolNode, reason: Reason) -> None:
        """Count a node as lost whose ranks cannot start."""
        for link in self._links:
            if link.node == node:
                self._lose(link, "{node} cannot start ranks", reason)

    def _lose(
        self, link: NodeLink, why: str, reason: Reason | None = None, hint: str = _HINT
    ) -> None:
        """Count a node as lost; `why` has a place for the node."""
        if self._closing or link.why_lost:
            return
        link.why_lost = why.format(node=f"its node {link.node.name}")
        for client in link.asked:
            self._tell(client, messages.LogLines([]))
        link.asked.clear()
        link.end()
        said = why.format(node=f"node {link.node.name}")
        link.failure = reason or Reason("node_failed", f"{said[0].upper()}{said[1:]}.", hint)
        self._gpus.forget(link.node.name)
        self._tell_trouble(link, link.failure)
        self._lost(link.failure)

    def _tell_trouble(self, link: NodeLink, why: Reason) -> None:
        self._gpus.tell(messages.NodeGpus(link.node.name, trouble=why.message))

    async def close(self) -> None:
        """Stop the agents, and wait until they have ended."""
        self._closing = True
        for link in self._links:
            link.send(messages.Stop())
        await until_ended(self._links, patience.node)
        for link in self._links:
            link.end()
        await self._tasks.cancel()

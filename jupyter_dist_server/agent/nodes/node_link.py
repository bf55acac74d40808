"""The connection of the first node's agent to that on another one, and how their clocks differ."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections import deque

import msgspec

from ...common.protocol.agents.agent_messages import Command, Snapshot, StartRanks, encode
from ...common.protocol.failure_reason import Reason
from ...common.protocol.node_addresses import PoolNode
from ...common.protocol.sampler_messages import SamplerSettings
from ..control_socket import Client


class NodeLink:
    """The connection to the agent on one node; `number` is the node's place in the pool."""

    def __init__(self, number: int, node: PoolNode) -> None:
        self.number = number
        self.node = node
        self.process: subprocess.Popen[bytes] | None = None
        self.writer: asyncio.StreamWriter | None = None
        self.order: StartRanks | None = None
        """What it is to start once it is there."""
        self.is_up = False
        self.begun = time.monotonic()
        self.missed = 0
        self.why_lost = ""
        self.failure: Reason | None = None
        """The same, as a sentence with a hint."""
        self.asked: deque[Client] = deque()
        """The clients that wait for the log of one of its ranks."""
        self.sampled: SamplerSettings | None = None
        """How its GPUs are sampled, while a client displays them."""
        self.trips: deque[tuple[float, float]] = deque(maxlen=16)
        """The last round trips: how long each took, and how far ahead its clock seemed to be."""

    def send(self, command: Command) -> None:
        """Tell it something, if it is there."""
        if self.writer and not self.why_lost:
            self.writer.write(encode(command))

    def note_trip(self, asked: float, answered: float, heard: float) -> None:
        """Note a round trip: when it answered by its clock, and when we asked and heard by ours."""
        self.trips.append((heard - asked, answered - (asked + heard) / 2))

    @property
    def ahead(self) -> float | None:
        """Seconds by which its clock is ahead of ours, by the shortest round trip, as in NTP."""
        return min(self.trips)[1] if self.trips else None

    def on_its_clock(self, moment: float | None) -> float | None:
        """Return a moment of our clock as its clock shows it."""
        return None if moment is None else moment + (self.ahead or 0.0)

    def on_our_clock(self, said: Snapshot) -> Snapshot:
        """Return its snapshot with times of our clock."""
        ahead = self.ahead or 0.0
        ranks = [msgspec.structs.replace(one, since=one.since - ahead) for one in said.ranks]
        return msgspec.structs.replace(said, ranks=ranks)

    def end(self) -> None:
        """Hang up."""
        if self.writer:
            self.writer.transport.abort()
        if self.process and self.process.poll() is None:
            self.process.kill()  # what it stands for ends by itself, as it hears nothing any more


async def until_ended(links: list[NodeLink], limit: float) -> None:
    """Wait for the local processes that stand for agents; the agent's loop has no child watcher."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline and any(
        link.process and link.process.poll() is None for link in links
    ):
        await asyncio.sleep(0.02)

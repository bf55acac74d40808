"""The connection of the first node's agent to that on another one."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections import deque

from ...common.protocol.agents.agent_messages import Command, StartRanks, encode
from ...common.protocol.failure_reason import Reason
from ...common.protocol.node_addresses import PoolNode
from ...common.protocol.sampler_messages import SamplerSettings
from ..control_socket import Client
from .clock_offset import ClockOffset

FIRST_TRIPS = 5
"""Questions that follow each other at once, to compare clocks."""


class NodeLink:
    """The connection to the agent on one node.

    Parameters
    ----------
    number : int
        Which of the pool's nodes it is.
    node : PoolNode
        That node.
    """

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
        self.trouble = ""
        """The same, as a sentence."""
        self.failure: Reason | None = None
        """The same, with what to do."""
        self.asked: deque[Client] = deque()
        """Who waits for the log of one of its ranks."""
        self.clock = ClockOffset()
        self.sampled: SamplerSettings | None = None
        """How its GPUs are sampled, while somebody looks."""

    def send(self, command: Command) -> None:
        """Tell it something, if it is there."""
        if self.writer and not self.why_lost:
            self.writer.write(encode(command))

    @property
    def is_compared(self) -> bool:
        """Whether its clock was compared with ours often enough."""
        return self.clock.count >= FIRST_TRIPS

    def on_its_clock(self, moment: float | None) -> float | None:
        """Return a moment of our clock as its clock shows it."""
        return None if moment is None else moment + (self.clock.ahead or 0.0)

    def end(self) -> None:
        """Hang up."""
        if self.writer:
            self.writer.transport.abort()
        if self.process and self.process.poll() is None:
            self.process.kill()  # what it stands for ends by itself, as it hears nothing any more


async def until_ended(links: list[NodeLink], patience: float) -> None:
    """Wait for the local processes that stand for agents; the agent's loop has no child watcher."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and any(
        link.process and link.process.poll() is None for link in links
    ):
        await asyncio.sleep(0.02)

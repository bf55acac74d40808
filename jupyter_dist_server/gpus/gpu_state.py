"""What NVML said at one time, from the messages of the process that reads it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..common.protocol.sampler_messages import (
    STAYS_LOADED,
    ErrorsNews,
    InventoryNews,
    News,
    ProcessesNews,
    SampleNews,
    decode_sampler_news,
)
from .inventory import Inventory
from .metrics import Errors, Processes, Samples

if TYPE_CHECKING:
    from ..common.processes.why_silent import Cause

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class GpuState:
    """The GPUs, and what is known of each."""

    inventory: Inventory
    samples: Samples = field(default_factory=dict)
    processes: Processes = field(default_factory=dict)
    errors: Errors = field(default_factory=dict)
    no_answer: bool = False
    """NVML could not be asked, so the GPUs are unknown."""


def no_answer(reason: str) -> GpuState:
    """Return the state if NVML could not be asked; the reason is one sentence."""
    return GpuState(Inventory(reason=reason), no_answer=True)


def why_no_news(cause: Cause, pid: int, limit: float, *, is_first: bool) -> str:
    """Say why the process that reads NVML has told nothing within `limit` seconds."""
    from ..common.processes.why_silent import PHRASES  # not above: it imports asyncio

    if cause in ("stopped", "starved"):
        who = f"The process that reads the GPUs (pid {pid})"
        return f"{who} has not responded for {limit:g} s: it is {PHRASES[cause]}."
    why = f"The NVIDIA driver has not responded for {limit:g} s."
    return f"{why} {STAYS_LOADED}" if is_first else why


def state_of(said: Iterable[News]) -> GpuState | None:
    """Combine messages, of each kind the last one; `None` without an inventory."""
    inventory: Inventory | None = None
    samples: Samples = {}
    processes: Processes = {}
    errors: Errors = {}
    for news in said:
        if isinstance(news, InventoryNews):
            inventory = news.inventory
        elif isinstance(news, SampleNews):
            samples = {}
            for name, of_metric in news.values.items():
                for uuid, value in of_metric.items():
                    samples.setdefault(uuid, {})[name] = value
        elif isinstance(news, ProcessesNews):
            processes = news.processes
        elif isinstance(news, ErrorsNews):
            errors = news.errors
    return GpuState(inventory, samples, processes, errors) if inventory else None


def read_news(line: bytes) -> News | None:
    """Decode one line of the process's output; `None` if a library has printed it."""
    try:
        return decode_sampler_news(line)
    except ValueError as error:
        _LOG.warning("The process that reads the GPUs wrote: %r (%s)", line[:200], error)
        return None

"""The GPU messages of the stream, each encoded once for all clients."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import psutil

from ...common.background_tasks import Tasks
from ...common.errors import DistError
from ...gpus.inventory import Gpu, Inventory
from ...gpus.readers.read_gpu_state import read_gpu_state
from ...gpus.telemetry import Telemetry, Update
from ...gpus.used_without_lease import GpuUse, in_use
from ...jobs.leases.lease import GpuLease, holders
from ...jobs.rules.rules import Closed, closed_gpus
from ...placement.ranks_to_gpus import allowed
from ...placement.requests.request import PoolRequest
from ...pools.pool_manager import PoolManager
from ...pools.reports.rank_usage import RankUsage
from .history_query import Question, history_pieces
from .last_state import LastState
from .process_owners import OwnedProcess, with_owners
from .sample_frames import LINKS, SampleFrames, encode

_LOG = logging.getLogger(__name__)

CHARTED = ("utilization", "memory_used", "power", "temperature", "sm_active")
"""Metrics whose history new clients get; ``/gpus/history`` has all."""
CHART_POINTS = 300
"""Points of this history, at most."""

LEASES_EVERY = 2.0
"""Seconds between two looks at the leases; changes of locks cannot be watched."""

Kernels = Callable[[], Awaitable[dict[int, dict[str, str]]]]
"""Returns this server's kernels by pid: ``{pid: {"kernel_id", "name"}}``."""


class GpuFeed:
    """GPUs, their processes and leases, and the ranks' usage, followed while a client watches."""

    def __init__(
        self, telemetry: Telemetry, usage: RankUsage, manager: PoolManager, kernels: Kernels
    ) -> None:
        self.telemetry = telemetry
        self.usage = usage
        self.samples = SampleFrames()
        self.frames: dict[str, tuple[int, bytes]] = {}
        """By kind (``gpus``, ``processes``, ``usage``), the version and the message."""
        self._manager = manager
        self._kernels = kernels
        self._user = psutil.Process().username()
        self._listeners: list[Callable[[], None]] = []
        self._leases: dict[str, GpuLease] = {}
        self._lease_trouble: str | None = None
        self._closed: dict[str, Closed] = {}
        self._order: tuple[str, ...] = ()
        self._histories: dict[bool, tuple[int, asyncio.Task[bytes]]] = {}
        self._tasks = Tasks()
        self.state = LastState(telemetry, self._tasks)
        self._recheck = asyncio.Event()
        self._following = ExitStack()

    def listen(self, news: Callable[[], None]) -> Callable[[], None]:
        """Follow everything, and call back at all news, until the returned function is called."""
        self._listeners.append(news)
        if len(self._listeners) == 1:
            self._begin()

        def stop() -> None:
            if news in self._listeners:
                self._listeners.remove(news)
                if not self._listeners:
                    self._following.close()

        return stop

    async def inventory(self) -> Inventory:
        """Return the GPUs that pools may use."""
        known = self.telemetry.inventory if self.telemetry.latest else None
        return allowed(PoolRequest(), known or (await read_gpu_state()).inventory)

    def remembered(self) -> list[Gpu]:
        """Return the GPUs in the history that pools may use, here and on other nodes."""
        every = self.telemetry.all_gpus.values()
        here = allowed(PoolRequest(), Inventory(tuple(gpu for gpu in every if not gpu.node)))
        return [*here.gpus, *(gpu for gpu in every if gpu.node)]

    async def overview(self) -> dict[str, Any]:
        """Return the body of ``GET /gpus``, with samples while the sampler runs."""
        found = await self.inventory()
        telemetry = self.telemetry
        leases, closed, trouble = await _who_leases(found)
        return found.to_json() | {
            "closed": msgspec.to_builtins(closed),
            "samples": telemetry.latest,
            "nodes": self._nodes(),
            "errors": telemetry.errors,
            "processes": msgspec.to_builtins(await self.processes()),
            "in_use": _to_json(in_use(await self.state.get(), leases)),
            "leases": msgspec.to_builtins(leases | self.leased_elsewhere()),
            "stale_since": telemetry.stale_since,
            "trouble": telemetry.trouble or trouble,
        }

    async def history(self, links: bool) -> bytes:
        """Return the message with the history; clients of the same tick share it."""
        tick, made = self._histories.get(links, (-1, None))
        if made is None or tick != self.samples.tick:
            made = self._tasks.add(self._encode_history(links))
            self._histories[links] = self.samples.tick, made
        return await asyncio.shield(made)

    async def _encode_history(self, links: bool) -> bytes:
        kept = self.telemetry.history
        step = max(kept.step, kept.keep / CHART_POINTS)
        metrics = [*CHARTED, *(LINKS if links else ())]
        question = Question(None, math.inf, list(self._order), metrics)
        pieces = history_pieces(kept, question, step, encode)
        inside = "".join([piece async for piece in pieces])
        return f'{{"type":"history",{inside}}}'.encode()

    async def processes(self) -> dict[str, list[OwnedProcess]]:
        """Return the processes on each GPU with their owners."""
        pools = [pool.record for pool in self._manager.live()]
        rows = self.telemetry.processes
        kernels = await self._kernels() if any(rows.values()) else {}
        elsewhere = {gpu.uuid for gpu in self._gpus_elsewhere()}
        return with_owners(rows, pools, self.usage.latest, kernels, self._user, elsewhere)

    def _gpus_elsewhere(self) -> list[Gpu]:
        return [gpu for found in self.telemetry.nodes.values() for gpu in found.gpus]

    def _nodes(self) -> dict[str, dict[str, Any]]:
        return {node: found.to_json() for node, found in self.telemetry.nodes.items()}

    def leased_elsewhere(self) -> dict[str, GpuLease]:
        """Return the leases of our pools' GPUs on other machines."""
        return {
            rank.gpu.uuid: GpuLease(
                user=self._user,
                pool=pool.record.id,
                notebook=pool.record.name,
                since=pool.record.started,
                host=rank.node,
                shared=False,
                others=[],
            )
            for pool in self._manager.live()
            for rank in pool.record.ranks
            if rank.gpu and rank.node in self.telemetry.nodes
        }

    async def close(self) -> None:
        """Stop following."""
        if self._listeners:
            self._listeners.clear()
            self._following.close()
        await self._tasks.cancel()

    def _begin(self) -> None:
        # Since the last client has left, all this may have become old.
        self.frames.clear()
        self.samples = SampleFrames()
        self._histories.clear()
        for end in (
            self.telemetry.listen(self._on_update),
            self.usage.listen(self._on_usage),
            self.usage.want(),
            self._tasks.add(self._follow_leases()).cancel,
            self._tasks.add(self._follow_processes()).cancel,
        ):
            self._following.callback(end)
        self._show_gpus()
        if latest := self.telemetry.latest:  # others are interested, too
            metrics = {metric for of_gpu in latest.values() for metric in of_gpu}
            self._take(self.telemetry.stale_since or time.time(), metrics)
        self._on_usage()

    def _tell(self, kind: str, content: dict[str, Any]) -> None:
        frame = msgspec.json.encode({"type": kind} | content)
        version, last = self.frames.get(kind, (0, b""))
        if frame != last:
            self.frames[kind] = version + 1, frame
            self._call()

    def _call(self) -> None:
        for news in list(self._listeners):
            news()

    def _show_gpus(self) -> None:
        telemetry = self.telemetry
        if telemetry.inventory:
            found = allowed(PoolRequest(), telemetry.inventory)
        elif telemetry.trouble:
            found = Inventory(reason=telemetry.trouble)
        else:
            return  # the sampler has just begun to look
        order = tuple(gpu.uuid for gpu in (*found.gpus, *self._gpus_elsewhere()))
        if order != self._order:
            self._order = order
            self.samples.forget()
        self._tell(
            "gpus",
            {
                "inventory": found.to_json(),
                "nodes": self._nodes(),
                "stale_since": telemetry.stale_since,
                "trouble": telemetry.trouble or self._lease_trouble,
                "errors": telemetry.errors,
                "leases": self._leases | self.leased_elsewhere(),
                "closed": self._closed,
            },
        )

    def _on_update(self, update: Update) -> None:
        if update.kind == "sample":
            self._take(update.time, update.values)
            self._call()
            self._recheck.set()
        elif update.kind == "processes":
            self._recheck.set()
        else:
            self._show_gpus()
            if update.kind == "inventory":
                self._tasks.add(self._look_at_leases())

    def _take(self, moment: float, metrics: Iterable[str]) -> None:
        latest = self.telemetry.latest
        rows = {
            metric: [latest.get(uuid, {}).get(metric) for uuid in self._order] for metric in metrics
        }
        self.samples.take(moment, rows)

    def _on_usage(self) -> None:
        self._tell("usage", {"pools": self.usage.latest, "verdicts": self.usage.verdicts})
        self._recheck.set()

    async def _follow_leases(self) -> None:
        while True:
            with _logged():
                await self._look_at_leases()
            await asyncio.sleep(LEASES_EVERY)

    async def _look_at_leases(self) -> None:
        if found := self.telemetry.inventory:
            self._leases, self._closed, self._lease_trouble = await _who_leases(found)
            self._show_gpus()

    async def _follow_processes(self) -> None:
        while True:
            await self._recheck.wait()
            self._recheck.clear()
            with _logged():
                uses = _to_json(in_use(self.telemetry.state, self._leases))
                self._tell("processes", {"gpus": await self.processes(), "in_use": uses})


def _to_json(uses: Mapping[str, GpuUse]) -> dict[str, Any]:
    return {uuid: use.to_json() for uuid, use in uses.items()}


@contextmanager
def _logged() -> Iterator[None]:
    """Log an error and continue: the next look may succeed."""
    try:
        yield
    except Exception:
        _LOG.exception("Updating the GPUs of the stream failed")


async def _who_leases(
    found: Inventory,
) -> tuple[dict[str, GpuLease], dict[str, Closed], str | None]:
    """Return the leases, and what is closed, or the error."""
    try:
        leases = await asyncio.to_thread(holders, found)
        return leases, await asyncio.to_thread(closed_gpus, found), None
    except DistError as error:
        return {}, {}, error.message

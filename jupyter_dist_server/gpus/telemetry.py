"""The newest samples of all GPUs and their history, shared by all clients of the server.

One process samples, see `sampler`; it runs while somebody is interested, and some time longer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..common.protocol.sampler_messages import (
    ErrorsNews,
    InventoryNews,
    News,
    ProcessesNews,
    SampleNews,
    SamplerSettings,
)
from .cuda_visible_devices import MASK, narrow
from .gpu_state import GpuState
from .history import History
from .inventory import Gpu, Inventory
from .metrics import Errors, Processes, Samples, Value
from .readers.supervise_sampler import Sampler

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

KEEP_ALIVE = 300.0
"""Seconds of sampling after a request; few clients ask less often."""


@dataclass(frozen=True)
class Update:
    """What has changed."""

    kind: str
    """``"sample"``, ``"inventory"``, ``"processes"``, ``"errors"`` or ``"stale"``."""
    time: float
    values: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Of a sample: by metric and UUID, only what was read just now."""


class Telemetry:
    """The newest samples of all GPUs, and their history.

    `interval`, `keep` (history at full resolution) and `linger` (sampling after the last interest)
    are in seconds. `host_pids` says whether NVML's pids are valid here; by default, the sampler
    finds out.
    """

    def __init__(
        self,
        interval: float = 1.0,
        keep: float = 900.0,
        linger: float = 60.0,
        host_pids: bool | None = None,
    ) -> None:
        self.inventory: Inventory | None = None
        self.nodes: dict[str, Inventory] = {}
        """By node, the GPUs of other machines that pools may use."""
        self.all_gpus: dict[str, Gpu] = {}
        """By UUID, all GPUs, also those that are only in the history."""
        self.latest: Samples = {}
        """The newest values; empty while nobody samples."""
        self.errors: Errors = {}
        """Why values are `None`: ``"unsupported"``, ``"no permission"``, ``"lost"``, …"""
        self.processes: Processes = {}
        self.stale_since: float | None = None
        """The time of the newest sample, if the next one is overdue."""
        self.trouble: str | None = None
        """Why it is overdue, in one plain sentence."""
        self.history = History(keep)
        self.linger = linger
        self._interval = interval
        self._host_pids = host_pids
        self._wanted: Counter[str] = Counter()
        self._stopping: asyncio.TimerHandle | None = None
        self._sampled: float | None = None
        self._listeners: list[Callable[[Update], None]] = []
        self._followers: list[Callable[[SamplerSettings | None], None]] = []
        self.sampler = Sampler(self._settings, self._on_news, self._on_trouble)

    @property
    def _settings(self) -> SamplerSettings:
        pcie = self._wanted["pcie"] > 0
        return SamplerSettings(interval=self._interval, pcie=pcie, host_pids=self._host_pids)

    @property
    def state(self) -> GpuState:
        """What is known now of the GPUs of this machine, and of nodes."""
        found = self.inventory or Inventory()
        return GpuState(found, dict(self.latest), dict(self.processes), dict(self.errors))

    # -- interest ------------------------------------------------------------------------------

    def want(self, *what: str) -> Callable[[], None]:
        """Declare interest, which the returned function ends; the first one starts the sampler.

        `what` is ``"gpus"``, and ``"pcie"`` for the PCIe rates, which are not read otherwise.
        """
        interest = Counter(what or ("gpus",))
        self._wanted += interest
        if self._stopping:
            self._stopping.cancel()
            self._stopping = None
        self._tell_settings()
        self.sampler.start()

        def release() -> None:
            nonlocal interest
            if not interest:
                return
            self._wanted -= interest
            interest = Counter()
            self._tell_settings()
            if not self._wanted:
                later = asyncio.get_running_loop().call_later
                self._stopping = later(self.linger, self._stop)

        return release

    def keep_alive(self) -> None:
        """Sample for some more minutes, as somebody has asked."""
        asyncio.get_running_loop().call_later(KEEP_ALIVE, self.want("gpus"))

    def _tell_settings(self) -> None:
        self.sampler.tell(self._settings)
        if self._wanted or self._stopping:
            self._notify_settings(self._settings)

    async def close(self) -> None:
        """End the sampler's process, now."""
        self._stop()
        await self.sampler.close()

    def _stop(self) -> None:
        if self._stopping:
            self._stopping.cancel()
            self._stopping = None
        self.sampler.stop()
        self._notify_settings(None)
        self.nodes = {}
        self.latest, self.processes, self.errors = {}, {}, {}  # soon they would be wrong
        self._sampled = self.stale_since = self.trouble = None

    # -- listeners -----------------------------------------------------------------------------

    def follow_settings(
        self, callback: Callable[[SamplerSettings | None], None]
    ) -> Callable[[], None]:
        """Call a function with the sampler's settings, `None` for no sampling."""
        self._followers.append(callback)
        return lambda: self._followers.remove(callback)

    def listen(self, callback: Callable[[Update], None]) -> Callable[[], None]:
        """Call a function with each update; return what ends that. It is no interest."""
        self._listeners.append(callback)

        def stop() -> None:
            with suppress(ValueError):
                self._listeners.remove(callback)

        return stop

    def _notify(self, update: Update) -> None:
        for callback in list(self._listeners):
            try:
                callback(update)
            except Exception:  # the other listeners are called all the same
                _LOG.exception("A listener of the sampler failed")

    def _notify_settings(self, settings: SamplerSettings | None) -> None:
        for follow in self._followers:
            follow(settings)

    # -- what the sampler says -----------------------------------------------------------------

    def _on_news(self, news: News) -> None:
        if isinstance(news, InventoryNews):
            self._on_inventory(news.time, news.inventory)
        elif isinstance(news, SampleNews):
            self._on_sample(news.time, news.values)
        elif isinstance(news, ProcessesNews):
            self.processes = self._of_nodes(self.processes) | news.processes
            self._notify(Update("processes", news.time))
        elif isinstance(news, ErrorsNews):
            self.errors = self._of_nodes(self.errors) | news.errors
            self._notify(Update("errors", news.time))

    def _on_inventory(self, moment: float, found: Inventory) -> None:
        if not found.gpus and self.inventory and self.inventory.gpus:
            # They may well come back.
            self._on_trouble(found.reason or "No GPU is available any more.")
            return
        self.inventory = found
        self.all_gpus |= {gpu.uuid: gpu for gpu in found.gpus}
        self._keep({gpu.uuid for gpu in found.gpus} | self._of_nodes(self.all_gpus).keys())
        if not found.gpus:  # which is no trouble, and there will be no sample to end one
            self._end_trouble(moment)
        self._notify(Update("inventory", moment))

    # -- other machines ------------------------------------------------------------------------

    def hear(self, node: str, news: News, mask: str | None) -> None:
        """Take news of another machine, as of now: its clock may be wrong.

        `mask` is ``CUDA_VISIBLE_DEVICES`` of our processes there.
        """
        now = time.time()
        if isinstance(news, InventoryNews):
            found = narrow(news.inventory, {} if mask is None else {MASK: mask})
            gpus = tuple(replace(gpu, node=node) for gpu in found.gpus)
            self._forget_node(node)
            self.nodes[node] = replace(found, gpus=gpus)
            self.all_gpus |= {gpu.uuid: gpu for gpu in gpus}
            self._notify(Update("inventory", now))
            return
        there = {gpu.uuid for gpu in self.nodes.get(node, Inventory()).gpus}
        if isinstance(news, SampleNews):
            values = {name: _only(of_gpus, there) for name, of_gpus in news.values.items()}
            self._note_values(now, values, there)
        elif isinstance(news, ProcessesNews):
            self.processes |= _only(news.processes, there)
            self._notify(Update("processes", now))
        elif isinstance(news, ErrorsNews):
            self.errors |= _only(news.errors, there)
            self._notify(Update("errors", now))

    def lose_node(self, node: str, why: str) -> None:
        """Note that a machine is silent, and why."""
        self._forget_node(node)
        self.nodes[node] = Inventory(reason=why)
        self._notify(Update("inventory", time.time()))

    def keep_nodes(self, nodes: Collection[str]) -> None:
        """Forget all other machines."""
        gone = self.nodes.keys() - set(nodes)
        for node in gone:
            self._forget_node(node)
        if gone:
            self._notify(Update("inventory", time.time()))

    def _forget_node(self, node: str) -> None:
        gone = {gpu.uuid for gpu in self.nodes.pop(node, Inventory()).gpus}
        self._keep(self.all_gpus.keys() - gone)

    def _of_nodes(self, by_uuid: Mapping[str, T]) -> dict[str, T]:
        there = {gpu.uuid for found in self.nodes.values() for gpu in found.gpus}
        return _only(by_uuid, there)

    def _keep(self, uuids: Collection[str]) -> None:
        """Forget the newest values of other GPUs."""
        for by_uuid in (self.latest, self.processes, self.errors):
            for uuid in by_uuid.keys() - set(uuids):
                del by_uuid[uuid]

    def _on_sample(self, moment: float, values: dict[str, dict[str, Value]]) -> None:
        if not any(values.values()):
            return  # only a sign of life
        self._sampled = moment
        here = self.latest.keys() - self._of_nodes(self.latest).keys()
        self._end_trouble(moment)
        self._note_values(moment, values, here | {uuid for row in values.values() for uuid in row})

    def _note_values(
        self, moment: float, values: dict[str, dict[str, Value]], uuids: Collection[str]
    ) -> None:
        for name, of_metric in values.items():
            for uuid, value in of_metric.items():
                self.latest.setdefault(uuid, {})[name] = value
        if self.history.add(moment, _only(self.latest, uuids)):
            here = {gpu.uuid for gpu in self.inventory.gpus} if self.inventory else set()
            there = self._of_nodes(self.all_gpus).keys()
            self.all_gpus = _only(self.all_gpus, self.history.gpus | here | there)
        self._notify(Update("sample", moment, values))

    def _on_trouble(self, sentence: str) -> None:
        now = time.time()
        self.stale_since = self.stale_since or self._sampled or now
        self.trouble = sentence
        self._notify(Update("stale", now))

    def _end_trouble(self, moment: float) -> None:
        if self.trouble:
            self.stale_since = self.trouble = None
            self._notify(Update("stale", moment))


def _only(by_uuid: Mapping[str, T], uuids: Collection[str]) -> dict[str, T]:
    return {uuid: value for uuid, value in by_uuid.items() if uuid in uuids}

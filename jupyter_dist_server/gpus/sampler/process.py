"""The process that reads NVML, so that nobody else does: a driver may hang, or take us with it.

`sampler` starts it. It prints one JSON object a line, takes one a line, and ends when its standard
input does, even if a call of the driver's never returns. What it says, each with its ``time`` in
seconds since 1970:

- ``{"type": "inventory", "inventory": {…}}`` first, and when there are other GPUs than before
- ``{"type": "sample", "values": {metric: {uuid: value}}}`` at each tick, of what was read in it; it
  is the sign of life, too
- ``{"type": "errors", "errors": {uuid: {metric: word}}}`` and
  ``{"type": "processes", "processes": {uuid: [row]}}`` when they have changed

What it is told, as its argument and later: ``{"interval": seconds, "pcie": bool}``. With
``"once": true`` it says everything once, and ends. With ``"on_request": true`` it does so at once
and at each line, with ``{"type": "complete"}`` at the end, and sleeps in between.
"""

from __future__ import annotations

import json
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from ..inventory import Inventory, describe
from ..metrics import PROCESSES_TIER, Value
from ..nvml import NO_GPU, Failure, devices, start, stop
from ..sampling import NO_DRIVER
from .gpu_processes import ProcessReader, sees_host_pids
from .reader import DriverGone, Reader
from .readings import PCIE, READINGS, Reading

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds until the GPUs are listed anew after one was lost; doubled after each failure."""
_PCIE_TAKES = 0.05
"""Seconds that the PCIe rates of one GPU take."""
_PCIE_LAG = 1.0
"""Seconds by which they come after what is read as often: no tick has too much to say."""


class SamplerProcess:
    """What this process knows.

    Parameters
    ----------
    settings : dict
        ``interval`` in seconds, ``pcie`` if those rates are wanted, and ``host_pids``: whether
        NVML's pids are those of processes here; `None` to find out.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.interval: float = settings["interval"]
        self._pcie: bool = settings["pcie"]
        self._pcie_due: list[Reader] = []
        host_pids = settings["host_pids"]
        self._processes = ProcessReader(sees_host_pids() if host_pids is None else host_pids)
        self._readers: list[Reader] = []
        self._open = False
        """Whether there is a session of NVML."""
        self._driver: str | None = None
        self._said: dict[str, Any] = {}
        self._ticks = 0
        self._listed = -math.inf
        self._list_at = -math.inf
        """When the GPUs are listed anew. Both are times of the clock that nobody sets."""
        self._pause = _FIRST_PAUSE

    def obey(self, told: dict[str, Any]) -> None:
        """Follow a command."""
        self.interval = told["interval"]
        if self._pcie and not told["pcie"]:
            uuids = [reader.gpu.uuid for reader in self._readers]
            self._say("sample", values={name: dict.fromkeys(uuids) for name in PCIE.metrics})
        self._pcie = told["pcie"]
        self._ticks = 0

    def tick(self) -> None:
        """Read what is due, and say it."""
        if time.monotonic() >= self._list_at:
            self._list()
        try:
            values = self._read([r for r in READINGS if self._is_due(r.tier)])
        except DriverGone:
            self._list()
            values = self._read(READINGS)
        self._say("sample", values=values)
        if self._is_due(PROCESSES_TIER):
            self._say_news("processes", self._processes.read(self._readers))
        self._say_news("errors", {reader.gpu.uuid: reader.errors for reader in self._readers})
        if self._pcie and not self._pcie_due and self._is_due(PCIE.tier, _PCIE_LAG):
            self._pcie_due = list(self._readers)
        self._ticks += 1

    def tell_all(self) -> None:
        """Read everything now, whatever was read before."""
        self._ticks = 0
        self.tick()
        self._say("complete")

    def read_pcie(self, until: float) -> None:
        """Read the PCIe rates of as many GPUs as there is time for, and go on at the next tick."""
        values: dict[str, dict[str, Value]] = {}
        try:
            while self._pcie and self._pcie_due and time.monotonic() + _PCIE_TAKES < until:
                reader = self._pcie_due.pop(0)
                for name, of_gpu in self._read([PCIE], [reader]).items():
                    values.setdefault(name, {}).update(of_gpu)
        except DriverGone:
            self._list_at = -math.inf
        if values:
            self._say("sample", values=values)

    def _is_due(self, tier: float, lag: float = 0.0) -> bool:
        ticks = self._ticks - round(lag / self.interval)
        return ticks % max(1, round(tier / self.interval)) == 0

    def _read(
        self, readings: Sequence[Reading], readers: Sequence[Reader] | None = None
    ) -> dict[str, dict[str, Value]]:
        values: dict[str, dict[str, Value]] = {}
        for reader in self._readers if readers is None else readers:
            if reader.is_lost():
                continue
            for name, value in reader.read(readings).items():
                values.setdefault(name, {})[reader.gpu.uuid] = value
            if reader.is_lost():
                self._list_again()
        return values

    # -- which GPUs there are ------------------------------------------------------------------

    def _list(self) -> None:
        """List the GPUs in a new session of NVML, which a GPU or a driver that came back needs."""
        for reader in self._readers:
            reader.close()
        if self._open:
            stop()
        reason = start()
        self._open = not reason
        listed = Failure(reason) if reason else devices()
        if isinstance(listed, Failure):
            said = reason or f"NVML failed while listing the GPUs: {listed}."
            found, handles = Inventory(reason=said), {}
        else:
            found, handles = describe(*listed), {device.uuid: device for device in listed[0]}
        # What another driver does not support may be something else.
        same = found.driver == self._driver
        known = {reader.gpu.uuid: reader for reader in self._readers} if same else {}
        self._driver = found.driver
        self._readers = [known.get(gpu.uuid) or Reader(gpu) for gpu in found.gpus]
        for reader in self._readers:
            reader.open(handles[reader.gpu.uuid])
        self._say_news("inventory", found.to_json())
        self._said = {"inventory": self._said["inventory"]}  # all else is said again
        if isinstance(listed, Failure) and reason != NO_GPU:
            sys.exit(NO_DRIVER)  # only a new process loads the library that fits the next driver
        self._ticks = 0
        self._listed, self._list_at = time.monotonic(), math.inf
        if found.problems or not found.gpus:
            self._list_again()

    def _list_again(self) -> None:
        if self._list_at == math.inf:
            now = time.monotonic()
            if now - self._listed > _LONGEST_PAUSE:
                self._pause = _FIRST_PAUSE
            self._list_at = now + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    # -- what is said --------------------------------------------------------------------------

    def _say(self, kind: str, **content: Any) -> None:
        message = {"type": kind, "time": round(time.time(), 3)} | content
        sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    def _say_news(self, kind: str, content: Any) -> None:
        encoded = json.dumps(content)  # a copy: what was said must not change with the readers
        if self._said.get(kind) != encoded:
            self._said[kind] = encoded
            self._say(kind, **{kind: content})


def _follow_input(commands: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Pass commands on. When there are no more, whoever started us is gone.

    The end comes from here because the main thread may be inside the driver for ever.
    """
    rest = b""
    while data := os.read(0, 65536):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            commands.put(json.loads(line))
    os._exit(0)


def main() -> None:
    """Sample until standard input ends."""
    commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_follow_input, args=[commands], daemon=True).start()
    settings = json.loads(sys.argv[1])
    process = SamplerProcess(settings)
    while settings.get("on_request"):
        process.tell_all()
        commands.get()
    due = time.monotonic()
    while True:
        process.tick()
        if settings.get("once"):
            return
        due = max(due + process.interval, time.monotonic())  # ticks that were missed are left out
        process.read_pcie(until=due)
        try:
            while True:
                process.obey(commands.get(timeout=max(0.0, due - time.monotonic())))
                due = time.monotonic()
        except queue.Empty:
            continue

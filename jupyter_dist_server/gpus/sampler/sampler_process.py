"""The process that reads NVML, so that a driver that hangs or crashes harms no other process.

It reads settings from stdin and prints news, a JSON object a line each, see
`common.protocol.sampler_messages`. It ends with stdin, even if the driver hangs.
"""

from __future__ import annotations

import math
import os
import queue
import sys
import threading
import time
from collections.abc import Sequence

import msgspec

from ...common.protocol.sampler_messages import (
    NO_DRIVER,
    Complete,
    ErrorsNews,
    InventoryNews,
    News,
    ProcessesNews,
    SampleNews,
    SamplerSettings,
    decode_settings,
)
from ..inventory import Inventory, describe
from ..metrics import CONSTANT, STEADY, Value
from ..nvml import NO_GPU, Failure, devices, start, stop
from ..used_without_lease import sees_host_pids
from .gpu_processes import ProcessReader
from .metric_readings import PCIE, READINGS, Reading
from .read_one_gpu import DriverGone, Reader

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before the GPUs are listed again after one was lost; doubled after each failure."""
_encoder = msgspec.json.Encoder(enc_hook=str)  # a `Failure` is a word


class SamplerProcess:
    """The state of this process."""

    def __init__(self, settings: SamplerSettings) -> None:
        self.interval = settings.interval
        self._pcie = settings.pcie
        self._pcie_due: list[Reader] = []
        host_pids = settings.host_pids
        self._processes = ProcessReader(sees_host_pids() if host_pids is None else host_pids)
        self._readers: list[Reader] = []
        self._open = False
        """NVML has been started."""
        self._driver: str | None = None
        self._said: dict[type[News], bytes] = {}
        self._ticks = 0
        self._found: set[str] = set()
        """The UUIDs of the devices that were listed last."""
        self._listed = -math.inf
        self._list_at = -math.inf
        """When to list the GPUs again, on the monotonic clock."""
        self._pause = _FIRST_PAUSE

    def obey(self, told: SamplerSettings) -> None:
        """Apply new settings."""
        self.interval = told.interval
        if self._pcie and not told.pcie:
            uuids = [reader.gpu.uuid for reader in self._readers]
            values: dict[str, dict[str, Value]]
            values = {name: dict.fromkeys(uuids) for name in PCIE.metrics}
            _say(SampleNews(_now(), values))
        self._pcie = told.pcie
        self._ticks = 0

    def tick(self) -> None:
        """Read and report what is due."""
        # MIG mode may be switched, and instances created, at any time.
        if time.monotonic() >= self._list_at or (self._is_due(CONSTANT) and self._has_changed()):
            self._list()
        try:
            self._say_due()
        except DriverGone:
            self._list()
            self._say_due()
        errors = {reader.gpu.uuid: reader.errors for reader in self._readers}
        self._say_change(ErrorsNews(_now(), errors))
        # A second after other metrics of this tier: no tick has too much to report.
        if self._pcie and not self._pcie_due and self._is_due(PCIE.tier, lag=1.0):
            self._pcie_due = list(self._readers)
        self._ticks += 1

    def _say_due(self) -> None:
        # Processes come first: the memory of one that ends meanwhile then has a name, not too many.
        processes = self._processes.read(self._readers) if self._is_due(STEADY) else None
        values = self._read([r for r in READINGS if self._is_due(r.tier)])
        _say(SampleNews(_now(), values))
        if processes is not None:
            self._say_change(ProcessesNews(_now(), processes))

    def tell_all(self) -> None:
        """Read and report everything now."""
        self._ticks = 0
        self.tick()
        if any(reader.source is None for reader in self._readers):  # otherwise a job would get it
            self._list()
            self.tick()
        _say(Complete(_now()))

    def read_pcie(self, until: float) -> None:
        """Read the PCIe rates of as many GPUs as possible; the next tick continues."""
        values: dict[str, dict[str, Value]] = {}
        try:
            while self._pcie and self._pcie_due and time.monotonic() + 0.05 < until:
                reader = self._pcie_due.pop(0)
                for name, of_gpu in self._read([PCIE], [reader]).items():
                    values.setdefault(name, {}).update(of_gpu)
        except DriverGone:
            self._list_at = -math.inf
        if values:
            _say(SampleNews(_now(), values))

    def _is_due(self, tier: float, lag: float = 0.0) -> bool:
        ticks = self._ticks - round(lag / self.interval)
        return ticks % max(1, round(tier / self.interval)) == 0

    def _read(
        self, readings: Sequence[Reading], readers: Sequence[Reader] | None = None
    ) -> dict[str, dict[str, Value]]:
        values: dict[str, dict[str, Value]] = {}
        for reader in self._readers if readers is None else readers:
            for name, value in reader.read(readings).items():
                values.setdefault(name, {})[reader.gpu.uuid] = value
            if reader.source is None:
                self._list_again()
        return values

    def _has_changed(self) -> bool:
        listed = devices()
        return not isinstance(listed, Failure) and {one.uuid for one in listed[0]} != self._found

    def _list(self) -> None:
        """List the GPUs in a new session of NVML, which a GPU or driver that came back needs."""
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
        self._found = set(handles)
        # Another driver may support other metrics.
        same = found.driver == self._driver
        known = {reader.gpu.uuid: reader for reader in self._readers} if same else {}
        self._driver = found.driver
        self._readers = [known.get(gpu.uuid) or Reader(gpu) for gpu in found.gpus]
        for reader in self._readers:
            reader.open(handles[reader.gpu.uuid])
        self._say_change(InventoryNews(_now(), found))
        self._said = {InventoryNews: self._said[InventoryNews]}  # all else is reported again
        if isinstance(listed, Failure) and reason != NO_GPU:
            sys.exit(NO_DRIVER)  # only a new process can load the library of another driver
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

    def _say_change(self, news: News) -> None:
        """Report news, unless its content was reported before."""
        content = _encoder.encode(msgspec.structs.replace(news, time=0.0))
        if self._said.get(type(news)) != content:
            self._said[type(news)] = content
            _say(news)


def _now() -> float:
    return round(time.time(), 3)


def _say(news: News) -> None:
    try:
        sys.stdout.write(_encoder.encode(news).decode() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # our parent has ended
        os._exit(0)


def _follow_input(commands: queue.SimpleQueue[SamplerSettings]) -> None:
    """Pass commands on, and exit at their end, from this thread: the main thread may hang."""
    rest = b""
    while data := os.read(0, 65536):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            try:
                commands.put(decode_settings(line))
            except ValueError as error:
                print(f"Invalid settings: {error}", file=sys.stderr)
    os._exit(0)


def main() -> None:
    """Sample until standard input ends."""
    commands: queue.SimpleQueue[SamplerSettings] = queue.SimpleQueue()
    threading.Thread(target=_follow_input, args=[commands], daemon=True).start()
    settings = decode_settings(sys.argv[1].encode())
    process = SamplerProcess(settings)
    while settings.on_request:
        process.tell_all()
        commands.get()
    due = time.monotonic()
    while True:
        process.tick()
        if settings.once:
            return
        due = max(due + process.interval, time.monotonic())  # missed ticks are skipped
        process.read_pcie(until=due)
        try:
            while True:
                process.obey(commands.get(timeout=max(0.0, due - time.monotonic())))
                due = time.monotonic()
        except queue.Empty:
            continue

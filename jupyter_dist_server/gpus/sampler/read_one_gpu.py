"""One GPU in the sampler's process: its values, and the errors of its metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from ..inventory import Gpu
from ..metrics import BY_NAME, Value, rounded
from ..nvml import DRIVER_GONE, LOST, RESET_REQUIRED, UNSUPPORTED, Device, Failure
from .metric_readings import Reading, Source

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0
"""Seconds before a failed reading is tried again, doubled each time."""


class DriverGone(Exception):
    """The session of NVML is over: the driver was unloaded or replaced."""


class Reader:
    """Reads one GPU, over several sessions of NVML."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.source: Source | None = None
        """`None` if the GPU cannot be read until the next session."""
        self.errors: dict[str, str] = {}
        """By metric, why it cannot be read."""
        self._retry: dict[Reading, tuple[float, float]] = {}
        """Of failed readings, when to try again, and the pause until then."""

    def open(self, device: Device) -> None:
        """Continue in a new session; unsupported metrics are not tried again."""
        self.close()
        self.source = Source(device, self.gpu.memory_total)
        self._retry = {reading: at for reading, at in self._retry.items() if at[0] == math.inf}
        self.errors = {name: word for name, word in self.errors.items() if word == UNSUPPORTED}

    def close(self) -> None:
        """Leave the session."""
        if self.source:
            self.source.close()
            self.source = None

    def read(self, readings: Sequence[Reading]) -> dict[str, Value]:
        """Return new values by metric, `None` for what has just failed; or raise `DriverGone`.

        Metrics that wait to be tried again are left out.
        """
        values: dict[str, Value] = {}
        for reading in readings:
            retry, pause = self._retry.get(reading, (0.0, 0.0))
            if self.source is None or retry > time.monotonic():
                continue
            answer = reading(self.source)
            if isinstance(answer, Failure):
                if answer == DRIVER_GONE:
                    raise DriverGone("the NVIDIA driver was unloaded or replaced")
                if answer in (LOST, RESET_REQUIRED):
                    return self.lose()
                pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)
                at = math.inf if answer == UNSUPPORTED else time.monotonic() + pause
                self._retry[reading] = at, pause
                self.errors.update(dict.fromkeys(reading.metrics, answer))
                values.update(dict.fromkeys(reading.metrics))
                continue
            if self._retry.pop(reading, None):
                for name in reading.metrics:
                    del self.errors[name]
            for name, value in zip(reading.metrics, answer, strict=True):
                values[name] = rounded(name, value)
        return values

    def lose(self) -> dict[str, Value]:
        """Note that the GPU is lost; return `None` for all metrics."""
        self.close()
        for name in BY_NAME:
            if self.errors.get(name) != UNSUPPORTED:
                self.errors[name] = LOST
        return dict.fromkeys(BY_NAME)

"""How each metric is read from NVML, in plain units.

See https://docs.nvidia.com/deploy/nvml-api/.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from ..metrics import BY_NAME, Rate, Value, throttle_words
from ..nvml import (
    DRIVER_GONE,
    INVALID_ARGUMENT,
    LOST,
    NO_PERMISSION,
    UNSUPPORTED,
    Device,
    Failure,
    failure,
    query,
)
from .gpm import METRICS as GPM_METRICS
from .gpm import Gpm

_ALL_LINKS = 0xFFFFFFFF
_KIB = 1024

Answer = Sequence[Value] | Failure
"""One value for each metric of a reading."""


class Source:
    """A GPU in one session of NVML, and the state between two readings."""

    def __init__(self, device: Device, memory_total: int) -> None:
        self.device = device
        self.memory_total = memory_total
        self.gpm = Gpm(device)
        self.nvlink = Rate(), Rate()
        """Sent and received."""


@dataclass(frozen=True)
class Reading:
    """One query, and the metrics that it gives."""

    metrics: tuple[str, ...]
    read: Callable[[Source, Any], Answer]
    """Takes the source and NVML's handle."""

    @property
    def tier(self) -> float:
        """Seconds between two readings."""
        return BY_NAME[self.metrics[0]].tier

    def __call__(self, source: Source) -> Answer:
        """Read; it may hang."""
        device = source.device
        shared = BY_NAME[self.metrics[0]].shared  # by a MIG instance with the whole GPU
        answer = self.read(source, device.whole if shared else device.handle)
        if answer == INVALID_ARGUMENT and device.mig is not None:
            return UNSUPPORTED
        return answer


def _number(name: str, function: str, *arguments: int, factor: float = 1.0) -> Reading:
    def read(_: Source, handle: Any) -> Answer:
        answer = query(function, handle, *arguments)
        return answer if isinstance(answer, Failure) else [answer * factor]

    return Reading((name,), read)


def _utilization(_: Source, handle: Any) -> Answer:
    rates = query("nvmlDeviceGetUtilizationRates", handle)
    return rates if isinstance(rates, Failure) else [rates.gpu, rates.memory]


def _memory(source: Source, handle: Any) -> Answer:
    # The newer one does not count the driver's own memory as used.
    memory = query("nvmlDeviceGetMemoryInfo", handle, pynvml.nvmlMemory_v2)
    if memory in (UNSUPPORTED, INVALID_ARGUMENT):
        memory = query("nvmlDeviceGetMemoryInfo", handle)
    if not isinstance(memory, Failure):
        return [memory.used, memory.free]
    # Otherwise the GPU is broken, or the MIG instance was destroyed.
    return memory if memory in (UNSUPPORTED, NO_PERMISSION, DRIVER_GONE) else LOST


def _throttle(_: Source, handle: Any) -> Answer:
    reasons = query("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons == UNSUPPORTED:  # a driver before 535 has it under its old name
        reasons = query("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    return reasons if isinstance(reasons, Failure) else [throttle_words(reasons)]


def _codec(name: str, function: str) -> Reading:
    def read(_: Source, handle: Any) -> Answer:
        answer = query(function, handle)
        return answer if isinstance(answer, Failure) else [answer[0]]

    return Reading((name,), read)


def _nvlink(source: Source, handle: Any) -> Answer:
    fields = (
        pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
        pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
    )
    answers = query("nvmlDeviceGetFieldValues", handle, [(field, _ALL_LINKS) for field in fields])
    now = time.monotonic()
    if isinstance(answers, Failure):
        return answers
    for answer in answers:
        if answer.nvmlReturn:
            return failure(pynvml.NVMLError(answer.nvmlReturn))
    return [
        rate.update(answer.value.ullVal * _KIB, now)
        for rate, answer in zip(source.nvlink, answers, strict=True)
    ]


def _pcie(_: Source, handle: Any) -> Answer:
    # Each blocks for 20 ms, and returns KB/s.
    values: list[Value] = []
    for counter in (pynvml.NVML_PCIE_UTIL_TX_BYTES, pynvml.NVML_PCIE_UTIL_RX_BYTES):
        answer = query("nvmlDeviceGetPcieThroughput", handle, counter)
        if isinstance(answer, Failure):
            return answer
        values.append(answer * 1000)
    return values


READINGS = (
    Reading(("utilization", "memory_utilization"), _utilization),
    Reading(("memory_used", "memory_free"), _memory),
    Reading(("memory_total",), lambda source, _: [source.memory_total or None]),
    _number("temperature", "nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU),
    _number("power", "nvmlDeviceGetPowerUsage", factor=1e-3),
    _number("power_limit", "nvmlDeviceGetEnforcedPowerLimit", factor=1e-3),
    _number("clock_sm", "nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_SM),
    _number("clock_memory", "nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_MEM),
    _number("fan", "nvmlDeviceGetFanSpeed"),
    _number("pstate", "nvmlDeviceGetPerformanceState"),
    _number(
        "ecc_corrected",
        "nvmlDeviceGetTotalEccErrors",
        pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    ),
    _number(
        "ecc_uncorrected",
        "nvmlDeviceGetTotalEccErrors",
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    ),
    Reading(("throttle",), _throttle),
    _codec("encoder", "nvmlDeviceGetEncoderUtilization"),
    _codec("decoder", "nvmlDeviceGetDecoderUtilization"),
    _number("energy", "nvmlDeviceGetTotalEnergyConsumption", factor=1e-3),
    Reading(("nvlink_tx", "nvlink_rx"), _nvlink),
    Reading(tuple(GPM_METRICS), lambda source, _: source.gpm.read()),
)
"""All that is read at all times."""

PCIE = Reading(("pcie_tx", "pcie_rx"), _pcie)
"""Read only on request."""

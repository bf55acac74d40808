"""How each metric is read from NVML, in plain units.

See https://docs.nvidia.com/deploy/nvml-api/.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    NvmlFailed,
    ask,
    failure,
    query,
)

_ALL_LINKS = 0xFFFFFFFF
_KIB = 1024

_GPM_METRICS = {
    "sm_active": pynvml.NVML_GPM_METRIC_SM_UTIL,
    "tensor_active": pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    "dram_active": pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
}


@dataclass
class Source:
    """A GPU in one session of NVML, and the state between two readings."""

    device: Device
    memory_total: int
    nvlink: tuple[Rate, Rate] = field(default_factory=lambda: (Rate(), Rate()))
    """Sent and received."""
    gpm: tuple[Any, Any] = None, None
    """The last sample of GPM, and a free one."""

    def close(self) -> None:
        """Free the samples."""
        for sample in self.gpm:
            if sample is not None:
                query("nvmlGpmSampleFree", sample)
        self.gpm = None, None


@dataclass(frozen=True)
class Reading:
    """One query, and the metrics that it gives."""

    metrics: tuple[str, ...]
    read: Callable[[Source, Any], Sequence[Value]]
    """Takes the source and NVML's handle, and returns a value for each metric."""

    @property
    def tier(self) -> float:
        """Seconds between two readings."""
        return BY_NAME[self.metrics[0]].tier

    def __call__(self, source: Source) -> Sequence[Value] | Failure:
        """Read; it may hang."""
        device = source.device
        shared = BY_NAME[self.metrics[0]].shared  # by a MIG instance with the whole GPU
        try:
            return self.read(source, device.whole if shared else device.handle)
        except NvmlFailed as error:
            if error.failure == INVALID_ARGUMENT and device.mig is not None:
                return UNSUPPORTED
            return error.failure


def _number(name: str, function: str, *arguments: int, factor: float = 1.0) -> Reading:
    return Reading((name,), lambda _, handle: [ask(function, handle, *arguments) * factor])


def _ecc(name: str, kind: int) -> Reading:
    return _number(name, "nvmlDeviceGetTotalEccErrors", kind, pynvml.NVML_VOLATILE_ECC)


def _utilization(_: Source, handle: Any) -> Sequence[Value]:
    rates = ask("nvmlDeviceGetUtilizationRates", handle)
    return [rates.gpu, rates.memory]


def _memory(_: Source, handle: Any) -> Sequence[Value]:
    # The newer one does not count the driver's own memory as used.
    memory = query("nvmlDeviceGetMemoryInfo", handle, pynvml.nvmlMemory_v2)
    if memory in (UNSUPPORTED, INVALID_ARGUMENT):
        memory = query("nvmlDeviceGetMemoryInfo", handle)
    if memory in (UNSUPPORTED, NO_PERMISSION, DRIVER_GONE):
        raise NvmlFailed(memory)
    if isinstance(memory, Failure):  # the GPU is broken, or the MIG instance was destroyed
        raise NvmlFailed(LOST)
    return [memory.used, memory.free]


def _throttle(_: Source, handle: Any) -> Sequence[Value]:
    reasons = query("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if isinstance(reasons, Failure):  # a driver before 535 has it under its old name
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    return [throttle_words(reasons)]


def _nvlink(source: Source, handle: Any) -> Sequence[Value]:
    fields = (
        pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
        pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
    )
    answers = ask("nvmlDeviceGetFieldValues", handle, [(field, _ALL_LINKS) for field in fields])
    now = time.monotonic()
    for answer in answers:
        if answer.nvmlReturn:
            raise NvmlFailed(failure(pynvml.NVMLError(answer.nvmlReturn)))
    return [
        rate.update(answer.value.ullVal * _KIB, now)
        for rate, answer in zip(source.nvlink, answers, strict=True)
    ]


def _gpm(source: Source, _: Any) -> Sequence[Value]:
    """Read the activity of SMs, tensor cores and DRAM since the last reading, from Hopper on.

    See https://docs.nvidia.com/deploy/nvml-api/group__GPM.html.
    """
    device, (before, now) = source.device, source.gpm
    if now is None:
        if not ask("nvmlGpmQueryDeviceSupport", device.whole).isSupportedDevice:
            raise NvmlFailed(UNSUPPORTED)
        now = ask("nvmlGpmSampleAlloc")
        source.gpm = before, now
    if device.mig is None:
        ask("nvmlGpmSampleGet", device.handle, now)
    else:
        instance = ask("nvmlDeviceGetGpuInstanceId", device.handle)
        ask("nvmlGpmMigSampleGet", device.whole, instance, now)
    source.gpm = now, before
    if before is None:
        return [None] * len(_GPM_METRICS)
    question = pynvml.c_nvmlGpmMetricsGet_t()
    question.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    question.numMetrics = len(_GPM_METRICS)
    question.sample1, question.sample2 = before, now
    for place, metric in enumerate(_GPM_METRICS.values()):
        question.metrics[place].metricId = metric
    cells = ask("nvmlGpmMetricsGet", question).metrics[: len(_GPM_METRICS)]
    return [None if cell.nvmlReturn or math.isnan(cell.value) else cell.value for cell in cells]


def _pcie(_: Source, handle: Any) -> Sequence[Value]:
    # Each blocks for 20 ms, and returns KB/s.
    counters = (pynvml.NVML_PCIE_UTIL_TX_BYTES, pynvml.NVML_PCIE_UTIL_RX_BYTES)
    return [ask("nvmlDeviceGetPcieThroughput", handle, counter) * 1000 for counter in counters]


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
    _ecc("ecc_corrected", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
    _ecc("ecc_uncorrected", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
    Reading(("throttle",), _throttle),
    Reading(("encoder",), lambda _, handle: ask("nvmlDeviceGetEncoderUtilization", handle)[:1]),
    Reading(("decoder",), lambda _, handle: ask("nvmlDeviceGetDecoderUtilization", handle)[:1]),
    _number("energy", "nvmlDeviceGetTotalEnergyConsumption", factor=1e-3),
    Reading(("nvlink_tx", "nvlink_rx"), _nvlink),
    Reading(tuple(_GPM_METRICS), _gpm),
)
"""All that is read at all times."""

PCIE = Reading(("pcie_tx", "pcie_rx"), _pcie)
"""Read only on request."""

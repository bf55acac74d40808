"""The metrics of a GPU: names, units, and how often each is read.

See https://docs.nvidia.com/deploy/nvml-api/.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..common.protocol.sampler_messages import GpuProcess
from ..common.protocol.sampler_messages import Value as Value

Samples = dict[str, dict[str, Value]]
"""The newest values by UUID and metric."""
Processes = dict[str, list[GpuProcess]]
Errors = dict[str, dict[str, str]]
"""Why metrics cannot be read, by UUID and metric."""


@dataclass(frozen=True)
class Metric:
    """One column, wherever samples are shown."""

    name: str
    unit: str
    """``%``, ``bytes``, ``°C``, ``W``, ``MHz``, ``J``, ``bytes/s``, or nothing."""
    tier: float
    """Seconds between two readings; 0 is as often as asked for."""
    digits: int = 0
    """Decimal places to show."""
    averaged: bool = True
    """Several samples are summed up by their mean, otherwise by the last one."""
    shared: bool = False
    """A MIG instance has the value of its GPU."""
    text: bool = False


TICK, STEADY, SLOW, CONSTANT = 0.0, 2.0, 5.0, 60.0
"""Tiers, in seconds."""

METRICS = (
    Metric("utilization", "%", TICK),
    Metric("memory_utilization", "%", TICK),
    Metric("memory_used", "bytes", TICK),
    Metric("memory_free", "bytes", TICK),
    Metric("memory_total", "bytes", CONSTANT, averaged=False),
    Metric("temperature", "°C", SLOW, shared=True),
    Metric("power", "W", STEADY, digits=1),
    Metric("power_limit", "W", SLOW, digits=1, averaged=False),
    Metric("clock_sm", "MHz", STEADY, shared=True),
    Metric("clock_memory", "MHz", STEADY, shared=True),
    Metric("fan", "%", SLOW, shared=True),
    Metric("pstate", "", SLOW, averaged=False, shared=True),
    Metric("ecc_corrected", "", SLOW, averaged=False),
    Metric("ecc_uncorrected", "", SLOW, averaged=False),
    Metric("throttle", "", SLOW, averaged=False, shared=True, text=True),
    Metric("encoder", "%", SLOW),
    Metric("decoder", "%", SLOW),
    Metric("energy", "J", SLOW, averaged=False),
    Metric("pcie_tx", "bytes/s", STEADY),
    Metric("pcie_rx", "bytes/s", STEADY),
    Metric("nvlink_tx", "bytes/s", STEADY),
    Metric("nvlink_rx", "bytes/s", STEADY),
    Metric("sm_active", "%", TICK, digits=1),
    Metric("tensor_active", "%", TICK, digits=1),
    Metric("dram_active", "%", TICK, digits=1),
)
"""All metrics, in the order in which they are shown."""

BY_NAME = {metric.name: metric for metric in METRICS}

_HARDWARE_SLOWDOWN = 0x8
_THROTTLE = {
    0x4: "power cap",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x10: "sync boost",
    0x2: "application clocks",
    0x100: "display clocks",
}
"""Bits of ``nvmlClocksEventReasons``; 0x1 says that the GPU is idle, which slows nobody down."""


def throttle_words(reasons: int) -> str:
    """Return why a GPU's clocks are throttled, separated by commas; unknown bits as a number."""
    words = [word for bit, word in _THROTTLE.items() if reasons & bit]
    if reasons & _HARDWARE_SLOWDOWN and not reasons & 0xC0:  # those two say why it is
        words.append("hardware slowdown")
    if rest := reasons & ~(0x1 | _HARDWARE_SLOWDOWN | sum(_THROTTLE)):
        words.append(f"reason 0x{rest:x}")
    return ", ".join(words)


def rounded(name: str, value: Value) -> Value:
    """Round a number to the digits of its metric; without any, to an integer."""
    if value is None or isinstance(value, str):
        return value
    return round(value, BY_NAME[name].digits or None)


class Rate:
    """The growth of a counter per second, between two readings."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None

    def update(self, count: float, now: float) -> float | None:
        """Return the rate since the last reading; `None` at the first, or after a reset."""
        last, self._last = self._last, (count, now)
        if last is None or now <= last[1] or count < last[0]:
            return None
        return (count - last[0]) / (now - last[1])

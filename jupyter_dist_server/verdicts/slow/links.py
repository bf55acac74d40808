"""The bandwidth of an ``all_reduce``, as nccl-tests computes it.

https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md: the bus bandwidth is the
algorithm bandwidth times 2(n - 1)/n. It can be compared with the speed of the links, whatever
the number of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...common.units import format_bytes


class LinkTime(msgspec.Struct, frozen=True):
    """How long an ``all_reduce`` takes."""

    nbytes: int
    seconds: float
    device: str
    """``cpu`` or ``cuda``."""


def algorithm_bandwidth(time: LinkTime) -> float:
    """Return the bytes of the tensor per second."""
    return time.nbytes / time.seconds


def bus_bandwidth(time: LinkTime, ranks: int) -> float:
    """Return the bytes that each link carries per second."""
    return algorithm_bandwidth(time) * 2 * (ranks - 1) / ranks


def link_sentence(times: Sequence[LinkTime], ranks: int, backend: str) -> str:
    """Return what the links do at best."""
    best = max(times, key=lambda time: bus_bandwidth(time, ranks))
    speed, size = _gigabytes(bus_bandwidth(best, ranks)), format_bytes(best.nbytes)
    where = "the CPU" if best.device == "cpu" else "GPUs"
    what = f"up to {speed} of bus bandwidth, at {size}"
    return f"all_reduce on {ranks} ranks: {what} ({backend}, on {where})."


def link_rows(times: Sequence[LinkTime], ranks: int) -> list[tuple[str, ...]]:
    """Return a table: a header, and a row for each size."""
    rows: list[tuple[str, ...]] = [("size", "time", "algorithm bandwidth", "bus bandwidth")]
    for time in times:
        rows.append(
            (
                format_bytes(time.nbytes),
                f"{time.seconds * 1e6:.0f} µs",
                _gigabytes(algorithm_bandwidth(time)),
                _gigabytes(bus_bandwidth(time, ranks)),
            )
        )
    return rows


def _gigabytes(speed: float) -> str:
    return f"{speed / 1e9:.3g} GB/s"

"""Samples on the server's ``/metrics``, under the names of NVIDIA's DCGM exporter.

See https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html and
https://github.com/NVIDIA/dcgm-exporter.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress

from prometheus_client.core import REGISTRY
from prometheus_client.metrics_core import GaugeMetricFamily, Metric, UnknownMetricFamily

from ...common.errors import DistError
from ...gpus.inventory import Gpu, Inventory
from ...gpus.telemetry import Telemetry
from ...gpus.used_without_lease import in_use
from ...jobs.leases.lease import holders
from ...pools.pool_manager import PoolManager

_MIB = 2.0**-20
_GAUGES: dict[str, tuple[str, float, str]] = {
    "utilization": ("DCGM_FI_DEV_GPU_UTIL", 1, "Time a CUDA kernel was running (in %)."),
    "memory_utilization": ("DCGM_FI_DEV_MEM_COPY_UTIL", 1, "Memory utilization (in %)."),
    "memory_used": ("DCGM_FI_DEV_FB_USED", _MIB, "Memory used (in MiB)."),
    "memory_free": ("DCGM_FI_DEV_FB_FREE", _MIB, "Memory free (in MiB)."),
    "memory_total": ("DCGM_FI_DEV_FB_TOTAL", _MIB, "Total memory (in MiB)."),
    "temperature": ("DCGM_FI_DEV_GPU_TEMP", 1, "Temperature (in °C)."),
    "power": ("DCGM_FI_DEV_POWER_USAGE", 1, "Power draw (in W)."),
    "power_limit": ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1, "Power limit (in W)."),
    "clock_sm": ("DCGM_FI_DEV_SM_CLOCK", 1, "SM clock (in MHz)."),
    "clock_memory": ("DCGM_FI_DEV_MEM_CLOCK", 1, "Memory clock (in MHz)."),
    "fan": ("DCGM_FI_DEV_FAN_SPEED", 1, "Fan speed (in %)."),
    "pstate": ("DCGM_FI_DEV_PSTATE", 1, "Performance state (0 is the fastest)."),
    "encoder": ("DCGM_FI_DEV_ENC_UTIL", 1, "Encoder utilization (in %)."),
    "decoder": ("DCGM_FI_DEV_DEC_UTIL", 1, "Decoder utilization (in %)."),
    "pcie_tx": ("DCGM_FI_PROF_PCIE_TX_BYTES", 1, "PCIe transmit throughput (in bytes/s)."),
    "pcie_rx": ("DCGM_FI_PROF_PCIE_RX_BYTES", 1, "PCIe receive throughput (in bytes/s)."),
    "nvlink_tx": ("DCGM_FI_PROF_NVLINK_TX_BYTES", 1, "NVLink transmit throughput (in bytes/s)."),
    "nvlink_rx": ("DCGM_FI_PROF_NVLINK_RX_BYTES", 1, "NVLink receive throughput (in bytes/s)."),
    "sm_active": ("DCGM_FI_PROF_SM_ACTIVE", 0.01, "Share of SMs that are active (0 to 1)."),
    "tensor_active": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.01, "Tensor core activity (0 to 1)."),
    "dram_active": ("DCGM_FI_PROF_DRAM_ACTIVE", 0.01, "DRAM activity (0 to 1)."),
}
"""By our name: DCGM's name, the factor from our unit, and a description."""

_COUNTERS: dict[str, tuple[str, float, str]] = {
    "energy": ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1000, "Total energy (in mJ)."),
    "ecc_corrected": ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 1, "Corrected ECC errors."),
    "ecc_uncorrected": ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, "Uncorrected ECC errors."),
}
"""Untyped, because the library would add ``_total`` to a counter's name."""

_LABELS = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "GPU_I_ID")


class GpuCollector:
    """Passes the newest samples to Prometheus, and keeps the sampler running."""

    def __init__(self, telemetry: Telemetry, manager: PoolManager) -> None:
        self._telemetry = telemetry
        self._manager = manager
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Appear on ``/metrics``."""
        self._loop = asyncio.get_running_loop()
        REGISTRY.register(self)

    def stop(self) -> None:
        """Disappear from there."""
        if self._loop:
            REGISTRY.unregister(self)
            self._loop = None

    def describe(self) -> Iterable[Metric]:
        """Return nothing: otherwise, registering would call `collect`."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the newest samples; none while they are stale, so that charts show a gap."""
        if self._loop:  # the library may call this in another thread
            self._loop.call_soon_threadsafe(self._telemetry.keep_alive)
        telemetry = self._telemetry
        found = telemetry.inventory if telemetry.stale_since is None else None
        here = found.gpus if found else ()
        gpus = (*here, *(gpu for node in telemetry.nodes.values() for gpu in node.gpus))
        for table, family in ((_GAUGES, GaugeMetricFamily), (_COUNTERS, UnknownMetricFamily)):
            for metric, (name, factor, help_text) in table.items():
                series = family(name, help_text, labels=_LABELS)
                for gpu in gpus:
                    value = telemetry.latest.get(gpu.uuid, {}).get(metric)
                    if isinstance(value, int | float):
                        series.add_metric(_labels(gpu), value * factor)
                if series.samples:
                    yield series
        yield from self._throttled(gpus)
        yield from self._parked()
        if found:
            yield from self._in_use(found)

    def _in_use(self, found: Inventory) -> Iterator[Metric]:
        with suppress(DistError):  # the leases are not known, so it is not known either
            leases = holders(found)
            taken = leases.keys() | in_use(self._telemetry.state, leases)
            help_text = "1 while a GPU is leased, or others may use it; 0 while it is free."
            series = GaugeMetricFamily("jupyter_dist_gpu_in_use", help_text, labels=_LABELS)
            for gpu in found.gpus:
                if {gpu.uuid} <= self._telemetry.processes.keys() & self._telemetry.latest.keys():
                    series.add_metric(_labels(gpu), gpu.uuid in taken)
            if series.samples:
                yield series

    def _parked(self) -> Iterator[Metric]:
        help_text = "Host memory of a parked pool for what was on its GPUs (in bytes)."
        name = "jupyter_dist_pool_parked_bytes"
        series = GaugeMetricFamily(name, help_text, labels=("pool", "notebook", "Hostname"))
        for pool in (pool.record for pool in self._manager.live()):
            if pool.parked:
                series.add_metric((pool.id, pool.name, pool.host), pool.parked.nbytes)
        if series.samples:
            yield series

    def _throttled(self, gpus: tuple[Gpu, ...]) -> Iterator[Metric]:
        name = "jupyter_dist_gpu_throttled"
        help_text = "1 while the clocks are throttled, with one series per reason."
        found = GaugeMetricFamily(name, help_text, labels=(*_LABELS, "reason"))
        for gpu in gpus:
            words = self._telemetry.latest.get(gpu.uuid, {}).get("throttle")
            for reason in words.split(", ") if isinstance(words, str) and words else ():
                found.add_metric((*_labels(gpu), reason), 1)
        if found.samples:
            yield found


def _labels(gpu: Gpu) -> tuple[str, ...]:
    return (
        str(gpu.index),
        gpu.uuid,
        gpu.pci_bus_id,
        f"nvidia{gpu.index}",
        gpu.name,
        gpu.node or socket.gethostname(),
        str(gpu.instance[0]) if gpu.instance else "",
    )

"""Orders to the process that reads NVML, and what it says: one JSON object a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from .decode_message import reader

NO_DRIVER = 3
"""Exit code of the process when the driver cannot be used, and it has said so."""
STAYS_LOADED = "Enable persistence mode (nvidia-smi -pm 1) if the driver takes long to load."
"""The advice when the first answer takes too long."""

PROCESSES = "processes"
"""The name under which errors tell why the processes on a GPU are not known."""

# -- GPUs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gpu:
    """A leaf device that CUDA can use: a whole GPU, or a MIG instance. `uuid` identifies it.

    A restart of the machine may change `index`.
    """

    index: int
    """The GPU's place in PCI bus order, as in nvidia-smi; of a MIG instance, its GPU's."""
    uuid: str
    name: str
    memory_total: int
    """Bytes; 0 if the driver doesn't say, as where a GPU has no memory of its own."""
    pci_bus_id: str
    compute_capability: str
    """Such as ``"9.0"``."""
    mig: int | None = None
    """The place of a MIG instance on its GPU: "Device 1" of ``nvidia-smi -L``."""
    parent: str | None = None
    instance: tuple[int, int] | None = None
    """The ids of a MIG instance's GPU instance and compute instance."""
    numa_node: int | None = None
    links: dict[str, str] = field(default_factory=dict, compare=False)
    """How other GPUs, by UUID, are reached: ``"NVLink x4"``, or ``"PIX"`` and so on, for which see
    `gpus.inventory`."""
    sm_count: int | None = None
    clock_max: int | None = None
    """In MHz."""
    is_exclusive: bool = False
    """Whether it takes one process at a time (compute mode ``Exclusive_Process``)."""
    node: str = ""
    """The other machine that it is in; empty for this one."""

    @property
    def label(self) -> str:
        """What people call it: ``"3"``, or ``"3:1"`` for MIG instance 1 of GPU 3."""
        return str(self.index) if self.mig is None else f"{self.index}:{self.mig}"


@dataclass(frozen=True)
class Inventory:
    """All GPUs that can be used, or the `reason` in one sentence why there are none."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    reason: str | None = None
    cuda: str | None = None
    """The newest version of CUDA that the driver supports, such as ``"12.8"``."""
    problems: tuple[str, ...] = ()
    """Plain sentences about GPUs that cannot be used."""

    @property
    def fault(self) -> str:
        """The reason without what ranks do then: ``No NVIDIA GPU found.``; empty with GPUs."""
        fault = (self.reason or "").partition(": ranks ")[0]
        return fault and fault.rstrip(".") + "."

    def to_json(self) -> dict[str, Any]:
        """Return the body of ``GET /gpus``."""
        return asdict(self)


class GpuProcess(msgspec.Struct, frozen=True):
    """A process on a GPU, as NVML and this machine know it."""

    pid: int
    user: str | None
    command: str | None
    memory: int | None
    """Bytes on the GPU."""
    sm: int | None
    """Its use of the multiprocessors, in percent."""
    start_time: float | None = None


Value = float | str | None
"""The value of one metric of one GPU; `None` if it is not known now."""

# -- what the process is told -----------------------------------------------------------------


class SamplerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to read; as the process's argument, and again at each change."""

    interval: float = 1.0
    """Seconds between two samples."""
    pcie: bool = False
    """Whether to read the rates of PCIe and NVLink."""
    host_pids: bool | None = None
    """Whether NVML's pids are those of processes here; `None` to find out."""
    once: bool = False
    """Whether to say everything once, and end."""
    on_request: bool = False
    """Whether to say everything now and at each line, then `Complete`, and sleep meanwhile."""


# -- what it says -----------------------------------------------------------------------------


class SamplerNews(msgspec.Struct, frozen=True, tag_field="type"):
    """What the process says."""

    time: float
    """Seconds since 1970."""


class InventoryNews(SamplerNews, frozen=True, tag="inventory"):
    """The GPUs; first of all, and when there are others than before."""

    inventory: Inventory


class SampleNews(SamplerNews, frozen=True, tag="sample"):
    """What was read at a tick; also a sign of life."""

    values: dict[str, dict[str, Value]]
    """By metric and UUID."""


class ErrorsNews(SamplerNews, frozen=True, tag="errors"):
    """What cannot be read, when that has changed."""

    errors: dict[str, dict[str, str]]
    """Words by UUID and metric."""


class ProcessesNews(SamplerNews, frozen=True, tag="processes"):
    """The processes on GPUs, when they have changed."""

    processes: dict[str, list[GpuProcess]]
    """By UUID, those with most memory first."""


class Complete(SamplerNews, frozen=True, tag="complete"):
    """All that was requested has been said."""


News = InventoryNews | SampleNews | ErrorsNews | ProcessesNews | Complete

decode_settings: Callable[[bytes], SamplerSettings] = reader(SamplerSettings)
decode_sampler_news: Callable[[bytes], News] = reader(News)

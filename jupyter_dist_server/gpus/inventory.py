"""The GPUs of this machine, as NVML describes them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from . import nvml, topology
from .nvml import NO_GPU as NO_GPU
from .nvml import Device, Failure, query

CLOCK_SM = 1
"""nvmlClockType_t"""


@dataclass(frozen=True)
class Gpu:
    """A leaf device that CUDA can be given: a whole GPU, or a MIG instance. `uuid` identifies it.

    A restart of the machine may change `index`.
    """

    index: int
    """The GPU's place in PCI bus order, as in nvidia-smi; of a MIG instance, its GPU's."""
    uuid: str
    """``GPU-…`` or ``MIG-…``."""
    name: str
    memory_total: int
    """Bytes; 0 if the driver doesn't say, as where a GPU has no memory of its own."""
    pci_bus_id: str
    compute_capability: str
    """Such as ``"9.0"``."""
    mig: int | None = None
    """The place of a MIG instance on its GPU: "Device 1" of ``nvidia-smi -L``."""
    parent: str | None = None
    """The UUID of the GPU that a MIG instance is part of."""
    instance: tuple[int, int] | None = None
    """The ids of a MIG instance's GPU instance and compute instance."""
    numa_node: int | None = None
    links: dict[str, str] = field(default_factory=dict, compare=False)
    """How other GPUs, by UUID, are reached: ``"NVLink x4"``, or ``"PIX"`` and so on, for which see
    `topology.links`."""
    sm_count: int | None = None
    """Number of streaming multiprocessors."""
    clock_max: int | None = None
    """The highest clock of these, in MHz."""

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
    """Plain sentences about GPUs that cannot be used, beside those that can."""

    def to_json(self) -> dict[str, Any]:
        """Return the body of ``GET /gpus``."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Inventory:
        """Read what `to_json` wrote."""
        gpus = []
        for gpu in body["gpus"]:
            instance = gpu.get("instance")
            gpus.append(Gpu(**gpu | {"instance": tuple(instance) if instance else None}))
        rest = {name: value for name, value in body.items() if name not in ("gpus", "problems")}
        return cls(gpus=tuple(gpus), problems=tuple(body["problems"]), **rest)


def describe(devices: list[Device], problems: list[str]) -> Inventory:
    """Ask a started NVML what the devices are that `nvml.devices` found."""
    connections = topology.links(devices)
    gpus = []
    troubles = list(problems)
    for device in devices:
        gpu = _describe(device, connections[device.uuid])
        if isinstance(gpu, Gpu):
            gpus.append(gpu)
        else:
            troubles.append(nvml.trouble(_called(device), gpu))
    driver = query("nvmlSystemGetDriverVersion")
    cuda = query("nvmlSystemGetCudaDriverVersion")
    return Inventory(
        gpus=tuple(gpus),
        driver=None if isinstance(driver, Failure) else driver,
        reason=None if gpus else _no_gpu(troubles),
        cuda=None if isinstance(cuda, Failure) else f"{cuda // 1000}.{cuda % 1000 // 10}",
        problems=tuple(troubles),
    )


def _describe(device: Device, connections: dict[str, str]) -> Gpu | Failure:
    name = query("nvmlDeviceGetName", device.handle)
    memory = query("nvmlDeviceGetMemoryInfo", device.handle)
    # A MIG instance is asked for nothing that only the whole GPU knows.
    pci = query("nvmlDeviceGetPciInfo", device.whole)
    capability = query("nvmlDeviceGetCudaComputeCapability", device.whole)
    for answer in (name, memory, pci, capability):
        if isinstance(answer, Failure) and answer != nvml.UNSUPPORTED:
            return answer
    instance = None
    if device.mig is not None:
        ids = [
            query("nvmlDeviceGetGpuInstanceId", device.handle),
            query("nvmlDeviceGetComputeInstanceId", device.handle),
        ]
        instance = None if any(isinstance(i, Failure) for i in ids) else (ids[0], ids[1])
    clock = query("nvmlDeviceGetMaxClockInfo", device.whole, CLOCK_SM)
    return Gpu(
        index=device.index,
        uuid=device.uuid,
        name="NVIDIA GPU" if isinstance(name, Failure) else name,
        memory_total=0 if isinstance(memory, Failure) else memory.total,
        pci_bus_id="" if isinstance(pci, Failure) else pci.busId,
        compute_capability="" if isinstance(capability, Failure) else "{}.{}".format(*capability),
        mig=device.mig,
        parent=device.parent,
        instance=instance,
        numa_node=topology.numa_node(device),
        links=connections,
        sm_count=_sm_count(device, capability),
        clock_max=None if isinstance(clock, Failure) else clock,
    )


def _sm_count(device: Device, capability: tuple[int, int] | Failure) -> int | None:
    """Return the number of multiprocessors, which NVML tells of MIG instances only.

    For a whole GPU it is the number of CUDA cores by those of one multiprocessor. See
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities.
    """
    if device.mig is not None:
        attributes = query("nvmlDeviceGetAttributes", device.handle)
        return None if isinstance(attributes, Failure) else attributes.multiprocessorCount
    cores = query("nvmlDeviceGetNumGpuCores", device.handle)
    if isinstance(cores, Failure) or isinstance(capability, Failure):
        return None
    return int(cores) // (64 if capability[0] == 7 or capability in ((6, 0), (8, 0)) else 128)


def _called(device: Device) -> str:
    return f"GPU {device.index}" + ("" if device.mig is None else f":{device.mig}")


def _no_gpu(troubles: list[str]) -> str:
    if not troubles:
        return "The NVIDIA driver is loaded but has no GPU: ranks run on the CPU."
    if len(troubles) == 1:
        return troubles[0]
    return f"None of the {len(troubles)} GPUs can be used: ranks run on the CPU."

"""The GPUs of this machine, as NVML describes them."""

from __future__ import annotations

from ..common.protocol.sampler_messages import Gpu as Gpu
from ..common.protocol.sampler_messages import Inventory as Inventory
from . import nvml, topology
from .nvml import NO_GPU as NO_GPU
from .nvml import Device, Failure, query

CLOCK_SM = 1
"""nvmlClockType_t"""


def describe(devices: list[Device], problems: list[str]) -> Inventory:
    """Describe the devices that `nvml.devices` has found."""
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
    # Only the whole GPU knows these, not a MIG instance.
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
    """Return the number of SMs, which NVML has for MIG instances only.

    For a whole GPU, it is the number of CUDA cores divided by those of one SM, see
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

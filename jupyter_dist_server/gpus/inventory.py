"""The GPUs of this machine and how they are connected, as NVML describes them."""

from __future__ import annotations

from collections import Counter

from ..common.protocol.sampler_messages import Gpu as Gpu
from ..common.protocol.sampler_messages import Inventory as Inventory
from . import nvml
from .nvml import NO_GPU as NO_GPU
from .nvml import Device, Failure, query

# NVML's values: nvmlComputeMode_t, nvmlClockType_t, nvmlIntNvLinkDeviceType_t, nvmlAffinityScope_t
# and nvmlGpuTopologyLevel_t, with the names of nvidia-smi topo -m.
_EXCLUSIVE, _PROHIBITED = (1, 3), 2
_CLOCK_SM = 1
_REMOTE_GPU, _REMOTE_SWITCH = 0, 2
_AFFINITY_OF_NODE = 0
_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}

_MAX_LINKS = 36
_SWITCH = "switch"


def describe(devices: list[Device], problems: list[str]) -> Inventory:
    """Describe the devices that `nvml.devices` has found."""
    connections = _links(devices)
    gpus = []
    troubles = list(problems)
    for device in devices:
        gpu = _describe(device, connections[device.uuid])
        if isinstance(gpu, Gpu):
            gpus.append(gpu)
        else:
            place = "" if device.mig is None else f":{device.mig}"
            troubles.append(nvml.trouble(f"GPU {device.index}{place}", gpu))
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
    mode = query("nvmlDeviceGetComputeMode", device.whole)
    if mode == _PROHIBITED:
        hint = f"nvidia-smi -i {device.index} -c Default"
        return Failure(f"its compute mode is Prohibited ({hint} changes it)")
    clock = query("nvmlDeviceGetMaxClockInfo", device.whole, _CLOCK_SM)
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
        numa_node=_numa_node(device),
        links=connections,
        sm_count=_sm_count(device, capability),
        clock_max=None if isinstance(clock, Failure) else clock,
        is_exclusive=mode in _EXCLUSIVE,
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


def _no_gpu(troubles: list[str]) -> str:
    if not troubles:
        return "The NVIDIA driver is loaded but has no GPU: ranks run on the CPU."
    if len(troubles) == 1:
        return troubles[0]
    return f"None of the {len(troubles)} GPUs can be used: ranks run on the CPU."


def _numa_node(device: Device) -> int | None:
    """Return the NUMA node that is nearest to a GPU; `None` if there are several."""
    answer = query("nvmlDeviceGetMemoryAffinity", device.whole, 16, _AFFINITY_OF_NODE)
    if isinstance(answer, Failure):
        return None
    words = list(answer)
    nodes = [bit for bit in range(64 * len(words)) if words[bit // 64] >> bit % 64 & 1]
    return nodes[0] if len(nodes) == 1 else None


def _links(devices: list[Device]) -> dict[str, dict[str, str]]:
    """Return how whole GPUs are connected: UUID to UUID to ``"NVLink x4"`` or a PCIe level.

    The levels are ``PIX`` (one PCIe bridge at most), ``PXB`` (several), ``PHB`` (the host bridge),
    ``NODE`` (host bridges of one NUMA node) and ``SYS`` (between NUMA nodes).
    """
    whole = [device for device in devices if device.mig is None]
    found: dict[str, dict[str, str]] = {device.uuid: {} for device in devices}
    if len(whole) < 2:
        return found
    nvlinks = {device.uuid: _nvlinks(device) for device in whole}
    places = {device.uuid: _place(query("nvmlDeviceGetPciInfo", device.handle)) for device in whole}
    for position, one in enumerate(whole):
        for other in whole[position + 1 :]:
            mine, theirs = nvlinks[one.uuid], nvlinks[other.uuid]
            # Behind NVSwitches, each GPU reaches every other one with all of its links.
            count = mine[places[other.uuid]] or min(mine[_SWITCH], theirs[_SWITCH])
            level = query("nvmlDeviceGetTopologyCommonAncestor", one.handle, other.handle)
            link = f"NVLink x{count}" if count else _LEVELS.get(level)
            if link:
                found[one.uuid][other.uuid] = found[other.uuid][one.uuid] = link
    return found


def _nvlinks(device: Device) -> Counter[str]:
    """Count a GPU's active NVLinks by their other end: a PCI place, or a switch."""
    ends: Counter[str] = Counter()
    for link in range(_MAX_LINKS):
        active = query("nvmlDeviceGetNvLinkState", device.handle, link)
        if isinstance(active, Failure):  # the GPU has no more links
            break
        if not active:
            continue
        kind = query("nvmlDeviceGetNvLinkRemoteDeviceType", device.handle, link)
        if kind == _REMOTE_SWITCH:
            ends[_SWITCH] += 1
        elif kind == _REMOTE_GPU:
            ends[_place(query("nvmlDeviceGetNvLinkRemotePciInfo", device.handle, link))] += 1
    return ends


def _place(pci: object) -> str:
    if isinstance(pci, Failure):
        return ""
    return f"{pci.domain:x}:{pci.bus:x}:{pci.device:x}"  # type: ignore[attr-defined]

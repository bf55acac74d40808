"""How GPUs are connected to each other and to the host, as in ``nvidia-smi topo -m``."""

from __future__ import annotations

from collections import Counter

from .nvml import Device, Failure, query

# NVML's values: nvmlGpuTopologyLevel_t, nvmlIntNvLinkDeviceType_t, nvmlAffinityScope_t.
LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
REMOTE_GPU, REMOTE_SWITCH = 0, 2
AFFINITY_OF_NODE = 0
MAX_LINKS = 36

WORD_BITS, WORDS = 64, 16
SWITCH = "switch"


def numa_node(device: Device) -> int | None:
    """Return the NUMA node that is nearest to a GPU; `None` if there are several."""
    answer = query("nvmlDeviceGetMemoryAffinity", device.whole, WORDS, AFFINITY_OF_NODE)
    if isinstance(answer, Failure):
        return None
    words = list(answer)
    nodes = [bit for bit in range(WORD_BITS * WORDS) if words[bit // 64] >> bit % 64 & 1]
    return nodes[0] if len(nodes) == 1 else None


def links(devices: list[Device]) -> dict[str, dict[str, str]]:
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
            count = mine[places[other.uuid]] or min(mine[SWITCH], theirs[SWITCH])
            level = query("nvmlDeviceGetTopologyCommonAncestor", one.handle, other.handle)
            link = f"NVLink x{count}" if count else LEVELS.get(level)
            if link:
                found[one.uuid][other.uuid] = found[other.uuid][one.uuid] = link
    return found


def _nvlinks(device: Device) -> Counter[str]:
    """Count a GPU's active NVLinks by their other end: a PCI place, or a switch."""
    ends: Counter[str] = Counter()
    for link in range(MAX_LINKS):
        active = query("nvmlDeviceGetNvLinkState", device.handle, link)
        if isinstance(active, Failure):  # the GPU has no more links
            break
        if not active:
            continue
        kind = query("nvmlDeviceGetNvLinkRemoteDeviceType", device.handle, link)
        if kind == REMOTE_SWITCH:
            ends[SWITCH] += 1
        elif kind == REMOTE_GPU:
            ends[_place(query("nvmlDeviceGetNvLinkRemotePciInfo", device.handle, link))] += 1
    return ends


def _place(pci: object) -> str:
    if isinstance(pci, Failure):
        return ""
    return f"{pci.domain:x}:{pci.bus:x}:{pci.device:x}"  # type: ignore[attr-defined]

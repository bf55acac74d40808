"""The GPUs that an inherited ``CUDA_VISIBLE_DEVICES`` allows, read as CUDA reads it.

See https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html,
and for duplicates, mixed forms and ``1gpu``, ``_parse_visible_devices`` in ``torch.cuda``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..common.protocol.sampler_messages import Gpu, Inventory

MASK, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
BY_BUS = "PCI_BUS_ID"


def hides_all(environment: Mapping[str, str]) -> bool:
    """Tell whether CUDA shows no GPU at all to a process with this environment."""
    mask = environment.get(MASK)
    return mask is not None and (not mask.strip() or mask.lstrip().startswith("-"))


def counts_differ(inventory: Inventory) -> bool:
    """Tell whether CUDA may count GPUs differently from NVML: some are divided, or faulty."""
    return bool(inventory.problems) or any(gpu.mig is not None for gpu in inventory.gpus)


def write_mask(gpus: Iterable[Gpu], *, by_uuid: bool) -> str:
    """Return a mask with the numbers of GPUs, which programs expect; or with UUIDs.

    Numbers are right with ``CUDA_DEVICE_ORDER=PCI_BUS_ID``, unless `counts_differ`.
    """
    return ",".join(gpu.uuid if by_uuid else str(gpu.index) for gpu in gpus)


def narrow(inventory: Inventory, environment: Mapping[str, str]) -> Inventory:
    """Leave only the GPUs that CUDA would show to a process with this environment.

    They are in the order of the mask. A list of MIG instances is kept whole, although CUDA shows
    one process only the first: each rank can use another one. If the mask is ambiguous, a problem
    is added.
    """
    mask = environment.get(MASK)
    if mask is None or not inventory.gpus:
        return inventory
    items = mask.split(",")
    if mask.startswith(("GPU-", "MIG-")):
        prefix = mask[:4]
        named = [_by_uuid(item, prefix, inventory.gpus) for item in items]
        problems: list[str] = []
    else:
        ordinals = [_ordinal(item) for item in items]
        ordered, problems = _cuda_order(mask, inventory.gpus, environment.get(ORDER) == BY_BUS)
        named = [ordered[n] if n is not None and n < len(ordered) else None for n in ordinals]
    # CUDA stops at the first GPU that does not exist.
    count = named.index(None) if None in named else len(named)
    allowed = [gpu for gpu in named[:count] if gpu]
    if len(set(allowed)) < len(allowed):
        return _none(inventory, f"{MASK}={mask!r} lists a GPU twice, so CUDA uses no GPU")
    if not mask.strip():
        return _none(inventory, f"{MASK} is empty, so CUDA uses no GPU")
    if not allowed:
        return _none(inventory, f"{MASK}={mask!r} lists no GPU of this machine")
    # A list may end with "-1" on purpose, or with a comma.
    rest = [item.strip() for item in items[count:]]
    if any(rest) and not rest[0].startswith("-"):
        problems.append(
            f"{MASK}={mask!r} is used only up to {items[count]!r}, because this machine has "
            "no such GPU."
        )
    return replace(inventory, gpus=tuple(allowed), problems=(*inventory.problems, *problems))


def _none(inventory: Inventory, reason: str) -> Inventory:
    return replace(inventory, gpus=(), reason=f"{reason}.")


def _ordinal(item: str) -> int | None:
    """Return the number that an item starts with, as C's strtoul does."""
    match = re.match(r"\s*\+?(\d+)", item)
    return int(match[1]) if match else None


def _by_uuid(item: str, prefix: str, gpus: tuple[Gpu, ...]) -> Gpu | None:
    """Return the one GPU whose UUID starts with `item`, which must start with `prefix`."""
    if not item.startswith(prefix):
        return None
    found = [gpu for gpu in gpus if gpu.uuid.startswith(item)]
    if not found:  # of a divided GPU, CUDA takes the first MIG instance
        divided = [gpu for gpu in gpus if gpu.parent and gpu.parent.startswith(item)]
        found = divided[:1] if len({gpu.parent for gpu in divided}) == 1 else []
    return found[0] if len(found) == 1 else None


def _cuda_order(mask: str, gpus: tuple[Gpu, ...], by_bus: bool) -> tuple[list[Gpu], list[str]]:
    """Return the GPUs as CUDA numbers them, and problems if that is uncertain.

    Whole GPUs come first, then the first MIG instance of each divided one.
    """
    whole = [gpu for gpu in gpus if gpu.parent is None]
    first = {gpu.parent: gpu for gpu in reversed(gpus) if gpu.parent}
    divided = [gpu for gpu in gpus if gpu in first.values()]
    problems = []
    if not by_bus and len({gpu.name for gpu in whole}) > 1:
        # CUDA's order by speed is undocumented; SMs times clock comes close.
        whole.sort(key=lambda gpu: -(gpu.sm_count or 0) * (gpu.clock_max or 0))
        numbers = ", ".join(f"{n} means GPU {gpu.index}" for n, gpu in enumerate(whole))
        problems.append(
            f"{MASK}={mask!r} counts GPUs from the fastest, because {ORDER} is not {BY_BUS}. The "
            f"GPUs of this machine differ; ranks assume that {numbers}. Set {ORDER}={BY_BUS}, or "
            "use UUIDs."
        )
    return whole + divided, problems

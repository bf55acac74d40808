"""Which GPU each rank gets: pure functions from a request and an inventory."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import DistError
from ..gpus.inventory import NO_GPU, Gpu, Inventory

CPU_RANKS = 2


@dataclass(frozen=True)
class Placement:
    """The answer: one entry per rank, and what the user should know about it."""

    gpus: tuple[Gpu | None, ...]
    """The GPU of each rank; `None` is the CPU."""
    policy: str
    backend: str
    notices: tuple[str, ...] = field(default=())

    @property
    def visible(self) -> list[Gpu]:
        """The pool's GPUs in PCI order: what ``CUDA_VISIBLE_DEVICES`` holds for all its ranks."""
        return sorted({gpu for gpu in self.gpus if gpu}, key=lambda gpu: gpu.index)

    def device(self, rank: int) -> str:
        """Return the torch device of a rank, counted inside `visible`."""
        gpu = self.gpus[rank]
        return f"cuda:{self.visible.index(gpu)}" if gpu else "cpu"


def place(
    num_ranks: int | None,
    gpu_ids: tuple[int | str, ...] | None,
    backend: str | None,
    inventory: Inventory,
) -> Placement:
    """Decide where ranks go.

    Ranks cycle through the GPUs, or through `gpu_ids` in their given order.

    Parameters
    ----------
    num_ranks : int or None
        `None` is one rank per GPU, or two on a machine without.
    gpu_ids : tuple or None
        Physical indices or UUIDs.
    backend : str or None
        `None` is gloo on the CPU, ``cpu:gloo,cuda:nccl`` with a GPU per rank, and gloo where ranks
        share one: NCCL refuses that ("Duplicate GPU detected").
    inventory : Inventory
        The GPUs of the machine.

    Raises
    ------
    DistError
        If a GPU does not exist, or the backend cannot work on this placement.
    """
    if not inventory.gpus:
        if backend and "nccl" in backend:
            raise DistError(
                "backend_needs_gpu",
                f"The backend {backend} needs GPUs, and there is none: {inventory.reason}",
                "Use --backend gloo, or leave it out.",
                field="backend",
            )
        notices = ["GPU ids are ignored: " + (inventory.reason or "")] if gpu_ids else []
        if not notices and inventory.reason not in (None, NO_GPU):
            notices = [str(inventory.reason)]  # there may be GPUs, and the user should know
        count = num_ranks or CPU_RANKS
        return Placement((None,) * count, "cycle", backend or "gloo", tuple(notices))

    chosen = [_find(gpu_id, inventory) for gpu_id in gpu_ids] if gpu_ids else list(inventory.gpus)
    count = num_ranks or len(chosen)
    gpus = tuple(chosen[rank % len(chosen)] for rank in range(count))
    shared = len(set(gpus)) < len(gpus)
    if shared and backend and "nccl" in backend:
        raise DistError(
            "backend_needs_gpu",
            f"NCCL refuses two ranks on one GPU: {count} ranks, only {len(set(gpus))} GPUs.",
            "Use --backend gloo, fewer ranks, or more GPUs.",
            field="backend",
        )
    notices = []
    if shared:
        where = ", ".join(f"rank {rank} → GPU {gpu.index}" for rank, gpu in enumerate(gpus))
        notices.append(f"Ranks share GPUs ({where}), so the backend is gloo: NCCL refuses that.")
    return Placement(
        gpus,
        "ids" if gpu_ids else "cycle",
        backend or ("gloo" if shared else "cpu:gloo,cuda:nccl"),
        tuple(notices),
    )


def narrow(inventory: Inventory, visible: str | None) -> Inventory:
    """Leave only the GPUs that an inherited ``CUDA_VISIBLE_DEVICES`` allows.

    As CUDA reads it: indices or prefixes of UUIDs, up to the first that does not exist. See
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars.
    """
    if visible is None or not inventory.gpus:
        return inventory
    allowed: list[Gpu] = []
    for item in (part.strip() for part in visible.split(",")):
        found = [
            gpu
            for gpu in inventory.gpus
            if item == str(gpu.index) or (item and gpu.uuid.startswith(item))
        ]
        if len(found) != 1:
            break
        allowed.append(found[0])
    reason = None if allowed else f"CUDA_VISIBLE_DEVICES={visible!r} allows no GPU of this machine."
    return Inventory(tuple(allowed), inventory.driver, reason)


def _find(gpu_id: int | str, inventory: Inventory) -> Gpu:
    for gpu in inventory.gpus:
        if gpu_id == gpu.index or (isinstance(gpu_id, str) and gpu.uuid == gpu_id):
            return gpu
    existing = ", ".join(f"{gpu.index} ({gpu.name})" for gpu in inventory.gpus)
    raise DistError(
        "unknown_gpu",
        f"There is no GPU {gpu_id}.",
        f"This machine has GPU {existing}.",
        field="gpu_ids",
    )

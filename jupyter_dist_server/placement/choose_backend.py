"""NCCL or gloo: which backend ranks on these GPUs can use."""

from __future__ import annotations

from collections.abc import Sequence

from ..gpus.inventory import Gpu
from .requests.request import PoolRequest


def choose_backend(request: PoolRequest, gpus: Sequence[Gpu | None]) -> tuple[str, str | None]:
    """Return the backend, the one that is asked for if any, and what the user should know of it.

    It is gloo where a rank runs on the CPU, ``cpu:gloo,cuda:nccl`` with a GPU per rank, and gloo
    where ranks share one or run on MIG instances: NCCL refuses the first, "Duplicate GPU detected",
    and does not connect MIG instances.
    """
    on_gpus = [gpu for gpu in gpus if gpu]
    if len(on_gpus) < len(gpus):
        return request.backend or "gloo", None
    if len(set(on_gpus)) < len(on_gpus):
        where = ", ".join(f"rank {rank} → GPU {gpu.label}" for rank, gpu in enumerate(on_gpus))
        notice = (
            f"More ranks than GPUs: ranks share GPUs ({where}), so the backend is gloo, which "
            "is slower than NCCL."
        )
    elif any(gpu.mig is not None for gpu in on_gpus):
        notice = (
            "Ranks run on MIG instances, so the backend is gloo: NCCL does not support "
            "communication between MIG instances. Each rank sees only its own instance, as "
            "cuda:0."
        )
    else:
        return request.backend or "cpu:gloo,cuda:nccl", None
    return request.backend or "gloo", None if request.backend == "none" else notice

"""Which GPUs may be used, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..common.errors import DistError
from ..common.units import format_bytes
from ..gpus.inventory import Gpu, Inventory
from ..gpus.metrics import Samples
from .requests.field_checks import CPU, GpuId
from .requests.request import PoolRequest


def find(gpu_id: GpuId, inventory: Inventory, field: str = "gpu_ids") -> Gpu:
    """Return the GPU that a user means; raise `DistError` if there is none, or more than one."""
    text = str(gpu_id).strip()
    exact = [gpu for gpu in inventory.gpus if text in (gpu.uuid, gpu.label)]
    found = exact or [gpu for gpu in inventory.gpus if text == str(gpu.index)]
    if not found and text.startswith(("GPU-", "MIG-")):
        found = [gpu for gpu in inventory.gpus if gpu.uuid.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        known = ", ".join(f"{gpu.label} ({gpu.uuid})" for gpu in found)
        raise DistError("unknown_gpu", f"GPU {text} is ambiguous.", f"Use one of: {known}.", field)
    existing = ", ".join(f"{gpu.label} ({gpu.name})" for gpu in inventory.gpus)
    raise DistError(
        "unknown_gpu",
        f"There is no GPU {text}.",
        "\n".join([f"Available GPUs: {existing}.", *inventory.problems]),
        field,
    )


def candidates(request: PoolRequest, inventory: Inventory) -> list[Gpu]:
    """Return the GPUs that a request may get; with ``map``, one for each rank on a GPU.

    With ``ids``, they are in the order of ranks.
    """
    if request.map:
        ids = (request.map[rank] for rank in sorted(request.map))
        return [find(gpu_id, inventory, "map") for gpu_id in ids if gpu_id != CPU]
    chosen = [find(gpu_id, inventory) for gpu_id in request.gpu_ids or ()]
    if request.policy == "ids":
        return chosen
    scored = set(_scores(request.performance, inventory))
    found = [
        gpu
        for gpu in inventory.gpus
        if (not chosen or gpu in chosen) and (not scored or gpu in scored)
    ]
    if not found:
        raise DistError("unknown_gpu", "None of the chosen GPUs has a score.", field="performance")
    return found


def _scores(given: Mapping[GpuId, float] | None, inventory: Inventory) -> dict[Gpu, float]:
    return {
        find(gpu_id, inventory, "performance"): score for gpu_id, score in (given or {}).items()
    }


def order(
    request: PoolRequest, gpus: list[Gpu], inventory: Inventory, samples: Samples
) -> tuple[list[Gpu], Callable[[Gpu], str] | None]:
    """Sort GPUs by a request's policy; return also what says why one stands where it does."""
    if request.policy == "free-memory":
        free = {gpu: free_memory(gpu, samples) for gpu in gpus}
        known = {gpu: size for gpu, size in free.items() if size is not None}
        _check_known("free memory", set(gpus) - known.keys(), "--gpu-ids")
        return _best_first(gpus, known), lambda gpu: format_bytes(known[gpu])
    if request.policy == "performance":
        scores = _scores(request.performance, inventory) or _speeds(gpus)
        return _best_first(gpus, scores), lambda gpu: f"{scores[gpu]:,g}"
    return gpus, None


def free_memory(gpu: Gpu, samples: Samples) -> int | None:
    """Return the free memory in bytes, `None` if it is not known."""
    value = samples.get(gpu.uuid, {}).get("memory_free")
    return None if value is None else int(value)


def _speeds(gpus: list[Gpu]) -> dict[Gpu, float]:
    """Score GPUs by compute capability × SM count × clock, only to compare them."""
    known = {
        gpu: float(gpu.compute_capability) * gpu.sm_count * gpu.clock_max / 1000
        for gpu in gpus
        if gpu.sm_count and gpu.clock_max
    }
    _check_known("performance", set(gpus) - known.keys(), "--performance, such as 0=100,3=110,")
    return known


def _check_known(what: str, unknown: Iterable[Gpu], instead: str) -> None:
    if labels := sorted(gpu.label for gpu in unknown):
        raise DistError(
            "not_known",
            f"The driver does not report the {what} of GPU {', '.join(labels)}.",
            f"Choose GPUs with {instead} instead.",
            "placement",
        )


def _best_first(gpus: list[Gpu], scores: Mapping[Gpu, float]) -> list[Gpu]:
    return sorted(gpus, key=lambda gpu: -scores[gpu])

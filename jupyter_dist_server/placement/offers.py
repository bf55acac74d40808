"""What a user is offered if GPUs are taken: requests that would not be refused now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..common.errors import DistError
from ..common.protocol.offers import InLine, Offer
from ..gpus.inventory import Inventory
from ..gpus.metrics import Samples
from ..jobs.store.slurm_formats import write_place
from .number_of_ranks import number_of_ranks
from .ranks_to_gpus import GpusTaken, place_ranks
from .requests.field_checks import GpuId
from .requests.request import PoolRequest

Reasons = Callable[[PoolRequest], Mapping[str, str]]
"""Tells why GPUs are not available, by UUID, see `unavailable_gpus.unavailable`."""


def with_offers(
    error: GpusTaken,
    request: PoolRequest,
    inventory: Inventory,
    samples: Samples,
    reasons: Reasons,
    line: InLine | None,
) -> GpusTaken:
    """Return a refusal that says what can be done instead; `line` is where we would stand."""
    found = [Offer("wait", line)]
    taken = reasons(request)
    is_here = (request.nodes or 1) == 1  # we know the GPUs of this machine only
    can_choose = is_here and not request.is_hybrid
    if can_choose and (free := _free(request, inventory, samples, taken)):
        found.append(Offer("free", gpu_ids=free))
    sharing = replace(request, oversubscribe=True, one_rank_per_gpu=False)
    left = reasons(sharing)
    if left.keys() < taken.keys() and _fits(sharing, inventory, samples, left):
        found.append(Offer("share"))
    if is_here and request.kernel_id:
        on_gpus = request.on_gpus or request
        count = number_of_ranks(on_gpus) or len(on_gpus.map or on_gpus.gpu_ids or ()) or 1
        found.append(Offer("job", gpus=min(count, len(inventory.gpus))))
    may_force = not request.force and "used by" in error.message
    return GpusTaken(error.message, _say(found, may_force), found)


def _free(
    request: PoolRequest, inventory: Inventory, samples: Samples, reasons: Mapping[str, str]
) -> list[GpuId]:
    """Return GPUs that a request could have instead of those that it names."""
    free: list[GpuId] = [
        gpu.index if gpu.mig is None else gpu.label
        for gpu in inventory.gpus
        if gpu.uuid not in reasons
    ]
    chosen = free[: number_of_ranks(request) or len(request.map or request.gpu_ids or free)]
    placement = None if request.policy == "map" else request.placement
    other = replace(
        request, gpu_ids=tuple(chosen), num_ranks=len(chosen), map=None, placement=placement
    )
    return chosen if chosen and _fits(other, inventory, samples, reasons) else []


def _fits(
    request: PoolRequest, inventory: Inventory, samples: Samples, reasons: Mapping[str, str]
) -> bool:
    try:
        place_ranks(request, inventory, samples, reasons)
    except DistError:
        return False
    return True


def _say(offers: list[Offer], may_force: bool) -> str:
    """Say what a notebook's user can do."""
    said = []
    for offer in offers:
        if offer.kind == "wait":
            place = f" ({write_place(offer.line)})" if offer.line else ""
            said.append(f"wait with --wait{place}")
        elif offer.kind == "free":
            ids = ",".join(map(str, offer.gpu_ids))
            several = "s" * (len(offer.gpu_ids) > 1)
            said.append(f"start on the free GPU{several} with -n {len(offer.gpu_ids)} -g {ids}")
        elif offer.kind == "share":
            said.append("share them with --oversubscribe")
    if may_force:
        said.append("use them anyway with --force")
    *first, last = said
    text = f"{', '.join(first)}, or {last}" if first else last
    return f"{text[0].upper()}{text[1:]}."

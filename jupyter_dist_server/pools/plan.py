"""From a request to the record of a pool that can be started."""

from __future__ import annotations

import os
import sys
import uuid

from ..gpus.inventory import Inventory
from .placement import Placement, narrow, place
from .records import PoolRecord, RankRecord, gpu_reference
from .request import PoolRequest


def plan(request: PoolRequest, inventory: Inventory) -> tuple[PoolRecord, Placement]:
    """Decide which GPUs the ranks get.

    Raises
    ------
    DistError
        If the request cannot be placed.
    """
    base = os.environ if request.base_env is None else request.base_env
    allowed = narrow(inventory, base.get("CUDA_VISIBLE_DEVICES"))
    placement = place(request.num_ranks, request.gpu_ids, request.backend, allowed)
    record = PoolRecord(
        id="p-" + uuid.uuid4().hex[:8],
        kernel_id=request.kernel_id,
        name=request.name,
        world_size=len(placement.gpus),
        backend=placement.backend,
        placement=placement.policy,
        start_method=request.start_method,
        python=request.python or sys.executable,
        cwd=request.cwd or os.getcwd(),
        notices=list(placement.notices),
        ranks=[
            RankRecord(rank, rank, placement.device(rank), gpu_reference(gpu))
            for rank, gpu in enumerate(placement.gpus)
        ],
    )
    return record, placement

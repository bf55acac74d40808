"""Ends pools whose kernel has died."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from jupyter_core.utils import ensure_async

from ...common.patience import patience
from ...common.protocol.agents.attachment import KERNEL
from ...pools.end_reasons import abandoned
from ...pools.pool import Pool
from ...pools.pool_manager import PoolManager

_LOG = logging.getLogger(__name__)


async def end_orphans(serverapp: Any, manager: PoolManager, grace: float) -> None:
    """Mark pools whose kernel has died, and stop them after the grace time.

    The server usually restarts a killed kernel, which gets its pool back, and looks for dead ones
    every 3 s. So a kernel counts as dead only when it has been gone for some seconds.
    """
    missed: dict[str, float] = {}
    while True:
        await asyncio.sleep(1.0)
        live = manager.live()
        missed = {pool.record.id: missed.get(pool.record.id, time.time()) for pool in live}
        for pool in live:
            try:
                await _end_if_orphaned(pool, missed, serverapp.kernel_manager, manager, grace)
            except Exception:  # the other pools are checked all the same
                _LOG.exception("Checking the kernel of pool %s failed", pool.record.id)


async def _end_if_orphaned(
    pool: Pool, missed: dict[str, float], kernels: Any, manager: PoolManager, grace: float
) -> None:
    kernel = pool.record.kernel_id
    attached = [one.kernel_id for one in pool.record.attachments if one.kind == KERNEL]
    if kernel is None or await _is_alive(kernels, kernel):
        del missed[pool.record.id]
    elif attached:
        del missed[pool.record.id]
        if kernel not in attached:  # it may belong to another server
            manager.hand_over(pool)
    since = missed.get(pool.record.id)
    orphaned = since if since and time.time() - since >= patience.busy_answer else None
    if orphaned != pool.record.orphaned:
        pool.change(orphaned=orphaned)
    if since and time.time() - since >= max(grace, patience.busy_answer):
        manager.stop_later(pool, abandoned(grace))


async def _is_alive(kernels: Any, kernel_id: str) -> bool:
    if kernel_id not in kernels:
        return False
    return bool(await ensure_async(kernels.get_kernel(kernel_id).is_alive()))

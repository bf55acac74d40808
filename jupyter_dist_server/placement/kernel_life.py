"""Whether the notebook's kernel, for which a pool waits for GPUs, is alive."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import psutil

from ..common.errors import DistError
from ..common.processes.process_ref import ProcessRef, until_ended

T = TypeVar("T")


async def while_kernel_lives(pid: int | None, work: Coroutine[Any, Any, T]) -> T:
    """Do something, but cancel it and raise `DistError` when the notebook's kernel ends."""
    waiting = asyncio.create_task(work)
    ended = asyncio.create_task(_until_ended(pid))
    try:
        await asyncio.wait((waiting, ended), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise DistError(
                "start_cancelled", "The notebook's kernel ended while its pool waited for GPUs."
            )
        return waiting.result()
    finally:
        ended.cancel()
        if not waiting.done():
            waiting.cancel()
            await asyncio.wait((waiting,))


async def _until_ended(pid: int | None) -> None:
    """Return when the notebook's kernel has ended; without one, never."""
    if pid is None:
        await asyncio.Event().wait()
    else:
        try:
            process = ProcessRef.of(pid)
        except psutil.NoSuchProcess:
            return
        await until_ended(process)

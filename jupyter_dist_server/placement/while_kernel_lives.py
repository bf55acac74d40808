"""Work for a notebook, which ends with the notebook's kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import psutil

from ..common.errors import DistError
from ..common.processes.process_ref import ProcessRef, until_ended

T = TypeVar("T")


async def while_kernel_lives(pid: int | None, work: Coroutine[Any, Any, T]) -> T:
    """Do something, but cancel it and raise `DistError` when the notebook's kernel ends."""
    if pid is None:
        return await work
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


async def _until_ended(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        await until_ended(ProcessRef.of(pid))

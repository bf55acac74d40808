"""Background tasks whose errors are logged, and waiting for one of several events, or not long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


class Tasks:
    """Keeps tasks from being garbage-collected, and logs their errors at once."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def add(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a coroutine."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _LOG.error("A background task failed", exc_info=error)

    async def end(self, patience: float) -> None:
        """Let all tasks end by themselves for some seconds, then cancel the others."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience)
        await self.cancel()

    async def cancel(self) -> None:
        """Cancel all tasks and wait until they are gone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def any_of(
    *either: asyncio.Event | Coroutine[Any, Any, Any], within: float | None = None
) -> None:
    """Wait for one of some events and coroutines, at most for some seconds."""
    works = [one.wait() if isinstance(one, asyncio.Event) else one for one in either]
    waits = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def within(work: Awaitable[T], seconds: float | None) -> T:
    """Do what `asyncio.wait_for` does, which may lose a cancellation up to Python 3.11.

    This may lose a result instead, if it is cancelled as the work ends. Raises
    `asyncio.TimeoutError`. See https://github.com/python/cpython/issues/86296.
    """
    task = asyncio.ensure_future(work)
    try:
        if not (await asyncio.wait([task], timeout=seconds))[0]:
            raise asyncio.TimeoutError
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])
        _ = task.cancelled() or task.exception()  # which somebody has been told, or nobody needs

"""Waits with a limit."""

from __future__ import annotations

import asyncio

import pytest

from jupyter_dist_server.common.background_tasks import within


@pytest.mark.parametrize("passes", range(8))
async def test_a_cancellation_is_not_lost(passes: int) -> None:
    """In whichever pass of the event loop it meets the end of the wait."""
    event = asyncio.Event()
    task = asyncio.create_task(within(event.wait(), 60))
    for _ in range(4):
        await asyncio.sleep(0)
    event.set()
    for _ in range(passes):
        await asyncio.sleep(0)
    will_end = task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() == will_end


async def test_what_takes_too_long_is_cancelled() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    with pytest.raises(asyncio.TimeoutError):
        await within(work(), 0.01)
    assert ended == ["work"]


async def test_results_and_errors_are_passed_on() -> None:
    async def double(number: int) -> int:
        return 2 * number

    async def fail() -> None:
        raise ValueError("no")

    assert await within(double(2), None) == 4
    with pytest.raises(ValueError, match="no"):
        await within(fail(), 60)

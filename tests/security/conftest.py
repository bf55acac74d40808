"""All tests here have a second user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ..network import own_network


@pytest.fixture(scope="module", autouse=True)
async def second_uid() -> AsyncIterator[None]:
    """Keep the other user from the ports of tests that run beside these.

    A thread stays in the network in which it began, so those of the event loop are new ones each
    time.
    """
    loop = asyncio.get_running_loop()
    with own_network():
        loop.set_default_executor(ThreadPoolExecutor())
        yield
    loop.set_default_executor(ThreadPoolExecutor())

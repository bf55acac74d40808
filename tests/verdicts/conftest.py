"""One pool of three gloo ranks for all scenes: each finds idle ranks and a whole group."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ..pool_driver import client_of, request, running
from ..waiting import PATIENCE
from .scene import SIZE, Scene


@pytest.fixture(scope="package")
async def pool_of_scenes(
    tmp_path_factory: pytest.TempPathFactory, zygote: None
) -> AsyncIterator[Scene]:
    """Run the pool."""
    folder: Path = tmp_path_factory.mktemp("scenes")
    async with running(request(folder, num_ranks=SIZE)) as pool, client_of(pool) as client:
        yield Scene(client)


@pytest.fixture
async def scene(pool_of_scenes: Scene) -> Scene:
    """Return ranks that are idle, and have a process group of which nothing was used yet."""
    client, deadline = pool_of_scenes.client, time.monotonic() + PATIENCE
    client.group.break_up()
    while not await client.repair_group():  # a rank may still write a long traceback
        assert time.monotonic() < deadline and not client.dead, client.dead
    await pool_of_scenes.ok("import time")
    return pool_of_scenes

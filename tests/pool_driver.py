"""Run pools in the test's own process, and clients of them."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.common.processes.process_ref import ProcessRef, boot_id
from jupyter_dist_server.common.protocol.agents.attachment import KERNEL
from jupyter_dist_server.common.protocol.pool_file import PlacedRank, PoolFile
from jupyter_dist_server.common.protocol.pool_record import PoolRecord, PoolState
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager
from jupyter_dist_server.pools.processes.zygote_registry import ZygoteRegistry

from .network import this_network

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def _environment() -> dict[str, str]:
    """Return our environment, without what pytest changes from test to test."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


class _Session:
    """The warm zygote that the pools of all tests come from, so that torch is imported once.

    It belongs to one event loop and to one network, and so does what it forks.
    """

    def __init__(self) -> None:
        self.zygotes = ZygoteRegistry(keep_warm=3600)
        self._environment = _environment()
        self._loop = asyncio.get_running_loop()
        self._network = this_network()

    def can_start(self, pool_request: PoolRequest) -> bool:
        """Whether a pool that is asked for here would be as one from a zygote of its own."""
        return (
            not pool_request.env
            and pool_request.python in ("", sys.executable)
            and pool_request.base_env == self._environment
            and asyncio.get_running_loop() is self._loop
            and this_network() == self._network
        )


_session: _Session | None = None


class WarmManager(PoolManager):
    """A manager whose pools come from the session's zygote, where that makes no difference."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._own = self.zygotes

    async def create(self, request: PoolRequest) -> Pool:
        if _session and _session.can_start(request):
            self.zygotes = _session.zygotes
        try:
            return await super().create(request)
        finally:
            self.zygotes = self._own  # as a manager ends its zygotes with itself


@asynccontextmanager
async def warm_session() -> AsyncIterator[None]:
    """Keep a zygote for the tests in between."""
    global _session
    _session = _Session()
    yield
    await _session.zygotes.close()
    _session = None


def pool_file(**changes: Any) -> PoolFile:
    """Return what the owner of a pool of one rank writes: here, this process."""
    ours = PoolFile(
        id="p-1",
        key="00",
        world_size=1,
        backend="gloo",
        start_method="fork",
        timeout=60.0,
        cwd=b"/",
        sys_path=[],
        thread_limits={},
        owner=ProcessRef.of(os.getpid()),
        grace=0.0,
        ranks=[PlacedRank("cpu", None, None)],
        boot=boot_id(),
        host=socket.gethostname(),
        owner_kind=KERNEL,
        record=PoolRecord("p-1", None, "", 1, "gloo", "cycle", "fork", "", "/"),
    )
    return msgspec.structs.replace(ours, **changes)


def request(tmp_path: Path, **fields: Any) -> PoolRequest:
    """Ask for two ranks, unless told otherwise."""
    base = {"num_ranks": 2, "cwd": str(tmp_path), "base_env": _environment()}
    return PoolRequest(**{**base, **fields})


async def follow(pool: Pool) -> list[str]:
    """Wait until a start has succeeded or failed; return the states on the way."""
    states = [pool.record.state.value]
    while pool.record.state in (PoolState.PENDING, PoolState.CONFIGURING):
        await pool.changed_since(pool.record.version, 60)
        if states[-1] != pool.record.state.value:
            states.append(pool.record.state.value)
    return states


@asynccontextmanager
async def running(pool_request: PoolRequest, *, cold: bool = False) -> AsyncIterator[Pool]:
    """Run a pool, and check that nothing of it is left.

    It comes from the session's zygote, unless it is `cold` or has an environment, an event loop
    or a network of its own.
    """
    manager = PoolManager(watch=True) if cold else WarmManager(watch=True)
    pool = await manager.create(pool_request)
    await follow(pool)
    assert pool.record.state is PoolState.RUNNING, pool.record.reason
    family = processes(pool)
    try:
        yield pool
    finally:
        await pool.stop()
    assert pool.record.state is PoolState.COMPLETED
    assert not [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert not Path(pool.record.folder).exists()


def processes(pool: Pool) -> list[psutil.Process]:
    """Return the agent of a running pool, and all that descends from it."""
    agent = agent_of(pool)
    return [agent, *agent.children(recursive=True)]


def agent_of(pool: Pool) -> psutil.Process:
    """Return the process that forked a pool's ranks."""
    agent = psutil.Process(pool.record.ranks[0].pid).parent()
    assert agent
    return agent


@asynccontextmanager
async def client_of(pool: Pool) -> AsyncIterator[PoolClient]:
    """Connect one more client to a pool."""
    client = PoolClient(Path(pool.record.folder))
    await client.connect()
    try:
        yield client
    finally:
        await client.close()


async def text_of(client: PoolClient, code: str, rank: int = 0) -> str:
    """Run code on one rank and return what it prints."""
    pieces: list[str] = []

    def on_output(_: int, kind: str, content: dict[str, Any]) -> None:
        pieces.append(content.get("text", "") if kind == "stream" else "")

    replies = await client.execute(code, [rank], on_output)
    assert replies[rank].status == "ok", replies[rank].content
    return "".join(pieces)

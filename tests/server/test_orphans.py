"""How the server looks after pools whose kernel has gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_client.multikernelmanager import AsyncMultiKernelManager

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.protocol.agents.agent_messages import Attach
from jupyter_dist_server.common.protocol.agents.attachment import KERNEL, SERVER, Attachment, Owner
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.server.pools.orphaned_pools import end_orphans

from ..pool_driver import WarmManager, client_of, follow, request
from ..waiting import PATIENCE


class OddKernels(AsyncMultiKernelManager):
    """Those of a provider that cannot tell of one kernel whether it is alive."""

    def __contains__(self, kernel_id: object) -> bool:
        return kernel_id == "odd"

    def get_kernel(self, kernel_id: str) -> Any:
        raise RuntimeError("the provider's mistake")


async def test_a_kernel_that_cannot_be_asked_saves_no_other_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    manager = WarmManager(owner=Owner(SERVER, 60.0))
    odd = await manager.create(request(tmp_path, num_ranks=1, kernel_id="odd"))
    gone = await manager.create(request(tmp_path, num_ranks=1, kernel_id="gone"))
    for pool in (odd, gone):
        await follow(pool)
    serverapp = SimpleNamespace(kernel_manager=OddKernels())
    monkeypatch.setattr(patience, "factor", 0.2)
    looking = asyncio.create_task(end_orphans(serverapp, manager, 0.0))
    try:
        await asyncio.wait_for(gone.ended.wait(), PATIENCE)
        assert gone.record.reason and gone.record.reason.code == "orphaned"
        assert (odd.record.state, odd.record.orphaned) == (PoolState.RUNNING, None)
        assert f"Checking the kernel of pool {odd.record.id} failed" in caplog.text
        assert not looking.done()
    finally:
        looking.cancel()
        await manager.stop_all()


class NoKernels(AsyncMultiKernelManager):
    """Those of a server whose notebooks are all closed."""

    asked: list[object]

    def __contains__(self, kernel_id: object) -> bool:
        self.asked.append(kernel_id)
        return False


async def test_a_pool_stays_with_the_notebook_of_another_server_that_it_was_given_to(
    tmp_path: Path,
) -> None:
    manager = WarmManager(owner=Owner(SERVER, 60.0))
    pool = await manager.create(request(tmp_path, num_ranks=1, kernel_id="gone"))
    await follow(pool)
    ours = NoKernels()
    ours.asked = []
    async with client_of(pool) as one, client_of(pool) as other:
        for client, kernel in ((one, "one"), (other, "other")):
            client.link.send(Attach(Attachment.of_this_process(KERNEL, kernel)))
        while len([guest for guest in pool.record.attachments if guest.kind == KERNEL]) < 2:
            await pool.changed_since(pool.record.version, PATIENCE)
        serverapp = SimpleNamespace(kernel_manager=ours)
        looking = asyncio.create_task(end_orphans(serverapp, manager, 60.0))
        try:
            while len(ours.asked) < 6:
                await asyncio.sleep(0.05)
        finally:
            looking.cancel()
            await manager.stop_all()
    first, given, *later = ours.asked
    assert first == "gone" and given in ("one", "other")
    assert set(later) == {given}

"""Stop, pressed in the first moments of a cell or of a start."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.notebook.cells.cell import Cell, Options
from jupyter_dist_server.notebook.loop_thread import LoopThread
from jupyter_dist_server.notebook.output.cell_outcome import CellFailed
from jupyter_dist_server.notebook.session.pool_control import LocalControl
from jupyter_dist_server.pools import pool_manager

from ..pool_driver import request, running
from ..waiting import PATIENCE


class InterruptedLoop(LoopThread):
    """One whose next work is interrupted as soon as it was handed over, while it is still busy."""

    armed = False

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        if not self.armed:
            return super().submit(work)
        self.armed = False
        busy = threading.Event()
        self.call(busy.wait)
        future = super().submit(work)
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            busy.set()
        return future


def test_a_stop_before_the_cell_has_begun_stops_it(tmp_path: Path) -> None:
    loop = InterruptedLoop()
    ended = asyncio.Event()

    async def live(started: Future[PoolClient]) -> None:
        async with running(request(tmp_path)) as pool:
            client = PoolClient(Path(pool.record.folder))
            await client.connect()
            started.set_result(client)
            await ended.wait()
            await client.close()

    started: Future[PoolClient] = Future()
    life = loop.submit(live(started))
    try:
        client = started.result(PATIENCE)
        for _ in range(20):
            cell = Cell(client, loop, [0, 1], "cell", Options())
            loop.armed = True
            with pytest.raises(CellFailed, match=r"Interrupted[.:] "):
                cell.run("while True:\n    pass", 1, False)
            status = loop.run(client.status(PATIENCE))
            assert {said.state for said in status.values()} == {"idle"}
    finally:
        loop.call(ended.set)
        life.result(PATIENCE)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("later", [False, True], ids=["as it is handed over", "later"])
def test_a_stop_before_a_start_is_known_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    """A traceback was shown, and GPUs could stay leased that a thread had just taken."""
    loop = InterruptedLoop()
    control, spread = LocalControl(loop), pool_manager.spread
    loop.armed = not later

    def stopped_meanwhile(*arguments: Any) -> Any:
        if later:
            os.kill(os.getpid(), signal.SIGINT)
        return spread(*arguments)

    monkeypatch.setattr(pool_manager, "spread", stopped_meanwhile)
    with pytest.raises(DistError, match="The start was cancelled, and all its processes have end"):
        control.start(request(tmp_path))
    (pool,) = control._manager.pools.values()
    assert pool.record.state.ended and not Path(pool.record.folder or "/none").exists()
    assert control.find() is None
    control.forget()

"""Stop, pressed in the first microseconds of a cell, before the loop has begun to execute it."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.notebook.cells.cell import Cell
from jupyter_dist_server.notebook.cells.cell_options import Options
from jupyter_dist_server.notebook.loop_thread import LoopThread
from jupyter_dist_server.notebook.output.cell_outcome import CellFailed

from ..pool_driver import request, running
from ..waiting import PATIENCE


class InterruptedLoop(LoopThread):
    """One whose work is interrupted as soon as it was handed over, while it is still busy."""

    armed = False

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        if not self.armed:
            return super().submit(work)
        busy = threading.Event()
        self.call(busy.wait)
        future = super().submit(work)
        signal.raise_signal(signal.SIGINT)
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
            loop.armed = False
            status = loop.run(client.status(PATIENCE))
            assert {said.state for said in status.values()} == {"idle"}
    finally:
        loop.call(ended.set)
        life.result(PATIENCE)

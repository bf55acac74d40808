"""The first Tab on a rank is answered as fast as later ones: what it needs is loaded before."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from ..client.client import PoolClient
from ..client.subshells import ask_beside
from .session.current_pool import CurrentPool

_IDLE = 1.0
"""Seconds without a cell in the notebook, after which it is loaded."""
_PATIENCE = 60.0
_CODE = "import os\nos.pa"
"""Completing it loads Jedi, which takes a second or more."""


class WarmCompletion:
    """Has the rank that answers completes something while the notebook is idle.

    Parameters
    ----------
    shell : InteractiveShell
        The notebook's.
    pool : CurrentPool
        The notebook's pool.
    """

    def __init__(self, shell: Any, pool: CurrentPool) -> None:
        self._shell = shell
        self._pool = pool
        self._waiting: Future[None] | None = None

    def install(self) -> None:
        """Look after each cell whether there is something to do."""
        self._shell.events.register("pre_run_cell", self._wait)
        self._shell.events.register("post_run_cell", self._begin)

    def remove(self) -> None:
        """Look no more."""
        self._wait()
        self._shell.events.unregister("pre_run_cell", self._wait)
        self._shell.events.unregister("post_run_cell", self._begin)

    def _wait(self, _: object = None) -> None:
        """Leave the ranks to the cell that begins."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _begin(self, _: object = None) -> None:
        if client := self._pool.client:
            self._wait()
            self._waiting = self._pool.loop.submit(self._load(client))

    async def _load(self, client: PoolClient) -> None:
        await asyncio.sleep(_IDLE)
        living = [rank for rank in range(client.world_size) if rank not in client.dead]
        if living and living[0] not in client.subshells:  # which it has once it was asked
            content = {"code": _CODE, "cursor_pos": len(_CODE)}
            await ask_beside(client, "complete_request", content, living[0], _PATIENCE)

"""The nodes around the server, asked for once however many start forms are opened meanwhile."""

from __future__ import annotations

import asyncio
import os

from ...common.background_tasks import Tasks
from ...placement.request_schema import Cluster, cluster_around

_PATIENCE = 5.0
"""Seconds within which a cluster tells its nodes, for the start form."""


class ClusterQuestion:
    """Asks the cluster that the server is in; a thread waits for a slow one for up to a minute.

    Parameters
    ----------
    engine : str
        That the server names, if it does.
    tasks : Tasks
        Has the question.
    """

    def __init__(self, engine: str, tasks: Tasks) -> None:
        self._engine = engine
        self._tasks = tasks
        self._asking: asyncio.Task[Cluster | None] | None = None

    async def answer(self) -> Cluster | None:
        """Return the cluster; `None` if there is none, or it does not tell in time."""
        if self._asking is None or self._asking.done():
            self._asking = self._tasks.add(self._ask())
        asking = self._asking
        done, _ = await asyncio.wait({asking}, timeout=_PATIENCE)
        return asking.result() if done else None

    async def _ask(self) -> Cluster | None:
        return await asyncio.to_thread(cluster_around, os.environ, self._engine)

"""Warns the user below the newest cell before a limit ends the pool."""

from __future__ import annotations

import asyncio
import time

from IPython.core.interactiveshell import InteractiveShell

from ...client.pool_client import PoolClient
from ...common.protocol.agents.agent_messages import PoolTime
from ...common.units import write_limit
from ...jobs.store.slurm_formats import write_moment
from ..output.late_output import LateOutput


class EndWarning:
    """Follows how long pools may still run."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._below: LateOutput | None = None
        self._timers: dict[str, list[asyncio.TimerHandle]] = {}
        """By pool."""
        self._told: set[str] = set()

    def install(self) -> None:
        """Listen to the pool."""
        self._note_cell()
        self._shell.events.register("pre_run_cell", self._note_cell)
        PoolClient.time_listeners.append(self._hear)

    def remove(self) -> None:
        """Listen no more."""
        self._shell.events.unregister("pre_run_cell", self._note_cell)
        PoolClient.time_listeners.remove(self._hear)

    def _note_cell(self, *_: object) -> None:
        self._below = LateOutput()

    # -- called by the client, in its loop --------------------------------------------------

    def _hear(self, client: PoolClient, said: PoolTime) -> None:
        pool = client.record.id
        for timer in self._timers.pop(pool, []):
            timer.cancel()
        if said.limit is not None and said.ends_by is not None:
            limit, end = write_limit(said.limit), write_moment(said.ends_by)
            text = (
                f"Pool {pool} will be stopped at {end}, by its time limit of {limit}; its "
                "variables will be lost. %dist_extend 1:00:00 gives it another hour.\n"
            )
            self._plan(client, text, said.ends_by, said.limit)
        idle_limit = client.record.idle_limit
        if idle_limit is not None and said.idle_since is not None:
            limit, end = write_limit(idle_limit), write_moment(said.idle_since + idle_limit)
            text = (
                f"Pool {pool} is idle since {write_moment(said.idle_since)} and will be stopped at "
                f"{end}, by its idle limit of {limit}; its variables will be lost. A cell on its "
                "ranks, or %dist_extend, keeps it.\n"
            )
            self._plan(client, text, said.idle_since + idle_limit, idle_limit)

    def _plan(self, client: PoolClient, text: str, end: float, limit: float) -> None:
        # Five minutes before the end, or after half of a shorter limit.
        wait = end - min(300.0, limit / 2) - time.time()
        timer = asyncio.get_running_loop().call_later(max(0.0, wait), self._tell, client, text)
        self._timers.setdefault(client.record.id, []).append(timer)

    def _tell(self, client: PoolClient, text: str) -> None:
        if not client.link.closed.is_set() and text not in self._told and self._below:
            self._told.add(text)
            self._below.tell(text)

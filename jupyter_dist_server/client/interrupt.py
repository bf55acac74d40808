"""The ladder by which a cell is stopped: interrupt, break the collective, go on without.

Python hears an interrupt at once, but not while it waits in a collective for a rank that does not
come. So what is left after a while is freed by breaking the process group. What is left then is
stuck in C code, and is not waited for.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import PoolClient
    from .execution import Execution

PATIENCE = 2.0
"""Seconds for which ranks that were interrupted are waited for."""
BREAK_PATIENCE = 2.0
"""The same for ranks whose collective was broken; on a busy machine they need most of it."""
_ANSWER = 0.2
"""Seconds for which replies may be on their way."""
_ASK_EVERY = 0.05
"""Seconds between two looks at somebody else's cell, of whose end nobody tells us."""


async def free(client: PoolClient) -> list[int]:
    """Break the collectives of ranks that do not hear an interrupt that was just sent.

    Returns
    -------
    list of int
        The ranks that are busy nevertheless.
    """
    if await _busy(client, PATIENCE):
        client.group.break_up()
    return await _busy(client, BREAK_PATIENCE)


async def _busy(client: PoolClient, patience: float) -> list[int]:
    """Return the ranks that are busy after some seconds, or none as soon as none is."""
    deadline = time.monotonic() + patience
    while True:
        status = await client.status(timeout=_ANSWER)
        idle = {rank for rank, said in status.items() if said["state"] == "idle"}
        busy = sorted(set(range(client.world_size)) - idle - set(client.dead))
        if not busy or time.monotonic() > deadline:
            return busy
        await asyncio.sleep(_ASK_EVERY)


class Ladder:
    """Stops one execution.

    Parameters
    ----------
    client : PoolClient
        Whose execution it is.
    execution : Execution
        What to stop.

    Attributes
    ----------
    broke : bool
        Whether interrupting was not enough.
    """

    def __init__(self, client: PoolClient, execution: Execution) -> None:
        self.broke = False
        self._client = client
        self._execution = execution
        self._pressed = False

    def press(self) -> None:
        """Go on to the next rung now."""
        self._pressed = True
        self._execution.moved.set()

    async def climb(self) -> None:
        """Stop the execution, whatever it takes: it is done on return."""
        execution = self._execution
        await self._client.cancel(execution)
        await self._ended(set(execution.outstanding) - execution.begun, _ANSWER)
        if not await self._ended(execution.begun, PATIENCE):
            self.broke = True
            # Again, for those that caught it; before any is freed, or it would spoil a traceback.
            await self._client.cancel(execution)
            self._client.group.break_up()
            await self._ended(execution.begun, BREAK_PATIENCE)
        for rank in execution.outstanding:
            execution.finish(rank, {"status": "late" if rank in execution.begun else "aborted"})

    async def _ended(self, ranks: set[int], seconds: float) -> bool:
        """Wait until some ranks have ended, or somebody presses; tell whether they have."""
        deadline = time.monotonic() + seconds
        while ranks & set(self._execution.outstanding):
            self._execution.moved.clear()
            left = deadline - time.monotonic()
            if left <= 0 or self._pressed:
                self._pressed = False
                return False
            try:
                await asyncio.wait_for(self._execution.moved.wait(), left)
            except asyncio.TimeoutError:
                continue
        return True

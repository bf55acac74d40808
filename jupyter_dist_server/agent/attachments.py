"""The attachments of a pool: the server, the notebook's kernel, other notebooks that use it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ..common.processes import ProcessRef, until_ended
from ..common.protocol.attachment import SERVER, Attachment
from ..common.tasks import Tasks
from .control_socket import Client


class Holders:
    """The agent's list of those who hold the pool.

    A hold is a connection of a living process: both are watched, as a process that was forked from
    the holder keeps its connection open. At most one server holds a pool.

    Parameters
    ----------
    owner : ProcessRef
        Who started the agent: it counts as a holder until somebody holds the pool.
    grace : float
        Seconds after the server has gone, or the start, for which nobody need hold the pool.
    changed : callable
        Called when somebody begins or ceases to hold it.
    abandoned : callable
        Called when nobody holds it and the grace time is over.
    """

    def __init__(
        self,
        owner: ProcessRef,
        grace: float,
        changed: Callable[[], None],
        abandoned: Callable[[], object],
    ) -> None:
        self._owner = owner
        self._grace = grace
        self._changed = changed
        self._abandoned = abandoned
        self._holders: dict[Client, Attachment] = {}
        self._watches: dict[Client, asyncio.Task[None]] = {}
        self._server_left: float | None = None
        self._tasks = Tasks()

    def open(self) -> None:
        """Begin to watch; called in the event loop."""
        self._tasks.add(self._watch_owner())

    def all(self) -> list[Attachment]:
        """Return who holds the pool, as each of them has said."""
        return list(self._holders.values())

    def add(self, client: Client, who: Attachment) -> None:
        """Let a client hold the pool, or say anew who it is; a second server is not heard.

        The same one may come back before it is known that its earlier connection is lost.
        """
        others = [
            known
            for known in self._holders.values()
            if known.kind == SERVER and known.process != who.process
        ]
        if client.is_closing() or (who.kind == SERVER and others):
            return
        self._holders[client] = who
        for known, said in self._holders.items():  # by a connection that it is about to close, too
            if (said.kind, said.pid, said.kernel_id) == (who.kind, who.pid, who.kernel_id):
                self._holders[known] = who
        if client not in self._watches:
            self._watches[client] = self._tasks.add(self._watch(client, who.process))
        self._changed()

    def remove(self, client: Client) -> None:
        """End a client's hold, if it has one."""
        who = self._holders.pop(client, None)
        if who is None:
            return
        self._watches.pop(client).cancel()
        if who.kind == SERVER:
            self._server_left = time.monotonic()
        self._changed()
        if not self._holders:
            self._tasks.add(self._count_down())

    async def _watch(self, client: Client, process: ProcessRef) -> None:
        await until_ended(process)
        self.remove(client)

    async def _watch_owner(self) -> None:
        await until_ended(self._owner)
        if not self._holders and self._server_left is None:
            await self._count_down()

    async def _count_down(self) -> None:
        since = self._server_left or time.monotonic()
        await asyncio.sleep(max(0.0, since + self._grace - time.monotonic()))
        if not self._holders:
            self._abandoned()

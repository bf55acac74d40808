"""The attachments of a pool: the server, the notebook's kernel, other notebooks that use it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from ..common.background_tasks import Tasks
from ..common.processes.process_ref import ProcessRef, until_ended
from ..common.protocol.agents.attachment import SERVER, Attachment
from .control_socket import Client


@dataclass(eq=False)
class Attachments:
    """The agent's list of the processes that keep the pool alive.

    An attachment is a connection of a living process. Both are watched, because a process forked
    from the attached one keeps its connection open. At most one server is attached. `owner` started
    the agent, and counts as attached until a process attaches. `grace` is how long nobody need be
    attached after the server has ended, in seconds; then `abandoned` is called.
    """

    owner: ProcessRef
    grace: float
    changed: Callable[[], None]
    abandoned: Callable[[], object]
    _attachments: dict[Client, Attachment] = field(init=False, default_factory=dict)
    _watches: dict[Client, asyncio.Task[None]] = field(init=False, default_factory=dict)
    _names: dict[str, str] = field(init=False, default_factory=dict)
    """New names of notebooks, by their names when their kernels started."""
    _server_left: float | None = field(init=False, default=None)
    first: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    """Set when a process has attached, the owner has ended, or nobody is waited for."""
    _tasks: Tasks = field(init=False, default_factory=Tasks)

    def open(self) -> None:
        """Begin to watch; called in the event loop."""
        self._tasks.add(self._watch_owner())

    def all(self) -> list[Attachment]:
        """Return the attachments, each as its process has described it."""
        return list(self._attachments.values())

    def add(self, client: Client, new: Attachment) -> None:
        """Attach a client, or update its attachment; a second server is ignored.

        A process may connect again before its earlier connection is known to be lost.
        """
        other_servers = [
            attachment
            for attachment in self._attachments.values()
            if attachment.kind == SERVER and attachment.process != new.process
        ]
        if client.is_closing() or (new.kind == SERVER and other_servers):
            return
        new = self._named(new)
        self._attachments[client] = new
        for other, old in self._attachments.items():  # also by a connection that it is closing
            if (old.kind, old.pid, old.kernel_id) == (new.kind, new.pid, new.kernel_id):
                self._attachments[other] = new
        if client not in self._watches:
            self._watches[client] = self._tasks.add(self._watch(client, new.process))
        self.first.set()
        self.changed()

    def rename(self, names: dict[str, str]) -> None:
        """Call notebooks by other names from now on; kernels know only their names at the start."""
        self._names = {old: names.get(new, new) for old, new in self._names.items()} | names
        self._attachments = {
            client: self._named(attachment) for client, attachment in self._attachments.items()
        }
        self.changed()

    def _named(self, attachment: Attachment) -> Attachment:
        name = self._names.get(attachment.name, attachment.name)
        return msgspec.structs.replace(attachment, name=name)

    def remove(self, client: Client) -> None:
        """End a client's attachment, if it has one."""
        attachment = self._attachments.pop(client, None)
        if attachment is None:
            return
        self._watches.pop(client).cancel()
        if attachment.kind == SERVER:
            self._server_left = time.monotonic()
        self.changed()
        if not self._attachments:
            self._tasks.add(self._count_down())

    async def _watch(self, client: Client, process: ProcessRef) -> None:
        await until_ended(process)
        self.remove(client)

    async def _watch_owner(self) -> None:
        await until_ended(self.owner)
        self.first.set()
        if not self._attachments and self._server_left is None:
            await self._count_down()

    async def _count_down(self) -> None:
        since = self._server_left or time.monotonic()
        await asyncio.sleep(max(0.0, since + self.grace - time.monotonic()))
        if not self._attachments:
            self.abandoned()

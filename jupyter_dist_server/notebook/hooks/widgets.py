"""Widgets of the ranks: their comms, joined to the front end through the notebook's kernel.

The notebook's kernel publishes what a rank sends over a comm. It forwards what the front end sends
to the rank, under the front end's own header. So all that follows from it (a new state, what a
callback prints) names the front end's message as its parent, as if the kernel had sent it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...client.pool_client import PoolClient
from ...client.ranks.subshells import forward
from ...common.protocol.jupyter_messages import Content, Message
from ...common.protocol.ranks.cell_messages import COMM_STATUS


@dataclass(eq=False)
class RankComm:
    """A comm of a rank, as the comm manager of the notebook's kernel knows it."""

    comms: Comms
    client: PoolClient
    rank: int
    comm_id: str
    target_name: str
    loop: asyncio.AbstractEventLoop

    def handle_msg(self, message: Message) -> None:
        """Forward what the front end sends, and wait until the rank has handled it.

        The kernel is busy meanwhile; a front end ignores what comes later.
        """
        with self.comms.forwarded(message) as passed:
            try:
                work = forward(self.client, self.rank, message)
                asyncio.run_coroutine_threadsafe(work, self.loop).result()
                while not passed.done.wait(0.2):
                    link, ranks = self.client.link, [self.rank]
                    if self.rank in self.client.dead or link.closed.is_set() or link.stopped(ranks):
                        return
            except KeyboardInterrupt:
                if passed.begun:
                    self.loop.call_soon_threadsafe(self.client.link.interrupt, [self.rank])

    def handle_close(self, message: Message) -> None:
        """Forward that the front end has closed the comm."""
        self.comms.forget(self)
        self.handle_msg(message)


@dataclass
class _Forward:
    """A message of the front end that a rank handles."""

    begun: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class Comms:
    """The comms that this notebook's cells have opened on ranks."""

    def __init__(self, shell: InteractiveShell, kernel: Any) -> None:
        self._forwards: dict[str, _Forward] = {}
        """By the message's id."""
        self._shell = shell
        self._kernel = kernel
        self._comms: dict[str, RankComm] = {}
        self._front_ends: set[str] = set()
        """Sessions of the front ends that have sent something to a rank."""
        self._cell: Message = {}
        """The header of the request for the notebook's current cell."""
        self._cells: dict[str, Message] = {}
        """The same for executions on ranks that use comms, by their id."""

    def install(self) -> None:
        """Listen to the ranks."""
        self._note_cell()
        self._shell.events.register("pre_run_cell", self._note_cell)
        PoolClient.comm_listener = self

    def remove(self) -> None:
        """Listen no more."""
        self._shell.events.unregister("pre_run_cell", self._note_cell)
        PoolClient.comm_listener = None

    def _note_cell(self, *_: object) -> None:
        self._cell = self._kernel.get_parent().get("header", {})

    @contextmanager
    def forwarded(self, message: Message) -> Iterator[_Forward]:
        """Note that a message of the front end goes to a rank."""
        header = message["header"]
        self._front_ends.add(header["session"])
        self._forwards[header["msg_id"]] = passed = _Forward()
        try:
            yield passed
        finally:
            del self._forwards[header["msg_id"]]

    def forget(self, comm: RankComm) -> None:
        """Note that a comm is closed."""
        self._comms.pop(comm.comm_id, None)
        self._kernel.comm_manager.comms.pop(comm.comm_id, None)

    # -- called by the client, in its loop --------------------------------------------------

    def heard(self, client: PoolClient, rank: int, message: Message) -> None:
        """Take what a rank sends over a comm, or in reply to a front end's message to one."""
        kind, content = message["header"]["msg_type"], message["content"]
        parent = message["parent_header"]
        if kind == COMM_STATUS:
            if passed := self._forwards.get(parent["msg_id"]):
                passed.begun = True
                if content["execution_state"] == "idle":
                    passed.done.set()
            return
        if kind in ("comm_msg", "comm_close"):
            comm = self._comms.get(content["comm_id"])
            if comm is None:
                return  # it is that of another notebook on this pool
            if kind == "comm_close":
                self.forget(comm)
        elif parent.get("session") not in (client.session.session, *self._front_ends):
            return
        elif kind == "comm_open":
            comm_id, target, loop = (
                content["comm_id"],
                content["target_name"],
                asyncio.get_running_loop(),
            )
            comm = RankComm(self, client, rank, comm_id, target, loop)
            self._comms[comm.comm_id] = self._kernel.comm_manager.comms[comm.comm_id] = comm
        if parent.get("session") == client.session.session:
            # The rank names the request that it got; the front end knows that of the notebook.
            parent = self._cells.setdefault(parent["msg_id"], self._cell)
        self._publish(kind, content, message["metadata"], message["buffers"], parent)

    def lost(self, client: PoolClient, rank: int | None = None) -> None:
        """Close the comms of a rank that died, or of all when the client disconnects."""
        for comm in list(self._comms.values()):
            if comm.client is client and rank in (None, comm.rank):
                self.forget(comm)
                content = {"comm_id": comm.comm_id, "data": {}}
                self._publish("comm_close", content, {}, [], self._cell)

    def _publish(
        self,
        kind: str,
        content: Content,
        metadata: Content,
        buffers: list[Any],
        parent: Message,
    ) -> None:
        topic = f"comm-{content['comm_id']}" if "comm_id" in content else kind
        self._kernel.session.send(
            self._kernel.iopub_socket,
            kind,
            content,
            metadata=metadata,
            parent={"header": parent},
            ident=topic.encode(),
            buffers=buffers,
        )

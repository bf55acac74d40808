"""Widgets of the ranks: their comms, joined to the front end through the notebook's kernel.

What a rank says over a comm is published by the notebook's kernel; what the front end says goes
to the rank under the front end's own header, so that all that comes of it (a new state, what a
callback prints) names the front end's message as its parent, as if it came of the kernel itself.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...client.pool_client import PoolClient
from ...client.ranks.subshells import forward
from ...common.protocol.jupyter_messages import Content, Message
from ...common.protocol.ranks.cell_messages import COMM_STATUS

_LOOK_EVERY = 0.2
"""Seconds after which somebody who waits for a rank looks whether it is still there."""


class RankComm:
    """A comm of a rank, as the comm manager of the notebook's kernel knows it."""

    def __init__(
        self, comms: Comms, client: PoolClient, rank: int, comm_id: str, target_name: str
    ) -> None:
        self.client = client
        self.rank = rank
        self.comm_id = comm_id
        self.target_name = target_name
        self._comms = comms
        self._loop = asyncio.get_running_loop()

    def handle_msg(self, message: Message) -> None:
        """Pass on what the front end says, and wait until the rank has dealt with it.

        The kernel counts as busy meanwhile; a front end takes what comes later for strays.
        """
        with self._comms.forwarded(message) as passed:
            try:
                work = forward(self.client, self.rank, message)
                asyncio.run_coroutine_threadsafe(work, self._loop).result()
                while not passed.done.wait(_LOOK_EVERY):
                    link, ranks = self.client.link, [self.rank]
                    if self.rank in self.client.dead or link.closed.is_set() or link.stopped(ranks):
                        return
            except KeyboardInterrupt:
                if passed.begun:
                    self._loop.call_soon_threadsafe(self.client.link.interrupt, [self.rank])

    def handle_close(self, message: Message) -> None:
        """Pass on that the front end closed the comm."""
        self._comms.forget(self)
        self.handle_msg(message)


class _Forward:
    """A message of the front end on its way through a rank."""

    def __init__(self, comms: Comms, message: Message) -> None:
        self.begun = False
        self.done = threading.Event()
        self._comms = comms
        self._id: str = message["header"]["msg_id"]

    def __enter__(self) -> _Forward:
        self._comms.forwards[self._id] = self
        return self

    def __exit__(self, *_: object) -> None:
        del self._comms.forwards[self._id]


class Comms:
    """All comms of the ranks that this notebook's cells opened.

    Parameters
    ----------
    shell : InteractiveShell
        The notebook's.
    kernel : IPythonKernel
        Which has it.
    """

    def __init__(self, shell: InteractiveShell, kernel: Any) -> None:
        self.forwards: dict[str, _Forward] = {}
        self._shell = shell
        self._kernel = kernel
        self._comms: dict[str, RankComm] = {}
        self._front_ends: set[str] = set()
        """Sessions of the front ends that have sent something to a rank."""
        self._cell: Message = {}
        """The header of the request for the notebook's present cell."""
        self._cells: dict[str, Message] = {}
        """The same for executions on the ranks that use comms, by their id."""

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

    def forwarded(self, message: Message) -> _Forward:
        """Note that a message of the front end goes to a rank."""
        self._front_ends.add(message["header"]["session"])
        return _Forward(self, message)

    def forget(self, comm: RankComm) -> None:
        """Note that a comm is closed."""
        self._comms.pop(comm.comm_id, None)
        self._kernel.comm_manager.comms.pop(comm.comm_id, None)

    # -- called by the client, in its loop --------------------------------------------------

    def heard(self, client: PoolClient, rank: int, message: Message) -> None:
        """Take what a rank says over a comm, or what comes of a front end's message to one."""
        kind, content = message["header"]["msg_type"], message["content"]
        parent = message["parent_header"]
        if kind == COMM_STATUS:
            if passed := self.forwards.get(parent["msg_id"]):
                passed.begun = True
                if content["execution_state"] == "idle":
                    passed.done.set()
            return
        if kind in ("comm_msg", "comm_close"):
            comm = self._comms.get(content["comm_id"])
            if comm is None:
                return  # another notebook's that uses this pool
            if kind == "comm_close":
                self.forget(comm)
        elif parent.get("session") not in (client.session.session, *self._front_ends):
            return
        elif kind == "comm_open":
            comm = RankComm(self, client, rank, content["comm_id"], content["target_name"])
            self._comms[comm.comm_id] = self._kernel.comm_manager.comms[comm.comm_id] = comm
        if parent.get("session") == client.session.session:
            # The rank names the request that it got; the front end knows the notebook's.
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

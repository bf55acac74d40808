"""A rank tells how far it is with what a front end says over comms (widgets)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..common.protocol.jupyter_messages import Content
from ..common.protocol.ranks.cell_messages import COMM_REQUESTS, COMM_STATUS


class CommHandlers:
    """Makes a kernel say on a comm's topic when it deals with a front end's message to the comm.

    The ordinary status goes to another topic, which cells had better not wait for.
    """

    shell_handlers: dict[str, Callable[..., Any]]
    session: Any
    iopub_socket: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for kind in COMM_REQUESTS:
            self.shell_handlers[kind] = partial(self._handle_comm, self.shell_handlers[kind])

    def _handle_comm(
        self, handler: Callable[..., Any], stream: Any, ident: Any, parent: Content
    ) -> None:
        self._tell(parent, "busy")
        try:
            handler(stream, ident, parent)
        finally:
            self._tell(parent, "idle")

    def _tell(self, parent: Content, state: str) -> None:
        topic = f"comm-{parent['content']['comm_id']}".encode()
        content = {"execution_state": state}
        self.session.send(self.iopub_socket, COMM_STATUS, content, parent, topic)

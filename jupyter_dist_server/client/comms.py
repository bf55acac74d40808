"""What a rank says over comms (widgets), and who listens to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .client import PoolClient

COMM_STATUS = "dist_comm_status"
"""Type of the message that tells how far a rank is with a front end's message to a comm."""

_FROM_FRONT_END = ("comm_msg", "comm_close")
_HEARD = frozenset(["comm_open", "comm_msg", "comm_close", COMM_STATUS])


class CommListener(Protocol):
    """Somebody who joins the comms of ranks to a front end; called in the client's loop."""

    def heard(self, client: PoolClient, rank: int, message: dict[str, Any]) -> None:
        """Take a message of `is_of_comms`."""

    def lost(self, client: PoolClient, rank: int | None = None) -> None:
        """Note that a rank died, or that the client has disconnected from all of them."""


class NobodyListens:
    """The listener of a process that has no front end."""

    def heard(self, client: PoolClient, rank: int, message: dict[str, Any]) -> None:
        """Leave a comm to others."""

    def lost(self, client: PoolClient, rank: int | None = None) -> None:
        """Note nothing."""


def is_of_comms(message: dict[str, Any]) -> bool:
    """Whether an iopub message is a comm's, or comes of what a front end said to one."""
    return (
        message["header"]["msg_type"] in _HEARD
        or message["parent_header"].get("msg_type") in _FROM_FRONT_END
    )


class CommHandlers:
    """Makes a kernel say on a comm's topic when it deals with a front end's message to the comm.

    The ordinary status goes to another topic, which cells had better not wait for.
    """

    shell_handlers: dict[str, Callable[..., Any]]
    session: Any
    iopub_socket: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for kind in _FROM_FRONT_END:
            self.shell_handlers[kind] = partial(self._handle_comm, self.shell_handlers[kind])

    def _handle_comm(
        self, handler: Callable[..., Any], stream: Any, ident: Any, parent: dict[str, Any]
    ) -> None:
        self._tell(parent, "busy")
        try:
            handler(stream, ident, parent)
        finally:
            self._tell(parent, "idle")

    def _tell(self, parent: dict[str, Any], state: str) -> None:
        topic = f"comm-{parent['content']['comm_id']}".encode()
        content = {"execution_state": state}
        self.session.send(self.iopub_socket, COMM_STATUS, content, parent, topic)

"""Comm messages (widgets) of ranks, and their receivers."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ..common.protocol.jupyter_messages import Message
from ..common.protocol.ranks.cell_messages import COMM_REQUESTS, COMM_STATUS

Client = TypeVar("Client", contravariant=True)

_HEARD = frozenset(["comm_open", "comm_msg", "comm_close", COMM_STATUS])


class CommListener(Protocol[Client]):
    """Somebody who joins the comms of ranks to a front end; called in the client's loop."""

    def heard(self, client: Client, rank: int, message: Message) -> None:
        """Take a message of `is_of_comms`."""

    def lost(self, client: Client, rank: int | None = None) -> None:
        """Note that a rank died, or that the client has disconnected from all of them."""


class NobodyListens:
    """The listener of a process that has no front end."""

    def heard(self, client: object, rank: int, message: Message) -> None:
        """Leave a comm to others."""

    def lost(self, client: object, rank: int | None = None) -> None:
        """Note nothing."""


def is_of_comms(message: Message) -> bool:
    """Whether an iopub message is a comm's, or comes of what a front end said to one."""
    return (
        message["header"]["msg_type"] in _HEARD
        or message["parent_header"].get("msg_type") in COMM_REQUESTS
    )

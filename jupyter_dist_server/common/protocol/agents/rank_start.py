"""What an agent tells a new rank, and the rank's one answer."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..decode_message import reader
from ..node_addresses import RankAddress

STDERR_KEPT = 1 << 16
"""Bytes of a rank's stderr that it keeps for the agent although they were read and shown."""
STDERR_START_BYTES = 8
"""Length of the number that tells where in stderr a cell began."""


class RankOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent tells one rank: as an argument, if it is spawned."""

    folder: str
    rank: int
    device: str
    """``cpu``, or ``cuda:I`` as CUDA counts for this rank."""
    backend: str
    report: int
    """Descriptor of the socket on which the rank says that it is ready, or why not."""
    tcp_store: tuple[str, int] | None
    """Where rank 0 serves torch's ``TCPStore``, if that is the process group's store."""
    environment: dict[str, str]
    parent: int
    alone: bool = False
    """Whether the other ranks run already: they make the process group with this one later."""
    address: RankAddress | None = None
    """Where it listens, if its clients are on another node."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The rank serves its sockets; descriptors come along, see `RankLogs.keep`."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Why the rank has not started."""

    message: str
    code: str = "rank_failed"
    hint: str = ""


_read: Callable[[bytes], Ready | Failed] = reader(Ready | Failed)


def decode_report(line: bytes) -> Ready | Failed:
    """Read a rank's answer; one that answers anything else has failed."""
    try:
        return _read(line)
    except ValueError as error:
        return Failed(f"its report is malformed: {error}")

"""How a large value gets to a rank on another node, and from there: in chunks, as a parcel.

A parcel is shared memory that the rank has, with the buffers of one value as `write_shared` places
them. So the ranks beside it can read it too, and the value crosses the network once.
"""

from __future__ import annotations

from .rank_messages import RankReply, RankRequest, SharedAddress


class StoreRequest(RankRequest, frozen=True):
    """Put what comes with the message into a parcel."""

    kind = "dist_store_request"
    parcel: str
    """Which nobody else has named so."""
    size: int
    """Of the whole parcel, in bytes."""
    offset: int


class StoreReply(RankReply, frozen=True):
    """Where the parcel is, for other processes of that node; or why it cannot be there."""

    memory: SharedAddress | None
    why: str = ""


class LoadRequest(RankRequest, frozen=True):
    """Send a piece of a parcel."""

    kind = "dist_load_request"
    parcel: str
    offset: int
    size: int


class LoadReply(RankReply, frozen=True):
    """The piece comes with the message, unless there is no such parcel."""

    is_there: bool


class DropRequest(RankRequest, frozen=True):
    """Forget a parcel. There is no reply."""

    kind = "dist_drop_request"
    parcel: str


PARCEL_REQUESTS: tuple[type[RankRequest], ...] = (StoreRequest, LoadRequest, DropRequest)
"""What is asked on the control channel."""

"""How a large value gets to or from a rank on another node: in chunks, as a parcel.

A parcel is shared memory of the rank, with the buffers of one value as `write_shared` places
them. Other ranks there can read it too, so the value crosses the network once.
"""

from __future__ import annotations

from .rank_messages import RankReply, RankRequest, SharedAddress


class StoreRequest(RankRequest, frozen=True):
    """Put the message's buffer into a parcel of `size` bytes, which has a unique name."""

    kind = "dist_store_request"
    parcel: str
    size: int
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

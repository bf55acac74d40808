"""What an agent on another node asks for, and is given: the GPUs of its ranks."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..decode_message import reader
from ..failure_reason import Reason
from ..pool_file import PlacedRank
from ..pool_record import PoolRecord


class NodeRequest(msgspec.Struct, frozen=True):
    """Which GPUs are asked for, of those that its engine has given to the agent."""

    record: PoolRecord
    """Of the pool."""
    ranks: int
    """How many are there."""
    gpus: list[int | str]
    """The GPU of each, if that was asked for."""
    force: bool
    """Whether to use GPUs in spite of processes that are not ours."""


class NodeAllocation(msgspec.Struct, frozen=True):
    """What came of it; the descriptors of the lease come with it."""

    ranks: list[PlacedRank] = []
    """Empty if there is no GPU."""
    failure: Reason | None = None


read_node_request: Callable[[bytes], NodeRequest] = reader(NodeRequest)
read_node_allocation: Callable[[bytes], NodeAllocation] = reader(NodeAllocation)

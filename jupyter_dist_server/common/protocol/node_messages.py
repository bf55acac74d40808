"""What agents on other nodes, and the children that import Ray, are told, and what they say.

Each message is one JSON object.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .decode_message import reader
from .failure_reason import Reason
from .pool_file import PlacedRank, PoolFile
from .pool_record import PoolRecord

# -- agents on other nodes ----------------------------------------------------------------------

OTHER_VERSION = "The notebook has jupyter-dist-server {theirs}, and this node {ours}"
"""An agent says this before it ends, as two versions may not understand each other."""
NO_FOLDER = "The agent cannot create its folder here: "
"""An agent says this before it ends, too; the error's lines follow."""


class NodeOrders(msgspec.Struct, frozen=True):
    """The pool, including its keys: the first line on the agent's stdin."""

    version: str
    """Of this package, which must be the same on all nodes."""
    pool: PoolFile


class _Version(msgspec.Struct):
    version: str = ""


_read_version: Callable[[bytes], _Version] = reader(_Version)
_read: Callable[[bytes], NodeOrders] = reader(NodeOrders)


def decode_node_orders(line: bytes, version: str) -> PoolFile:
    """Read an agent's orders; raises `ValueError` if they are another version's, or none."""
    if (theirs := _read_version(line).version) != version:
        raise ValueError(OTHER_VERSION.format(theirs=theirs, ours=version))
    return _read(line).pool


# -- the GPUs there -----------------------------------------------------------------------------


class NodeRequest(msgspec.Struct, frozen=True):
    """Which GPUs are requested, of those that the engine has given to the agent."""

    record: PoolRecord
    ranks: int
    gpus: list[int | str]
    """The GPU of each, if that was requested."""
    force: bool


class NodeAllocation(msgspec.Struct, frozen=True):
    """The reply; the descriptors of the lease come with it."""

    ranks: list[PlacedRank] = []
    """Empty if there is no GPU."""
    failure: Reason | None = None


read_node_request: Callable[[bytes], NodeRequest] = reader(NodeRequest)
read_node_allocation: Callable[[bytes], NodeAllocation] = reader(NodeAllocation)

# -- Ray ----------------------------------------------------------------------------------------


class RayNode(msgspec.Struct, frozen=True):
    """A living node of a Ray cluster."""

    name: str
    """Its host name; with the start of Ray's ID, if several have the same."""
    id: str
    address: str
    here: bool
    gpus: int = 0


class RayNodes(msgspec.Struct, frozen=True):
    """The nodes of a Ray cluster, or why they are not known."""

    nodes: list[RayNode] = []
    failure: Reason | None = None


class RelayOrders(msgspec.Struct, frozen=True):
    """A relay's argument: to start a process on a node."""

    node: str
    gpus: int
    command: list[str]


read_nodes: Callable[[bytes], RayNodes] = reader(RayNodes)
read_relay_orders: Callable[[bytes], RelayOrders] = reader(RelayOrders)

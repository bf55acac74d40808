"""What the children that import Ray say and are told; one JSON object each."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..decode_message import reader
from ..failure_reason import Reason


class RayNode(msgspec.Struct, frozen=True):
    """A living node of a Ray cluster."""

    name: str
    """Its host name; with the begin of Ray's ID, if several have the same."""
    id: str
    address: str
    here: bool
    """Whether it is on this machine."""
    gpus: int = 0
    """How many GPUs Ray has there."""


class RayNodes(msgspec.Struct, frozen=True):
    """The nodes of a Ray cluster, or why they are not known."""

    nodes: list[RayNode] = []
    failure: Reason | None = None


class RelayOrders(msgspec.Struct, frozen=True):
    """What a relay is told, as its argument: to start a process on a node."""

    node: str
    gpus: int
    """How many Ray is to give it."""
    command: list[str]


read_nodes: Callable[[bytes], RayNodes] = reader(RayNodes)
read_relay_orders: Callable[[bytes], RelayOrders] = reader(RelayOrders)

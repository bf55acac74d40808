"""The nodes of a pool that runs on several machines, and how their processes reach each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..rank_specs import format_ranks

if TYPE_CHECKING:
    import zmq


class PoolNode(msgspec.Struct, frozen=True):
    """One machine of a pool: the first one has the notebook, the pool's folder, and rank 0."""

    name: str
    address: str
    """Where the other nodes reach it."""
    ranks: list[int]


class CurveKeys(msgspec.Struct, frozen=True):
    """The keys of one pool's TCP sockets, see https://rfc.zeromq.org/spec/26.

    CurveZMQ (http://curvezmq.org) encrypts all, and both sides are known by their keys.
    All ranks share one pair, and all who may open the pool's folder share the other.
    """

    rank_public: str
    rank_secret: str
    client_public: str
    client_secret: str


def new_curve_keys() -> CurveKeys:
    """Return the keys of a new pool."""
    import zmq  # not above: agents do without

    return CurveKeys(*(key.decode() for _ in range(2) for key in zmq.curve_keypair()))


def show_client_keys(socket: zmq.Socket[Any], keys: CurveKeys) -> None:
    """Make a socket connect only to the pool's ranks, as one of their clients."""
    socket.curve_serverkey = keys.rank_public.encode()
    socket.curve_publickey = keys.client_public.encode()
    socket.curve_secretkey = keys.client_secret.encode()


class RankAddress(msgspec.Struct, frozen=True):
    """Where a rank on another machine listens."""

    host: str
    ports: dict[str, int]


def say_nodes(nodes: Sequence[PoolNode]) -> str:
    """Say which ranks are on which node, if there are several."""
    if len(nodes) < 2:
        return ""
    where = ", ".join(
        f"{node.name} (rank{'s' * (len(node.ranks) > 1)} {format_ranks(node.ranks)})"
        for node in nodes
    )
    return f"{sum(len(node.ranks) for node in nodes)} ranks on {len(nodes)} nodes: {where}."

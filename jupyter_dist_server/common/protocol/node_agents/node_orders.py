"""What the agent on another node is told first: one line of JSON, on its stdin."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..decode_message import reader
from ..pool_file import PoolFile

OTHER_VERSION = "The notebook has jupyter-dist-server {theirs}, and this node {ours}"
"""What an agent says before it ends, as two versions may not understand each other."""
NO_FOLDER = "The agent cannot create its folder here: "
"""What it says before it ends, too; the error's lines follow."""


class NodeOrders(msgspec.Struct, frozen=True):
    """The pool, with keys and all."""

    version: str
    """Of this package, which must be the same on all nodes."""
    pool: PoolFile


class _Version(msgspec.Struct):
    version: str = ""


_read_version: Callable[[bytes], _Version] = reader(_Version)
_read: Callable[[bytes], NodeOrders] = reader(NodeOrders)


def decode_node_orders(line: bytes, version: str) -> PoolFile:
    """Read what an agent is told.

    Raises
    ------
    ValueError
        If another version of this package says it, or it is something else.
    """
    if (theirs := _read_version(line).version) != version:
        raise ValueError(OTHER_VERSION.format(theirs=theirs, ours=version))
    return _read(line).pool

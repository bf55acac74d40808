"""``pool.json`` in a pool's private folder, for its agent, ranks and clients."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..processes.process_ref import ProcessRef
from .agents.agent_messages import PlacedRank as PlacedRank
from .decode_message import reader
from .node_addresses import CurveKeys, PoolNode
from .pool_record import PoolRecord

CONFIG = "pool.json"
VERSION = 4
"""Version of this file and of messages of agents and ranks; incremented at incompatible changes."""


class OtherVersion(ValueError):
    """A pool of another version of this package, which is left alone."""


class PoolFile(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner of a pool has written."""

    version: int = VERSION
    id: str
    key: str
    """Signs the messages of ranks and their clients."""
    world_size: int
    backend: str
    start_method: str
    timeout: float
    cwd: bytes
    sys_path: list[bytes]
    """Bytes, as paths need not be UTF-8, but JSON is."""
    thread_limits: dict[str, str]
    owner: ProcessRef
    grace: float
    """Seconds for which the pool outlives its owner."""
    ranks: list[PlacedRank]
    boot: str
    host: str
    owner_kind: str
    """`SERVER` or `KERNEL`."""
    record: PoolRecord
    engine: str = ""
    """What starts agents on the other nodes; empty if there are none."""
    node_python: str = ""
    """Their interpreter; empty for the first node's."""
    nodes: list[PoolNode] = []
    """All nodes, if there are several."""
    node: int = 0
    keys: CurveKeys | None = None
    visible: str | None = None
    """``CUDA_VISIBLE_DEVICES`` of the notebook, before this pool got its GPUs."""
    force: bool = False
    """Whether to use GPUs of other nodes despite processes that are not ours."""

    @property
    def own(self) -> list[int]:
        """The ranks on this node."""
        return self.nodes[self.node].ranks if self.nodes else list(range(self.world_size))


class _Version(msgspec.Struct):
    version: int = 0


_read_version: Callable[[bytes], _Version] = reader(_Version)
_read: Callable[[bytes], PoolFile] = reader(PoolFile)


def decode_pool_file(content: bytes) -> PoolFile:
    """Read a pool's file; raises `OtherVersion` or, if it is none, `ValueError`."""
    version = _read_version(content).version
    if version != VERSION:
        which = "an older" if version < VERSION else "a newer"
        raise OtherVersion(f"it was started by {which} version of Jupyter Dist")
    return _read(content)

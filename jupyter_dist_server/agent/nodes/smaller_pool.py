"""A pool without its lost nodes: as in torchrun, ranks are renumbered without gaps."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ...common.protocol.node_addresses import say_nodes
from ...common.protocol.pool_file import PoolFile


def without_nodes(pool: PoolFile, lost: Collection[str]) -> tuple[PoolFile, list[int]]:
    """Return the pool without the nodes named, and the earlier numbers of its ranks."""
    here = pool.nodes[pool.node]
    left = [node for node in pool.nodes if node.name not in lost]
    kept = sorted(rank for node in left for rank in node.ranks)
    number = {old: new for new, old in enumerate(kept)}
    replace = msgspec.structs.replace
    nodes = [replace(node, ranks=[number[rank] for rank in node.ranks]) for node in left]
    asked = pool.record.node_map
    before, now = say_nodes(pool.nodes), say_nodes(nodes)
    notices = [now if notice == before else notice for notice in pool.record.notices]
    known = [pool.record.ranks[old] for old in kept]
    record = replace(
        pool.record,
        world_size=len(kept),
        notices=[notice for notice in notices if notice],
        node_map=tuple(asked[old] for old in kept) if asked else None,
        # A record of one node does not name it.
        ranks=[
            replace(rank, rank=number[rank.rank], node=rank.node if len(left) > 1 else "")
            for rank in known
        ],
    )
    smaller = replace(
        pool,
        world_size=len(kept),
        ranks=[pool.ranks[old] for old in kept],
        nodes=nodes,
        node=left.index(here),
        record=record,
    )
    return smaller, kept

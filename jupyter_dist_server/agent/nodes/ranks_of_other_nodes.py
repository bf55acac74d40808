"""What the first node's agent knows of ranks on other nodes."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from ...common.protocol.agents.agent_messages import RankState, Snapshot
from ...common.protocol.node_addresses import PoolNode
from ..ranks.start_ranks import Starter
from .node_link import NodeLink


def merge(starter: Starter, node: PoolNode, said: Snapshot) -> None:
    """Note what another node's agent says of its ranks, if it knows of our last order."""
    new = [f"Node {node.name}: {notice}" for notice in said.notices]
    starter.notices += [one for one in new if one not in starter.notices]
    if said.generation == starter.generation:
        for rank in node.ranks:
            # Without its start time, nobody takes a process of another node for one of ours.
            starter.ranks[rank] = msgspec.structs.replace(
                said.ranks[rank], start_ticks=None, node=node.name
            )


def note_lost(ranks: list[RankState], lost: Callable[[int], NodeLink | None]) -> None:
    """Note that ranks are gone whose node is, so far as they are."""
    for record in ranks:
        if record.state != "dead" and (link := lost(record.rank)):
            record.failure = link.failure if record.state == "starting" else None
            record.state, record.since, record.exit = "dead", time.time(), link.why_lost


def on_our_clock(said: Snapshot, ahead: float) -> Snapshot:
    """Return what an agent says, with our times instead of those of its node."""
    ranks = [msgspec.structs.replace(one, since=one.since - ahead) for one in said.ranks]
    return msgspec.structs.replace(said, ranks=ranks)

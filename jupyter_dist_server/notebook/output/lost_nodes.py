"""What can be done about nodes of a pool that are lost."""

from __future__ import annotations

from ...client.pool_client import PoolClient
from ...common.rank_specs import format_ranks


def ranks_on_lost_nodes(client: PoolClient) -> list[int]:
    """Return the ranks on nodes that cannot be used."""
    lost = client.link.lost_nodes
    return [rank for rank, node in client.nodes.items() if node in lost]


def say_lost_nodes(client: PoolClient) -> str:
    """Say that one can wait for lost nodes, or go on without; empty if there are none."""
    if not (lost := client.link.lost_nodes):
        return ""
    nodes = f"node{'s' * (len(lost) > 1)} {', '.join(lost)}"
    whose, them = ("its", "it") if len(lost) == 1 else ("their", "them")
    return (
        f"Once {nodes} can be used again, start {whose} ranks there with "
        f"%dist_restart --ranks {format_ranks(ranks_on_lost_nodes(client))}. Or go on "
        f"without {them}: %dist_restart --without-lost-nodes replaces all other ranks, which get "
        "new numbers and lose their variables."
    )

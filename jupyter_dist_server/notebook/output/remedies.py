"""What can be done about nodes of a pool that are lost."""

from __future__ import annotations

from ...client.pool_client import PoolClient
from ...common.rank_specs import format_ranks
from ...engines.start_failures import ended_allocation


def ranks_on_lost_nodes(client: PoolClient) -> list[int]:
    """Return the ranks on nodes that cannot be used."""
    lost = client.link.lost_nodes
    return [rank for rank, node in client.nodes.items() if node in lost]


def say_lost_nodes(client: PoolClient) -> str:
    """Say that one can wait for lost nodes, or go on without; empty if there are none.

    If they are lost as the allocation has ended, none comes again.
    """
    if not (lost := client.link.lost_nodes):
        return ""
    nodes = f"node{'s' * (len(lost) > 1)} {', '.join(lost)}"
    ranks = ranks_on_lost_nodes(client)
    if job := ended_allocation(client.dead[rank] for rank in ranks if rank in client.dead):
        return (
            f"The allocation (Slurm job {job}) has ended, and {nodes} cannot be used again. Save "
            "what you need of the other ranks with %dist_pull, then get another allocation, and "
            "start the notebook in it."
        )
    whose, them = ("its", "it") if len(lost) == 1 else ("their", "them")
    return (
        f"Once {nodes} can be used again, start {whose} ranks there with "
        f"%dist_restart --ranks {format_ranks(ranks)}. Or go on "
        f"without {them}: %dist_restart --without-lost-nodes replaces all other ranks, which get "
        "new numbers and lose their variables."
    )

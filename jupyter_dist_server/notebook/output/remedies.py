"""Sentences on what to do about ranks that are lost, or run an earlier cell."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...client.pool_client import PoolClient
from ...common.rank_specs import format_ranks, name_ranks
from ...engines.start_failures import ended_allocation


def say_busy(busy: Mapping[int, int | None]) -> str:
    """Say which ranks run an earlier cell; `busy` has its number, if that is known."""
    cells = dict.fromkeys(f"In[{cell}]" if cell else "an earlier cell" for cell in busy.values())
    who = name_ranks(sorted(busy)).capitalize()
    return f"{who} still run{'s' * (len(busy) == 1)} {', '.join(cells)}"


def replace_busy(ranks: Collection[int]) -> str:
    """Say what to do about ranks that run an earlier cell."""
    wait = f"Wait until {'it has' if len(ranks) == 1 else 'they have'} finished"
    return f"{wait}, or {replace_ranks(ranks)}"


def replace_ranks(ranks: Collection[int]) -> str:
    """Say how to replace ranks, as the end of a sentence."""
    it, its = ("it", "its") if len(ranks) == 1 else ("them", "their")
    magic = f"%dist_restart --ranks {format_ranks(ranks)}"
    return f"replace {it} with {magic}: {its} variables are then lost."


def ranks_on_lost_nodes(client: PoolClient) -> list[int]:
    """Return the ranks on nodes that are lost."""
    lost = client.link.lost_nodes
    return [rank for rank, node in client.nodes.items() if node in lost]


def say_lost_nodes(client: PoolClient) -> str:
    """Say what to do about lost nodes; empty if there are none."""
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

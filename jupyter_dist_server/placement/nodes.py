"""From an engine's nodes to which node each rank gets: in blocks, as torchrun does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..common.errors import DistError
from ..common.protocol.nodes import PoolNode
from ..common.protocol.records import RankRecord
from ..common.rank_specs import MAX_RANKS, format_ranks
from ..engines.choice import engine_for
from ..engines.engine import Node
from .pool_record import environment_of
from .request import PoolRequest


@dataclass(frozen=True)
class Spread:
    """The nodes of one pool: the first is this machine.

    Attributes
    ----------
    engine : str
        What starts agents on the others.
    nodes : tuple of Node
        Two or more.
    num_ranks : int or None
        Of the whole pool; `None` for as many on each as on the first.
    """

    engine: str
    nodes: tuple[Node, ...]
    num_ranks: int | None

    def on_first(self, request: PoolRequest) -> PoolRequest:
        """Return the part of a request that this machine is to fulfil."""
        return replace(request, num_ranks=self._shares(0)[0] or None)

    def _shares(self, first: int) -> list[int]:
        count = len(self.nodes)
        if self.num_ranks is None:
            return [first] * count
        each, more = divmod(self.num_ranks, count)
        return [each + (number < more) for number in range(count)]

    def pool_nodes(self, first: int) -> list[PoolNode]:
        """Return the nodes with their ranks, given how many the first one has got."""
        begin, nodes = 0, []
        for node, share in zip(self.nodes, self._shares(first), strict=True):
            nodes.append(PoolNode(node.name, node.address, list(range(begin, begin + share))))
            begin += share
        if begin > MAX_RANKS:
            raise DistError(
                "bad_request",
                f"{begin} ranks are too many: a pool has at most {MAX_RANKS}.",
                "Set the number of ranks with -n.",
                field="num_ranks",
            )
        return nodes

    def fields(self, first: dict[str, Any]) -> dict[str, Any]:
        """Return what a pool's record says, given what it says of the ranks on the first node."""
        placed: list[RankRecord] = first["ranks"]
        nodes = self.pool_nodes(len(placed))
        ranks = []
        for node in nodes:
            for local, rank in enumerate(node.ranks):
                gpu = placed[local].gpu if node is nodes[0] else None
                ranks.append(RankRecord(rank, local, placed[local].device, gpu, node=node.name))
        where = ", ".join(f"{node.name} ({_say_ranks(node.ranks)})" for node in nodes)
        notices = [f"{len(ranks)} ranks on {len(nodes)} nodes: {where}.", *first["notices"]]
        if placed[0].gpu:
            notices.append(
                "Ranks on other nodes use the GPUs that Slurm gives the job there, in that order; "
                "these are not leased."
            )
        return first | {"world_size": len(ranks), "ranks": ranks, "notices": notices}


def _say_ranks(ranks: list[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {format_ranks(ranks)}"


def spread(request: PoolRequest) -> Spread | None:
    """Return the nodes for a request; `None` if it asks for one. Not for an event loop.

    Raises
    ------
    DistError
        If there are not as many, or this machine is none of them.
    """
    if request.nodes in (None, 1):
        return None
    assert request.nodes
    environment = environment_of(request)
    engine = engine_for(environment)
    found = engine.nodes(environment)
    here = [node for node in found if node.here]
    chosen = [*here, *(node for node in found if not node.here)][: request.nodes]
    names = ", ".join(node.name for node in found)
    if len(chosen) < request.nodes:
        raise DistError(
            "no_nodes",
            f"The pool is to have {request.nodes} nodes, but the allocation has {len(found)}: "
            f"{names}.",
            "Ask for fewer nodes, or for a larger allocation.",
            field="nodes",
        )
    if not here:
        raise DistError(
            "no_nodes",
            f"This notebook's kernel runs on none of the nodes of the allocation: {names}.",
            "Start JupyterLab on one of them: srun --overlap --nodes=1 --pty jupyter lab.",
            field="nodes",
        )
    return Spread(engine.name, tuple(chosen), request.num_ranks)

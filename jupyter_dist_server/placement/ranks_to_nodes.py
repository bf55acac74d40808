"""From an engine's nodes to which node each rank gets: in blocks, as in torchrun, or by a map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from ..common.errors import DistError
from ..common.protocol.node_addresses import PoolNode, say_nodes
from ..common.protocol.pool_record import RankRecord
from ..common.rank_specs import MAX_RANKS
from ..engines.choose_engine import LOCAL, engine_for
from ..engines.engine import Node
from .number_of_ranks import environment_of
from .requests.field_checks import GpuId
from .requests.request import PoolRequest


@dataclass(frozen=True)
class Spread:
    """The nodes of one pool, this machine first; the engine's `job` may be empty."""

    engine: str
    nodes: tuple[Node, ...]
    request: PoolRequest
    job: str = ""

    def on_first(self) -> PoolRequest:
        """Return the part of the request that this machine fulfils."""
        ranks = self._ranks(0)[0]
        gpus = dict(enumerate(self._mapped(ranks))) or None
        count, nodes = len(ranks) or None, len(self.nodes)
        return replace(self.request, num_ranks=count, nodes=nodes, map=gpus)

    def _mapped(self, ranks: list[int]) -> list[GpuId]:
        """Return the GPUs that a map gives some ranks; empty if it names none."""
        gpus = [gpu for _, gpu in self.request.node_map or () if gpu is not None]
        return [gpus[rank] for rank in ranks] if gpus else []

    def _ranks(self, first: int) -> list[list[int]]:
        """Return the ranks of each node; `first` is how many the first one got if nobody says."""
        if self.request.node_map:
            names = [name for name, _ in self.request.node_map]
            return [
                [rank for rank, name in enumerate(names) if name == node.name]
                for node in self.nodes
            ]
        ends = list(accumulate(self._sizes(first)))
        return [list(range(*ends_of)) for ends_of in zip([0, *ends], ends, strict=False)]

    def _sizes(self, first: int) -> list[int]:
        count, size, each = len(self.nodes), self.request.num_ranks, self.request.ranks_per_node
        if size is None:
            return [each or first] * count
        if each:
            return [min(each, size - number * each) for number in range(count)]
        least, more = divmod(size, count)
        return [least + (number < more) for number in range(count)]

    def pool_nodes(self, first: int) -> list[PoolNode]:
        """Return the nodes with their ranks, given how many the first one has got."""
        placed = zip(self.nodes, self._ranks(first), strict=True)
        nodes = [PoolNode(node.name, node.address, ranks) for node, ranks in placed]
        if (size := sum(len(node.ranks) for node in nodes)) > MAX_RANKS:
            raise DistError(
                "bad_request",
                f"{size} ranks are too many: a pool has at most {MAX_RANKS}.",
                "Set the number of ranks with -n.",
                field="num_ranks",
            )
        return nodes

    def mask(self, node: PoolNode, rank: int) -> str | None:
        """Return what CUDA may see on another node, if the map says so."""
        chosen = [str(gpu) for gpu in self._mapped(node.ranks)]
        if not chosen:
            return None
        own = chosen[node.ranks.index(rank)]
        whole = dict.fromkeys(gpu for gpu in chosen if not gpu.startswith("MIG-"))
        return ",".join(whole) if own in whole else own  # CUDA sees one MIG instance at most

    def fields(self, first: dict[str, Any]) -> dict[str, Any]:
        """Return what a pool's record says, given what it says of ranks on the first node."""
        placed: list[RankRecord] = first["ranks"]
        nodes = self.pool_nodes(len(placed))
        ranks = []
        for node in nodes:
            for local, rank in enumerate(node.ranks):
                here = node is nodes[0]
                device = placed[local].device if here else self._device(placed, node, local)
                gpu = placed[local].gpu if here else None
                ranks.append(RankRecord(rank, local, device, gpu, node=node.name))
        notices = [say_nodes(nodes), *first["notices"]]
        with_gpus = [node.name for node in self.nodes[1:] if node.gpus]
        if self.nodes[0].gpus and not placed[0].gpu:
            notices.append(
                f"All ranks run on the CPU, as this notebook may use none of the GPUs of "
                f"{nodes[0].name}. Under Slurm, start JupyterLab by srun with --gpus-per-node."
            )
        elif with_gpus and not placed[0].gpu:
            notices.append(
                f"All ranks run on the CPU, as the notebook's node {nodes[0].name} has no GPU that "
                f"can be used. There are GPUs on {', '.join(with_gpus)}: to use them, start "
                "JupyterLab on a node with GPUs."
            )
        if placed[0].gpu and not self._mapped(nodes[0].ranks):
            notices.append(
                f"Ranks on other nodes get free GPUs of those that {self.engine.capitalize()} has "
                "given to the agent there."
            )
        return first | {
            "world_size": len(ranks),
            "ranks": sorted(ranks, key=lambda record: record.rank),
            "notices": notices,
            "engine": self.engine,
            "engine_job": self.job,
        }

    def _device(self, placed: list[RankRecord], node: PoolNode, local: int) -> str:
        """Return the device of a rank on another node, as CUDA counts there."""
        if placed[0].gpu is None:
            return "cpu"
        if mask := self.mask(node, node.ranks[local]):
            return f"cuda:{mask.split(',').index(str(self._mapped(node.ranks)[local]))}"
        return placed[local].device if local < len(placed) else f"cuda:{local}"


def spread(request: PoolRequest, setting: str = "") -> tuple[PoolRequest, Spread | None]:
    """Return what this machine fulfils of a request, and all nodes if there are several.

    Not for an event loop. `setting` is the engine to use if the request names none.
    """
    is_named = request.engine not in (None, LOCAL)
    asked = (request.nodes or 1) > 1 or request.ranks_per_node or request.node_map
    if not asked and not (is_named and request.nodes is None):
        return request, None
    environment = environment_of(request)
    try:
        engine = engine_for(environment, request.engine or setting)
    except DistError as error:
        if request.node_map:  # which may be a mistyped map of ranks, such as zero:3
            error.message = (
                f"The map puts rank 0 on node “{request.node_map[0][0]}”. {error.message}"
            )
        raise
    found = engine.nodes(environment, request.python)
    chosen = _chosen(request, found)
    if (
        engine.gives_gpus
        and len(chosen) > 1
        and any(gpu is not None for _, gpu in request.node_map or ())
    ):
        raise DistError(
            "bad_request",
            f"The map names GPUs, but {engine.name.capitalize()} decides on those of other nodes.",
            "Name only nodes in --map, such as n1,n2,n2.",
            field="node_map",
        )
    spread = Spread(engine.name, tuple(chosen), request, engine.job(environment))
    return spread.on_first(), spread if len(chosen) > 1 else None


def _chosen(request: PoolRequest, found: list[Node]) -> list[Node]:
    """Return the nodes of a pool, that of the notebook first."""
    names = ", ".join(node.name for node in found)
    here = [node for node in found if node.here]
    if not here:
        raise DistError(
            "no_nodes",
            f"This notebook's kernel does not run on a node that can be used: {names}.",
            "Start JupyterLab on one of them, under Slurm by srun --overlap --nodes=1 --pty "
            "jupyter lab.",
            field="nodes",
        )
    if request.node_map:
        return _mapped(list(dict.fromkeys(name for name, _ in request.node_map)), found)
    wanted = request.nodes or _number(request, len(found))
    chosen = [*here, *(node for node in found if not node.here)][:wanted]
    if len(chosen) < wanted:
        raise DistError(
            "no_nodes",
            f"The pool needs {wanted} nodes, but the allocation has {len(found)}: {names}.",
            "Ask for fewer nodes, or for a larger allocation.",
            field="nodes",
        )
    return chosen


def _number(request: PoolRequest, found: int) -> int:
    """Return how many nodes a pool needs if it does not say; by default all."""
    if request.num_ranks and request.ranks_per_node:
        return -(-request.num_ranks // request.ranks_per_node)
    return min(found, request.num_ranks or found)


def _mapped(names: list[str], found: list[Node]) -> list[Node]:
    nodes = {node.name: node for node in found}
    if unknown := [name for name in names if name not in nodes]:
        raise DistError(
            "no_nodes",
            f"The map names node {unknown[0]}, which is not one of those that can be used: "
            f"{', '.join(nodes)}.",
            "Correct the name in --map.",
            field="node_map",
        )
    if not nodes[names[0]].here:
        (here, *_) = (node.name for node in found if node.here)
        raise DistError(
            "bad_request",
            f"Rank 0 must be on the node of the notebook, {here}, and not on {names[0]}.",
            f"Begin --map with {here}.",
            field="node_map",
        )
    return [nodes[name] for name in names]

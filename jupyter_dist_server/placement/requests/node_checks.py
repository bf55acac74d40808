"""What a request says of several nodes, and its validation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...common.errors import DistError
from ...common.rank_specs import MAX_RANKS
from ...engines.choose_engine import ENGINES, LOCAL


def bad_field(name: str, message: str, hint: str = "") -> DistError:
    """Return what to raise about a field."""
    return DistError("bad_request", message, hint, field=name)


def check_nodes(name: str, value: Any) -> None:
    """Refuse what is no number of nodes, or of ranks on one."""
    what = "nodes" if name == "nodes" else "ranks per node"
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not 1 <= value <= MAX_RANKS:
        raise bad_field(name, f"The number of {what} must be from 1 to {MAX_RANKS}, not {value!r}.")


def check_engine(name: str, value: Any) -> None:
    """Refuse an unknown engine."""
    if value not in ENGINES:
        raise bad_field(name, f"“{value}” is not an engine.", f"Use one of: {', '.join(ENGINES)}.")


def check_node_map(name: str, value: Any) -> None:
    """Refuse what does not give each rank a node, and each or none a GPU."""
    if not isinstance(value, list | tuple) or not value:
        raise bad_field(
            name, 'The map must list a node for each rank, such as [["n1", 0], ["n2", 3]].'
        )
    for item in value:
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise bad_field(name, f"“{item}” is not a node and a GPU.")
        node, gpu = item
        if not isinstance(node, str) or not node:
            raise bad_field(name, f"The name of a node must be a string, not {node!r}.")
        is_gpu = isinstance(gpu, int | str) and not isinstance(gpu, bool) and gpu != ""
        if not is_gpu and gpu is not None:
            raise bad_field(name, f"The GPU of a rank must be an integer or a UUID, not {gpu!r}.")
    if len({gpu is None for _, gpu in value}) > 1:
        raise bad_field(
            name, "The map has GPUs for some ranks only.", "Name one for each, or none."
        )
    if len(value) > MAX_RANKS:
        raise bad_field(name, f"A pool has at most {MAX_RANKS} ranks, the map {len(value)}.")


def check_over_nodes(request: Mapping[str, Any]) -> None:
    """Refuse what does not fit together about nodes, given all fields of a request."""
    nodes, ranks, each = request["nodes"], request["num_ranks"], request["ranks_per_node"]
    engine, mapped = request["engine"], request["node_map"]
    is_over_nodes = (nodes or 1) > 1 or each or mapped
    if engine == LOCAL and is_over_nodes:
        raise bad_field("engine", "The engine local has only the node of the notebook.")
    if (ranks or math.inf) < (nodes or 1):
        raise bad_field("nodes", f"{nodes} nodes need at least {nodes} ranks.")
    if each and nodes and ranks and not each * (nodes - 1) < ranks <= each * nodes:
        message = f"{ranks} ranks are not {each} on each of {nodes} nodes."
        raise bad_field("ranks_per_node", message, "Omit one of these numbers.")
    if mapped:
        if each:
            raise bad_field("ranks_per_node", "The map already says which ranks are on each node.")
        named = len({node for node, _ in mapped})
        for what, given, has in (("ranks", ranks, len(mapped)), ("nodes", nodes, named)):
            if given not in (None, has):
                raise bad_field("node_map", f"The map has {has} {what}, but the pool has {given}.")
    if not is_over_nodes and engine in (None, LOCAL):
        return
    for name in ("gpu_ids", "map", "performance", *(["placement"] if mapped else [])):
        if request[name]:
            message = f"“{name}” chooses GPUs of one machine, not of several nodes."
            raise bad_field(
                name, message, "Omit it, or under Slurm use --map with nodes: n1:0,n2:0."
            )

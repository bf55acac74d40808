"""What each field of a request may hold, how JSON becomes its type, and what nodes require."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...common.errors import DistError
from ...common.rank_specs import MAX_RANKS
from ...engines.choose_engine import ENGINES, LOCAL

BACKENDS = ("gloo", "nccl", "cpu:gloo,cuda:nccl", "none")
START_METHODS = ("fork", "spawn")
PLACEMENTS = ("cycle", "ids", "free-memory", "performance", "map")
MAX_SECONDS = 1e9
"""Of any time limit; event loops cannot count much further."""

CPU = "cpu"
"""What a map has instead of a GPU, for a rank on the CPU."""

GpuId = int | str
"""A physical index, as in ``nvidia-smi``; ``"3:1"`` for MIG instance 1 of GPU 3; or a UUID, or
the beginning of one."""

Check = Callable[[str, Any], None]


def bad_field(name: str, message: str, hint: str = "") -> DistError:
    """Return what to raise about a field."""
    return DistError("bad_request", message, hint, field=name)


def as_integer(value: Any) -> Any:
    """Return what JSON calls an integer as one, such as 2.0; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_from_one(value: Any, to: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= to


def _is_time(value: Any) -> bool:
    return _is_number(value) and 0 < value <= MAX_SECONDS


def _one_of(what: str, known: Sequence[str]) -> Check:
    def check(name: str, value: Any) -> None:
        if value not in known:
            hint = f"Use one of: {', '.join(known)}."
            raise bad_field(name, f"“{value}” is not {what}.", hint)

    return check


def _check_count(name: str, value: Any) -> None:
    names = {"nodes": "nodes", "cpu_ranks": "ranks on the CPU", "ranks_per_node": "ranks per node"}
    what = names.get(name, "ranks")
    if not _is_from_one(value, MAX_RANKS):
        raise bad_field(name, f"The number of {what} must be from 1 to {MAX_RANKS}, not {value!r}.")


def _check_gpu_ids(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise bad_field(name, "GPU IDs must be a list such as [0, 3].")
    for item in value:
        _check_gpu_id(name, item)


def _check_gpu_id(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(as_integer(value), int | str):
        raise bad_field(name, f"A GPU ID must be an integer or a UUID, not {value!r}.")


def _check_bytes(name: str, value: Any) -> None:
    if not _is_from_one(value, 2**63 - 1):
        raise bad_field(name, f"The minimum free memory must be a number of bytes, not {value!r}.")


def _check_performance(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise bad_field(name, 'Performance must map GPUs to scores, such as {"0": 100, "3": 110}.')
    for gpu, score in value.items():
        if not _is_number(score) or not abs(score) <= sys.float_info.max:
            raise bad_field(name, f"The score of GPU {gpu} must be a number, not {score!r}.")


def _check_map(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise bad_field(name, 'The map must give ranks their GPUs, such as {"0": 3, "1": 0}.')
    for rank, gpu in value.items():
        if not re.fullmatch("[0-9]{1,4}", str(rank)):
            raise bad_field(name, f"“{rank}” is not a valid rank.")
        _check_gpu_id(name, gpu)
    ranks = sorted(map(int, value))
    if ranks != list(range(len(ranks))):
        missing = min(set(range(len(ranks))) - set(ranks))
        raise bad_field(
            name, f"The map has a GPU for rank {ranks[-1]}, but none for rank {missing}."
        )


def _check_node_map(name: str, value: Any) -> None:
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


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise bad_field(name, f"“{name}” must be true or false, not {value!r}.")


def _check_wait(name: str, value: Any) -> None:
    if not isinstance(value, bool) and not _is_time(value):
        what = f"“wait” must be a number of seconds up to {MAX_SECONDS:.0e}, or true for no limit"
        raise bad_field(name, f"{what}, not {value!r}.")


def _check_seconds(name: str, value: Any) -> None:
    if not _is_time(value):
        what = f"“{name}” must be a positive number of seconds, at most {MAX_SECONDS:.0e}"
        raise bad_field(name, f"{what}, not {value!r}.")


def _check_pid(name: str, value: Any) -> None:
    if not _is_from_one(value, 2**31 - 1):
        raise bad_field(name, f"A process ID must be a positive integer, not {value!r}.")


def _check_env(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not all(
        isinstance(part, str) for pair in value.items() for part in pair
    ):
        raise bad_field(name, "Environment variables must be a mapping from strings to strings.")
    for variable, text in value.items():
        if not variable or "=" in variable or "\0" in variable + text:
            raise bad_field(name, f"“{variable}” is not a valid name of an environment variable.")


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise bad_field(name, f"“{name}” must be a string, not {value!r}.")


def _check_paths(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(path, str) for path in value):
        raise bad_field(name, f"“{name}” must be a list of strings.")


CHECKS: dict[str, Check] = {
    "num_ranks": _check_count,
    "nodes": _check_count,
    "engine": _one_of("an engine", ENGINES),
    "ranks_per_node": _check_count,
    "node_map": _check_node_map,
    "node_python": _check_text,
    "min_ranks": _check_count,
    "cpu_ranks": _check_count,
    "gpu_ids": _check_gpu_ids,
    "placement": _one_of("a placement", PLACEMENTS),
    "min_free_memory": _check_bytes,
    "performance": _check_performance,
    "map": _check_map,
    "one_rank_per_gpu": _check_flag,
    "oversubscribe": _check_flag,
    "force": _check_flag,
    "wait": _check_wait,
    "backend": _one_of("a supported backend", BACKENDS),
    "check": _check_flag,
    "env": _check_env,
    "timeout": _check_seconds,
    "time_limit": _check_seconds,
    "idle_limit": _check_seconds,
    "park_after": _check_seconds,
    "start_method": _one_of("a start method", START_METHODS),
    "kernel_id": _check_text,
    "name": _check_text,
    "python": _check_text,
    "cwd": _check_text,
    "sys_path": _check_paths,
    "base_env": _check_env,
    "kernel_pid": _check_pid,
}

INTEGERS = {
    "num_ranks",
    "min_ranks",
    "cpu_ranks",
    "nodes",
    "ranks_per_node",
    "min_free_memory",
    "kernel_pid",
}

READ: dict[str, Callable[[Any], Any]] = {
    "gpu_ids": lambda value: tuple(map(as_integer, value)),
    "sys_path": tuple,
    "node_map": lambda value: tuple((node, as_integer(gpu)) for node, gpu in value),
    "map": lambda value: {int(rank): as_integer(gpu) for rank, gpu in value.items()},
    "wait": lambda value: (math.inf if value else None) if isinstance(value, bool) else value,
}
"""How JSON becomes a field's type."""


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
    for name in (
        "gpu_ids",
        "cpu_ranks",
        "min_ranks",
        "map",
        "performance",
        *(["placement"] if mapped else []),
    ):
        if request[name]:
            message = f"“{name}” chooses GPUs of one machine, not of several nodes."
            raise bad_field(
                name, message, "Omit it, or under Slurm use --map with nodes: n1:0,n2:0."
            )

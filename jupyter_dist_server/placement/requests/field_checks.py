"""What each field of a request may hold, and how JSON becomes its type."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

from ...common.rank_specs import MAX_RANKS
from .node_checks import bad_field, check_engine, check_node_map, check_nodes

BACKENDS = ("gloo", "nccl", "cpu:gloo,cuda:nccl", "none")
START_METHODS = ("fork", "spawn")
PLACEMENTS = ("cycle", "ids", "free-memory", "performance", "map")
MAX_SECONDS = 1e9
"""Of any time limit; event loops cannot count much further."""
_MAX_INTEGER = 2**63 - 1

GpuId = int | str
"""A physical index, as in ``nvidia-smi``; ``"3:1"`` for MIG instance 1 of GPU 3; or a UUID, or
the beginning of one."""


def as_integer(value: Any) -> Any:
    """Return what JSON calls an integer as one, such as 2.0; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_count(name: str, value: Any) -> None:
    if not _is_from_one(value, MAX_RANKS):
        raise bad_field(name, f"The number of ranks must be from 1 to {MAX_RANKS}, not {value!r}.")


def _check_gpu_ids(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise bad_field(name, "GPU IDs must be a list such as [0, 3].")
    for item in value:
        _check_gpu_id(name, item)


def _check_gpu_id(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(as_integer(value), int | str):
        raise bad_field(name, f"A GPU ID must be an integer or a UUID, not {value!r}.")


def _check_placement(name: str, value: Any) -> None:
    if value not in PLACEMENTS:
        known = ", ".join(PLACEMENTS)
        raise bad_field(name, f"“{value}” is not a placement.", f"Use one of: {known}.")


def _check_bytes(name: str, value: Any) -> None:
    if not _is_from_one(value, _MAX_INTEGER):
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


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise bad_field(name, f"“{name}” must be true or false, not {value!r}.")


def _check_wait(name: str, value: Any) -> None:
    if not isinstance(value, bool) and not _is_time(value):
        raise bad_field(
            name,
            f"“wait” must be a number of seconds up to {MAX_SECONDS:.0e}, or true for no limit, "
            f"not {value!r}.",
        )


def _check_pid(name: str, value: Any) -> None:
    if not _is_from_one(value, 2**31 - 1):
        raise bad_field(name, f"A process ID must be a positive integer, not {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_from_one(value: Any, to: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= to


def _is_time(value: Any) -> bool:
    return _is_number(value) and 0 < value <= MAX_SECONDS


def _check_backend(name: str, value: Any) -> None:
    if value not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise bad_field(name, f"“{value}” is not a supported backend.", f"Use one of: {known}.")


def _check_start_method(name: str, value: Any) -> None:
    if value not in START_METHODS:
        raise bad_field(name, f"“{value}” is not a start method.", "Use fork or spawn.")


def _check_env(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not all(
        isinstance(part, str) for pair in value.items() for part in pair
    ):
        raise bad_field(name, "Environment variables must be a mapping from strings to strings.")
    for variable, text in value.items():
        if not variable or "=" in variable or "\0" in variable + text:
            raise bad_field(name, f"“{variable}” is not a valid name of an environment variable.")


def _check_timeout(name: str, value: Any) -> None:
    if not _is_time(value):
        raise bad_field(
            name,
            f"The time limit must be a positive number of seconds, at most {MAX_SECONDS:.0e}, "
            f"not {value!r}.",
        )


def _check_limit(name: str, value: Any) -> None:
    if not _is_time(value):
        message = f"“{name}” must be a positive number of seconds, at most {MAX_SECONDS:.0e}"
        raise bad_field(name, f"{message}, not {value!r}.")


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise bad_field(name, f"“{name}” must be a string, not {value!r}.")


def _check_paths(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(path, str) for path in value):
        raise bad_field(name, f"“{name}” must be a list of strings.")


CHECKS: dict[str, Callable[[str, Any], None]] = {
    "num_ranks": _check_count,
    "nodes": check_nodes,
    "engine": check_engine,
    "ranks_per_node": check_nodes,
    "node_map": check_node_map,
    "node_python": _check_text,
    "gpu_ids": _check_gpu_ids,
    "placement": _check_placement,
    "min_free_memory": _check_bytes,
    "performance": _check_performance,
    "map": _check_map,
    "one_rank_per_gpu": _check_flag,
    "oversubscribe": _check_flag,
    "force": _check_flag,
    "wait": _check_wait,
    "backend": _check_backend,
    "check": _check_flag,
    "env": _check_env,
    "timeout": _check_timeout,
    "time_limit": _check_limit,
    "idle_limit": _check_limit,
    "start_method": _check_start_method,
    "kernel_id": _check_text,
    "name": _check_text,
    "python": _check_text,
    "cwd": _check_text,
    "sys_path": _check_paths,
    "base_env": _check_env,
    "kernel_pid": _check_pid,
}

INTEGERS = ("num_ranks", "nodes", "ranks_per_node", "min_free_memory", "kernel_pid")

READ: dict[str, Callable[[Any], Any]] = {
    "gpu_ids": lambda value: tuple(map(as_integer, value)),
    "sys_path": tuple,
    "node_map": lambda value: tuple((node, as_integer(gpu)) for node, gpu in value),
    "map": lambda value: {int(rank): as_integer(gpu) for rank, gpu in value.items()},
    "wait": lambda value: (math.inf if value else None) if isinstance(value, bool) else value,
}
"""How JSON becomes a field's type."""

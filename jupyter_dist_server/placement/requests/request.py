"""A request to start a pool, and its validation."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...common.errors import DistError
from ...common.rank_specs import MAX_RANKS
from .node_checks import check_engine, check_node_map, check_nodes, check_over_nodes

BACKENDS = ("gloo", "nccl", "cpu:gloo,cuda:nccl", "none")
START_METHODS = ("fork", "spawn")
PLACEMENTS = ("cycle", "ids", "free-memory", "performance", "map")
MAX_SECONDS = 1e9
"""Of any time limit; event loops cannot count much further."""
OLD_NAMES = {"exclusive": "one_rank_per_gpu", "share": "oversubscribe"}
"""Fields that had another name, and are still accepted by it."""
_CHECKED = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
"""Has torch compare collectives."""
_MAX_INTEGER = 2**63 - 1

GpuId = int | str
"""A physical index, as in ``nvidia-smi``; ``"3:1"`` for MIG instance 1 of GPU 3; or a UUID, or
the beginning of one."""


@dataclass(frozen=True)
class PoolRequest:
    """A checked request for a pool; `None` means "you choose"."""

    num_ranks: int | None = None
    nodes: int | None = None
    """On how many machines of a cluster; by default on this one, or on all of a named engine."""
    engine: str | None = None
    """What starts agents on other machines, see `engines`; by default the cluster we are in."""
    ranks_per_node: int | None = None
    node_map: tuple[tuple[str, GpuId | None], ...] | None = None
    """The node of each rank, and its GPU there."""
    node_python: str = ""
    """The interpreter of other machines; empty is `python`."""
    gpu_ids: tuple[GpuId, ...] | None = None
    """Those that may be used; with placement ``ids``, for ranks in this order."""
    placement: str | None = None
    """One of `PLACEMENTS`; by default what the other fields imply, or ``cycle``."""
    min_free_memory: int | None = None
    """Bytes; GPUs with less are not taken."""
    performance: dict[GpuId, float] | None = None
    """A score for each GPU that may be used; the best get the first ranks."""
    map: dict[int, GpuId] | None = None
    """The GPU of each rank."""
    one_rank_per_gpu: bool = False
    """Whether to refuse that two of the ranks share a GPU."""
    oversubscribe: bool = False
    """Whether other pools that say so too may use the same GPUs."""
    force: bool = False
    """Whether to use GPUs in spite of processes that are not ours."""
    wait: float | None = None
    """Seconds to wait in line for GPUs that are taken, `math.inf` for without end."""
    time_limit: float | None = None
    """Seconds for which the pool runs at most."""
    idle_limit: float | None = None
    """Seconds after which it is stopped if no cell runs, and its GPUs do nothing."""
    backend: str | None = None
    check: bool = False
    """Whether torch compares each collective on all ranks before it begins."""
    env: dict[str, str] = field(default_factory=dict)
    """Added to the ranks' environment."""
    timeout: float | None = None
    """Seconds that the start may take."""
    start_method: str = "fork" if sys.platform == "linux" else "spawn"
    """On macOS a process that has imported torch must not fork, threads or not."""
    kernel_id: str | None = None
    name: str = ""
    python: str = ""
    """The notebook kernel's interpreter, in which ranks run too; empty is this process's own."""
    cwd: str = ""
    """Where the ranks work; empty is where this process does."""
    sys_path: tuple[str, ...] = ()
    """Where the notebook kernel looks for modules; ranks look there first."""
    base_env: dict[str, str] | None = None
    """The notebook kernel's whole environment; `None` is this process's own."""
    kernel_pid: int | None = None
    """The notebook kernel's process: what it has on a GPU is no reason to refuse that."""

    @property
    def policy(self) -> str:
        """How GPUs are chosen."""
        if self.placement:
            return self.placement
        implied = {
            "map": self.map,
            "performance": self.performance,
            "ids": self.gpu_ids,
            "free-memory": self.min_free_memory,
        }
        return next((policy for policy, given in implied.items() if given), "cycle")

    @property
    def added_env(self) -> dict[str, str]:
        """What is added to the environment of the ranks."""
        return self.env | (_CHECKED if self.check else {})

    @classmethod
    def from_json(cls, body: Any) -> PoolRequest:
        """Check the body of ``POST /pools``.

        Raises
        ------
        DistError
            With the `field` that is wrong.
        """
        if not isinstance(body, dict):
            raise _bad("body", "The body must be a JSON object.")
        body = _with_new_names(body)
        unknown = sorted(set(body) - set(cls.__dataclass_fields__))
        if unknown:
            known = ", ".join(cls.__dataclass_fields__)
            raise _bad(unknown[0], f"“{unknown[0]}” is not a field of a pool request.", known)
        given = {name: value for name, value in body.items() if value is not None}
        given |= {name: as_integer(given[name]) for name in _INTEGERS if name in given}
        for name, value in given.items():
            _CHECKS[name](name, value)
        for name, read in _READ.items():
            if name in given:
                given[name] = read(given[name])
        request = cls(**given)
        _check_together(request)
        return request

    def to_json(self) -> dict[str, Any]:
        """Return the body of ``POST /pools`` that asks for this."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return given | {"wait": True} if self.wait == math.inf else given


def _with_new_names(body: dict[str, Any]) -> dict[str, Any]:
    given = dict(body)
    for old, new in OLD_NAMES.items():
        if (value := given.pop(old, None)) is not None:
            if given.get(new) is not None:
                message = f"“{old}” is the old name of “{new}”."
                raise _bad(old, message, "Leave one of them out.")
            given[new] = value
    return given


def as_integer(value: Any) -> Any:
    """Return what JSON calls an integer as one, such as 2.0; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _bad(name: str, message: str, hint: str = "") -> DistError:
    return DistError("bad_request", message, hint, field=name)


def _check_count(name: str, value: Any) -> None:
    if not _is_from_one(value, MAX_RANKS):
        raise _bad(name, f"The number of ranks must be from 1 to {MAX_RANKS}, not {value!r}.")


def _check_gpu_ids(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise _bad(name, "GPU IDs must be a list such as [0, 3].")
    for item in value:
        _check_gpu_id(name, item)


def _check_gpu_id(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(as_integer(value), int | str):
        raise _bad(name, f"A GPU ID must be an integer or a UUID, not {value!r}.")


def _check_placement(name: str, value: Any) -> None:
    if value not in PLACEMENTS:
        known = ", ".join(PLACEMENTS)
        raise _bad(name, f"“{value}” is not a placement.", f"Use one of: {known}.")


def _check_bytes(name: str, value: Any) -> None:
    if not _is_from_one(value, _MAX_INTEGER):
        raise _bad(name, f"The minimum free memory must be a number of bytes, not {value!r}.")


def _check_performance(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise _bad(name, 'Performance must map GPUs to scores, such as {"0": 100, "3": 110}.')
    for gpu, score in value.items():
        if not _is_number(score) or not abs(score) <= sys.float_info.max:
            raise _bad(name, f"The score of GPU {gpu} must be a number, not {score!r}.")


def _check_map(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise _bad(name, 'The map must give ranks their GPUs, such as {"0": 3, "1": 0}.')
    for rank, gpu in value.items():
        if not re.fullmatch("[0-9]{1,4}", str(rank)):
            raise _bad(name, f"“{rank}” is not a valid rank.")
        _check_gpu_id(name, gpu)
    ranks = sorted(map(int, value))
    if ranks != list(range(len(ranks))):
        missing = min(set(range(len(ranks))) - set(ranks))
        raise _bad(name, f"The map has a GPU for rank {ranks[-1]}, but none for rank {missing}.")


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise _bad(name, f"“{name}” must be true or false, not {value!r}.")


def _check_wait(name: str, value: Any) -> None:
    if not isinstance(value, bool) and not _is_time(value):
        raise _bad(
            name,
            f"“wait” must be a number of seconds up to {MAX_SECONDS:.0e}, or true for no limit, "
            f"not {value!r}.",
        )


def _check_pid(name: str, value: Any) -> None:
    if not _is_from_one(value, 2**31 - 1):
        raise _bad(name, f"A process ID must be a positive integer, not {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_from_one(value: Any, to: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= to


def _is_time(value: Any) -> bool:
    return _is_number(value) and 0 < value <= MAX_SECONDS


def _check_together(request: PoolRequest) -> None:
    """Refuse what makes sense alone only."""
    if request.one_rank_per_gpu and request.oversubscribe:
        raise _bad("oversubscribe", "A pool cannot both refuse to share GPUs and share them.")
    if request.policy == "ids" and not request.gpu_ids:
        raise _bad("gpu_ids", "Placement by ids needs GPU IDs, such as 0,3.")
    if request.policy == "map" and not request.map:
        raise _bad("map", "Placement by map needs a map, such as 0:3,1:0.")
    for name in ("map", "performance"):
        if getattr(request, name) and request.policy != name:
            message = f"“{name}” requires placement {name}, not {request.policy}."
            raise _bad(name, message, "Omit one of them.")
    if request.map and request.gpu_ids:
        raise _bad("gpu_ids", "The map already chooses the GPUs.", "Omit one of them.")
    check_over_nodes(vars(request))
    if request.map and request.num_ranks not in (None, len(request.map)):
        have = f"{len(request.map)} rank{'s' if len(request.map) > 1 else ''}"
        raise _bad("map", f"The map has {have}, but the pool has {request.num_ranks}.")


def _check_backend(name: str, value: Any) -> None:
    if value not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise _bad(name, f"“{value}” is not a supported backend.", f"Use one of: {known}.")


def _check_start_method(name: str, value: Any) -> None:
    if value not in START_METHODS:
        raise _bad(name, f"“{value}” is not a start method.", "Use fork or spawn.")


def _check_env(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not all(
        isinstance(part, str) for pair in value.items() for part in pair
    ):
        raise _bad(name, "Environment variables must be a mapping from strings to strings.")
    for variable, text in value.items():
        if not variable or "=" in variable or "\0" in variable + text:
            raise _bad(name, f"“{variable}” is not a valid name of an environment variable.")


def _check_timeout(name: str, value: Any) -> None:
    if not _is_time(value):
        raise _bad(
            name,
            f"The time limit must be a positive number of seconds, at most {MAX_SECONDS:.0e}, "
            f"not {value!r}.",
        )


def _check_limit(name: str, value: Any) -> None:
    if not _is_time(value):
        message = f"“{name}” must be a positive number of seconds, at most {MAX_SECONDS:.0e}"
        raise _bad(name, f"{message}, not {value!r}.")


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise _bad(name, f"“{name}” must be a string, not {value!r}.")


def _check_paths(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(path, str) for path in value):
        raise _bad(name, f"“{name}” must be a list of strings.")


_CHECKS: dict[str, Callable[[str, Any], None]] = {
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

_INTEGERS = ("num_ranks", "nodes", "ranks_per_node", "min_free_memory", "kernel_pid")

_READ: dict[str, Callable[[Any], Any]] = {
    "gpu_ids": lambda value: tuple(map(as_integer, value)),
    "sys_path": tuple,
    "node_map": lambda value: tuple((node, as_integer(gpu)) for node, gpu in value),
    "map": lambda value: {int(rank): as_integer(gpu) for rank, gpu in value.items()},
    "wait": lambda value: (math.inf if value else None) if isinstance(value, bool) else value,
}
"""How JSON becomes a field's type."""

"""A request to start a pool, and its validation."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from .field_checks import (
    CHECKS,
    CPU,
    INTEGERS,
    READ,
    GpuId,
    as_integer,
    bad_field,
    check_over_nodes,
)

OLD_NAMES = {"exclusive": "one_rank_per_gpu", "share": "oversubscribe"}
"""Fields that had another name, which is still accepted."""
_CHECKED = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
"""Makes torch compare collectives."""


@dataclass(frozen=True)
class PoolRequest:
    """A checked request for a pool; `None` means "you choose"."""

    num_ranks: int | None = None
    nodes: int | None = None
    """Number of machines of a cluster; by default only this one, or all of a named engine."""
    engine: str | None = None
    """What starts agents on other machines, see `engines`; by default our cluster's."""
    ranks_per_node: int | None = None
    node_map: tuple[tuple[str, GpuId | None], ...] | None = None
    """The node of each rank, and its GPU there."""
    node_python: str = ""
    """The interpreter on other machines; empty is `python`."""
    min_ranks: int | None = None
    """Number of ranks to start with if there are not enough free GPUs for all."""
    cpu_ranks: int | None = None
    """Number of ranks on the CPU: the last ones. The others get GPUs."""
    gpu_ids: tuple[GpuId, ...] | None = None
    """GPUs that may be used; with placement ``ids``, for ranks in this order."""
    placement: str | None = None
    """One of `PLACEMENTS`; by default what the other fields imply, or ``cycle``."""
    min_free_memory: int | None = None
    """In bytes; GPUs with less are not used."""
    performance: dict[GpuId, float] | None = None
    """A score for each GPU that may be used; the best ones get the first ranks."""
    map: dict[int, GpuId] | None = None
    """The GPU of each rank, or `CPU`."""
    one_rank_per_gpu: bool = False
    """Whether to refuse that two ranks share a GPU."""
    oversubscribe: bool = False
    """Whether other pools with this option may use the same GPUs."""
    force: bool = False
    """Whether to use GPUs despite processes that are not ours."""
    wait: float | None = None
    """Seconds to wait in line for GPUs; `math.inf` for no limit."""
    time_limit: float | None = None
    """Seconds after which the pool is stopped."""
    idle_limit: float | None = None
    """Seconds after which it is stopped if no cell runs and its GPUs do nothing."""
    park_after: float | None = None
    """Seconds after which an idle pool is parked, once somebody waits for one of its GPUs."""
    backend: str | None = None
    check: bool = False
    """Whether torch compares each collective on all ranks before it begins."""
    env: dict[str, str] = field(default_factory=dict)
    """Added to the ranks' environment."""
    timeout: float | None = None
    """Seconds that the start may take."""
    start_method: str = "fork" if sys.platform == "linux" else "spawn"
    """On macOS, a process that has imported torch must not fork, with threads or without."""
    kernel_id: str | None = None
    name: str = ""
    python: str = ""
    """The notebook kernel's interpreter, also for ranks; empty is this process's own."""
    cwd: str = ""
    """The working directory of the ranks; empty is that of this process."""
    sys_path: tuple[str, ...] = ()
    """The notebook kernel's path of modules, which ranks search first."""
    base_env: dict[str, str] | None = None
    """The notebook kernel's whole environment; `None` is this process's own."""
    kernel_pid: int | None = None
    """The notebook kernel's process, whose use of a GPU is no reason to refuse it."""

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
    def is_hybrid(self) -> bool:
        """Whether some ranks, or all, run on the CPU although there are GPUs."""
        return bool(self.cpu_ranks) or CPU in (self.map or {}).values()

    @property
    def on_gpus(self) -> PoolRequest | None:
        """What is asked for the ranks on GPUs, counted from 0; `None` if there are none."""
        if not self.is_hybrid:
            return self
        if self.map:
            gpus = [self.map[rank] for rank in sorted(self.map) if self.map[rank] != CPU]
            count, chosen = len(gpus) or None, dict(enumerate(gpus))
            return replace(self, num_ranks=count, map=chosen) if gpus else None
        count = self.num_ranks and self.num_ranks - (self.cpu_ranks or 0)
        return None if count == 0 else replace(self, num_ranks=count, cpu_ranks=None)

    @property
    def added_env(self) -> dict[str, str]:
        """What is added to the environment of the ranks."""
        return self.env | (_CHECKED if self.check else {})

    @classmethod
    def from_json(cls, body: Any) -> PoolRequest:
        """Check the body of ``POST /pools``; a `DistError` names the wrong `field`."""
        if not isinstance(body, dict):
            raise bad_field("body", "The body must be a JSON object.")
        if unknown := sorted(set(body) - set(cls.__dataclass_fields__) - set(OLD_NAMES)):
            known = ", ".join(cls.__dataclass_fields__)
            raise bad_field(unknown[0], f"“{unknown[0]}” is not a field of a pool request.", known)
        given = {name: value for name, value in body.items() if value is not None}
        for old in OLD_NAMES.keys() & given.keys():
            if (new := OLD_NAMES[old]) in given:
                message = f"“{old}” is the old name of “{new}”."
                raise bad_field(old, message, "Omit one of them.")
            given[new] = given.pop(old)
        for name in INTEGERS & given.keys():
            given[name] = as_integer(given[name])
        for name, value in given.items():
            CHECKS[name](name, value)
        for name in READ.keys() & given.keys():
            given[name] = READ[name](given[name])
        request = cls(**given)
        _check_together(request)
        return request

    def to_json(self) -> dict[str, Any]:
        """Return the body of ``POST /pools`` for this request."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return given | {"wait": True} if self.wait == math.inf else given


def _check_together(request: PoolRequest) -> None:
    """Refuse fields that exclude each other."""
    if request.one_rank_per_gpu and request.oversubscribe:
        raise bad_field("oversubscribe", "A pool cannot both refuse to share GPUs and share them.")
    if request.policy == "ids" and not request.gpu_ids:
        raise bad_field("gpu_ids", "Placement by ids needs GPU IDs, such as 0,3.")
    if request.policy == "map" and not request.map:
        raise bad_field("map", "Placement by map needs a map, such as 0:3,1:0.")
    for name in ("map", "performance"):
        if getattr(request, name) and request.policy != name:
            message = f"“{name}” requires placement {name}, not {request.policy}."
            raise bad_field(name, message, "Omit one of them.")
    if request.map and request.gpu_ids:
        raise bad_field("gpu_ids", "The map already chooses the GPUs.", "Omit one of them.")
    check_over_nodes(vars(request))
    if request.min_ranks:
        _check_min_ranks(request)
    if request.map and request.cpu_ranks:
        message = "The map already says which ranks run on the CPU."
        raise bad_field("cpu_ranks", message, "Omit one of them.")
    if (request.cpu_ranks or 0) > (request.num_ranks or math.inf):
        message = f"{request.cpu_ranks} ranks on the CPU are more than the pool has."
        raise bad_field("cpu_ranks", message, "-n is the number of all ranks.")
    if request.is_hybrid and "nccl" in (request.backend or ""):
        raise bad_field(
            "backend",
            "The backend of a pool with ranks on the CPU is gloo: NCCL needs a GPU on each rank.",
            "Omit --backend. The ranks on GPUs can use NCCL in a group of their own: "
            'dist.new_group([0, 1], backend="nccl").',
        )
    if request.map and request.num_ranks not in (None, len(request.map)):
        have = f"{len(request.map)} rank{'s' if len(request.map) > 1 else ''}"
        raise bad_field("map", f"The map has {have}, but the pool has {request.num_ranks}.")


def _check_min_ranks(request: PoolRequest) -> None:
    if (request.num_ranks or 0) < (request.min_ranks or 0):
        message = (
            f"The least number of ranks, {request.min_ranks}, is more than the number of ranks."
        )
        raise bad_field("min_ranks", message, "-n is the number of ranks that is wanted.")
    for name in (
        "cpu_ranks",
        "oversubscribe",
        "map",
        *(["gpu_ids"] if request.policy == "ids" else []),
    ):
        if getattr(request, name):
            hint = "Omit one of them." if name != "gpu_ids" else "Add --placement cycle."
            raise bad_field("min_ranks", f"“min_ranks” does not go with “{name}”.", hint)

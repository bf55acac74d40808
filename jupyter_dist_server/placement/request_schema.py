"""What a pool can be asked for on this machine, as JSON Schema, from which a form is drawn.

Titles and descriptions are for users. ``x-widget`` says how a field is drawn, and ``x-advanced``
that few need it. What makes no sense here is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..common.errors import DistError
from ..common.rank_specs import MAX_RANKS
from ..engines.choose_engine import LOCAL, engine_for
from ..engines.engine import Node
from ..gpus.inventory import Gpu, Inventory
from .ranks_to_gpus import CPU_RANKS
from .requests.field_checks import MAX_SECONDS
from .requests.request import PoolRequest

_BACKENDS = {
    "gloo": "gloo: CPU",
    "nccl": "NCCL: GPU",
    "cpu:gloo,cuda:nccl": "NCCL for GPU tensors, gloo for CPU tensors",
    "none": "None: no process group",
}
_PLACEMENTS = {
    "cycle": "In order",
    "free-memory": "Most free memory first",
    "performance": "Fastest first",
}
_START_METHODS = {
    "fork": "Fork: fast, shares memory",
    "spawn": "Spawn: each rank imports torch",
}

_MOST_ON_CPU = 8
"""More are for magics: what does not fit together is listed below, number by number."""

_ADVANCED: dict[str, Any] = {"x-advanced": True}

Field = dict[str, Any]


@dataclass(frozen=True)
class Cluster:
    """The nodes that pools may use, that of the server first; `job` is empty if there is none."""

    engine: str
    job: str
    nodes: tuple[Node, ...]


def cluster_around(environment: Mapping[str, str], setting: str) -> Cluster | None:
    """Return the cluster that an environment is in; `None` if pools have this machine only.

    Not for an event loop. `setting` is the engine that the server names, if it does.
    """
    if setting == LOCAL:
        return None
    try:
        engine = engine_for(environment, setting)
        found = engine.nodes(environment, "")
    except DistError:  # a request for several nodes says why
        return None
    here = [node for node in found if node.here]
    if not here or len(found) < 2:
        return None
    nodes = (*here, *(node for node in found if not node.here))
    return Cluster(engine.name, engine.job(environment), nodes)


def start_schema(
    found: Inventory, free: int, timeout: float, cluster: Cluster | None = None
) -> dict[str, Any]:
    """Return the JSON Schema of the requests that a form can make, in the order of the form.

    `PoolRequest.from_json` accepts all of them. `free` is how many GPUs nobody uses.
    """
    gpus = found.gpus
    fields = {
        "num_ranks": _field(
            "Ranks",
            "Number of processes that run each cell.",
            "ranks",
            type="integer",
            minimum=1,
            maximum=MAX_RANKS,
            default=max(free, 1) if gpus else CPU_RANKS,
        )
    }
    if gpus:
        fields |= _which_gpus(gpus)
    if cluster:
        fields |= _which_nodes(cluster)
    fields["backend"] = _choice(
        "Backend",
        "Backend of the process group. By default, it depends on the GPUs.",
        {name: title for name, title in _BACKENDS.items() if gpus or "nccl" not in name},
        **_ADVANCED,
    )
    if gpus:
        fields |= _whose_gpus(gpus)
    fields |= _rest(timeout)
    if gpus:
        fields["park_after"] = _seconds(
            "Park after",
            "Park the pool if no cell has run for this many seconds and somebody waits for GPUs.",
        )
    rules = (_with_cpu_ranks() if gpus else []) + (_over_nodes(cluster) if cluster else [])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": fields,
        # A pool cannot both refuse to share GPUs and share them.
        "not": {
            "required": ["one_rank_per_gpu", "oversubscribe"],
            "properties": {"one_rank_per_gpu": {"const": True}, "oversubscribe": {"const": True}},
        },
        **({"allOf": rules} if rules else {}),
    }


def _field(title: str, description: str, widget: str, **words: Any) -> Field:
    return {"title": title, "description": description, "x-widget": widget, **words}


def _choice(title: str, description: str, options: dict[str, str], **words: Any) -> Field:
    one_of = [{"const": name, "title": text} for name, text in options.items()]
    return _field(title, description, "choice", type="string", oneOf=one_of, **words)


def _flag(title: str, description: str) -> Field:
    return _field(title, description, "flag", type="boolean", default=False, **_ADVANCED)


def _seconds(title: str, description: str, **words: Any) -> Field:
    limits = {"exclusiveMinimum": 0, "maximum": MAX_SECONDS, "x-unit": "s"}
    return _field(title, description, "number", type="number", **limits, **words, **_ADVANCED)


def _which_gpus(gpus: tuple[Gpu, ...]) -> dict[str, Field]:
    speeds_known = all(gpu.sm_count and gpu.clock_max for gpu in gpus)
    return {
        "gpu_ids": _field(
            "GPUs",
            "GPUs for the ranks. By default, free GPUs.",
            "gpus",
            type="array",
            minItems=1,
            uniqueItems=True,
            items={"enum": [gpu.index if gpu.mig is None else gpu.label for gpu in gpus]},
        ),
        "placement": _choice(
            "Placement",
            "The order in which ranks get GPUs.",
            {
                name: title
                for name, title in _PLACEMENTS.items()
                if speeds_known or name != "performance"
            },
            default="cycle",
            **_ADVANCED,
        ),
    }


def _which_nodes(cluster: Cluster) -> dict[str, Field]:
    name = cluster.engine.capitalize()
    where = f"{name} job {cluster.job}" if cluster.job else f"{name} cluster"
    return {
        "engine": _choice(
            "Run on",
            f"Where ranks run: on the notebook's node, or also on others of the {where}.",
            {LOCAL: "This node only", cluster.engine: where},
            default=LOCAL,
            **_ADVANCED,
        ),
        "nodes": _field(
            "Nodes",
            f"Number of nodes. By default all if ranks run on the {where}, otherwise one.",
            "number",
            type="integer",
            minimum=1,
            maximum=min(len(cluster.nodes), MAX_RANKS),
            **{"x-notes": [_say_node(node) for node in cluster.nodes]},
            **_ADVANCED,
        ),
    }


def _say_node(node: Node) -> str:
    gpus = f"{node.gpus} GPU{'s' * (node.gpus != 1)}" if node.gpus else "no GPU known"
    return f"{node.name}{' (this node)' * node.here}: {gpus}"


def _with_cpu_ranks() -> list[Field]:
    """Return what does not fit together, see `PoolRequest.from_json`."""
    some = {"required": ["cpu_ranks"], "properties": {"cpu_ranks": {"minimum": 1}}}
    on_gpus = {"backend": {"enum": ["gloo", "none"]}}
    return [
        {"if": some, "then": {"properties": on_gpus}},
        *(
            {
                "if": {"required": ["cpu_ranks"], "properties": {"cpu_ranks": {"const": count}}},
                "then": {"properties": {"num_ranks": {"minimum": count}}},
            }
            for count in range(2, _MOST_ON_CPU + 1)
        ),
    ]


def _over_nodes(cluster: Cluster) -> list[Field]:
    """Return what does not fit together, see `check_over_nodes`."""
    several = {"required": ["nodes"], "properties": {"nodes": {"minimum": 2}}}
    elsewhere = {"required": ["engine"], "properties": {"engine": {"const": cluster.engine}}}
    not_here = {"engine": {"not": {"const": LOCAL}}}
    # Those are of one machine.
    no_gpus = {"gpu_ids": False, "cpu_ranks": False}
    return [
        {"if": several, "then": {"properties": no_gpus | not_here}},
        {"if": elsewhere, "then": {"properties": no_gpus}},
        *(
            {
                "if": {"required": ["nodes"], "properties": {"nodes": {"const": count}}},
                "then": {"properties": {"num_ranks": {"minimum": count}}},
            }
            for count in range(2, min(len(cluster.nodes), MAX_RANKS) + 1)
        ),
    ]


def _whose_gpus(gpus: tuple[Gpu, ...]) -> dict[str, Field]:
    largest = max(gpu.memory_total for gpu in gpus)
    return {
        "one_rank_per_gpu": _flag("One rank per GPU", "Do not start if ranks would share a GPU."),
        "oversubscribe": _flag(
            "Share with other pools", "Let other pools use the GPUs too, if they share them."
        ),
        "wait": _flag("Wait for GPUs", "If the GPUs are in use, wait until they are free."),
        "cpu_ranks": _field(
            "Ranks on the CPU",
            "How many of the ranks run on the CPU: the last ones.",
            "number",
            type="integer",
            minimum=1,
            maximum=_MOST_ON_CPU,
            **_ADVANCED,
        ),
        "min_free_memory": _field(
            "Free memory",
            "Use only GPUs with at least this much free memory.",
            "bytes",
            type="integer",
            minimum=1,
            **({"maximum": largest} if largest else {}),
            **_ADVANCED,
        ),
    }


def _rest(timeout: float) -> dict[str, Field]:
    method = PoolRequest.start_method
    can_fork = method == "fork"
    methods = {name: _START_METHODS[name] for name in _START_METHODS if can_fork or name != "fork"}
    return {
        "check": _flag(
            "Check collectives",
            "Compare each collective on all ranks before it begins: a mismatch is an error. "
            "Collectives take longer.",
        ),
        "env": _field(
            "Environment variables",
            "Set on the ranks, in addition to those of the notebook's kernel.",
            "env",
            type="object",
            propertyNames={"pattern": r"^[^=\u0000]+$"},
            additionalProperties={"type": "string", "pattern": r"^[^\u0000]*$"},
            **_ADVANCED,
        ),
        "start_method": _choice(
            "Start method", "How rank processes are created.", methods, default=method, **_ADVANCED
        ),
        "timeout": _seconds(
            "Start timeout", "Cancel the start after this many seconds.", default=timeout
        ),
        "time_limit": _seconds("Pool time limit", "Stop the pool after this many seconds."),
        "idle_limit": _seconds(
            "Idle limit", "Stop the pool if no cell has run for this many seconds."
        ),
    }

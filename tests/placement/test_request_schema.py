"""The schema of a start: it forgets no field, and what it allows can be asked for."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.engines.engine import Node
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.placement.request_schema import (
    Cluster,
    cluster_around,
    start_schema,
)
from jupyter_dist_server.placement.requests import field_checks
from jupyter_dist_server.placement.requests.request import PoolRequest

from ..bad_fields import BAD_FIELDS

NOT_OFFERED = {
    "ranks_per_node": "for magics and scripts only",
    "node_map": "for magics and scripts only",
    "node_python": "for magics and scripts only",
    "performance": "for magics and scripts only",
    "map": "for magics and scripts only",
    "min_ranks": "for magics and scripts only",
    "force": "overrides are for code, where readers see them",
    "kernel_id": "the form knows the notebook",
    "name": "the form knows its path",
    "python": "the kernel's interpreter",
    "cwd": "the notebook's folder",
    "sys_path": "the kernel knows its own",
    "base_env": "the kernel knows its environment",
    "kernel_pid": "and who it is",
}
"""Fields of a `PoolRequest` that no form has, and why."""

SPEED: dict[str, Any] = {"sm_count": 132, "clock_max": 1980}
GPUS = tuple(Gpu(index, f"GPU-{index}", "H100", 80 << 30, "", "9.0", **SPEED) for index in range(2))
PART = Gpu(2, "MIG-2", "H100 MIG", 10 << 30, "", "9.0", mig=1, parent="GPU-2", **SPEED)
MACHINES = {
    "gpus": Inventory(GPUS),
    "mig": Inventory((*GPUS, PART)),
    "cpu": Inventory(reason="There is no GPU."),
}
CLUSTER = Cluster(
    "slurm",
    "4711",
    (
        Node("n1", "10.0.0.1", True, 2),
        Node("n2", "10.0.0.2", False, 1),
        Node("n3", "10.0.0.3", False),
    ),
)
on_every_machine = pytest.mark.parametrize("machine", MACHINES)
ANYTHING: list[Any] = [
    *(0, 1, 2, 5, -1, 0.5, 10**30, True, False, "", "gloo", "0", "2:1", "best", "A=B", "x\0y"),
    *([], [0], [1, 0], ["2:1"], [0, 0], [None], [7], {}, {"A": "b"}, {"": "b"}, {"A": 1}),
    *({"A=B": "c"}, {"A": "b\0"}, {"0": 1}, *field_checks.BACKENDS, *field_checks.PLACEMENTS),
    *field_checks.START_METHODS,
    *("local", "slurm", 3),
]


def schema_of(machine: str, free: int = 2) -> dict[str, Any]:
    schema = start_schema(MACHINES[machine], free, 120.0)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def accepts(body: dict[str, Any]) -> bool:
    try:
        PoolRequest.from_json(body)
    except DistError as error:
        assert error.field
        return False
    return True


def allows(schema: dict[str, Any], body: dict[str, Any]) -> bool:
    valid: bool = jsonschema.Draft202012Validator(schema).is_valid(body)
    return valid


def test_no_field_is_forgotten() -> None:
    offered = list(start_schema(MACHINES["gpus"], 2, 120.0, CLUSTER)["properties"])
    assert sorted([*offered, *NOT_OFFERED]) == sorted(PoolRequest.__dataclass_fields__)
    assert offered == [
        *(
            "num_ranks",
            "gpu_ids",
            "placement",
            "engine",
            "nodes",
            "backend",
            "one_rank_per_gpu",
            "oversubscribe",
            "wait",
            "cpu_ranks",
        ),
        *("min_free_memory", "check", "env", "start_method", "timeout", "time_limit", "idle_limit"),
        "park_after",
    ]


def choices(schema: dict[str, Any], name: str) -> list[str]:
    return [option["const"] for option in schema["properties"][name]["oneOf"]]


def test_every_choice_that_makes_sense_is_offered() -> None:
    schema = schema_of("gpus")
    assert choices(schema, "backend") == list(field_checks.BACKENDS)
    assert choices(schema, "start_method") == list(field_checks.START_METHODS)
    # The others need a list beside them: of GPUs, which says enough, or a map.
    assert choices(schema, "placement") == [
        name for name in field_checks.PLACEMENTS if name not in ("ids", "map")
    ]
    assert schema_of("mig")["properties"]["gpu_ids"]["items"] == {"enum": [0, 1, "2:1"]}
    slow = Inventory((Gpu(0, "GPU-0", "T", 1 << 30, "", "9.0"),))
    assert "performance" not in choices(start_schema(slow, 1, 1.0), "placement")


def test_a_machine_without_gpus_is_asked_nothing_about_them() -> None:
    schema = schema_of("cpu", free=0)
    assert list(schema["properties"]) == [
        *(
            "num_ranks",
            "backend",
            "check",
            "env",
            "start_method",
            "timeout",
            "time_limit",
            "idle_limit",
        )
    ]
    assert choices(schema, "backend") == ["gloo", "none"]
    assert schema["properties"]["num_ranks"]["default"] == 2


def test_nodes_are_offered_in_a_cluster() -> None:
    schema = start_schema(MACHINES["gpus"], 2, 120.0, CLUSTER)
    engine, nodes = (schema["properties"][name] for name in ("engine", "nodes"))
    assert engine["oneOf"] == [
        {"const": "local", "title": "This node only"},
        {"const": "slurm", "title": "Slurm job 4711"},
    ]
    assert nodes["maximum"] == 3
    assert nodes["x-notes"] == ["n1 (this node): 2 GPUs", "n2: 1 GPU", "n3: no GPU known"]
    for alone in (start_schema(MACHINES["gpus"], 2, 120.0), schema_of("cpu")):
        assert not {"engine", "nodes"} & set(alone["properties"])


def test_there_is_no_cluster_without_an_engine() -> None:
    assert cluster_around({}, "") is None
    assert cluster_around({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1"}, "local") is None


def test_as_many_ranks_as_free_gpus_are_offered() -> None:
    for free, ranks in ((2, 2), (1, 1), (0, 1)):
        assert schema_of("gpus", free)["properties"]["num_ranks"]["default"] == ranks


@on_every_machine
def test_whatever_a_field_allows_is_accepted(machine: str) -> None:
    schema = schema_of(machine)
    allowed = dict.fromkeys(schema["properties"], 0)
    for name, field in schema["properties"].items():
        limits = [field[word] for word in ("minimum", "maximum", "default") if word in field]
        for value in [*ANYTHING, *limits]:
            if allows(schema, {name: value}):
                allowed[name] += 1
                assert accepts({name: value}), (name, value)
    assert min(allowed.values()) >= 1, allowed


@on_every_machine
def test_what_is_refused_of_a_field_the_schema_does_not_allow(machine: str) -> None:
    schema = schema_of(machine)
    for name in schema["properties"]:
        for value in BAD_FIELDS[name]:
            assert not accepts({name: value}), (name, value)
            assert not allows(schema, {name: value}), (name, value)


@pytest.mark.parametrize("cluster", [None, CLUSTER], ids=["one node", "nodes"])
def test_fields_together_are_accepted_if_and_only_if_they_are_allowed(
    cluster: Cluster | None,
) -> None:
    schema = start_schema(MACHINES["mig"], 2, 120.0, cluster)
    values = {
        name: [value for value in ANYTHING if allows(schema, {name: value})]
        for name in schema["properties"]
    }
    chance = random.Random(5)
    said = set()
    for _ in range(400):
        names = chance.sample(list(values), chance.randint(0, len(values)))
        body = {name: chance.choice(values[name]) for name in names}
        assert allows(schema, body) == accepts(body), body
        said.add(accepts(body))
    assert said == {True, False}


def test_old_names_are_accepted() -> None:
    old = PoolRequest.from_json({"share": True, "exclusive": None, "one_rank_per_gpu": False})
    assert old == PoolRequest.from_json({"oversubscribe": True})
    with pytest.raises(DistError) as raised:
        PoolRequest.from_json({"exclusive": True, "one_rank_per_gpu": True})
    assert (raised.value.code, raised.value.field) == ("bad_request", "exclusive")

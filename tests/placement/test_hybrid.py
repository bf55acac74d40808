"""Pools whose last ranks, or those that a map names, run on the CPU although there are GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.protocol.pool_record import PoolRecord
from jupyter_dist_server.notebook.reuse_pool import can_reuse
from jupyter_dist_server.placement.new_pool_record import Allocation
from jupyter_dist_server.placement.ranks_to_gpus import Placement, allowed, place_ranks
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.processes.start_agent import agent_environment

from .test_placement import NO_GPUS, devices, indices, machine

HYBRIDS: list[dict[str, Any]] = [
    {"num_ranks": 4, "cpu_ranks": 2},
    {"num_ranks": 4, "gpu_ids": [0, 1], "cpu_ranks": 2},
    {"gpu_ids": [0, 1], "cpu_ranks": 2},
    {"map": {"0": 0, "1": 1, "2": "cpu", "3": "cpu"}},
]


def placed(count: int, *refused: int, **body: Any) -> Placement:
    """Return what a request gets on a machine with `count` GPUs."""
    request = PoolRequest.from_json(body)
    inventory = allowed(request, machine(count) if count else NO_GPUS)
    return place_ranks(request, inventory, None, {f"GPU-{gpu}": "leased by bob" for gpu in refused})


def masks(placement: Placement) -> list[str | None]:
    return [placement.mask(rank) for rank in range(len(placement.gpus))]


@pytest.mark.parametrize("body", HYBRIDS)
def test_the_last_ranks_run_on_the_cpu(body: dict[str, Any]) -> None:
    placement = placed(4, **body)
    assert indices(placement) == [0, 1, None, None]
    assert devices(placement) == ["cuda:0", "cuda:1", "cpu", "cpu"]
    assert masks(placement) == ["0,1", "0,1", "", ""], "a rank on the CPU sees no GPU"
    assert placement.backend == "gloo"
    assert placement.notices == (
        "Ranks 2-3 run on the CPU, so the backend is gloo; for NCCL on the others, use "
        'dist.new_group([0, 1], backend="nccl").',
    )


def test_a_map_puts_any_rank_on_the_cpu() -> None:
    placement = placed(4, map={"0": "cpu", "1": 3, "2": "cpu", "3": 1})
    assert indices(placement) == [None, 3, None, 1]
    assert devices(placement) == ["cpu", "cuda:0", "cpu", "cuda:1"]
    assert masks(placement) == ["", "3,1", "", "3,1"]
    assert agent_environment({}, {}, placement)["CUDA_VISIBLE_DEVICES"] == "3,1"


def test_every_free_gpu_gets_a_rank_beside_those_on_the_cpu() -> None:
    assert indices(placed(4, 1, cpu_ranks=1)) == [0, 2, 3, None]


@pytest.mark.parametrize(
    "body", [{"num_ranks": 2, "cpu_ranks": 2}, {"map": {"0": "cpu", "1": "cpu"}}]
)
def test_all_ranks_on_the_cpu_need_no_gpu(body: dict[str, Any]) -> None:
    placement = placed(4, 0, 1, 2, 3, **body)
    assert indices(placement) == [None, None]
    assert masks(placement) == ["", ""]
    assert placement.notices == ("All ranks run on the CPU, as requested.",)


@pytest.mark.parametrize("body", HYBRIDS[:1] + HYBRIDS[3:])
def test_a_machine_without_gpus_has_as_many_ranks(body: dict[str, Any]) -> None:
    placement = placed(0, **body)
    assert indices(placement) == [None] * 4
    assert masks(placement) == [""] * 4


def test_only_gpus_are_waited_for() -> None:
    with pytest.raises(DistError, match="GPU 1 is leased by bob"):
        placed(2, 1, map={"0": 0, "1": 1, "2": "cpu"})
    with pytest.raises(DistError, match=r"Only 1 of 2 GPUs is free for 2 ranks"):
        placed(2, 1, num_ranks=4, cpu_ranks=2, wait=True)
    assert indices(placed(2, 1, map={"0": 0, "1": "cpu"})) == [0, None]


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"num_ranks": 2, "cpu_ranks": 3}, "cpu_ranks", "more than the pool has"),
        ({"num_ranks": 2, "cpu_ranks": 0}, "cpu_ranks", "from 1 to 1024, not 0"),
        ({"map": {"0": "cpu"}, "cpu_ranks": 1}, "cpu_ranks", "already says"),
        ({"cpu_ranks": 1, "backend": "nccl"}, "backend", "NCCL needs a GPU on each rank"),
        ({"cpu_ranks": 1, "nodes": 2}, "cpu_ranks", "one machine"),
        ({"map": {"0": 0, "1": "gpu"}}, "map", "There is no GPU gpu"),
    ],
)
def test_what_does_not_fit_is_refused(body: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(DistError, match=message) as caught:
        placed(4, **body)
    assert caught.value.field == field


def record(placement: Placement) -> PoolRecord:
    """Return what the record of a running pool says of it."""
    fields = Allocation(placement).fields
    return PoolRecord(
        "p", None, "", start_method="fork", python="", cwd="", **fields | {"state": "RUNNING"}
    )


@pytest.mark.parametrize("body", HYBRIDS)
def test_the_same_start_uses_the_running_pool(body: dict[str, Any]) -> None:
    running = record(placed(4, **body))
    assert can_reuse(PoolRequest.from_json(body), running)
    assert not can_reuse(PoolRequest.from_json({"num_ranks": 4, "cpu_ranks": 1}), running)
    assert not can_reuse(
        PoolRequest.from_json({"map": {"0": 0, "1": 1, "2": 2, "3": "cpu"}}), running
    )


def test_without_gpus_the_same_start_uses_it_too() -> None:
    running = record(placed(0, **HYBRIDS[0]))
    assert all(
        can_reuse(PoolRequest.from_json(body), running) for body in HYBRIDS[:1] + HYBRIDS[3:]
    )

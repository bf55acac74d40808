"""Which GPU each rank gets, as the README of the magics promises."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_dist_server.errors import DistError
from jupyter_dist_server.gpus.inventory import NO_GPU, Gpu, Inventory
from jupyter_dist_server.pools.environment import agent_environment
from jupyter_dist_server.pools.placement import Placement, narrow, place

NO_GPUS = Inventory(reason=NO_GPU)


def machine(count: int, name: str = "NVIDIA H100") -> Inventory:
    """Return a machine with some GPUs."""
    return Inventory(
        tuple(
            Gpu(index, f"GPU-{index}", name, 80 * 2**30, f"00000000:0{index + 1}:00.0", "9.0")
            for index in range(count)
        ),
        "570.00",
    )


def indices(placement: Placement) -> list[int | None]:
    """Return the index of each rank's GPU."""
    return [gpu and gpu.index for gpu in placement.gpus]


def devices(placement: Placement) -> list[str]:
    """Return the torch device of each rank."""
    return [placement.device(rank) for rank in range(len(placement.gpus))]


def mask(placement: Placement) -> str | None:
    """Return what CUDA may see."""
    return agent_environment({}, {}, placement).get("CUDA_VISIBLE_DEVICES")


def refused(*arguments: Any) -> DistError:
    """Return the error that a request gets."""
    with pytest.raises(DistError) as caught:
        place(*arguments)
    return caught.value


def test_by_default_each_gpu_gets_a_rank() -> None:
    placement = place(None, None, None, machine(4))
    assert indices(placement) == [0, 1, 2, 3]
    assert devices(placement) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert (placement.policy, placement.backend) == ("cycle", "cpu:gloo,cuda:nccl")
    assert placement.notices == ()


def test_ranks_take_the_first_gpus() -> None:
    placement = place(4, None, None, machine(8))
    assert indices(placement) == [0, 1, 2, 3]
    assert mask(placement) == "0,1,2,3"


def test_gpu_ids_choose() -> None:
    placement = place(2, (0, 1), None, machine(4))
    assert indices(placement) == [0, 1]
    assert (placement.policy, placement.backend) == ("ids", "cpu:gloo,cuda:nccl")


def test_gpu_ids_skip_slower_gpus() -> None:
    """`gpu 3` is the second that CUDA sees, so rank 1 uses cuda:1 as torchrun's libraries do."""
    placement = place(2, (0, 3), None, machine(4))
    assert indices(placement) == [0, 3]
    assert devices(placement) == ["cuda:0", "cuda:1"]
    assert mask(placement) == "0,3"


def test_gpu_ids_alone_give_the_number_of_ranks() -> None:
    assert indices(place(None, (1, 3), None, machine(4))) == [1, 3]


def test_the_order_of_gpu_ids_is_kept() -> None:
    placement = place(2, (3, 0), None, machine(4))
    assert indices(placement) == [3, 0]
    assert mask(placement) == "0,3"
    assert devices(placement) == ["cuda:1", "cuda:0"]


def test_fewer_ranks_than_gpu_ids_take_the_first() -> None:
    placement = place(1, (2, 3), None, machine(4))
    assert indices(placement) == [2]
    assert mask(placement) == "2"
    assert devices(placement) == ["cuda:0"]


def test_gpus_can_be_named_by_uuid() -> None:
    assert indices(place(2, ("GPU-3", 1), None, machine(4))) == [3, 1]


def test_many_ranks_cycle_through_gpu_ids_with_gloo_and_a_notice() -> None:
    placement = place(4, (0, 1), None, machine(4))
    assert indices(placement) == [0, 1, 0, 1]
    assert devices(placement) == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    assert (placement.policy, placement.backend) == ("ids", "gloo")
    (notice,) = placement.notices
    for part in ("gloo", "rank 0 → GPU 0", "rank 1 → GPU 1", "rank 2 → GPU 0", "rank 3 → GPU 1"):
        assert part in notice


def test_many_ranks_cycle_through_all_gpus() -> None:
    placement = place(5, None, None, machine(2))
    assert indices(placement) == [0, 1, 0, 1, 0]
    assert (placement.policy, placement.backend) == ("cycle", "gloo")
    assert len(placement.notices) == 1


def test_one_gpu_named_twice_is_shared() -> None:
    placement = place(2, (1, 1), None, machine(2))
    assert indices(placement) == [1, 1]
    assert placement.backend == "gloo"


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_nccl_on_shared_gpus_is_refused_with_the_numbers(backend: str) -> None:
    error = refused(4, (0, 1), backend, machine(4))
    assert (error.code, error.field) == ("backend_needs_gpu", "backend")
    assert "4 ranks, only 2 GPUs" in error.message
    assert "gloo" in error.hint


@pytest.mark.parametrize("backend", ["nccl", "gloo", "cpu:gloo,cuda:nccl"])
def test_the_backend_that_was_asked_for_is_taken(backend: str) -> None:
    placement = place(2, None, backend, machine(2))
    assert placement.backend == backend
    assert placement.notices == ()


@pytest.mark.parametrize("unknown", [5, -1, "GPU-9", "abc"])
def test_a_gpu_that_is_not_there_is_named_with_those_that_are(unknown: int | str) -> None:
    error = refused(2, (0, unknown), None, machine(3))
    assert (error.code, error.field) == ("unknown_gpu", "gpu_ids")
    assert str(unknown) in error.message
    for index in range(3):
        assert f"{index} (NVIDIA H100)" in error.hint


def test_without_gpus_ranks_run_on_the_cpu() -> None:
    placement = place(None, None, None, NO_GPUS)
    assert devices(placement) == ["cpu", "cpu"]
    assert (placement.policy, placement.backend) == ("cycle", "gloo")
    assert placement.notices == ()
    assert mask(placement) is None
    assert devices(place(3, None, "gloo", NO_GPUS)) == ["cpu"] * 3


def test_without_gpus_gpu_ids_are_ignored_with_a_notice() -> None:
    placement = place(2, (0, 5), None, NO_GPUS)
    assert devices(placement) == ["cpu", "cpu"]
    (notice,) = placement.notices
    assert notice.startswith("GPU ids are ignored")
    assert NO_GPU in notice


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_without_gpus_nccl_is_refused_with_the_reason(backend: str) -> None:
    error = refused(2, None, backend, NO_GPUS)
    assert (error.code, error.field) == ("backend_needs_gpu", "backend")
    assert NO_GPU in error.message


@pytest.mark.parametrize(
    ("visible", "allowed"),
    [
        (None, [0, 1, 2, 3]),
        ("2", [2]),
        ("3,1", [3, 1]),
        ("GPU-0002", [2]),
        ("1,9,2", [1]),
        ("", []),
        ("-1", []),
    ],
)
def test_an_inherited_mask_narrows_what_may_be_used(
    visible: str | None, allowed: list[int]
) -> None:
    gpus = tuple(Gpu(i, f"GPU-000{i}-abc", "H100", 80, f"00:0{i}", "9.0") for i in range(4))
    left = narrow(Inventory(gpus, "580"), visible)
    assert [gpu.index for gpu in left.gpus] == allowed
    assert bool(left.reason) == (not allowed)
    if not allowed:
        notices = place(None, None, None, left).notices
        assert "allows no GPU of this machine." in notices[0]

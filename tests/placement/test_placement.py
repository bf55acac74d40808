"""Which GPU each rank gets, and why a request is refused."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from jupyter_dist_server.agent.ranks.rank_environment import rank_environment
from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.protocol.sampler_messages import GpuProcess
from jupyter_dist_server.gpus.gpu_state import GpuState
from jupyter_dist_server.gpus.inventory import NO_GPU, Gpu, Inventory
from jupyter_dist_server.gpus.used_without_lease import in_use
from jupyter_dist_server.jobs.leases.lease import GpuLease
from jupyter_dist_server.jobs.schedule.situation import Waiting
from jupyter_dist_server.placement.ranks_to_gpus import (
    GpusTaken,
    Placement,
    allowed,
    place,
    place_ranks,
)
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.placement.unavailable_gpus import unavailable
from jupyter_dist_server.pools.processes.start_agent import agent_environment

NO_GPUS = Inventory(reason=NO_GPU)
GB = 2**30


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


def placed(
    inventory: Inventory,
    samples: dict[str, Any] | None = None,
    reasons: dict[str, str] | None = None,
    **request: Any,
) -> Placement:
    """Return what a request gets."""
    return place(PoolRequest(**request), inventory, samples, reasons)


def refused(*arguments: Any, **request: Any) -> DistError:
    """Return the error that a request gets."""
    with pytest.raises(DistError) as caught:
        placed(*arguments, **request)
    return caught.value


def free(*gigabytes: float) -> dict[str, dict[str, float]]:
    """Return samples of GPUs with so much free memory."""
    return {f"GPU-{index}": {"memory_free": size * GB} for index, size in enumerate(gigabytes)}


def test_by_default_each_gpu_gets_a_rank() -> None:
    placement = placed(machine(4))
    assert indices(placement) == [0, 1, 2, 3]
    assert devices(placement) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert (placement.policy, placement.backend) == ("cycle", "cpu:gloo,cuda:nccl")
    assert placement.notices == ()


def test_ranks_take_the_first_gpus() -> None:
    placement = placed(machine(8), num_ranks=4)
    assert indices(placement) == [0, 1, 2, 3]
    assert mask(placement) == "0,1,2,3"


def test_gpu_ids_choose() -> None:
    placement = placed(machine(4), num_ranks=2, gpu_ids=(0, 1))
    assert indices(placement) == [0, 1]
    assert (placement.policy, placement.backend) == ("ids", "cpu:gloo,cuda:nccl")


def test_gpu_ids_skip_slower_gpus() -> None:
    """`gpu 3` is the second that CUDA sees, so rank 1 uses cuda:1 as torchrun's libraries do."""
    placement = placed(machine(4), num_ranks=2, gpu_ids=(0, 3))
    assert indices(placement) == [0, 3]
    assert devices(placement) == ["cuda:0", "cuda:1"]
    assert mask(placement) == "0,3"


def test_gpu_ids_alone_give_the_number_of_ranks() -> None:
    assert indices(placed(machine(4), gpu_ids=(1, 3))) == [1, 3]


def test_the_order_of_gpu_ids_is_kept() -> None:
    placement = placed(machine(4), num_ranks=2, gpu_ids=(3, 0))
    assert indices(placement) == [3, 0]
    assert mask(placement) == "3,0", "LOCAL_RANK 0 is the first that CUDA shows"
    assert devices(placement) == ["cuda:0", "cuda:1"]


def test_fewer_ranks_than_gpu_ids_take_the_first() -> None:
    placement = placed(machine(4), num_ranks=1, gpu_ids=(2, 3))
    assert indices(placement) == [2]
    assert mask(placement) == "2"
    assert devices(placement) == ["cuda:0"]


def test_gpus_can_be_named_by_uuid() -> None:
    assert indices(placed(machine(4), num_ranks=2, gpu_ids=("GPU-3", 1))) == [3, 1]


def test_many_ranks_cycle_through_gpu_ids_with_gloo_and_a_notice() -> None:
    placement = placed(machine(4), num_ranks=4, gpu_ids=(0, 1))
    assert indices(placement) == [0, 1, 0, 1]
    assert devices(placement) == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    assert (placement.policy, placement.backend) == ("ids", "gloo")
    (notice,) = placement.notices
    for part in ("gloo", "rank 0 → GPU 0", "rank 1 → GPU 1", "rank 2 → GPU 0", "rank 3 → GPU 1"):
        assert part in notice


def test_many_ranks_cycle_through_all_gpus() -> None:
    placement = placed(machine(2), num_ranks=5)
    assert indices(placement) == [0, 1, 0, 1, 0]
    assert (placement.policy, placement.backend) == ("cycle", "gloo")
    assert len(placement.notices) == 1


def test_one_gpu_named_twice_is_shared() -> None:
    placement = placed(machine(2), num_ranks=2, gpu_ids=(1, 1))
    assert indices(placement) == [1, 1]
    assert placement.backend == "gloo"


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_nccl_on_shared_gpus_is_refused_with_the_numbers(backend: str) -> None:
    error = refused(machine(4), num_ranks=4, gpu_ids=(0, 1), backend=backend)
    assert (error.code, error.field) == ("backend_needs_gpu", "backend")
    assert "4 ranks, only 2 GPUs" in error.message
    assert "gloo" in error.hint


@pytest.mark.parametrize("backend", ["nccl", "gloo", "cpu:gloo,cuda:nccl"])
def test_the_backend_that_was_asked_for_is_taken(backend: str) -> None:
    placement = placed(machine(2), num_ranks=2, backend=backend)
    assert placement.backend == backend
    assert placement.notices == ()


@pytest.mark.parametrize("unknown", [5, -1, "GPU-9", "abc"])
def test_a_gpu_that_is_not_there_is_named_with_those_that_are(unknown: int | str) -> None:
    error = refused(machine(3), num_ranks=2, gpu_ids=(0, unknown))
    assert (error.code, error.field) == ("unknown_gpu", "gpu_ids")
    assert str(unknown) in error.message
    for index in range(3):
        assert f"{index} (NVIDIA H100)" in error.hint


def test_without_gpus_ranks_run_on_the_cpu() -> None:
    placement = placed(NO_GPUS)
    assert devices(placement) == ["cpu", "cpu"]
    assert (placement.policy, placement.backend) == ("cycle", "gloo")
    assert placement.notices == ()
    assert mask(placement) is None
    assert devices(placed(NO_GPUS, num_ranks=3, backend="gloo")) == ["cpu"] * 3


def test_without_gpus_gpu_ids_are_ignored_with_a_notice() -> None:
    placement = placed(NO_GPUS, num_ranks=2, gpu_ids=(0, 5))
    assert devices(placement) == ["cpu", "cpu"]
    (notice,) = placement.notices
    assert notice.startswith("GPU IDs are ignored")
    assert NO_GPU in notice


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_without_gpus_nccl_is_refused_with_the_reason(backend: str) -> None:
    error = refused(NO_GPUS, num_ranks=2, backend=backend)
    assert (error.code, error.field) == ("backend_needs_gpu", "backend")
    assert error.message == f"The backend {backend} needs GPUs. No NVIDIA GPU found."


# -- GPUs that can't be had -----------------------------------------------------------------------


def test_by_default_the_free_gpus_are_taken_and_why_not_the_others() -> None:
    reasons = {"GPU-0": "leased by bob", "GPU-2": "used by python, pid 812, user bob, 31 GiB"}
    placement = placed(machine(4), reasons=reasons)
    assert indices(placement) == [1, 3]
    assert placement.notices == (
        "Not used: GPU 0 is leased by bob; GPU 2 is used by python, pid 812, user bob, 31 GiB.",
    )


def test_more_ranks_than_free_gpus_cycle_and_both_are_said() -> None:
    placement = placed(machine(3), reasons={"GPU-1": "leased by bob"}, num_ranks=3)
    assert (indices(placement), placement.backend) == ([0, 2, 0], "gloo")
    assert [notice.partition(" ")[0] for notice in placement.notices] == ["Not", "More"]


def test_no_free_gpu_says_who_has_them() -> None:
    reasons = dict.fromkeys(("GPU-0", "GPU-2"), "leased by bob") | {"GPU-1": "leased by eve"}
    error = refused(machine(3), reasons=reasons)
    assert isinstance(error, GpusTaken)
    assert error.message == "No GPU is free: GPUs 0, 2 are leased by bob; GPU 1 is leased by eve."
    assert "--wait" in error.hint and "--force" not in error.hint


@pytest.mark.parametrize("how", [{"gpu_ids": (0, 1)}, {"map": {0: 1, 1: 0}}])
def test_a_named_gpu_that_is_taken_is_refused(how: dict[str, Any]) -> None:
    reasons = {"GPU-1": "used by python, pid 812, user bob, 31 GiB"}
    error = refused(machine(4), reasons=reasons, **how)
    assert isinstance(error, GpusTaken)
    assert error.message == "GPU 1 is used by python, pid 812, user bob, 31 GiB."
    assert "--force" in error.hint


def test_a_named_gpu_that_no_rank_needs_may_be_taken() -> None:
    reasons = {"GPU-1": "leased by bob"}
    assert indices(placed(machine(2), reasons=reasons, gpu_ids=(0, 1), num_ranks=1)) == [0]


@pytest.mark.parametrize("how", [{"wait": 60.0}, {"one_rank_per_gpu": True}])
def test_who_waits_or_does_not_share_wants_a_gpu_for_each_rank(how: dict[str, Any]) -> None:
    reasons = {"GPU-1": "leased by bob"}
    error = refused(machine(3), reasons=reasons, num_ranks=3, **how)
    assert isinstance(error, GpusTaken)
    assert "Only 2 of 3 GPUs are free for 3 ranks" in error.message
    assert indices(placed(machine(3), reasons=reasons, num_ranks=2, **how)) == [0, 2]


def test_who_waits_for_more_ranks_than_there_are_gpus_waits_for_all_of_these() -> None:
    assert indices(placed(machine(2), num_ranks=3, wait=60.0)) == [0, 1, 0]
    assert isinstance(
        refused(machine(2), reasons={"GPU-0": "leased"}, num_ranks=3, wait=60.0), GpusTaken
    )


def test_one_rank_per_gpu_refuses_two_ranks_on_one_gpu_with_the_numbers() -> None:
    error = refused(machine(4), num_ranks=4, gpu_ids=(0, 1), one_rank_per_gpu=True)
    assert (error.code, error.field) == ("not_enough_gpus", "one_rank_per_gpu")
    assert "need 4 ranks, only 2 GPUs" in error.message
    assert (
        "need 3 ranks, only 2 GPUs"
        in refused(machine(2), num_ranks=3, one_rank_per_gpu=True).message
    )
    assert placed(machine(4), num_ranks=2, one_rank_per_gpu=True).backend == "cpu:gloo,cuda:nccl"


# -- policies -------------------------------------------------------------------------------------


def test_free_memory_takes_the_emptiest_first() -> None:
    samples = free(10, 70, 5, 70)
    placement = placed(machine(4), samples, num_ranks=3, placement="free-memory")
    assert (indices(placement), placement.policy) == ([1, 3, 0], "free-memory")
    assert placement.notices == (
        "Placement by free memory: GPU 1 (70 GiB), GPU 3 (70 GiB), GPU 0 (10 GiB).",
    )


def test_a_gpu_short_of_memory_is_left_out_or_refused() -> None:
    samples = free(10, 70)
    placement = placed(machine(2), samples, min_free_memory=20 * GB)
    assert (indices(placement), placement.policy) == ([1], "free-memory")
    assert "GPU 0 is too full (10 GiB free, 20 GiB needed)" in placement.notices[0]
    error = refused(machine(2), samples, min_free_memory=20 * GB, gpu_ids=(0,))
    assert isinstance(error, GpusTaken)


def test_more_memory_than_any_gpu_has_is_refused_for_good() -> None:
    error = refused(machine(2), free(70, 70), min_free_memory=200 * GB, wait=60.0)
    assert (error.code, error.field) == ("not_enough_memory", "min_free_memory")
    assert "No GPU has 200 GiB" in error.message and "80 GiB" in error.message


def test_free_memory_that_nobody_knows_is_not_guessed() -> None:
    error = refused(machine(2), free(70), placement="free-memory")
    assert "free memory of GPU 1" in error.message


def test_performance_takes_the_best_first() -> None:
    scores = {0: 100.0, 1: 90.0, 2: 80.0, "3": 110.0}
    placement = placed(machine(4), num_ranks=2, performance=scores)
    assert (indices(placement), placement.policy) == ([3, 0], "performance")
    assert placement.notices == ("Placement by performance: GPU 3 (110), GPU 0 (100).",)


def test_performance_uses_only_gpus_that_have_a_score() -> None:
    assert indices(placed(machine(4), performance={0: 100.0, 3: 110.0})) == [3, 0]
    error = refused(machine(4), performance={0: 100.0}, gpu_ids=(3,))
    assert (error.code, error.field) == ("unknown_gpu", "performance")


def test_performance_comes_from_the_inventory_without_scores() -> None:
    slow, fast, fastest, unknown = machine(4).gpus
    gpus = (
        replace(slow, compute_capability="8.0", sm_count=108, clock_max=1410),
        replace(fast, sm_count=114, clock_max=1755),
        replace(fastest, sm_count=132, clock_max=1980),
    )
    assert indices(placed(Inventory(gpus), placement="performance")) == [2, 1, 0]
    error = refused(Inventory((*gpus, unknown)), placement="performance")
    assert "performance of GPU 3" in error.message and "--performance" in error.hint


def test_a_map_gives_each_rank_its_gpu() -> None:
    placement = placed(machine(4), map={0: 3, 1: "GPU-0"})
    assert (indices(placement), placement.policy) == ([3, 0], "map")
    assert (mask(placement), devices(placement)) == ("3,0", ["cuda:0", "cuda:1"])
    assert placed(machine(4), map={0: 2, 1: 2}).backend == "gloo"
    error = refused(machine(2), map={0: 5})
    assert (error.code, error.field) == ("unknown_gpu", "map")


def test_other_policies_choose_among_the_gpu_ids() -> None:
    samples = free(10, 70, 20, 80)
    placement = placed(machine(4), samples, gpu_ids=(0, 1, 2), placement="free-memory", num_ranks=2)
    assert indices(placement) == [1, 2]
    taken_one = {"GPU-1": "leased by bob"}
    assert indices(placed(machine(4), reasons=taken_one, gpu_ids=(1, 2), placement="cycle")) == [2]


def test_without_gpus_placement_is_ignored_with_a_notice() -> None:
    for how in ({"placement": "performance"}, {"min_free_memory": GB}, {"performance": {0: 1.0}}):
        (notice,) = placed(NO_GPUS, **how).notices
        assert notice == f"GPU placement is ignored: {NO_GPU}"
    assert len(placed(NO_GPUS, map={0: 0, 1: 0, 2: 0}).gpus) == 3


# -- MIG, lost GPUs, masks ------------------------------------------------------------------------


def parts(count: int) -> Inventory:
    """Return a machine with one whole GPU, and MIG instances of the other."""
    whole = machine(1).gpus[0]
    return Inventory(
        (
            whole,
            *(
                replace(whole, index=1, uuid=f"MIG-{n}", mig=n, parent="GPU-1")
                for n in range(count)
            ),
        )
    )


def test_each_rank_on_a_mig_instance_sees_its_own_alone() -> None:
    placement = placed(parts(3), gpu_ids=("1:0", "MIG-2"))
    assert [placement.mask(rank) for rank in range(2)] == ["MIG-0", "MIG-2"]
    assert devices(placement) == ["cuda:0", "cuda:0"]
    assert placement.backend == "gloo"
    (notice,) = placement.notices
    assert "MIG" in notice and "gloo" in notice and "cuda:0" in notice
    environment = rank_environment(1, 2, "p-1", (1234, 1235), placement.mask(1))
    assert environment["CUDA_VISIBLE_DEVICES"] == "MIG-2"


def test_whole_gpus_beside_mig_instances_are_named_by_uuid() -> None:
    placement = placed(parts(2))
    assert [placement.mask(rank) for rank in range(3)] == ["GPU-0", "MIG-0", "MIG-1"]
    assert devices(placement) == ["cuda:0"] * 3


def test_nccl_between_mig_instances_is_refused() -> None:
    error = refused(parts(2), gpu_ids=("1:0", "1:1"), backend="nccl")
    assert error.field == "backend" and "MIG" in error.message
    assert placed(parts(2), gpu_ids=("1:0",), backend="nccl").backend == "nccl"


def test_a_divided_gpu_is_no_gpu() -> None:
    error = refused(parts(2), gpu_ids=(1,))
    assert "1:0 (MIG-0), 1:1 (MIG-1)" in error.hint
    assert indices(placed(parts(1), gpu_ids=(1,))) == [1]


def test_a_uuid_may_be_shortened_as_long_as_it_is_clear() -> None:
    gpus = tuple(replace(gpu, uuid=f"GPU-{gpu.index}abc") for gpu in machine(2).gpus)
    assert indices(placed(Inventory(gpus), gpu_ids=("GPU-1a",))) == [1]
    error = refused(Inventory(gpus), gpu_ids=("GPU-",))
    assert error.code == "unknown_gpu" and "GPU-0abc" in error.hint


def test_a_lost_gpu_is_told_and_masks_name_the_others_by_uuid() -> None:
    lost = "GPU 1 has fallen off the bus."
    whole = machine(3)
    inventory = Inventory((whole.gpus[0], whole.gpus[2]), problems=(lost,))
    placement = placed(inventory)
    assert mask(placement) == "GPU-0,GPU-2"
    assert devices(placement) == ["cuda:0", "cuda:1"]
    assert placement.notices == (lost,)
    assert lost in refused(inventory, gpu_ids=(1,)).hint


def test_groups_use_the_loopback_unless_the_user_names_another_interface() -> None:
    placement = placed(machine(1))
    names = ["GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"]
    loopback = "lo" if sys.platform == "linux" else "lo0"
    env = agent_environment({}, {}, placement)
    assert [env[name] for name in names] == [loopback] * 2
    for base, extra in ((dict.fromkeys(names, "eth0"), {}), ({}, dict.fromkeys(names, "eth0"))):
        env = agent_environment(base, extra, placement)
        assert [env[name] for name in names] == ["eth0"] * 2


# -- masks and Slurm ------------------------------------------------------------------------------


def test_an_inherited_mask_narrows_what_may_be_used() -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "3,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    request = PoolRequest(base_env=environment)
    assert indices(place_ranks(request, allowed(request, machine(4)))) == [3, 1]
    request = PoolRequest(base_env=environment, env={"CUDA_VISIBLE_DEVICES": ""})
    placement = place_ranks(request, allowed(request, machine(4)))
    assert indices(placement) == [None, None] and "CUDA_VISIBLE_DEVICES" in placement.notices[0]


def in_slurm(**variables: str) -> dict[str, str]:
    """Return the environment of a Slurm job."""
    return {"SLURM_JOB_ID": "1"} | {f"SLURM_{name}": value for name, value in variables.items()}


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        (in_slurm(NTASKS="3"), 3),
        (in_slurm(NTASKS="1"), 4),
        ({"SLURM_NTASKS": "3"}, 4),
        (in_slurm(NTASKS="8", JOB_NUM_NODES="4", NTASKS_PER_NODE="2"), 2),
        (in_slurm(NTASKS="8", JOB_NUM_NODES="4"), 4),
    ],
)
def test_slurms_tasks_are_the_number_of_ranks(environment: dict[str, str], ranks: int) -> None:
    placement = place_ranks(PoolRequest(base_env=environment), machine(4))
    assert len(placement.gpus) == ranks
    assert any("SLURM_NTASKS" in notice for notice in placement.notices) == (ranks < 4)
    for more in ({"num_ranks": 1}, {"gpu_ids": (0,)}, {"map": {0: 0}}):
        assert len(place_ranks(PoolRequest(base_env=environment, **more), machine(4)).gpus) == 1


@pytest.mark.parametrize(
    "environment",
    [
        in_slurm(NTASKS="3000000"),
        in_slurm(JOB_NUM_NODES="2", NTASKS_PER_NODE="1025"),
    ],
)
def test_slurms_tasks_are_bounded_as_ranks_are(environment: dict[str, str]) -> None:
    for asked in (PoolRequest(base_env=environment), PoolRequest(base_env={}, env=environment)):
        with pytest.raises(DistError, match="is too large: a pool has at most 1024") as refused:
            place_ranks(asked, machine(4))
        assert (refused.value.code, refused.value.field) == ("bad_request", "num_ranks")
        assert len(place_ranks(replace(asked, num_ranks=2), machine(4)).gpus) == 2


@pytest.mark.parametrize(
    ("environment", "allowed_gpus"),
    [
        (in_slurm(JOB_GPUS="2,3"), [2, 3]),
        (in_slurm(JOB_GPUS="1-2"), [1, 2]),
        (in_slurm(JOB_GPUS="4,5,6,7"), [0, 1, 2, 3]),  # we see no more than the job's, renumbered
        (in_slurm(JOB_GPUS="2,3") | {"CUDA_VISIBLE_DEVICES": "1"}, [1]),
        (in_slurm(JOB_GPUS="8,9"), []),
        (in_slurm(JOB_GPUS="2-999999999"), [0, 1, 2, 3]),
        ({"SLURM_JOB_GPUS": "2"}, [0, 1, 2, 3]),
    ],
)
def test_slurms_gpus_are_the_only_ones(
    environment: dict[str, str], allowed_gpus: list[int]
) -> None:
    left = allowed(PoolRequest(base_env=environment), machine(4))
    assert [gpu.index for gpu in left.gpus] == allowed_gpus
    assert bool(left.reason) == (not allowed_gpus)


def test_ranks_see_slurms_variables_as_if_it_had_started_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not [name for name in rank_environment(2, 4, "p-1", (1, 2), None) if "SLURM" in name]
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    environment = rank_environment(2, 4, "p-1", (1, 2), None)
    assert (environment["SLURM_PROCID"], environment["SLURM_NTASKS"]) == ("2", "4")


def test_nccl_ends_no_rank_unless_the_user_wants_that(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCH_NCCL_RETHROW_CUDA_ERRORS", "TORCH_NCCL_ENABLE_MONITORING"):
        monkeypatch.delenv(name, raising=False)
    environment = rank_environment(0, 1, "p-1", (1, 2), None)
    assert environment["TORCH_NCCL_RETHROW_CUDA_ERRORS"] == "0"
    monkeypatch.setenv("TORCH_NCCL_RETHROW_CUDA_ERRORS", "1")
    environment = rank_environment(0, 1, "p-1", (1, 2), None)
    assert environment["TORCH_NCCL_RETHROW_CUDA_ERRORS"] == "1"
    assert environment["TORCH_NCCL_ENABLE_MONITORING"] == "0"


# -- why GPUs are taken ---------------------------------------------------------------------------


def row(pid: int, memory: int | None, command: str | None = "python") -> GpuProcess:
    return GpuProcess(pid, command and "bob", command, memory, None)


def lease(since: float = 0.0, shared: bool = False, others: Iterable[GpuLease] = ()) -> GpuLease:
    since = since or time.time()
    return GpuLease(
        user="bob",
        pool="p-1",
        notebook="a.ipynb",
        since=since,
        shared=shared,
        others=[*others],
    )


def why(request: PoolRequest, leases: Any = None, rows: Any = None, line: Any = ()) -> str:
    """Return why one GPU is taken."""
    one = Inventory((Gpu(0, "G", "", 80 * GB, "", ""),))
    uses = in_use(GpuState(one, processes={"G": rows or []}))
    found = unavailable(request, {"G": leases} if leases else {}, uses, line, {})
    return found.get("G", "")


def test_a_foreign_process_with_real_memory_takes_a_gpu() -> None:
    rows = [row(812, 31 * GB), row(7, 10 * 2**20)]
    assert why(PoolRequest(), rows=rows) == "used by python, pid 812, user bob, 31 GiB"
    assert why(PoolRequest(force=True), rows=rows) == ""
    assert why(PoolRequest(), rows=rows[1:]) == ""


def test_the_notebooks_own_kernel_is_not_foreign() -> None:
    request = PoolRequest(kernel_pid=812)
    assert why(request, rows=[row(812, GB)]) == ""
    assert "pid 813" in why(request, rows=[row(813, GB)])
    assert "container" in why(request, rows=[row(812, GB, command=None)])  # the host's 812


def test_a_lease_is_told_with_holder_notebook_and_time() -> None:
    since = time.mktime((2024, 3, 5, 14, 2, 0, 0, 0, -1))
    said = why(PoolRequest(force=True), lease(since=since))
    assert said == "leased by bob (pool p-1 of a.ipynb, since 05 Mar, 14:02)"
    assert why(PoolRequest(), GpuLease(user=None, shared=False, others=[])).startswith("locked")


def test_a_shared_lease_is_no_obstacle_for_those_who_share() -> None:
    shared, rows = lease(shared=True, others=[lease()]), [row(812, GB)]
    assert why(PoolRequest(oversubscribe=True), shared, rows) == ""
    assert "shared with 1 more" in why(PoolRequest(), shared)
    assert why(PoolRequest(oversubscribe=True), lease()).startswith("leased by bob")
    assert why(PoolRequest(oversubscribe=True), None, rows).startswith("used by python")


def test_who_stands_in_line_comes_first() -> None:
    waiting = Waiting("bob", "p-1", "a.ipynb", time.time(), frozenset("G"))
    assert why(PoolRequest(force=True, oversubscribe=True), line=[waiting]).startswith(
        "reserved for bob"
    )

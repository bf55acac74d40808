"""GPUs are looked for, leased and waited for, without starting ranks on them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.protocol.offers import InLine, Offer
from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state
from jupyter_dist_server.gpus.used_without_lease import UNSEEN
from jupyter_dist_server.jobs.schedule.board import posted, wants_of
from jupyter_dist_server.notebook.custom_placement import FreeGpu, custom_map
from jupyter_dist_server.placement.allocate_gpus import Allocator
from jupyter_dist_server.placement.new_pool_record import new_record
from jupyter_dist_server.placement.ranks_to_gpus import GpusTaken
from jupyter_dist_server.placement.requests.request import PoolRequest

from ..fake_nvml.build import State
from ..fake_nvml.four_gpus import MACHINE, NAMES
from ..jobs.queue_driver import AS_OTHER
from ..waiting import PATIENCE


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that is no rank."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield process
    process.kill()
    process.wait()


def ask(**fields: Any) -> Allocator:
    """Return who gets GPUs, and sees pids as outside of a container."""
    request = PoolRequest.from_json(fields)
    return Allocator(request, new_record(request), partial(read_gpu_state, host_pids=True))


async def test_a_process_that_leases_nothing_is_named_and_can_be_overridden(
    gpus: State, stranger: subprocess.Popen[bytes]
) -> None:
    gpus.update(**{"1.process": [f"{stranger.pid},{31 * 2**30},50", f"{os.getpid()},1048576,0"]})
    process = psutil.Process(stranger.pid)
    said = f"{process.name()}, pid {stranger.pid}, user {process.username()}, 31 GiB"
    with pytest.raises(DistError) as refused:
        await ask(gpu_ids=[1]).now()
    assert refused.value.message == f"GPU 1 is used by {said}."
    assert "--force" in refused.value.hint
    free = await ask().now()
    assert [gpu.index for gpu in free.placement.gpus if gpu] == [0, 2, 3]
    assert free.placement.notices == (f"Not used: GPU 1 is used by {said}.",)
    forced = await ask(gpu_ids=[1], force=True).now()
    free.close()
    forced.close()
    kernels = await ask(gpu_ids=[1], kernel_pid=stranger.pid).now()
    kernels.close()


async def test_pools_that_share_bear_each_other_and_their_processes(
    gpus: State, stranger: subprocess.Popen[bytes]
) -> None:
    first = await ask(gpu_ids=[0], oversubscribe=True).now()
    gpus.update(**{"0.process": f"{stranger.pid},{2**30},50"})
    second = await ask(gpu_ids=[0], oversubscribe=True).now()
    assert (first.leased, second.leased) == ("shared", "shared")
    with pytest.raises(DistError, match=r"GPU 0 is leased by .* and shared with 1 more"):
        await ask(gpu_ids=[0]).now()
    first.close()
    second.close()


async def test_ranks_that_are_just_ending_are_waited_for(
    gpus: State, stranger: subprocess.Popen[bytes]
) -> None:
    gpus.update(**{"0.process": f"{stranger.pid},{2**30},50"})
    stranger.kill()
    stranger.wait()
    asking = asyncio.create_task(ask(gpu_ids=[0]).now())
    calls = len(gpus.calls("nvmlDeviceGetComputeRunningProcesses"))
    while len(gpus.calls("nvmlDeviceGetComputeRunningProcesses")) == calls:
        await asyncio.sleep(0.01)
    gpus.write(**MACHINE)  # now the driver has noticed its end
    (await asking).close()


HIDDEN = """
import asyncio
from functools import partial
from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.gpus.used_without_lease import UNSEEN
from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state
from jupyter_dist_server.placement.allocate_gpus import Allocator
from jupyter_dist_server.placement.new_pool_record import new_record
from jupyter_dist_server.placement.requests.request import PoolRequest
request = PoolRequest(gpu_ids=(0,))
allocator = Allocator(request, new_record(request), partial(read_gpu_state, host_pids=True))
try:
    asyncio.run(allocator.now())
except DistError as error:
    print(error.message)
"""


@pytest.mark.root
def test_a_process_that_proc_does_not_show_is_not_called_one_outside_a_container(
    gpus: State, tmp_path: Path
) -> None:
    """Nor is its end waited for, as that of one that has just been killed."""
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    gpus.update(**{"0.process": f"1,{2**30},50"})
    gpus.log.touch()
    (tmp_path / "leases").mkdir()
    for path in (gpus.path, gpus.log, tmp_path / "leases"):
        path.chmod(0o777)
    done = subprocess.run(
        [
            *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"),
            'mount -o remount,hidepid=2 /proc || exit 77; "$@"; exit $?',
            *("sh", *AS_OTHER, sys.executable, "-c", HIDDEN),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("namespaces cannot be made here")
    assert done.stdout == "GPU 0 is used by a hidden process, pid 1, 1 GiB.\n", done.stderr
    assert len(gpus.calls("nvmlInit")) == 1


# -- what can be done instead ---------------------------------------------------------------------


async def refusal(**fields: Any) -> GpusTaken:
    with pytest.raises(GpusTaken) as refused:
        await ask(**fields).now()
    return refused.value


async def test_who_names_gpus_that_are_taken_is_offered_what_is_possible(gpus: State) -> None:
    with closing(await ask(gpu_ids=[0, 1], time_limit=3600).now()):
        error = await refusal(gpu_ids=[1, 2], kernel_id="one")
        wait, free, job = error.offers
        assert (
            wait.kind == "wait" and wait.line and (wait.line.place, wait.line.certain) == (1, True)
        )
        assert wait.line.expected == pytest.approx(time.time() + 3600, abs=PATIENCE)
        assert free == Offer("free", gpu_ids=[2, 3])
        assert job == Offer("job", gpus=2)
        assert error.hint.startswith("Wait with --wait (number 1 in line, by ")
        assert error.hint.endswith(", or start on the free GPUs with -n 2 -g 2,3.")
        assert error.to_json()["offers"][1:] == [
            {"kind": "free", "gpu_ids": [2, 3]},
            {"kind": "job", "gpus": 2},
        ]
        over_nodes = await refusal(num_ranks=4, one_rank_per_gpu=True, nodes=2, kernel_id="one")
        assert [offer.kind for offer in over_nodes.offers] == ["wait"]
        error = await refusal(num_ranks=4, one_rank_per_gpu=True)
        assert [offer.kind for offer in error.offers] == ["wait", "free"]
        with closing(await ask(num_ranks=2, gpu_ids=error.offers[1].gpu_ids).now()) as instead:
            assert [gpu.index for gpu in instead.placement.gpus if gpu] == [2, 3]
            assert [offer.kind for offer in (await refusal()).offers] == ["wait"]


async def test_sharing_is_offered_where_the_others_share(gpus: State) -> None:
    with closing(await ask(oversubscribe=True).now()):
        error = await refusal(num_ranks=2)
        assert [offer.kind for offer in error.offers] == ["wait", "share"]
        assert error.hint.endswith("or share them with --oversubscribe.")
        (await ask(num_ranks=2, oversubscribe=True).now()).close()


# -- waiting in line ------------------------------------------------------------------------------


async def test_who_waits_gets_the_gpus_in_the_order_of_coming(gpus: State) -> None:
    holder = await ask().now()
    reasons: dict[int, list[tuple[str, InLine | None]]] = {0: [], 1: []}
    got: list[int] = []

    async def wait(number: int) -> None:
        allocator = ask(num_ranks=3, wait=60)
        with pytest.raises(DistError, match="No GPU is free"):
            await allocator.now()
        allocation = await allocator.in_line(
            lambda reason, line: reasons[number].append((reason, line))
        )
        got.append(number)
        await asked.wait()
        allocation.close()

    asked = asyncio.Event()
    waiting = []
    for number in reasons:
        waiting.append(asyncio.create_task(wait(number)))
        while not reasons[number]:
            await asyncio.sleep(0.01)
    reason, line = reasons[0][0]
    assert "GPUs 0, 1, 2, 3 are leased by" in reason
    assert line and (line.place, line.certain) == (1, False)
    assert line.expected and line.expected > time.time()
    _, line = reasons[1][0]
    assert line and line.place == 2
    assert [want.gpus for want in wants_of(posted())] == [3, 3]
    holder.close()
    with pytest.raises(DistError, match="who is waiting for it"):
        await ask(num_ranks=2, one_rank_per_gpu=True).now()  # nobody gets past them
    asked.set()
    await asyncio.gather(*waiting)
    assert got == [0, 1]
    assert posted() == []


async def test_a_process_that_leases_nothing_is_waited_for_too_up_to_the_limit(
    gpus: State, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_dist_server.placement.allocate_gpus._READ_EVERY", 0.2)
    gpus.update(process=f"{stranger.pid},{2**30},50")
    allocator = ask(wait=0.3)
    with pytest.raises(DistError):
        await allocator.now()
    with pytest.raises(DistError) as refused:
        await allocator.in_line(lambda *_: None)
    assert refused.value.message.startswith(
        "Timed out after 0.3 s waiting for GPUs. No GPU is free: GPUs 0, 1,"
    )
    allocator, told = ask(wait=60), asyncio.Event()
    with pytest.raises(DistError):
        await allocator.now()
    getting = asyncio.create_task(allocator.in_line(lambda *_: told.set()))
    await told.wait()
    gpus.write(**MACHINE)
    (await getting).close()


async def test_a_driver_that_does_not_respond_is_waited_for_and_gives_no_cpu_ranks(
    gpus: State, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_dist_server.placement.allocate_gpus._READ_EVERY", 0.2)
    monkeypatch.setattr(patience, "factor", patience.factor * 10 / patience.driver)
    silent = "The NVIDIA driver has not responded for 10 s."

    def ask(**fields: Any) -> Allocator:
        request = PoolRequest.from_json(fields)
        read = partial(read_gpu_state, host_pids=True)
        return Allocator(request, new_record(request), read)

    async def wait(allocator: Allocator) -> None:
        told: asyncio.Queue[str] = asyncio.Queue()
        getting = asyncio.create_task(allocator.in_line(lambda said, _: told.put_nowait(said)))
        gpus.update(hang="INIT")
        while silent not in await asyncio.wait_for(told.get(), PATIENCE):
            pass
        gpus.write(**MACHINE)
        with closing(await asyncio.wait_for(getting, PATIENCE)) as allocation:
            assert [gpu.index for gpu in allocation.placement.gpus if gpu] == [0, 1]

    gpus.update(process=f"{stranger.pid},{2**30},50")
    allocator = ask(gpu_ids=[0, 1], wait=600)
    with pytest.raises(GpusTaken):
        await allocator.now()
    await wait(allocator)

    gpus.update(hang="INIT")
    with pytest.raises(DistError) as refused:
        await ask(gpu_ids=[0, 1]).now()
    assert refused.value.code == "gpus_unknown"
    assert refused.value.message.startswith(f"It is not known which GPUs there are. {silent}")
    cpu = await ask(base_env={"CUDA_VISIBLE_DEVICES": "-1"}, num_ranks=1).now()
    assert cpu.placement.gpus == (None,)
    allocator = ask(gpu_ids=[0, 1], wait=600)
    with pytest.raises(GpusTaken):
        await allocator.now()
    await wait(allocator)


async def test_who_waits_is_told_of_processes_that_lease_nothing_too(
    gpus: State, stranger: subprocess.Popen[bytes]
) -> None:
    """And is promised no start that counts on their GPUs."""
    gpus.update(**{"2.process": f"{stranger.pid},{2**30},50"})
    long = await ask(gpu_ids=[0, 1], time_limit=3600).now()
    short = await ask(gpu_ids=[3], time_limit=60).now()
    told: asyncio.Queue[tuple[str, InLine | None]] = asyncio.Queue()
    with closing(long):
        allocator = ask(num_ranks=2, wait=600)
        with pytest.raises(GpusTaken):
            await allocator.now()
        getting = asyncio.create_task(allocator.in_line(lambda *said: told.put_nowait(said)))
        reason, line = await told.get()
        assert reason.startswith("No GPU is free: ") and "GPU 2 is used by" in reason
        assert line and line.expected == pytest.approx(time.time() + 3600, abs=PATIENCE)
        short.close()
        reason, _ = await told.get()
        assert reason.startswith("Only 1 of 4 GPUs is free for 2 ranks: ")
        assert "GPU 2 is used by" in reason
    (await asyncio.wait_for(getting, PATIENCE)).close()


async def test_memory_is_waited_for_too(gpus: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_dist_server.placement.allocate_gpus._READ_EVERY", 0.2)
    monkeypatch.setenv(UNSEEN, "inf")
    gpus.update(memory_used=70 * 2**30)
    allocator, told = ask(min_free_memory=20 * 2**30, wait=60), asyncio.Event()
    with pytest.raises(DistError, match="are too full"):
        await allocator.now()
    getting = asyncio.create_task(allocator.in_line(lambda *_: told.set()))
    await told.wait()
    gpus.update(memory_used=0)
    allocation = await asyncio.wait_for(getting, PATIENCE)
    assert allocation.placement.policy == "free-memory"
    allocation.close()


async def test_the_place_in_line_ends_with_the_notebooks_kernel(
    gpus: State, stranger: subprocess.Popen[bytes]
) -> None:
    with closing(await ask().now()):
        allocator, told = ask(wait=True, kernel_pid=stranger.pid), asyncio.Event()
        with pytest.raises(DistError):
            await allocator.now()
        getting = asyncio.create_task(allocator.in_line(lambda *_: told.set()))
        await told.wait()
        assert len(posted()) == 1
        stranger.kill()
        with pytest.raises(DistError) as refused:
            await getting
        assert refused.value.code == "start_cancelled"
        assert posted() == []


# -- what the notebook's user decides -------------------------------------------------------------


async def test_a_mask_that_hides_a_divided_gpu_does_not_make_indices_right(gpus: State) -> None:
    gpus.write(**MACHINE, **{"0.mig": "1g.10gb"})
    environment = {"CUDA_VISIBLE_DEVICES": "GPU-fake-2"}
    with closing(await ask(base_env=environment).now()) as allocation:
        assert allocation.placement.mask(0) == "GPU-fake-2", "CUDA counts divided ones last"


async def test_a_function_is_given_what_the_notebook_itself_uses_and_asked_only_if_gpus_are_free(
    gpus: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "jupyter_dist_server.notebook.custom_placement.read_gpu_state",
        partial(read_gpu_state, host_pids=True),
    )
    gpus.update(**{"1.process": f"{os.getpid()},{2**30},50"})
    given: list[list[int]] = []

    def first(rank: int, free: list[FreeGpu]) -> FreeGpu:
        given.append([gpu.index for gpu in free])
        return free[0]

    with closing(await ask(gpu_ids=[0]).now()):
        assert (await custom_map(first, PoolRequest(num_ranks=1))).map == {0: NAMES[1]}
    assert given == [[1, 2, 3]]
    with closing(await ask(force=True).now()):
        assert (await custom_map(first, PoolRequest(num_ranks=1))).map is None
    assert len(given) == 1

"""GPUs that go away, come back or are used beyond what was asked for."""

from __future__ import annotations

import dataclasses
import os
from contextlib import closing
from typing import Any

import pytest

from jupyter_dist_server.gpus.readers.gpu_reader import GpuReader
from jupyter_dist_server.jobs import dispatcher
from jupyter_dist_server.jobs.dispatcher import Dispatcher, _read_again
from jupyter_dist_server.jobs.leases.lease import running
from jupyter_dist_server.jobs.schedule import waiting_sentences
from jupyter_dist_server.jobs.schedule.situation import Situation
from jupyter_dist_server.jobs.schedule.wants import InUse, Machine, Want
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder
from jupyter_dist_server.jobs.usage_reader import EVERY

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import Queue

UNTIL_GO = ["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"]


def detail(queue: Queue, job: str) -> str:
    return str(queue.show(job)["detail"])


def test_a_gpu_that_is_lost_while_its_job_runs_is_named(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EVERY, "0.1")
    fake_nvml.write(gpus=2)
    job = queue.submit("-c", "0", "-G", "1", *UNTIL_GO)
    queue.until(job, "RUNNING")
    fake_nvml.update(**{"0.lost": 1})
    wait_for(lambda: "GPU-fake-0 does not respond: lost" in detail(queue, job), "the sentence")
    (lease,) = running()
    assert (lease.label, lease.gpus) == (job, ("GPU-fake-0",)), "it keeps its lease"
    (queue.folder / "go").touch()
    assert queue.ended(job)["state"] == "COMPLETED"


def test_a_gpu_that_does_not_tell_its_memory_is_not_lost(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it uses the host's."""
    monkeypatch.setenv(EVERY, "0.1")
    fake_nvml.write(gpus=1, memory="!unsupported", utilization=60)
    job = queue.submit("-c", "0", "-G", "1", *UNTIL_GO)
    said = "GPU load 60 % (peak 60 %)"
    wait_for(lambda: said in queue.run("show", job), "a reading")
    assert "GPU memory" not in queue.run("show", job)
    assert detail(queue, job) == ""
    assert "60 %" in queue.run("info") and "0 B" not in queue.run("info")
    (queue.folder / "go").touch()
    assert queue.ended(job)["state"] == "COMPLETED"


def test_that_the_driver_does_not_respond_is_not_said_as_no_gpus(
    queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=2)
    job = queue.submit("-H", "-G", "1", "true")
    fake_nvml.write(gpus=2, init_error=999)
    said = queue.run("update", "--gpus", "2", job, code=2)
    assert "NVML" in said and "0 GPUs" not in said, said
    fake_nvml.write(gpus=2)
    said = queue.run("update", "--gpus", "3", job, code=2)
    assert "A job cannot have 3 GPUs: this machine has 2 GPUs." in said
    queue.run("update", "--gpus", "2", job)


def test_mig_instances_that_are_made_anew_are_other_gpus(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, mig="1g.10gb,1g.10gb", **{"0:0.uuid": "MIG-a", "0:1.uuid": "MIG-b"})
    running = queue.submit("-c", "0", "--gpu-ids", "MIG-a,MIG-b", *UNTIL_GO)
    queue.until(running, "RUNNING")
    waits = queue.submit("-c", "0", "--gpu-ids", "MIG-b", "true")
    wait_for(lambda: queue.show(waits)["reason"] == "Resources", "the reason")
    fake_nvml.update(reload=1, **{"0:1.uuid": "MIG-c"})
    code = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]
    other = queue.submit("-c", "0", "--gpu-ids", "MIG-c", *code)
    wait_for(lambda: queue.show(other)["reason"] == "ReqNodeNotAvail", "the next reading to be due")
    (queue.folder / "go").touch()
    queue.ended(running)
    wait_for(lambda: queue.show(waits)["reason"] == "ReqNodeNotAvail", "the reason")
    assert "MIG-b" in detail(queue, waits)
    queue.ended(other)
    assert queue.output(other) == "MIG-c\n"
    queue.run("cancel", waits)


def test_no_job_starts_while_the_driver_is_silent(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    running = queue.submit("-c", "0", "-G", "1", *UNTIL_GO)
    queue.until(running, "RUNNING")
    job = queue.submit("-c", "0", "-G", "1", "true")
    wait_for(lambda: queue.show(job)["reason"] == "Resources", "the reason")
    fake_nvml.write(gpus=1, reload=1, init_error=9)
    (queue.folder / "go").touch()
    queue.ended(running)
    wait_for(lambda: queue.show(job)["reason"] == "ReqNodeNotAvail", "the reason")
    assert "No GPU is available: " in detail(queue, job)
    fake_nvml.write(gpus=1, reload=1)
    assert queue.ended(job)["state"] == "COMPLETED", "it is looked for every 30 seconds"


MACHINE = Machine({f"GPU-{n}": 1 for n in range(2)}, cpus=8)


def situation(machine: Machine, held: list[InUse], *wants: Want) -> Situation:
    return Situation(machine, held, [*wants], {}, 1000.0)


@pytest.mark.parametrize("gpus", [0, 1])
def test_gpus_that_are_missing_are_looked_for_again(gpus: int) -> None:
    machine = Machine(dict.fromkeys(list(MACHINE.gpus)[:gpus], 1), cpus=8)
    there = situation(machine, [], Want("1", "me", 1.0, gpus=2))
    assert _read_again(there, there.plan()) == 30.0


def test_only_a_process_without_a_lease_is_looked_at_every_three_seconds() -> None:
    wants = Want("1", "me", 1.0, gpus=2), Want("2", "me", 2.0, gpus=2)
    stranger = dataclasses.replace(MACHINE, blocked=frozenset(["GPU-1"]))
    there = situation(stranger, [], *wants)
    assert _read_again(there, there.plan()) == 3.0
    there = situation(MACHINE, [InUse("7", "me", frozenset(MACHINE.gpus), 900.0)], *wants)
    assert _read_again(there, there.plan()) is None


def test_a_reading_that_is_due_is_made_at_once(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_read_again", lambda *_: 600.0)
    fake_nvml.write(gpus=1, process=f"{os.getpid()},{2**30},50")
    no_zygote: Any = None
    job = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"), gpus=1, cpus=0)
    with closing(Store(store_folder())) as store:
        store.submit([job], "one")
        ours = Dispatcher(store, no_zygote, GpuReader())
        try:
            assert 0.0 < (ours.once() or 0.0) <= 600.0
            ours._seen_at -= 600.0
            assert ours.once() == 0.0
            assert 0.0 < (ours.once() or 0.0) <= 600.0
        finally:
            ours._board.close()
            ours._reader.close()
            store.change([1], state="CANCELLED")


def test_what_a_machine_with_fewer_gpus_cannot_run_waits_and_others_start(
    queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=2)
    large = queue.submit("-H", "-c", "0", "-G", "2", "true")
    running = queue.submit("-c", "0", "-G", "1", *UNTIL_GO)
    queue.until(running, "RUNNING")
    # One that is about to end would be woken, and has seen two GPUs.
    wait_for(lambda: not queue.processes("dist-dispatcher"), "the dispatcher's end")
    fake_nvml.write(gpus=1, reload=1)
    queue.run("release", large)
    wait_for(lambda: queue.show(large)["reason"] == "BadConstraints", "the reason")
    assert detail(queue, large) == "It needs 2 GPUs. This machine has 1."
    (queue.folder / "go").touch()
    queue.ended(running)
    assert queue.ended(queue.submit("-c", "0", "-G", "1", "true"))["state"] == "COMPLETED"
    assert queue.show(large)["state"] == "PENDING"
    queue.run("cancel", large)


def why(there: Situation, number: int, gpus: int, share: int | None = None) -> str:
    """Return what is said of the waiting job of that number."""
    spec = Spec(argv=["true"], cwd="/")
    job = Job(params={}, name="a", spec=spec, id=number, gpus=gpus, share=share)
    wanted = there.plan()
    reason = wanted.reason(next(want for want in there.ordered if want.id == str(number)))
    return waiting_sentences.detail(job, reason or "", there, wanted, None)


@pytest.mark.parametrize(
    ("gpus", "taken", "said"),
    [
        (1, 2, "It needs 1 GPU; 0 are free."),
        (2, 1, "It needs 2 GPUs; 1 is free."),
        (3, 0, "It needs 3 GPUs. This machine has 2."),
    ],
)
def test_numbers_of_gpus_are_said_in_words_that_fit(gpus: int, taken: int, said: str) -> None:
    held = [InUse("7", "me", frozenset(list(MACHINE.gpus)[:taken]), 900.0)]
    assert why(situation(MACHINE, held, Want("8", "me", 950.0, gpus=gpus)), 8, gpus) == said


def test_gpu_memory_that_no_gpu_has_any_more_is_named() -> None:
    want = Want("8", "me", 950.0, gpus=1, share=20 << 30)
    said = "No GPU that it may use has 20 GiB of memory."
    assert why(situation(MACHINE, [], want), 8, 1, share=20 << 30) == said


@pytest.mark.parametrize(("name", "whose"), [("a.ipynb", "a.ipynb of bob"), ("", "p-1 of bob")])
def test_who_comes_first_is_named_also_if_it_has_no_notebook(name: str, whose: str) -> None:
    held = [InUse("7", "me", frozenset(["GPU-0"]), 900.0, 2000.0)]
    pool = Want("pool-9.board p-1", "bob", 900.0, gpus=2, name=name)
    there = situation(MACHINE, held, pool, Want("8", "me", 950.0, gpus=1))
    assert why(there, 8, 1) == f"GPUs are kept for {whose}, which comes first."


def test_who_uses_more_of_a_shared_gpu_than_asked_for_is_named_to_all_who_share(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EVERY, "0.1")
    fake_nvml.write(gpus=1, memory=80 << 30)
    share: list[Any] = ["-c", "0", "-G", "1", "--share", "--gpu-memory"]
    code = ["sh", "-c", "echo $$; while [ ! -e go ]; do sleep 0.05; done"]
    greedy = queue.submit(*share, "20G", *code)
    modest = queue.submit(*share, "30G", *code)
    waits = queue.submit(*share, "40G", "true")
    for job in (greedy, modest):
        wait_for(lambda job=job: queue.show(job)["started"] and queue.output(job), "its output")
    wait_for(lambda: queue.show(waits)["reason"] == "Resources", "its reason")
    pids = [int(queue.output(job)) for job in (greedy, modest)]
    fake_nvml.update(process=[f"{pids[0]},{25 << 30},50", f"{pids[1]},{10 << 30},50"])
    said = f"Job {greedy} uses 25 GiB of GPU GPU-fake-0, more than the 20 GiB asked for."
    for job in (greedy, modest):
        wait_for(lambda job=job: detail(queue, job) == said, "the sentence")
    fake_nvml.update(process=[f"{pids[0]},{15 << 30},50", f"{pids[1]},{10 << 30},50"])
    for job in (greedy, modest):
        wait_for(lambda job=job: detail(queue, job) == "", "its end")
    (queue.folder / "go").touch()
    fake_nvml.update(process=None)
    assert queue.ended(waits)["state"] == "COMPLETED"

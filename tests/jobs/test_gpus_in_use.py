"""Jobs get no GPU that is in use, and know theirs by numbers."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import Any

import psutil
import pytest

from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.leases.lease import Lease
from jupyter_dist_server.jobs.usage_reader import EVERY

from ..fake_nvml.build import State
from ..gpus.test_used_without_lease import GB, HIDDEN, UNKNOWN
from ..waiting import wait_for
from .queue_driver import Queue


@pytest.mark.parametrize("state", [UNKNOWN, HIDDEN], ids=["memory unknown", "nobody listed"])
def test_jobs_go_elsewhere_unless_forced(
    queue: Queue, fake_nvml: State, state: dict[str, Any]
) -> None:
    fake_nvml.write(gpus=2, memory=80 * GB, **state)
    first, second = queue.run("info").splitlines()[1:]
    assert " used by " in first and second.endswith("  free")
    told, other = json.loads(queue.run("info", "--json"))["gpus"]
    assert told["in_use"].startswith("used by ") and other["in_use"] == ""
    job = queue.submit("-G", "1", "sh", "-c", "echo $JDIST_GPU_UUIDS")
    assert queue.ended(job)["state"] == "COMPLETED"
    assert queue.output(job) == "GPU-fake-1\n"
    job = queue.submit("--gpu-ids", "0", "true")
    wait_for(lambda: "GPU 0 is used by" in queue.show(job)["detail"], "the reason")
    forced = queue.submit("--gpu-ids", "0", "--force", "true")
    assert queue.ended(forced)["state"] == "COMPLETED"
    queue.run("cancel", job)


def test_a_job_is_told_which_pool_parks(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, memory=80 * GB)
    now = time.time()
    idle = Leaseholder(pool="p-1", since=now - 3600, idle_since=now - 480, park_after=1200.0)
    with closing(Lease.take(["GPU-fake-0"], idle)):
        job = queue.submit("-G", "1", "true")
        said = "'s pool parks after 12 more idle minutes."
        wait_for(lambda: said in queue.show(job)["detail"], "the reason")
    assert queue.ended(job)["state"] == "COMPLETED"


def test_memory_that_is_not_known_is_not_0(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, memory=80 * GB, memory_used="!unsupported")
    assert " unknown " in queue.run("info")


def test_a_mask_has_numbers_where_they_are_certain(queue: Queue, fake_nvml: State) -> None:
    code = "import os; print([int(x) for x in os.environ['CUDA_VISIBLE_DEVICES'].split(',')])"
    fake_nvml.write(gpus=3, memory=80 * GB)
    job = queue.submit("--gpu-ids", "1,2", "python", "-c", code)
    assert queue.ended(job)["state"] == "COMPLETED"
    assert queue.output(job) == "[1, 2]\n"
    printed = ["sh", "-c", "echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES"]
    fake_nvml.write(**{"gpus": 3, "memory": 80 * GB, "0.lost": 1})
    job = queue.submit("--gpu-ids", "1,2", *printed)
    queue.ended(job)
    assert queue.output(job) == "PCI_BUS_ID GPU-fake-1,GPU-fake-2\n"
    fake_nvml.write(**{"gpus": 2, "memory": 80 * GB, "1.mig": "1g.10gb"})
    job = queue.submit("--gpu-ids", "0", *printed)
    queue.ended(job)
    assert queue.output(job) == "PCI_BUS_ID GPU-fake-0\n"


def test_a_gpu_that_a_job_uses_but_does_not_have_is_named(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EVERY, "0.1")
    fake_nvml.write(gpus=3, memory=80 * GB)
    waits = "echo $$ > pid-$JDIST_JOB_ID; while [ ! -e go ]; do sleep 0.05; done"
    other = queue.submit("--gpu-ids", "0", "sh", "-c", waits)
    queue.until(other, "RUNNING")
    job = queue.submit("--gpu-ids", "1", "sh", "-c", waits)
    file = queue.folder / f"pid-{job}"
    pid = wait_for(lambda: file.exists() and file.read_text().strip(), "its process")
    fake_nvml.update(**{"0.process": f"{pid},{GB},0", "2.process": f"{pid},?,0"})
    user = psutil.Process().username()
    said = (
        f"Process {pid} uses GPU 0, which belongs to job {other} of {user}. "
        f"Process {pid} uses GPU 2, which the job does not have."
    )
    wait_for(lambda: queue.show(job)["detail"] == said, "the sentence")
    (queue.folder / "go").touch()
    assert "It used GPUs 0, 2, which it did not have." in queue.ended(job)["detail"]
    assert "which" not in queue.ended(other)["detail"]

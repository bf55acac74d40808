"""What is started beside a process that goes on, and what of it is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import psutil

from jupyter_dist_server.common.processes.python_command import python_command
from jupyter_dist_server.common.protocol.sampler_messages import SamplerSettings
from jupyter_dist_server.jobs import job_control
from jupyter_dist_server.jobs.start_dispatcher import start_in_background
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.store import Store

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import Queue


def test_no_zombie_is_left_to_a_server(tmp_path: Path) -> None:
    before = set(psutil.Process().children())
    log = tmp_path / "log"
    start_in_background("jupyter_dist_server.cli.service", ["-h"], log)
    wait_for(lambda: not set(psutil.Process().children()) - before, "the end of the process")
    assert log.exists()


def test_a_dispatcher_that_was_started_for_a_job_that_is_refused_ends(queue: Queue) -> None:
    """It begins with the command, so that both import at the same time."""
    assert "cores" in queue.run_program("submit", "-c", "99999", "true", code=2)
    assert list(queue.folder.glob("jupyter-dist/*/dispatcher.log")), "it was started"
    wait_for(lambda: not queue.processes(), "its end")
    queue.run_program("submit", "-c", "0", "true")
    assert queue.ended("1")["state"] == "COMPLETED"


def test_no_dispatcher_is_started_for_a_job_that_is_held(queue: Queue) -> None:
    queue.run_program("submit", "--hold", "true")
    assert not queue.processes()
    assert not list(queue.folder.glob("jupyter-dist/*/dispatcher.log"))


def test_who_reads_gpus_for_somebody_that_is_killed_ends_without_a_word() -> None:
    settings = msgspec.json.encode(SamplerSettings(on_request=True)).decode()
    command = [
        *python_command(sys.executable, "jupyter_dist_server.gpus.sampler.sampler_process"),
        settings,
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        assert reader.stdin and reader.stdout and reader.stderr
        reader.stdout.close()
        assert reader.wait(120) == 0
        assert reader.stderr.read() == b""


def test_an_update_keeps_the_gpus_that_were_chosen(tmp_path: Path, gpus: State) -> None:
    store = Store(tmp_path / "queue")
    spec = Spec(argv=["true"], cwd="/")
    waits = Job(params={}, name="a", spec=spec, held=True, gpus=2, gpu_ids=("GPU-0", "GPU-3"))
    (id,) = store.submit([waits], "one")
    assert job_control.update(store, [store.get(id)], job_control.Update(gpus=1)) == []
    assert (store.get(id).gpus, store.get(id).gpu_ids) == (1, ("GPU-0", "GPU-3"))
    (said,) = job_control.update(store, [store.get(id)], job_control.Update(gpus=3))
    assert "may use 2 GPUs only" in said and store.get(id).gpus == 1
    store.close()

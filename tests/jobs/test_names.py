"""What the name of several jobs means: those that have not ended, or else the newest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from jupyter_dist_server.jobs.job_command import log_paths, output_notebook
from jupyter_dist_server.jobs.job_control import Update, update
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import CONFIGURING, RUNNING
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder
from jupyter_dist_server.jobs.submit.submission import read_dependencies

from ..waiting import PATIENCE, wait_for
from .queue_driver import JDIST, UNTIL_GO, Queue


def watches(pid: int, folder: str) -> bool:
    """Tell whether a process watches a folder, by inotify."""
    with suppress(OSError):  # it is not there yet, or a file was just closed
        inode = f"ino:{os.stat(folder).st_ino:x} "
        files = Path(f"/proc/{pid}/fdinfo").glob("*")
        return any(inode in file.read_text() for file in files)
    return False


def labels(text: str) -> list[str]:
    return [job["label"] for job in json.loads(text)]


def test_a_name_that_is_used_again_leaves_old_jobs_alone(queue: Queue) -> None:
    old = queue.submit("-c", "0", "-J", "run", "sh", "-c", "echo old; exit 1")
    assert queue.ended(old)["state"] == "FAILED"
    new = queue.submit("-c", "0", "-J", "run", "echo", "new")
    queue.ended(new)
    assert queue.run("wait", "run") == ""
    assert queue.run_program("logs", "run") == "new\n"
    assert labels(queue.run("show", "--json", "r*")) == [new]
    queue.run("requeue", "run")
    queue.run("wait", "run")
    assert [queue.show(job)["attempt"] for job in (old, new)] == [1, 2]
    last = queue.submit("-H", "-J", "run", "true")
    assert queue.run("hold", "run") == queue.run("cancel", "run") == ""
    assert queue.show(last)["state"] == "CANCELLED"


def test_a_name_of_arrays(queue: Queue) -> None:
    queue.run("submit", "-H", "-a", "0-2", "-J", "run", "true")
    queue.run("cancel", "run")
    queue.run("submit", "-H", "-a", "0-1", "-J", "run", "true")
    queue.run("cancel", "4_0")
    assert labels(queue.run("show", "--json", "run")) == ["4_1"]
    told = queue.run("wait", "--timeout", "0", "--json", "run", code=124)
    assert labels(told) == ["4_0", "4_1"], "its result is that of all tasks"
    with closing(Store(store_folder())) as store:
        assert read_dependencies("afterok:run", store)[0] == [(4, "afterok"), (5, "afterok")]
    told = queue.run("submit", "--json", "-H", "--like", "run", "-J", "other")
    assert labels(told) == ["6_0", "6_1"]
    assert queue.run("cancel", "run") == ""
    assert labels(queue.run("show", "--json", "run")) == ["4_0", "4_1"]
    assert "Job 4_0 has not started" in queue.run("logs", "run", code=2)


def test_a_job_that_gets_another_name_keeps_its_output(queue: Queue) -> None:
    names = ["-J", "run", "-o", "%x-%j.log", "-e", "%x-%j.err"]
    job = queue.submit("-c", "0", *names, "sh", "-c", f"echo up; {UNTIL_GO[2]}; echo down >&2")
    log = queue.folder / f"run-{job}.log"
    wait_for(lambda: log.exists() and log.read_text() == "up\n", "its output")
    queue.run("update", "-J", "other", job)
    assert queue.run_program("logs", job) == "up\n"
    (queue.folder / "go").touch()
    assert queue.ended(job)["name"] == "other"
    queue.run("update", "-J", "third", job)
    assert queue.run_program("logs", "-e", "third") == "down\n"
    queue.run("requeue", job)
    assert queue.ended(job)["attempt"] == 2
    assert queue.run_program("logs", job) == "up\nup\n"
    assert not list(queue.folder.glob("other*")) + list(queue.folder.glob("third*"))


@pytest.mark.parametrize("command", ["run", "logs"])
def test_the_output_of_a_job_that_is_renamed_while_it_waits_is_followed(
    queue: Queue, command: str
) -> None:
    (queue.folder / "b").mkdir()
    job = ["-H", "-c", "0", "-J", "a", "-o", "%x/log", "echo", "up"]
    args = ["run", *job] if command == "run" else ["logs", "-f", queue.submit(*job)]
    with (
        subprocess.Popen(
            [sys.executable, "-c", JDIST, *args], stdout=subprocess.PIPE, text=True
        ) as following,
        ExitStack() as ends,
    ):
        ends.callback(following.kill)
        running = str(store_folder() / "running")
        wait_for(lambda: watches(following.pid, running), "that it waits for the job")
        queue.run("update", "-J", "b", "1")
        queue.run("release", "1")
        assert following.communicate(timeout=PATIENCE)[0] == "up\n"
        assert following.returncode == 0


def test_only_the_files_of_started_jobs_keep_the_old_name(queue: Queue) -> None:
    notebook = ["python", "-m", "run", "copy.ipynb", "%x-%j.ipynb"]
    spec = Spec(argv=notebook, cwd="/", output="%%x-%8x-%j", notebook="train.ipynb")
    with closing(Store(store_folder())) as store:
        run = Job(params={}, name="50%/a", spec=spec, held=True)
        store.submit([run] * 3, "token", is_array=True)
        store.change([1], state=RUNNING, started=1.0)
        store.change([2], state=CONFIGURING)
        jobs = store.select()
        named = [(log_paths(job)[0], output_notebook(job)) for job in jobs]
        assert named[0] == ("/%x-00050%_a-1", "/50%_a-1.ipynb")
        update(store, jobs, Update(name="b"))
        jobs = store.select()
        assert [job.name for job in jobs] == ["b"] * 3
        assert named[:2] == [(log_paths(job)[0], output_notebook(job)) for job in jobs[:2]]
        assert log_paths(jobs[2])[0] == "/%x-0000000b-3"
        assert output_notebook(jobs[2]) == "/b-3.ipynb"

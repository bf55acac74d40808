"""The queue as people use it: ``jdist`` in a terminal, real dispatchers and runners."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.leases.lease import Lease
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_file import VERSION
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import UNTIL_GO, Queue


def test_a_job_runs_and_nothing_is_left(queue: Queue, leases: Path) -> None:
    assert "Submitted job 1." in queue.run_program("submit", "echo", "hello")
    job = queue.ended("1")
    assert (job["state"], job["exit_code"], job["name"]) == ("COMPLETED", 0, "echo")
    assert queue.output("1") == "hello\n"
    assert queue.run_program("logs", "@") == "hello\n"
    for name in ("dist-dispatcher", "dist-zygote", "dist-runner"):
        wait_for(lambda name=name: not queue.processes(name), f"the end of {name}")
    assert [*leases.glob("job-*")] == []
    assert queue.run("queue").splitlines()[1:] == []


def test_run_shows_the_output_and_ends_as_the_job_does(queue: Queue) -> None:
    said = queue.run_program("run", "sh", "-c", "echo one; echo two >&2; exit 3", code=3)
    assert "one\ntwo\n" in said
    assert "FAILED" in said and "exit code 3" in said


@pytest.mark.parametrize(
    ("command", "state", "reason", "detail"),
    [
        (["sh", "-c", "exit 4"], "FAILED", "NonZeroExitCode", "exit code 4"),
        (["sh", "-c", "kill -SEGV $$"], "FAILED", "RaisedSignal:11", "SIGSEGV"),
        (["no-such"], "FAILED", "JobLaunchFailure", "There is no program no-such in PATH."),
        (["-D", "/no/such/folder", "true"], "FAILED", "JobLaunchFailure", "/no/such/folder"),
        (["-o", "/no/such/folder/log", "true"], "FAILED", "JobLaunchFailure", "/no/such/folder"),
        (["-t", "0:01", "sleep", "1000"], "TIMEOUT", "TimeLimit", "time limit"),
    ],
)
def test_how_jobs_fail(
    queue: Queue, command: list[str], state: str, reason: str, detail: str
) -> None:
    before = queue.submit("true")  # what a job needs is looked for when it starts
    job = queue.ended(queue.submit("-d", f"afterok:{before}", *command))
    assert (job["state"], job["reason"]) == (state, reason)
    assert detail in job["detail"]


def test_cancel(queue: Queue) -> None:
    waits = queue.submit("-H", "true")
    runs = queue.submit(
        "sh", "-c", "trap 'echo bye; exit 1' TERM; echo up; while :; do sleep 0.1; done"
    )
    wait_for(lambda: queue.show(runs)["state"] == "RUNNING" and queue.output(runs), "its output")
    queue.run("cancel", waits, runs)
    assert queue.ended(waits)["state"] == queue.ended(runs)["state"] == "CANCELLED"
    assert "bye\n" in queue.output(runs)
    assert "had ended" in queue.run("cancel", runs)


def test_what_ignores_sigterm_is_killed_at_once_if_asked(queue: Queue) -> None:
    job = queue.submit("sh", "-c", "trap '' TERM; (trap '' TERM; sleep 1000) & echo up; wait; wait")
    wait_for(lambda: queue.show(job)["state"] == "RUNNING" and queue.output(job), "its output")
    queue.run("cancel", "--now", job)
    assert queue.ended(job)["state"] == "CANCELLED"


def test_a_job_that_daemonizes_leaves_nothing_behind(queue: Queue) -> None:
    code = "setsid sleep 1000 >/dev/null 2>&1 & echo $!"
    job = queue.ended(queue.submit("bash", "-c", code))
    assert job["state"] == "COMPLETED"
    left = int(queue.output(str(job["id"])))
    wait_for(lambda: not psutil.pid_exists(left), "the end of what it left")


def test_a_signal_before_the_limit(queue: Queue) -> None:
    code = "trap 'echo saved; exit 0' USR1; echo up; while :; do sleep 0.1; done"
    job = queue.submit("-t", "1-0", "--signal", "B:USR1@600", "bash", "-c", code)
    queue.until(job, "RUNNING")
    wait_for(lambda: "up\n" in queue.output(job), "it to be ready for the signal")
    queue.run("update", job, "-t", "10")
    assert queue.ended(job)["state"] == "COMPLETED"
    assert "saved\n" in queue.output(job)


def test_dependencies(queue: Queue) -> None:
    bad = queue.submit("-H", "false")
    after = queue.submit("-d", f"afterok:{bad}", "true")
    never = queue.submit("-d", f"afternotok:{bad}", "true")
    both = queue.submit("-d", f"afterany:{bad},afterany:{never}", "true")
    wait_for(lambda: queue.show(after)["reason"] == "Dependency", "the reason")
    queue.run("release", bad)
    assert queue.ended(both)["state"] == "COMPLETED"
    wait_for(lambda: queue.show(after)["reason"] == "DependencyNeverSatisfied", "the reason")
    queue.run("cancel", after)


def test_a_sweep(queue: Queue) -> None:
    command = ["sh", "-c", "echo lr={lr} $JDIST_ARRAY_TASK_ID"]
    said = queue.run("submit", "--param", "lr=0.1,0.01", "--param", "seed=1,2", *command, "{seed}")
    assert "1_0 … 1_3" in said
    assert queue.ended("1")["array"] == 1
    assert [queue.output(f"1_{task}") for task in range(4)] == [
        "lr=0.1 0\n", "lr=0.1 1\n", "lr=0.01 2\n", "lr=0.01 3\n"
    ]  # fmt: skip


def test_an_array_runs_so_many_at_once(queue: Queue) -> None:
    code = "echo $$ > up.$SLURM_ARRAY_TASK_ID; while [ ! -e go ]; do sleep 0.05; done"
    queue.submit("-c", "0", "-a", "1-3%2", "sh", "-c", code)
    wait_for(lambda: len(list(queue.folder.glob("up.*"))) == 2, "two tasks")
    wait_for(lambda: queue.show("1_3")["reason"] == "JobArrayTaskLimit", "the reason")
    (queue.folder / "go").touch()
    assert queue.ended("1_3")["state"] == "COMPLETED"


def test_hold_update_and_requeue(queue: Queue) -> None:
    job = queue.submit("-H", "--priority", "1", "sh", "-c", "echo attempt $JDIST_ATTEMPT")
    queue.run("update", "--priority", "5", "-J", "other", "-t", "10", job)
    queue.run("release", job)
    ended = queue.ended(job)
    assert (ended["priority"], ended["name"], ended["limit"]) == (5, "other", 600.0)
    queue.run("requeue", job)
    wait_for(lambda: queue.show(job)["attempt"] == 2 and queue.show(job)["ended"], "its end")
    assert queue.output(job) == "attempt 1\nattempt 2\n"
    queue.run("hold", job, code=2)


def test_a_submission_is_told_in_json(queue: Queue) -> None:
    told = json.loads(queue.run("submit", "--json", "-H", "-a", "0-1", "true"))
    assert [(job["label"], job["state"]) for job in told] == [
        ("1_0", "PENDING"),
        ("1_1", "PENDING"),
    ]


def test_the_same_key_submits_once(queue: Queue) -> None:
    assert queue.submit("--key", "a", "true") == queue.submit("--key", "a", "true") == "1"
    said = queue.run("submit", "--key", "a", "false")
    assert said == "Nothing was submitted: the key a is that of job 1.\n"
    assert queue.submit("--key", "b", "true") == "2"


def test_a_script_with_directives(queue: Queue) -> None:
    script = queue.folder / "train.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH --job-name=train -t 5 --partition=gpu\n#SBATCH --cpus-per-task 1\n"
        "# GFLOW --priority 7\n#JDIST -o log.%x\n\necho works\n#SBATCH --hold\n"
    )
    said = queue.run("submit", "train.sh")
    assert "#SBATCH --partition gpu is not used." in said
    script.write_text("echo changed")
    job = queue.ended("1")
    assert (job["name"], job["limit"], job["priority"]) == ("train", 300.0, 7)
    assert (queue.folder / "log.train").read_text() == "works\n"


def test_gpus_are_given_and_a_large_job_is_not_starved(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=2)
    go = queue.folder / "go"
    code = "echo $CUDA_VISIBLE_DEVICES; while [ ! -e go ]; do sleep 0.05; done"
    first = queue.submit("-G", "1", "-t", "60", "sh", "-c", code)
    queue.until(first, "RUNNING")
    large = queue.submit("-G", "2", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    small = queue.submit("-G", "1", "true")
    wait_for(lambda: queue.show(large)["reason"] == "Resources", "the reason")
    wait_for(lambda: queue.show(small)["reason"] == "Priority", "the reason")
    assert "GPU-fake-0" in queue.run("info", "--json")
    said = {line.split()[0]: line for line in queue.run("queue", "--start").splitlines()}
    assert " by " in said[large] and " about " in said[small]
    go.touch()
    assert queue.ended(small)["state"] == "COMPLETED"
    assert queue.show(large)["started"] <= queue.show(small)["started"]
    assert queue.output(first) == "0\n"
    assert queue.output(large) == "0,1\n"


def test_a_job_waits_for_a_pool_and_starts_when_that_ends(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    who = Leaseholder(pool="p1", pid=os.getpid(), since=0.0, notebook="a.ipynb", host="here")
    with closing(Lease.take(["GPU-fake-0"], who)):
        job = queue.submit("-G", "1", "true")
        wait_for(lambda: queue.show(job)["reason"] == "Resources", "the reason")
    assert queue.ended(job)["state"] == "COMPLETED"


def test_a_process_without_a_lease_is_named_and_its_end_noticed(
    queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=1, process=f"{os.getpid()},{2**30},50")
    job = queue.submit("-c", "0", "-G", "1", "true")
    wait_for(lambda: f", pid {os.getpid()}, user" in queue.show(job)["detail"], "its name")
    assert queue.show(job)["reason"] == "Resources"
    fake_nvml.write(gpus=1)
    assert queue.ended(job)["state"] == "COMPLETED"


def test_a_process_that_came_after_the_last_look_is_seen_before_a_gpu_is_given(
    queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=2)
    running = queue.submit(
        "-c", "0", "-G", "2", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"
    )
    queue.until(running, "RUNNING")
    job = queue.submit("-c", "0", "-G", "1", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    wait_for(lambda: queue.show(job)["reason"] == "Resources", "the reason")
    fake_nvml.write(gpus=2, **{"0.process": f"{os.getpid()},{2**30},50"})
    (queue.folder / "go").touch()
    queue.ended(job)
    assert queue.output(job) == "1\n"


def test_a_gpu_that_is_lost_is_named_and_others_go_on(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=2)
    with closing(Lease.take(["GPU-fake-1"], Leaseholder(pool="p", pid=1, since=1.0))):
        waits = queue.submit("-c", "0", "-G", "1", "--gpu-ids", "1", "true")
        wait_for(lambda: queue.show(waits)["reason"] == "Resources", "the reason")
        fake_nvml.update(**{"1.lost": 1})
        other = queue.submit("-c", "0", "-G", "1", "true")
        wait_for(lambda: queue.show(waits)["reason"] == "ReqNodeNotAvail", "the reason")
        assert "GPU-fake-1" in queue.show(waits)["detail"]
    assert queue.ended(other)["state"] == "COMPLETED"
    queue.run("cancel", waits)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no affinity")
def test_jobs_get_those_cores_that_their_dispatcher_may_use(queue: Queue) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(allowed)])  # as in a container, or a job of Slurm
    try:
        assert "needs 2 cores, and there are 1" in queue.run("submit", "-c", "2", "true", code=2)
        first, second = (queue.submit("-c", "1", *UNTIL_GO) for _ in range(2))
    finally:
        os.sched_setaffinity(0, allowed)
    queue.until(first, "RUNNING")
    assert queue.until(second, "PENDING")["reason"] == "Resources"
    (queue.folder / "go").touch()
    assert queue.ended(second)["state"] == "COMPLETED"


def test_a_long_queue_starts_in_order_beyond_what_is_looked_at_first(queue: Queue) -> None:
    held = queue.submit("-H", "true")
    queue.submit("-c", "0", "-d", f"afterok:{held}", "-a", "1-300", "true")
    last = queue.submit("-c", "0", "true")
    assert queue.ended(last)["state"] == "COMPLETED"
    queue.run("cancel", "--all")


def test_a_killed_dispatcher_loses_nothing(queue: Queue) -> None:
    running = queue.submit("-c", "0", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    queue.until(running, "RUNNING")
    waiting = queue.submit("-d", f"afterok:{running}", "echo", "second")
    for process in queue.processes("dist-dispatcher") + queue.processes("dist-zygote"):
        with contextlib.suppress(psutil.NoSuchProcess):  # one that had nothing to do has just ended
            process.kill()
    (queue.folder / "go").touch()
    assert queue.ended(waiting)["state"] == "COMPLETED"  # the runner starts a dispatcher
    assert queue.show(running)["attempt"] == 1


def test_a_dispatcher_whose_zygote_is_killed_gets_another_one(queue: Queue) -> None:
    queue.submit("--begin", "now+1hour", "-c", "0", "true")
    (dispatcher,) = wait_for(lambda: queue.processes("dist-dispatcher"), "the dispatcher")
    (zygote,) = wait_for(lambda: queue.processes("dist-zygote"), "its zygote")
    zygote.kill()
    wait_for(lambda: queue.processes("dist-zygote") not in ([], [zygote]), "another zygote")
    found = wait_for(lambda: queue.processes("dist-dispatcher"), "the dispatcher")
    assert found == [dispatcher], "by itself, and with its lock"
    assert queue.ended(queue.submit("-c", "0", "true"))["state"] == "COMPLETED"


def test_a_killed_runner_ends_its_job(queue: Queue) -> None:
    code = "setsid sleep 1000 & echo $!; wait"
    lost = queue.submit("-c", "0", "bash", "-c", code)
    again = queue.submit("-c", "0", "--requeue", "bash", "-c", "echo $JDIST_ATTEMPT; " + code)
    for job in (lost, again):
        wait_for(lambda job=job: queue.show(job)["started"] and queue.output(job), "output")
    left = int(queue.output(lost))
    for process in queue.processes("dist-runner"):
        process.send_signal(signal.SIGKILL)
    assert queue.ended(lost)["state"] == "NODE_FAIL"
    wait_for(lambda: not psutil.pid_exists(left), "the end of what it left")
    wait_for(lambda: "2" in queue.output(again).splitlines(), "its second attempt")
    queue.run("cancel", again)
    assert queue.ended(again)["attempt"] == 2


def test_variables_are_kept_and_never_shown(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "swordfish")
    job = queue.submit("--env", "MARK=here", "sh", "-c", "echo $SECRET $MARK")
    queue.ended(job)
    assert queue.output(job) == "swordfish here\n"
    assert "swordfish" not in queue.run("show", job) + queue.run("history", "--json")
    store = Store(store_folder())
    assert (store.folder / "queue.db").stat().st_mode & 0o77 == 0
    store.close()


def test_a_newer_queue_is_left_alone(queue: Queue) -> None:
    queue.ended(queue.submit("true"))
    store = Store(store_folder())
    store._db.execute("PRAGMA user_version = 999")
    store.close()
    said = queue.run("submit", "true", code=2)
    assert f"newer version of Jupyter Dist: format 999, and this one knows {VERSION}." in said

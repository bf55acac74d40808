"""``sbatch``, ``squeue``, ``scancel``, ``sinfo``, ``sacct``, ``scontrol`` do as Slurm's do."""

from __future__ import annotations

import getpass
import os
import subprocess
from pathlib import Path

import pytest

from ..fake_nvml.build import State
from ..jobs.queue_driver import UNTIL_GO, Queue
from ..waiting import wait_for

HOST = os.uname().nodename


def job_ids(queue: Queue, *options: str) -> list[str]:
    return queue.run("squeue", "-h", "-r", "-o", "%i", *options).split()


def test_sbatch_answers_and_writes_as_slurm_does(queue: Queue) -> None:
    Path("job.sh").write_text('#!/bin/bash\n#SBATCH -J mine\necho "$1" $SLURM_JOB_NAME\n')
    said = queue.run("sbatch", "-p", "gpu", "-N1", "--exclusive", "job.sh", "--exclusive")
    notices = ["jdist: sbatch -p gpu is not used.", "jdist: sbatch -N 1 is not used."]
    assert said.splitlines()[:4] == [
        *notices,
        "jdist: sbatch --exclusive is not used.",
        "Submitted batch job 1",
    ]
    assert queue.ended("1")["name"] == "mine"
    assert Path("slurm-1.out").read_text() == "--exclusive mine\n"
    assert queue.run("sbatch", "--parsable", "--array=1-2", "--wrap", "true").split()[0] == "2"
    queue.ended("2")
    assert Path("slurm-2_1.out").exists()
    assert queue.run("sbatch", "-W", "-o", "o", "--wrap=exit 3", code=1).split()[3] == "4"
    Path("job.sh").write_text("#!/bin/bash\n#SBATCH -o chosen\necho\n")
    queue.run("sbatch", "job.sh")
    queue.ended("5")
    assert Path("chosen").exists() and not Path("slurm-5.out").exists()


def test_squeue_shows_what_is_asked_for(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=2, memory=80 << 30)
    queue.run("sbatch", "-G2", "-t", "10", "-J", "runs", "--wrap", UNTIL_GO[-1])
    queue.until("1", "RUNNING")
    queue.run("sbatch", "-H", "-J", "waits", "--comment", "c", "--wrap", "true")
    head, *rows = (line.split() for line in queue.run("squeue").splitlines())
    assert head == ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"]
    user = getpass.getuser()[:8]
    assert [row[:5] for row in rows] == [
        ["1", "jdist", "runs", user, "R"],
        ["2", "jdist", "waits", user, "PD"],
    ]
    assert [row[6:] for row in rows] == [["1", HOST], ["1", "(JobHeldUser)"]]
    assert queue.run("squeue", "-h", "-j", "1", "-o", "[%T] %b;%l").splitlines() == [
        "[RUNNING] gres:gpu:2;10:00"
    ]
    assert queue.run("squeue", "--noheader", "--format=%.5i|%6j|%r") == (
        "    1|runs  |None\n    2|waits |JobHeldUser\n"
    )
    assert queue.run("squeue", "-O", "JobID:4,Comment:.3", "-n", "waits,x") == "JOBICOM\n2     c\n"
    assert (
        job_ids(queue, "--me", "-t", "PD")
        == job_ids(queue, "-u", getpass.getuser(), "-tPD")
        == ["2"]
    )
    assert "START_TIME" in queue.run("squeue", "--start") and job_ids(queue, "--start") == ["2"]
    assert "LIMI" in queue.run("squeue", "-l").splitlines()[0]
    Path("go").touch()
    queue.ended("1")
    assert job_ids(queue, "-j", "1") == [] and job_ids(queue, "-t", "all") == ["2", "1"]
    assert "“%Y” of squeue -o has no translation" in queue.run("squeue", "-o", "%Y", code=2)
    assert "There is no job 9." in queue.run("squeue", "-j", "9", code=2)


def test_scancel_cancels_no_more_than_is_named(queue: Queue) -> None:
    queue.run("sbatch", "-H", "-a", "1-6", "-J", "tasks", "--wrap", "true")
    queue.run("sbatch", "-H", "-J", "other", "--wrap", "true")
    queue.run("scancel", "1_[1-2,4]")
    assert job_ids(queue) == ["1_3", "1_5", "1_6", "7"]
    queue.run("scancel", "--name=none", "-t", "R")
    queue.run("scancel", "-t", "RUNNING", "--user", getpass.getuser())
    assert "scancel -p has no translation" in queue.run("scancel", "-p", "gpu", code=2)
    assert "are not yours" in queue.run("scancel", "-u", "nobody", code=2)
    assert "No job is named." in queue.run("scancel", code=2)
    assert "Jobs have no steps" in queue.run("scancel", "7.0", code=2)
    assert len(job_ids(queue)) == 4
    queue.run("scancel", "-n", "tasks", "1_3", "7")
    queue.run("scancel", "-n", "other")
    assert job_ids(queue) == ["1_5", "1_6"]
    queue.run("scancel", "--me")
    assert queue.run("squeue", "-h") == queue.run("sacct", "-nP", "-S", "now-1h", "-s", "R") == ""


def test_a_signal(queue: Queue) -> None:
    queue.run("sbatch", "--wrap", "trap 'exit 7' USR1; touch set; while :; do sleep 0.02; done")
    wait_for(Path("set").exists, "the trap")
    queue.run("scancel", "-s", "USR1", "-f", "1")
    assert queue.ended("1")["exit_code"] == 7


def test_sacct_shows_jobs_that_ended(queue: Queue) -> None:
    queue.run("sbatch", "-J", "fails", "--wrap", "exit 3")
    queue.ended("1")
    queue.run("sbatch", "-H", "--wrap", "true")
    head, dashes, first, second = queue.run("sacct").splitlines()
    assert head.split() == [
        "JobID",
        "JobName",
        "Partition",
        "Account",
        "AllocCPUS",
        "State",
        "ExitCode",
    ]
    assert {*dashes} == {"-", " "}
    assert first.split() == ["1", "fails", "jdist", "(null)", "1", "FAILED", "3:0"]
    assert second.split()[5] == "PENDING"
    plain = queue.run("sacct", "-X", "-n", "-P", "-j", "1", "--format=JobID,state%5,Elapsed")
    assert plain == "1|FAILED|00:00:00\n"
    assert queue.run("sacct", "-np", "-s", "F", "-o", "JobIDRaw") == "1|\n"
    assert queue.run("sacct", "-nP", "-o", "JobID", "-S", "now-2days", "--name", "fails") == "1\n"
    assert queue.run("sacct", "-n", "-E", "yesterday", "-S", "2026-01-01").strip() == ""
    assert "“MaxRSS” of sacct --format" in queue.run("sacct", "-o", "MaxRSS", code=2)


def test_scontrol_shows_and_changes_jobs(queue: Queue) -> None:
    queue.run("sbatch", "-H", "-c", "1", "--wrap", "echo done")
    shown = queue.run("scontrol", "show", "job", "1")
    assert shown.startswith("JobId=1 JobName=wrap\n   UserId=")
    assert "   JobState=PENDING Reason=JobHeldUser Dependency=(null)\n" in shown
    assert f"   StdOut={os.getcwd()}/slurm-1.out\n" in shown
    assert " JobState=PENDING " in queue.run("scontrol", "-o", "show", "job=1").splitlines()[0]
    queue.run("scontrol", "update", "JobId=1", "TimeLimit=5", "Nice=3", "JobName=new")
    job = queue.show("1")
    assert (job["limit"], job["priority"], job["name"]) == (300.0, -3, "new")
    said = queue.run("scontrol", "update", "job=1", "Partition=gpu", code=2)
    assert "scontrol update Partition=gpu has no translation" in said
    queue.run("scontrol", "release", "jobid=1")
    queue.ended("1")
    queue.run("scontrol", "requeue", "1")
    assert queue.ended("1")["attempt"] == 2
    assert "scontrol show nodes has no translation" in queue.run(
        "scontrol", "show", "nodes", code=2
    )
    assert "scontrol suspend has no translation" in queue.run("scontrol", "suspend", "1", code=2)


def test_sinfo_shows_the_gpus(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=2, memory=80 << 30)
    assert queue.run("sinfo", "-l").startswith("2 GPUs, 2 free\n")
    assert queue.run("sinfo") == queue.run("info")


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_scripts_find_the_words_too(queue: Queue, shell: str) -> None:
    if subprocess.run(["which", shell], capture_output=True, check=False).returncode:
        pytest.skip(f"needs {shell}")
    environment = os.environ | {"PATH": f"{queue.program().parent}:/usr/bin:/bin"}
    Path("many.sh").write_text("gbatch true; gbatch true\n")
    text = 'eval "$(jdist aliases gflow)" && gflowd up && sh many.sh && gqueue -a -f JOBID'
    done = subprocess.run(
        [shell, "-c", text], env=environment, capture_output=True, text=True, check=True
    )
    said = done.stdout.split()
    assert said[-3:] == ["JOBID", "1", "2"], done

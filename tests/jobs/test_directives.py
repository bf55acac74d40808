"""Options in scripts, as Slurm and gflow write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.jobs.submit.script_directives import read_directives

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import Queue

GFLOW = """#!/bin/bash
# GFLOW --gpus=1
# GFLOW --shared
# GFLOW --time=2:00:00
# GFLOW --memory=4G
# GFLOW --gpu-memory=20G
# GFLOW --priority=20
# GFLOW --conda-env=none
# GFLOW --depends-on=@
# GFLOW --project=vision
# GFLOW --notify-email=ann@example.org --notify-on=job_failed
echo works
"""


def test_the_options_of_gflow_work_or_are_named(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, memory=80 << 30)
    first = queue.submit("-H", "true")
    Path("train.sh").write_text(GFLOW)
    said = queue.run("submit", "-H", "train.sh").splitlines()
    assert said == [
        "jdist: #GFLOW --notify-email ann@example.org is not used; use --notify.",
        "jdist: #GFLOW --notify-on job_failed is not used; use --notify.",
        "Submitted job 2.",
    ]
    job = queue.show("2")
    assert (job["gpus"], job["share"], job["limit"]) == (1, 20 << 30, 7200.0)
    assert (job["memory"], job["priority"]) == (4 << 30, 20)
    assert job["spec"]["comment"] == "vision" and "conda activate none" in job["spec"]["setup"]
    queue.run("release", "2")
    wait_for(lambda: queue.show("2")["reason"] == "Dependency", f"that it waits for job {first}")


def read(path: Path, *lines: str) -> tuple[list[str], list[str]]:
    path.write_text("\n".join(["#!/bin/bash", *lines, "true"]))
    return read_directives(path)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("-G2 -t10", ["--gpus", "2", "-t10"]),
        ("--gpus=a100:2", ["--gpus", "2"]),
        ("--gpus-per-node 4", ["--gpus", "4"]),
        ("--gres=gpu", ["--gpus", "1"]),
        ("--gres=gpu:2,license:1", ["--gpus", "2"]),
        ("--gres gpu:a100:8", ["--gpus", "8"]),
        ("--nice", ["--priority=-100"]),
        ("--nice=-5", ["--priority=5"]),
        ("-b now+1hour --no-requeue", ["--begin", "now+1hour"]),
    ],
)
def test_options_of_sbatch_that_are_written_otherwise(
    tmp_path: Path, line: str, options: list[str]
) -> None:
    assert read(tmp_path / "a.sh", f"#SBATCH {line}") == (options, [])


@pytest.mark.parametrize(
    ("lines", "given"),
    [
        (["--ntasks=4 --gpus-per-task=1"], "--gpus 4"),
        (["--gpus-per-task=a100:2", "-n3"], "--gpus 6"),
        (["-N 1", "--ntasks-per-node=4", "--gpus-per-task 2"], "--gpus 8"),
        (["--ntasks-per-node=8 --ntasks=2 --gpus-per-task=1"], "--gpus 2"),
        (["--gpus-per-task=2"], "--gpus 2"),
        (["--gpus=4 --gpus-per-task=1"], "--gpus 4"),
        (["-n 4 -c 8"], "--cpus-per-task 32"),
        (["--cpus-per-task=8", "--ntasks-per-node=4"], "--cpus-per-task 32"),
        (["-n2 -c8"], "--cpus-per-task 16"),
        (["-c8"], "--cpus-per-task 8"),
        (["--gpus=2 -n 4 -c 8"], "--gpus 2 --cpus-per-task 32"),
    ],
)
def test_what_each_task_gets_is_given_to_all_tasks(
    tmp_path: Path, lines: list[str], given: str
) -> None:
    options, _ = read(tmp_path / "a.sh", *(f"#SBATCH {line}" for line in lines))
    assert options == given.split()


@pytest.mark.parametrize(
    "option", ["--gpu-memory=20480", "--max-gpu-mem 20480", "--max-gpu-memory=20480M"]
)
def test_a_number_alone_is_mib_for_gflow(tmp_path: Path, option: str) -> None:
    assert read(tmp_path / "a.sh", f"# GFLOW {option}") == (["--gpu-memory", "20480M"], [])


def test_what_a_number_of_tasks_is_used_for_is_said(tmp_path: Path) -> None:
    lines = "#SBATCH -n 4 --gpus-per-task=1 -c 8", "# GFLOW -n train", "#JDIST -G 2"
    assert read(tmp_path / "a.sh", *lines) == (
        ["--gpus", "4", "--cpus-per-task", "32", "--job-name", "train", "-G", "2"],
        ["#SBATCH -n 4 is used for --gpus-per-task and -c alone."],
    )


@pytest.mark.parametrize(
    ("line", "notices"),
    [
        ("-N1 -n 4 -wnode1", ["-N 1 is", "-n 4 is", "-w node1 is"]),
        ("-q normal --licenses=matlab:1", ["-q normal is", "--licenses matlab:1 is"]),
        ("--gres=none --exclusive", ["--gres none is", "--exclusive is"]),
        ("--cpus-per-gpu 4", ["--cpus-per-gpu 4 is not used; use --cpus-per-task."]),
        ("--mem-per-gpu=8G", ["--mem-per-gpu 8G is not used; use --mem."]),
    ],
)
def test_options_of_sbatch_that_are_not_used_are_named(
    tmp_path: Path, line: str, notices: list[str]
) -> None:
    options, said = read(tmp_path / "a.sh", f"#SBATCH {line}")
    assert options == [] and len(said) == len(notices)
    for sentence, start in zip(said, notices, strict=True):
        assert sentence.startswith(f"#SBATCH {start}") and "is not used" in sentence


def test_what_is_a_comment_for_slurm_is_one_here(tmp_path: Path) -> None:
    assert read(tmp_path / "a.sh", "# SBATCH don't --gpus=8", "##SBATCH --hold") == ([], [])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#SBATCH --comment='mine", "No closing quotation.\nClose the"),
        (
            "#SBATCH --job-name=abc \\",
            ": Options do not go on in the next line.\nBegin that with #SBATCH,",
        ),
        ("#JDIST --gpus=x", "a.sh, “#JDIST --gpus=x”: Argument -G/--gpus: invalid int value: 'x'."),
        ("#SBATCH --gpsu=2", "a.sh, “#SBATCH --gpsu=2”: jdist submit does not know “--gpsu”."),
        ("#SBATCH --gpsu=2", "Did you mean --gpus? “jdist submit -h” lists"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(DistError) as error:
        read(tmp_path / "a.sh", line)
    assert said in str(error.value) and "a.sh -h" not in str(error.value)

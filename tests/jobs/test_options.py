"""What the options of ``jdist submit`` make of a job."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.units import read_limit
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..fake_nvml.build import State
from ..waiting import PATIENCE, wait_for
from .queue_driver import JDIST, UNTIL_GO, Queue, hear_signals

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90 * MINUTE),
        ("1:30", MINUTE + 30),
        ("2:01:30", 2 * HOUR + MINUTE + 30),
        ("1-12", DAY + 12 * HOUR),
        ("1-12:30", DAY + 12.5 * HOUR),
        ("1-12:30:15", DAY + 12.5 * HOUR + 15),
        ("0:90", 90.0),
        ("90s", 90.0),
        ("30m", 30 * MINUTE),
        ("2h", 2 * HOUR),
        ("7d", 7 * DAY),
        ("UNLIMITED", None),
    ],
)
def test_time_limits_are_written_as_for_slurm(text: str, seconds: float | None) -> None:
    assert read_limit(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "1:2:3:4", "1-", "-5", "1.5", "4000-0"])
def test_what_is_no_time_limit(text: str) -> None:
    with pytest.raises(DistError, match="is not a time limit"):
        read_limit(text)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def test_what_runs_before_the_command(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = """'conda() { echo "conda $*"; }'"""
    program(queue.folder / "bin/conda", f'[ "$*" = "shell.bash hook" ] && echo {hook}\n')
    program(queue.folder / "bin/module", 'echo "module $*"\n')
    program(queue.folder / "env/bin/activate", "MARK=venv\n")
    monkeypatch.setenv("PATH", str(queue.folder / "bin"), prepend=":")
    options = ["--module", "cuda/12", "--module", "gcc", "--conda", "torch", "--venv", "env"]
    job = queue.submit("-c", "0", *options, "--setup", "echo setup $MARK", "echo", "job", "$MARK")
    assert queue.ended(job)["state"] == "COMPLETED"
    assert queue.output(job).splitlines() == [
        "module load cuda/12 gcc",
        "conda activate torch",
        "setup venv",
        "job $MARK",
    ]
    said = queue.run("submit", "--venv", "bin", "true", code=2)
    assert f"{queue.folder}/bin is no virtual environment: there is no bin/activate in it" in said
    job = queue.submit("-c", "0", "--setup", "false", "echo", "job")
    assert (queue.ended(job)["state"], queue.output(job)) == ("FAILED", "")


def test_an_interpreter_that_is_missing_is_named(queue: Queue) -> None:
    interpreter, script = queue.folder / "interp", queue.folder / "bin" / "run.sh"
    interpreter.symlink_to("/bin/sh")
    script.parent.mkdir()
    script.write_text(f"#!{interpreter}\ntrue\n")
    script.chmod(0o755)
    copied = queue.submit("-H", "-c", "0", "bin/run.sh")
    in_path = queue.submit("-H", "-c", "0", "--env", f"PATH={script.parent}:/bin", "run.sh")
    interpreter.unlink()
    queue.run("release", copied, in_path)
    for job in (copied, in_path):
        said = queue.ended(job)["detail"]
        assert said == f"The interpreter {interpreter} of run.sh does not exist."


def test_a_relative_folder_in_path_is_that_of_the_job(queue: Queue) -> None:
    (queue.folder / "there").mkdir()
    program(queue.folder / "there/bin/work", "echo done\n")
    (queue.folder / "there/bin/data").write_text("")
    options = ["-c", "0", "-D", "there", "--env", "PATH=bin:/bin"]
    assert queue.ended(queue.submit(*options, "work"))["state"] == "COMPLETED"
    for name in ("none", "data"):  # what cannot be executed is no program
        assert "no program of that name in PATH" in queue.run("submit", *options, name, code=2)


def test_which_variables_a_job_gets(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "1")
    monkeypatch.setenv("B", "2")
    said = {
        "ALL": "1 2 ",
        "NONE": "  ",
        "B": " 2 ",
        "NONE,C=3": "  3",
        "A,C=4": "1  4",
    }
    jobs = {
        export: queue.submit("-c", "0", "--export", export, "sh", "-c", 'echo "$A $B $C"')
        for export in said
    }
    for export, job in jobs.items():
        assert queue.ended(job)["state"] == "COMPLETED"
        assert queue.output(job) == said[export] + "\n", export


def test_limits_of_a_name_and_jobs_that_wait_for_a_start(queue: Queue) -> None:
    one = queue.submit("-c", "0", "--max-jobs", "1", "-J", "same", *UNTIL_GO)
    two = queue.submit("-c", "0", "--max-jobs", "1", "-J", "same", "true")
    other = queue.submit("-c", "0", "-H", "true")
    after = queue.submit("-c", "0", "-d", f"after:{other}", "true")
    wait_for(lambda: queue.show(two)["reason"] == "QOSMaxJobsPerUserLimit", "the reason")
    wait_for(lambda: queue.show(after)["reason"] == "Dependency", "the reason")
    assert queue.until(one, "RUNNING")
    queue.run("update", "--comment", "mine", "--grace", "5", one)
    changed = queue.show(one)["spec"]
    assert (changed["comment"], changed["grace"]) == ("mine", 5.0)
    queue.run("release", other)
    assert queue.ended(after)["started"] >= queue.show(other)["started"]
    assert queue.show(two)["state"] == "PENDING"
    (queue.folder / "go").touch()
    assert queue.ended(two)["started"] >= queue.show(one)["ended"]


def test_jobs_are_named_by_patterns_and_ranges(queue: Queue) -> None:
    for name in ("lr1", "lr2", "other", "last"):
        queue.submit("-H", "-J", name, "true")
    queue.run("cancel", "lr*")
    queue.run("update", "--priority", "7", "3-4")
    found = [queue.show(str(job)) for job in range(1, 5)]
    assert [job["state"] for job in found] == ["CANCELLED", "CANCELLED", "PENDING", "PENDING"]
    assert [job["priority"] for job in found] == [0, 0, 7, 7]
    assert "There is no job lx*." in queue.run("cancel", "lx*", code=2)


def test_parameters_that_do_not_fit_the_command_are_named(queue: Queue) -> None:
    said = queue.run("submit", "--param", "lr=1", "true", code=2)
    assert "The command does not use the parameter lr. Put {lr} where" in said
    said = queue.run("submit", "--param", "lr=1", "echo", "{lr}", "{seed}", code=2)
    assert "{seed} in the command has no value. Add --param seed=VALUE." in said
    said = queue.run("submit", "echo", "{lr}", "--param", "lr=1", code=2)
    assert "{lr} in the command has no value. Put --param before the command" in said
    said = queue.run("submit", "--dry-run", "--param", "lr=1,2,3,4", "echo", "{lr}").splitlines()
    assert said[0] == "Would submit 4 jobs, 0 GPUs each:"
    dry = queue.run("submit", "--dry-run", "sh", "-c", "echo a; echo b").splitlines()
    assert dry[1] == "  sh -c 'echo a; echo b'"
    assert said[1:5] == ["  echo 1", "  echo 2", "  echo 3", "  …"]


def test_one_gpu_is_not_called_gpus(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    said = queue.run("submit", "--dry-run", "-G", "1", "true").splitlines()
    assert said[0] == "Would submit 1 job, 1 GPU each:"


def test_a_dry_run_says_that_a_key_is_used(queue: Queue) -> None:
    """It asks for the same as the submission that would do nothing."""
    for key, more, jobs in (("a", [], "job 1"), ("b", ["--array", "0-2"], "jobs 2_0 … 2_2")):
        asked = ["--hold", "--key", key, *more, "true"]
        assert queue.run("submit", "--dry-run", *asked).startswith("Would submit")
        queue.run("submit", *asked)
        said = queue.run("submit", "--dry-run", *asked)
        assert said == f"Nothing would be submitted: the key {key} is that of {jobs}.\n"
        assert queue.run("submit", *asked) == said.replace("would be", "was")
        told = json.loads(queue.run("submit", "--dry-run", "--json", *asked))
        assert (told["count"], told["commands"], told["starts_now"]) == (0, [], False)


def test_a_script_is_copied_once_for_a_key(queue: Queue) -> None:
    (queue.folder / "run.sh").write_text("true\n")
    for _ in range(2):
        assert queue.submit("--hold", "--key", "a", "run.sh") == "1"
    assert len(list((store_folder() / "scripts").iterdir())) == 1


@pytest.mark.parametrize(
    ("gpus", "why"), [(2, "There are: 0, 1."), (0, "The NVIDIA driver is loaded but has no GPU.")]
)
def test_a_missing_gpu_is_refused(queue: Queue, fake_nvml: State, gpus: int, why: str) -> None:
    fake_nvml.write(gpus=gpus)
    assert f"There is no GPU 5. {why}\n" in queue.run("submit", "--gpu-ids", "5", "true", code=2)


def test_gpus_with_too_little_memory_are_not_given(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(**{"gpus": 3, "memory": 80 << 30, "0.memory": 24 << 30})
    job = queue.submit("-G", "2", "--min-gpu-memory", "40G", "printenv", "CUDA_VISIBLE_DEVICES")
    assert queue.ended(job)["state"] == "COMPLETED"
    assert queue.output(job) == "1,2\n"
    said = queue.run("submit", "-G", "3", "--min-gpu-memory", "40G", "true", code=2)
    assert "The number of GPUs is too large, 3: 2 are suitable." in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mem", "999T"], "The job needs 999 TiB of memory, and there are "),
        (["-G", "1", "--min-gpu-memory", "200G"], "The number of GPUs is too large, 1: 0 are "),
        (["-G", "1", "--share", "--gpu-memory", "200G"], "The number of GPUs is too large, 1: 0 "),
        (["-G", "2", "--share", "--gpu-memory", "40G"], "too large, 2: 1 is suitable."),
        (["-G", "1", "--share", "--gpu-memory", "much"], "“much” is not a size."),
        (
            ["-G", "1", "--share", "--gpu-memory", "20"],
            "“20” has no unit. Write 20G for 20 GiB, or 20M for 20 MiB.",
        ),
        (["-G", "1", "--min-gpu-memory", "20"], "“20” has no unit."),
    ],
)
def test_memory_that_the_machine_cannot_have_is_refused(
    queue: Queue, fake_nvml: State, options: list[str], said: str
) -> None:
    fake_nvml.write(**{"gpus": 2, "memory": 80 << 30, "0.memory": 24 << 30})
    assert said in queue.run("submit", *options, "true", code=2)
    assert json.loads(queue.run("queue", "--json")) == []


def test_a_job_shares_a_gpu_that_has_the_memory(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(**{"gpus": 2, "memory": 80 << 30, "0.memory": 24 << 30})
    share = ["-G", "1", "--share", "--gpu-memory", "40G"]
    job = queue.submit(*share, "printenv", "CUDA_VISIBLE_DEVICES")
    assert queue.ended(job)["state"] == "COMPLETED"
    assert queue.output(job) == "1\n"


@pytest.mark.parametrize(
    "option", [["--min-gpu-memory", "20G"], ["--share", "--gpu-memory", "20G"]]
)
def test_what_is_asked_of_gpus_needs_some(
    queue: Queue, fake_nvml: State, option: list[str]
) -> None:
    fake_nvml.write(gpus=1, memory=80 << 30)
    said = queue.run("submit", *option, "true", code=2)
    assert said == f"jdist: {option[0]} needs --gpus or --gpu-ids.\n"
    assert json.loads(queue.run("queue", "--json")) == []
    assert queue.ended(queue.submit("-G", "1", *option, "true"))["state"] == "COMPLETED"
    assert queue.ended(queue.submit("--gpu-ids", "0", *option, "true"))["state"] == "COMPLETED"


RANK = """
import os, pathlib, sys, time
here = pathlib.Path(f"{os.environ['JDIST_JOB_ID']}.{os.environ['RANK']}")
names = ("WORLD_SIZE", "MASTER_PORT", "CUDA_VISIBLE_DEVICES")
here.with_suffix(here.suffix + ".new").write_text(" ".join(os.environ[name] for name in names))
here.with_suffix(here.suffix + ".new").rename(here)
while not all(pathlib.Path(name).exists() for name in sys.argv[1:]):
    time.sleep(0.05)
"""


def test_torchrun_starts_a_rank_for_each_gpu_also_twice_at_once(
    queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=4)
    (queue.folder / "train.py").write_text(RANK)
    path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
    (queue.folder / "temporary").mkdir()
    temporary = ["--env", f"TMPDIR={queue.folder / 'temporary'}"]
    files = ["1.0", "1.1", "2.0", "2.1"]
    for _ in range(2):
        queue.submit(
            "-c", "0", "-G", "2", "--torchrun", "--env", path, *temporary, "train.py", *files
        )
    for job in ("1", "2"):
        assert queue.ended(job)["state"] == "COMPLETED", queue.output(job)
    told = [(queue.folder / name).read_text().split() for name in files]
    assert [size for size, _, _ in told] == ["2"] * 4
    assert told[0] == told[1] and told[2] == told[3], "the same port and GPUs in a job"
    assert told[0][1] != told[2][1], "a port for each job"
    for name in ("leases", "torchrun"):
        wait_for(lambda name=name: not [*store_folder().glob(f"{name}/*")], "the end of both")
    assert [*(queue.folder / "temporary").iterdir()] == [], "torchrun leaves its own there"
    gpus = [one for _, _, shown in told[::2] for one in shown.split(",")]
    assert sorted(gpus) == ["0", "1", "2", "3"]


def start(*args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", JDIST, *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=hear_signals)


def test_an_interrupt_of_run_cancels_its_job(queue: Queue) -> None:
    with start("run", "-c", "0", "sh", "-c", "echo up; exec sleep 1000") as running:
        assert running.stdout and running.stdout.readline() == "up\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 128 + signal.SIGTERM
    assert queue.show("1")["state"] == "CANCELLED"


def test_a_queue_that_is_watched_is_shown_again_when_it_changes(queue: Queue) -> None:
    job = queue.submit("-H", "true")
    with start("queue", "-w", "-o", "id,state,priority") as watching:
        assert watching.stdout
        lines = iter(watching.stdout.readline, "")
        assert next(line for line in lines if line.startswith(job)).split() == [job, "PD", "0"]
        queue.run("update", "--priority", "5", job)
        assert any(line.split() == [job, "PD", "5"] for line in lines)
        other = queue.submit("-H", "true")
        assert any(line.split() == [other, "PD", "0"] for line in lines)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(PATIENCE) == 130


def test_a_job_outlives_the_terminal_that_it_was_submitted_in(queue: Queue) -> None:
    shell, terminal = pty.fork()
    if not shell:
        hear_signals()
        submit = f"{queue.program()} submit -c 0 sh -c 'while [ ! -e go ]; do sleep 0.05; done'"
        os.execvp("sh", ["sh", "-c", f"{submit}; sleep 1000"])
    wait_for((queue.folder / "jdist-1.out").exists, "the start of the job")
    queue.until("1", "RUNNING")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1]) == -signal.SIGHUP
    assert queue.show("1")["state"] == "RUNNING"
    (queue.folder / "go").touch()
    assert queue.ended("1")["state"] == "COMPLETED"

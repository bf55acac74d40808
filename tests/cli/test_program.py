"""``jdist`` as a program: its page, its start, files of parameters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.leases.lease import Lease
from jupyter_dist_server.jobs.store.slurm_formats import write_moment
from tools.cli_page import PAGE, page

from ..fake_nvml.build import State
from ..jobs.queue_driver import UNTIL_GO, Queue
from ..waiting import PATIENCE, wait_for

HEAVY = (
    *("asyncio", "numpy", "tornado", "importlib.metadata", "zmq", "jupyter_client"),
    *("hashlib", "logging", "psutil", "shutil"),
    # In Python 3.10, msgspec imports it by way of uuid.
    *(("subprocess",) if sys.version_info >= (3, 11) else ()),
)


def test_the_page_of_commands_is_current() -> None:
    assert PAGE.read_text() == page(), "run python -m tools.cli_page"


def test_commands_import_little() -> None:
    modules = ", ".join(f"jupyter_dist_server.cli.{name}" for name in ("main", "queue", "submit"))
    code = f"import sys, {modules}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_version_is_there_when_asked_for(queue: Queue) -> None:
    import jupyter_dist_server

    assert queue.run("--version").strip() == jupyter_dist_server.__version__ != ""


def test_jupyter_dist_is_the_same_program(queue: Queue) -> None:
    programs = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(
        ["jupyter", "dist", "queue", "--json"],
        env=os.environ | {"PATH": programs},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_a_file_of_parameters(queue: Queue, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("lr,seed\n0.1,1\n0.01,2\n")
    said = queue.run("submit", "--dry-run", "--param-file", "p.csv", "train", "{lr}", "{seed}")
    assert "train 0.1 1\n  train 0.01 2\n" in said and "It would start now." in said
    (tmp_path / "p.csv").write_text("lr\nä\n", encoding="utf-8-sig")
    assert "ä" in queue.run("submit", "--dry-run", "--param-file", "p.csv", "train", "{lr}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr,seed\n0.1\n", "Row 2 of "),
        ("lr\n", " has no parameters."),
        ("lr,a b\n1,2\n", "“a b” in "),
        ("lr,lr\n1,2\n", " has two columns lr."),
        ("lr,x\n1,2\n", "x is a column of p.csv and in --param."),
    ],
)
def test_a_file_of_parameters_that_cannot_be_meant(queue: Queue, text: str, said: str) -> None:
    (queue.folder / "p.csv").write_text(text)
    args = ["--param", "x=1", "--param-file", "p.csv", "train", "{lr}", "{x}"]
    assert said in queue.run("submit", *args, code=2)


def test_columns_and_users(queue: Queue) -> None:
    queue.submit("-H", "--comment", "mine", "-J", "a", "true")
    assert queue.run("queue", "-o", "name,comment").splitlines() == ["NAME  COMMENT", "a     mine"]
    assert "USER" in queue.run("queue", "-u", "all")
    assert queue.run("queue", "-u", "nobody").splitlines()[1:] == []
    for users in (f"nobody,{psutil.Process().username()}", f"{os.getuid()}"):
        assert len(queue.run("queue", "-u", users).splitlines()) == 2
    assert "no column" in queue.run("queue", "-o", "nonsense", code=2)


def test_states_and_when_jobs_begin(queue: Queue) -> None:
    queue.submit("--begin", "now+1hour", "-J", "later", "true")
    wait_for(lambda: queue.show("1")["reason"] == "BeginTime", "the dispatcher's work")
    assert "PD" in queue.run("queue", "-t", "pending")
    assert queue.run("queue", "-t", "R,CG").splitlines()[1:] == []
    assert "There are: PD (PENDING)," in queue.run("queue", "-t", "PD,nonsense", code=2)
    (start,) = queue.run("queue", "--start", "-o", "start").splitlines()[1:]
    assert start.startswith("after ")


ODD = os.fsdecode(b"caf\xe9\x1bcred\nline")
"""An argument that is no Unicode, with what a terminal takes for a command."""


def test_what_a_terminal_could_take_for_a_command_is_shown_escaped(queue: Queue) -> None:
    queue.submit("-H", "-J", ODD, "--comment", ODD, "echo", ODD)
    for command in (
        ["show", "1"],
        ["show", ODD],
        ["submit", "--dry-run", "echo", ODD],
        ["queue", "-o", "name,comment"],
    ):
        said = queue.run_program(*command)
        assert "\x1b" not in said and "\\x1bcred\\nline" in said
        assert "caf\\xe9" in said or command[0] == "queue"
    assert queue.run("show", "--json", ODD)
    said = queue.run("wait", ODD + "!", code=2)
    assert said.startswith("jdist: There is no job caf\\xe9\\x1bcred line!.")


def test_own_pools_are_shown_too(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=2)
    who = Leaseholder(pool="p-1", pid=os.getpid(), since=time.time(), notebook="a.ipynb", host="h")
    with closing(Lease.take(["GPU-fake-1"], who)):
        job = queue.submit("-G", "2", "true")
        wait_for(lambda: queue.show(job)["reason"] == "Resources", "the reason")
        rows = [
            line.split() for line in queue.run("queue", "-o", "id,name,state,where").splitlines()
        ]
        assert rows[1] == ["p-1", "a.ipynb", "R", "1"] and rows[2][0] == job
        assert [row["kind"] for row in json.loads(queue.run("queue", "--json"))] == [
            "pool",
            "batch",
        ]
        for command in ("show", "cancel", "logs", "wait"):
            said = queue.run(command, "p-1", code=2)
            assert said.startswith("jdist: p-1 is a pool. Stop it with %dist_shutdown")
    assert queue.ended(job)["state"] == "COMPLETED"


def test_gpus_are_named_as_by_nvidia_smi(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=3, memory=80 << 30, utilization=37)
    job = queue.submit("-G", "2", "--gpu-ids", "1,2", "-c", "0", "-t", "1:00:00", *UNTIL_GO)
    queue.until(job, "RUNNING")
    assert queue.run("queue", "-o", "id,where").splitlines()[1:] == [f"{job}      1,2"]
    (row,) = json.loads(queue.run("queue", "--json"))
    assert row["gpu_uuids"] == ["GPU-fake-1", "GPU-fake-2"]
    gpu = json.loads(queue.run("info", "--json"))["gpus"][1]
    assert (gpu["index"], gpu["memory_total"], gpu["memory_used"]) == ("1", 80 << 30, 0)
    assert gpu["leaseholder"]["pool"].startswith(f"job-{job}-")
    assert gpu["utilization"] == 37
    assert gpu["ends_by"] == pytest.approx(queue.show(job)["started"] + 3600, abs=PATIENCE)
    heads, *rows = queue.run("info").splitlines()
    assert [row[heads.index("LOAD") :].split()[:2] for row in rows] == [["37", "%"]] * 3
    ends = [row[heads.index("ENDS BY") : heads.index("LEASEHOLDER")].strip() for row in rows]
    assert ends == ["", *[write_moment(gpu["ends_by"])] * 2]
    assert rows[0].endswith("free") and rows[1].endswith(" sh")
    (queue.folder / "go").touch()
    queue.ended(job)


def test_who_uses_a_gpu_without_a_lease_is_named(queue: Queue, fake_nvml: State) -> None:
    program = psutil.Process()
    rows = [f"{program.pid},{31 << 30},64", f"{os.getppid()},{2 << 20},0"]
    fake_nvml.write(**{"gpus": 2, "memory": 80 << 30, "1.process": rows})
    told = f"used by {program.name()}, pid {program.pid}, user {program.username()}, 31 GiB"
    free, used = queue.run("info").splitlines()[1:]
    assert free.endswith("  free") and used.endswith(f"  {told}")
    free, used = (gpu["used_by"] for gpu in json.loads(queue.run("info", "--json"))["gpus"])
    assert free == [] and [row["pid"] for row in used] == [program.pid]
    job = queue.submit("-G", "2", "true")
    wait_for(lambda: f"GPU 1 is {told}." in queue.show(job)["detail"], "the reason")
    assert "GPU-fake" not in queue.show(job)["detail"]
    queue.run("cancel", job)


def test_an_output_that_does_not_exist_is_said(queue: Queue) -> None:
    job = queue.submit("-c", "0", "echo", "text")
    queue.ended(job)
    path = queue.folder / f"jdist-{job}.out"
    path.unlink()
    told = f"jdist: The output of job {job} does not exist: {path} was deleted or moved.\n"
    assert queue.run("logs", job, code=2) == told
    assert queue.run_program("logs", "-f", job) == told


def test_a_name_that_looks_like_a_pattern_names_its_job_alone(queue: Queue) -> None:
    for name in ("lr[1]", "lr1", "lr*", "lr2"):
        queue.submit("-H", "-J", name, "true")

    def named(text: str) -> list[str]:
        return [job["name"] for job in json.loads(queue.run("show", "--json", text))]

    assert named("lr[1]") == ["lr[1]"] and named("lr*") == ["lr*"]
    assert named("lr?") == ["lr1", "lr*", "lr2"] and named("l*2") == ["lr2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("canel 12", "jdist has no command “canel”. Did you mean cancel? See jdist -h."),
        ("frobnicate", "jdist has no command “frobnicate”. See jdist -h."),
        ("submit --gpsu 2 ls", "does not know “--gpsu”. Did you mean --gpus? See jdist submit -h."),
        (
            "queue --user_s=a",
            "does not know “--user_s=a”. Did you mean --user? See jdist queue -h.",
        ),
    ],
)
def test_a_wrong_name_is_told_the_nearest_one(queue: Queue, words: str, said: str) -> None:
    assert said in queue.run(*words.split(), code=2)

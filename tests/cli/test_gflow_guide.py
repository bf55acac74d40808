"""The guide of gflow on GPUs runs as it is written, after ``eval "$(jdist aliases gflow)"``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ..fake_nvml.build import State
from ..jobs.queue_driver import JDIST, Queue
from ..waiting import PATIENCE, wait_for

GUIDE = (Path(__file__).parent / "gflow_gpu_guide.txt").read_text()
_FOUND = re.findall(r"^( *)```(bash|python)\n(.*?)^\1```", GUIDE, re.DOTALL | re.MULTILINE)
BLOCKS = [dedent(text) for _, kind, text in _FOUND if kind == "bash"]
(SEES_ITS_GPUS,) = [text for _, _, text in _FOUND if "sets this automatically" in text]
"""Of the guide's Python, what needs no training."""
TRAIN = """
import os, sys, time
print("ran", os.path.basename(__file__), *sys.argv[1:], flush=True)
while os.path.exists("wait"):
    time.sleep(0.02)
"""
PROGRAMS = {
    "jdist": f'exec "{sys.executable}" -c "{JDIST}" "$@"',
    "python": f'exec "{sys.executable}" "$@"',
    "nvidia-smi": """echo "nvidia-smi $*"
case "$*" in *"-l 10"*) exec sleep 600 ;; esac
while [ -n "$JDIST_JOB_ID" ] && [ -e wait ]; do sleep 0.02; done""",
    "ldconfig": "echo libnvidia-ml.so.1",
    "watch": 'shift 2; exec sh -c "$*"',  # as the real one does, but once
}
SCRIPTS = set(re.findall(r"python (\w+\.py)", GUIDE))
LOGS = Path(".local/share/gflow/logs")


class Guide:
    """A shell that knows gflow's words, on a machine with four GPUs."""

    def __init__(self, queue: Queue, nvml: State) -> None:
        self.queue = queue
        self._nvml = nvml
        self.have(4)

    def have(self, gpus: int, in_use: int = 0) -> None:
        """Have GPUs, of which the first are used by a program that has no job."""
        process = [f"{os.getpid()},{1 << 30},64"]
        used = {f"{gpu}.process": process for gpu in range(in_use)}
        self._nvml.write(gpus=gpus, memory=80 << 30, **used)

    def sh(self, text: str) -> str:
        """Run lines of a shell, which has to succeed; return what it prints."""
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", f'eval "$(jdist aliases gflow)"\n{text}'],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, text + done.stdout + done.stderr
        return done.stdout + done.stderr

    def run(self, block: str) -> str:
        """Run a block. What stands below ``$ command`` is printed by it, sooner or later."""
        if not re.search(r"^\$ ", block, re.MULTILINE):
            return self.sh(block)
        said = ""
        for part in re.split(r"\n{2,}|(?=^\$ )", block.strip(), flags=re.MULTILINE):
            lines = [line for line in part.splitlines() if not line.startswith(("#", "<!--"))]
            if lines:
                said += self._step(lines[0].removeprefix("$ "), lines[1:])
        return said

    def _step(self, command: str, expected: list[str]) -> str:
        if not expected or command.startswith("gbatch"):
            said = self.sh(command)
            assert not expected or said.splitlines()[0] == expected[0]
            return said
        wanted = cells(expected)
        wait_for(lambda: cells(self.sh(command).splitlines()) == wanted, f"{command}: {wanted}")
        return ""

    def running(self, *options: str) -> str:
        """Return a job that runs, and ends when `go` says so."""
        Path("wait").touch()
        said = self.sh(f"gbatch {' '.join(options)} python train.py")
        job = said.split()[3]
        self.queue.until(job, "RUNNING")
        return job

    def skip_to(self, job: int) -> None:
        """Have the next job get this id."""
        self.queue.run("submit", "-H", "-a", f"1-{job - 1}", "true")
        self.queue.run("cancel", "1")

    def go(self) -> list[dict[str, Any]]:
        """Let jobs go on; return all, which have to succeed."""
        Path("wait").unlink(missing_ok=True)
        self.queue.run("wait", "--timeout", str(PATIENCE), "1-100000")
        found: list[dict[str, Any]] = json.loads(self.queue.run("show", "--json", "1-100000"))
        return found

    def log(self, job: str) -> str:
        return (LOGS / f"{job}.log").read_text()


def cells(lines: list[str]) -> list[list[str]]:
    """Return a table without the names that gflow makes up."""
    head = lines[0].split()
    rows = [head, *(line.split(maxsplit=len(head) - 1) for line in lines[1:])]
    place = head.index("NAME") if "NAME" in head else len(head)
    made_up = re.compile(r"job-\d+|brave-river-1234|python|nvidia-smi")
    return [
        ["" if i == place and made_up.fullmatch(cell) else cell for i, cell in enumerate(row)]
        for row in rows
    ]


@pytest.fixture
def guide(queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch) -> Guide:
    programs = queue.folder / "bin"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(queue.folder))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for name in SCRIPTS:
        Path(name).write_text(TRAIN)
    return Guide(queue, fake_nvml)


def gpus(jobs: list[dict[str, Any]]) -> list[int]:
    return [job["gpus"] for job in jobs]


def check_info(guide: Guide, block: str) -> None:
    job = guide.running("--gpus 1")
    said = guide.run(block).splitlines()
    told = next(line for line in said if "GPU" in line)
    assert told == "4 GPUs, 3 free"
    rows = [line.split() for line in said if "GPU-fake-" in line]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    assert all(row[-1] == "free" for row in rows[1:])
    assert rows[0][-3] == job
    guide.go()


def check_setup(guide: Guide, block: str) -> None:
    said = guide.run(block)
    assert "libnvidia-ml.so.1" in said and "4 GPUs, 4 free" in said
    assert "gflowd up: the queue needs no daemon. Jobs start by themselves.\n" in said


def check_requests(guide: Guide, block: str) -> None:
    guide.run(block)
    assert gpus(guide.go()) == [1, 2, 4]


def check_assignment(guide: Guide, block: str) -> None:
    guide.have(4, in_use=1)
    guide.skip_to(42)
    Path("wait").touch()
    guide.run(block)
    Path("wait").unlink()
    assert guide.queue.ended("42")["gpu_uuids"] == ["GPU-fake-1", "GPU-fake-2"]


def check_script(guide: Guide, block: str) -> None:
    Path("job.sh").write_text(block)
    guide.sh("gbatch job.sh")
    (job,) = guide.go()
    assert job["gpus"] == block.count("--gpus 1") + 2 * block.count("--gpus 2")
    assert "ran train.py\n" in guide.log("1")
    if "Allocated" in block:
        assert "Allocated GPUs: 0,1\nnvidia-smi --query-gpu=index" in guide.log("1")
    else:
        assert "--format=csv -l 10\n" in Path("gpu_stats.log").read_text()


def check_queue(guide: Guide, block: str) -> None:
    guide.have(2)
    Path("wait").touch()
    guide.run(block)
    first, second = guide.go()
    assert second["started"] >= first["ended"]


def check_priority(guide: Guide, block: str) -> None:
    guide.have(1)
    guide.running("--gpus 1")
    guide.run(block)
    _, low, high = guide.go()
    assert (low["priority"], high["priority"]) == (5, 100)
    assert low["started"] >= high["ended"]


def check_partial(guide: Guide, block: str) -> None:
    guide.have(4, in_use=3)
    guide.skip_to(5)
    guide.run(block)


def check_allocation(guide: Guide, block: str) -> None:
    for name, count in {"train-resnet": 1, "train-vit": 1, "train-bert": 2}.items():
        guide.running(f"--gpus {count}", f"--name {name}")
    guide.sh("gbatch --gpus 1 python train.py")
    guide.run(block)
    guide.go()


def check_status(guide: Guide, block: str) -> None:
    said = guide.run(block)
    assert "4 GPUs, 4 free" in said and "nvidia-smi" in said


def check_monitor(guide: Guide, block: str) -> None:
    assert "Submitted batch job 1\n" in guide.run(block)
    assert gpus(guide.go()) == [1]
    log = guide.log("1")
    assert "CUDA_VISIBLE_DEVICES: 0\n=== GPU Details ===\nnvidia-smi --query-gpu=index" in log
    assert log.endswith("=== Training ===\nran train.py\n")


def check_log(guide: Guide, block: str) -> None:
    job = guide.sh("gbatch python train.py").split()[3]
    guide.go()
    assert guide.run(block.replace("<job_id>", job)) == "ran train.py\n"


def check_submitted(guide: Guide, block: str) -> None:
    guide.run(block)
    jobs = guide.go()
    assert gpus(jobs) == [int(number) for number in re.findall(r"--gpus (\d)", block)]
    assert all("ran " in guide.log(str(job["id"])) for job in jobs)


def check_mixed(guide: Guide, block: str) -> None:
    guide.run(block)
    assert gpus(guide.go()) == [0, 1]


def check_pipeline(guide: Guide, block: str) -> None:
    guide.run(block)
    jobs = guide.go()
    assert gpus(jobs) == [0, 1, 0]
    assert [job["limit"] for job in jobs] == [1800.0, 14400.0, 600.0]
    assert jobs[0]["ended"] <= jobs[1]["started"] and jobs[1]["ended"] <= jobs[2]["started"]


def check_experiments(guide: Guide, block: str) -> None:
    said = guide.run(block)
    assert "jdist: gbatch --config config2.yaml is not used.\n" in said
    jobs = guide.go()
    assert [job["name"] for job in jobs] == ["exp1", "exp2", "exp3"]
    assert {(job["gpus"], job["limit"]) for job in jobs} == {(1, 7200.0)}


def check_sweep(guide: Guide, block: str) -> None:
    Path("wait").touch()
    said = guide.run(block)
    names = [f"lr{lr}_bs{size}" for lr in ("0.001", "0.01", "0.1") for size in (32, 64, 128)]
    rows = cells(said[said.index("JOBID") :].splitlines()[:10])
    assert rows[0] == ["JOBID", "NAME", "NODES", "NODELIST(REASON)"]
    assert [row[:3] for row in rows[1:]] == [[str(i + 1), names[i], "1"] for i in range(9)]
    guide.go()
    assert guide.log("9") == "ran train.py --lr 0.1 --batch-size 128\n"


def check_forgotten(guide: Guide, block: str) -> None:
    guide.run(block)
    assert gpus(guide.go()) == [0, 1]


def check_all_in_use(guide: Guide, block: str) -> None:
    for _ in range(2):
        guide.running("--gpus 2")
    said = guide.run(block)
    assert cells(said.splitlines()[:3]) == [
        ["NODES", "NODELIST(REASON)"],
        ["2", "0,1"],
        ["2", "2,3"],
    ]
    assert "4 GPUs, 0 free" in said
    guide.go()


def check_waiting(guide: Guide, block: str) -> None:
    guide.skip_to(41)
    guide.running("--gpus 4")
    guide.sh("gbatch --gpus 1 true")
    guide.run(block.replace("<job_id>", "42"))


def check_visible(guide: Guide, block: str) -> None:
    Path("job.sh").write_text(
        f"# GFLOW --gpus 2\n{block.partition('# Should')[0]}\npython train.py\n"
    )
    Path("wait").touch()
    guide.sh("gbatch job.sh")
    guide.queue.until("1", "RUNNING")
    said = guide.run("gqueue" + block.partition("gqueue")[2].partition("gqueue")[2])
    assert cells(said.splitlines()) == [["JOBID", "NODELIST(REASON)"], ["1", "0,1"]]
    guide.go()
    assert guide.log("1").startswith("CUDA_VISIBLE_DEVICES: 0,1\n")


def check_memory(guide: Guide, block: str) -> None:
    assert guide.run(block).startswith("nvidia-smi --query-gpu=memory.free")


def check_follow(guide: Guide, block: str) -> None:
    job = guide.running()
    first, _, last = block.rpartition("tail")
    assert "nvidia-smi" in guide.run(first)
    command = "exec tail" + last.replace("<job_id>", job)
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout and tail.stdout.readline() == "ran train.py\n"
        tail.terminate()
    guide.go()


def check_reference(guide: Guide, block: str) -> None:
    Path("wait").touch()
    said = guide.run(block.replace("<N> ...", "2 python train.py"))
    assert "4 GPUs, 4 free" in said and "Submitted batch job 1\n" in said
    assert said.count("JOBID  NODES  NODELIST(REASON)\n") == 2
    guide.go()


CHECKS: list[Callable[[Guide, str], None]] = [
    check_info,
    check_setup,
    check_requests,
    check_assignment,
    check_script,
    check_queue,
    check_priority,
    check_partial,
    check_allocation,
    check_status,
    check_monitor,
    check_log,
    check_submitted,
    check_submitted,
    check_submitted,
    check_submitted,
    check_mixed,
    check_pipeline,
    check_experiments,
    check_submitted,
    check_sweep,
    check_forgotten,
    check_all_in_use,
    check_waiting,
    check_visible,
    check_memory,
    check_follow,
    check_script,
    check_reference,
]
"""What holds for each block, in order."""


@pytest.mark.parametrize(("number", "check"), [*enumerate(CHECKS)])
def test_a_block(guide: Guide, number: int, check: Callable[[Guide, str], None]) -> None:
    assert len(BLOCKS) == len(CHECKS)
    check(guide, BLOCKS[number])


def test_what_a_job_sees(guide: Guide) -> None:
    Path("torch.py").write_text("""
import os
device = str
class cuda:
    device_count = staticmethod(lambda: len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")))
""")
    Path("job.py").write_text(SEES_ITS_GPUS)
    guide.sh("gbatch --gpus 2 python job.py")
    guide.go()
    assert guide.log("1") == "CUDA_VISIBLE_DEVICES: 0,1\nVisible GPUs to CUDA: 2\n"

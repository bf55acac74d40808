"""What the pages on the queue show works, in order, on a machine with eight GPUs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from ..fake_nvml.build import State
from ..waiting import PATIENCE
from .queue_driver import JDIST, Queue, hear_signals, shell

FOR_EVER = ("jdist queue -w\n",)
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("share", "queue", "job-scripts", "manage-jobs", "slurm-gflow")
"""In the order in which their commands go on from one another."""


def test_every_block_of_the_pages(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=8, memory=80 << 30)
    programs = queue.folder / "bin"
    programs.mkdir()
    (programs / "jdist").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{JDIST}" "$@"\n')
    (programs / "python").write_text('#!/bin/sh\necho ran "$@"\n')
    cells = [nbformat.v4.new_code_cell("lr = 1")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, queue.folder / "train.ipynb")
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    text = "".join((DOCS / f"{page}.md").read_text() for page in PAGES)
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    assert len(blocks) > 14
    said = ""
    for block in blocks:
        (queue.folder / "train.py").write_text("")
        said += _interrupted(block, queue) if block in FOR_EVER else shell(block, queue.folder)
    _check(queue, said)


def _interrupted(block: str, queue: Queue) -> str:
    with subprocess.Popen(
        ["bash", "-c", "exec " + block],
        cwd=queue.folder,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    ) as running:
        assert running.stdout
        said = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 130
    return said


def _check(queue: Queue, said: str) -> None:
    """The jobs that the pages name are what they say, and all have run."""
    ended = json.loads(queue.run("history", "--json", "-n", "1000"))
    jobs = {job["label"]: job for job in ended}
    states = Counter(job["state"] for job in ended)
    assert states.keys() == {"COMPLETED", "CANCELLED"} and states["CANCELLED"] == 2, states
    assert [jobs[str(id)]["gpus"] for id in range(1, 8)] == [2, 1, 2, 2, 1, 1, 1]
    assert jobs["4"]["gpu_uuids"] == ["GPU-fake-0", "GPU-fake-3"]
    assert jobs["6"]["share"] == jobs["7"]["share"] == 20 << 30
    assert (jobs["8"]["limit"], jobs["9"]["priority"]) == (1800.0, 10)
    assert jobs["10"]["started"] >= jobs["10"]["begin"]
    assert jobs["11"]["started"] >= max(jobs["8"]["ended"], jobs["9"]["ended"])
    assert queue.output("12_2") == "ran train.py --lr 0.01 --seed 1\n"
    assert jobs["16_9"]["state"] == "COMPLETED"
    prepared, trained, evaluated = (jobs[str(id)] for id in range(26, 29))
    assert prepared["ended"] <= trained["started"] <= trained["ended"] <= evaluated["started"]
    assert (prepared["gpus"], trained["gpus"], evaluated["gpus"]) == (0, 1, 0)
    script, monitor = jobs["29"], jobs["30"]
    assert (script["name"], script["gpus"], script["limit"]) == ("train", 1, 3600.0)
    assert re.match(r"GPUs: \d\n", (queue.folder / "train-29.log").read_text())
    assert (monitor["gpus"], monitor["limit"], monitor["memory"]) == (1, 3600.0, 4 << 30)
    assert "\nran train.py\n" in queue.output("30") and queue.output("30") in said
    assert jobs["1"]["attempt"] == 2, "it was requeued"
    (shown,) = [line.split() for line in said.splitlines() if " next " in line]
    assert shown[1:5] == ["next", "PD", "0", "(JobHeldUser)"]

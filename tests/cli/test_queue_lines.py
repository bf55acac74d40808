"""The lines of ``jdist queue`` and ``jdist info``."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import sys
from contextlib import closing

import psutil
import pytest

from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..fake_nvml.build import State
from ..jobs.queue_driver import JDIST, Queue


def first_words(queue: Queue, *args: str) -> list[str]:
    return [line.split()[0] for line in queue.run("queue", *args).splitlines()[1:]]


def test_tasks_that_wait_for_the_same_share_a_line(queue: Queue) -> None:
    queue.submit("-H", "--array", "1-9", "true")
    other = queue.submit("-H", "true")
    assert first_words(queue) == ["1_[1-9]", other]
    queue.run("update", "--priority", "5", "1_3")
    queue.run("cancel", "1_7")
    assert first_words(queue) == ["1_3", "1_[1-2,4-6,8-9]", other]
    assert len(first_words(queue, "--array")) == len(first_words(queue, "--start")) == 9
    assert [row["id"] for row in json.loads(queue.run("queue", "--json"))][1] == "1_1"


def in_terminal(command: str) -> list[str]:
    """Return the lines that a terminal of 80 columns shows."""
    shell, terminal = pty.fork()
    if not shell:
        os.environ["COLUMNS"] = "80"
        os.execv(sys.executable, [sys.executable, "-c", JDIST, command])
    said = b""
    with contextlib.suppress(OSError):  # its end
        while True:
            said += os.read(terminal, 65536)
    os.waitpid(shell, 0)
    os.close(terminal)
    return said.decode().splitlines()


def test_a_terminal_shows_in_full_who_has_a_gpu(queue: Queue, fake_nvml: State) -> None:
    program = psutil.Process()
    fake_nvml.write(
        **{"gpus": 2, "memory": 80 << 30, "1.process": [f"{program.pid},{31 << 30},64"]}
    )
    shown = in_terminal("info")
    assert all(len(line) <= 80 for line in shown[::2])
    assert shown[0].split()[-2:] == ["ENDS", "BY"]
    used = f"     used by {program.name()}, pid {program.pid}, user {program.username()}, 31 GiB"
    assert shown[1::2] == ["     LEASEHOLDER", "     free", used]


def test_a_long_name_hides_no_other_column(queue: Queue) -> None:
    long = "resnet50-" * 300
    queue.submit("-H", "-J", long, "true")
    short = queue.submit("-H", "-J", "short", "true")
    _, *rows = queue.run("queue").splitlines()
    assert long in rows[0] and len(rows[1]) < 200
    shown = in_terminal("queue")
    assert shown[0].split() == ["JOBID", "NAME", "ST", "TIME", "LIMIT", "GPUS", "WHERE(REASON)"]
    assert shown[1].split()[:3] == ["1", "resnet50-resnet50-resne…", "PD"]
    assert shown[2].split()[:3] == [short, "short", "PD"]
    assert all("(JobHeldUser)" in line and len(line) <= 80 for line in shown[1:])


@pytest.mark.slow
def test_of_a_hundred_thousand_tasks_one_is_cancelled(queue: Queue) -> None:
    said = queue.run("submit", "-H", "-a", "1-100000", "true")
    assert said.startswith("Submitted jobs 1_1 … 1_100000.\n")
    queue.run("cancel", "1_500")
    with closing(Store(store_folder())) as store:
        counts = store.read("SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state")
    assert [tuple(row) for row in counts] == [("CANCELLED", 1), ("PENDING", 99_999)]
    said = queue.run("queue", "-o", "id,state")
    assert said.splitlines()[1:] == ["1_[1-499,501-100000]  PD"]
    queue.run("cancel", "1")
    assert queue.run("queue", "-o", "id").splitlines()[1:] == []
    assert "at most 100,000 tasks" in queue.run("submit", "-a", "0-100001", "true", code=2)

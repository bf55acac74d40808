"""What a rank that others wait for does instead: it waits for the user, a worker, or is in C."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from .scene import Case, Scene, without_number

STEP = "dist.all_reduce(torch.ones(20))"


def others_wait(line: int) -> str:
    return (
        f"Ranks 0,2 wait in all_reduce #N (20 × float32), begun by `{STEP}` at In[9] line {line}. "
    )


def instead(name: str, work: str, does: str, stuck: bool = False) -> Case:
    """Return a scene in which rank 1 does something else first; `L` is the line where it does."""
    lines = work.count("\n") + 1
    return Case(
        name,
        f"if rank == 1:\n    {work}\n{STEP}",
        f"{others_wait(lines + 2)}Rank 1 has not begun it: {does}"
        if not stuck
        else f"{others_wait(lines + 2)}Rank 1 never began it: {does}",
        stuck,
    )


SCENES = [
    instead(
        "`input()`", "input('go on?')", "it waits for an answer to `input()`, In[9] line 2.", True
    ),
    instead(
        "a breakpoint", "breakpoint()", "it waits for you in the debugger, In[9] line 2.", True
    ),
    instead("a loop", "while True: pass", "it is in Python code, In[9] line 2."),
    instead(
        "a lock",
        "import threading\n    lock = threading.Lock()\n    lock.acquire()\n    lock.acquire()",
        "it is in `lock.acquire`, In[9] line 5.",
    ),
    instead(
        "a thread",
        "import threading, time\n"
        "    thread = threading.Thread(target=time.sleep, args=(600,), daemon=True)\n"
        "    thread.start()\n    thread.join()",
        "it waits for another thread, In[9] line 5.",
    ),
    instead(
        "a queue",
        "import queue\n    queue.Queue().get()",
        "it waits for another thread, In[9] line 3.",
    ),
    instead(
        "a pipe",
        "import os\n    source, sink = os.pipe()\n    os.read(source, 1)",
        "it is in `os.read`, In[9] line 4.",
    ),
    instead(
        "the network",
        "import socket\n    server = socket.create_server(('127.0.0.1', 0))\n    server.accept()",
        "it waits for the network, In[9] line 4.",
    ),
    instead(
        "a subprocess",
        "import subprocess\n    subprocess.run(['sleep', '600'])",
        "it waits for a subprocess, In[9] line 3.",
    ),
    instead(
        "a DataLoader's worker",
        "import time\n    class Slow(torch.utils.data.Dataset):\n"
        "        def __len__(self): return 4\n        def __getitem__(self, i): time.sleep(600)\n"
        "    for batch in torch.utils.data.DataLoader(Slow(), num_workers=1): pass",
        "it waits for a worker of its DataLoader, In[9] line 6.",
    ),
]


@pytest.mark.parametrize("case", SCENES, ids=lambda case: case.name)
async def test_elsewhere(scene: Scene, case: Case) -> None:
    assert (await scene.says(case.cell, case.sentence)).stuck == case.stuck


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_stopped_process(scene: Scene) -> None:
    snapshot = scene.client.link.snapshot
    assert snapshot
    pid = snapshot.ranks[1].pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        async with scene.runs(STEP, [0, 2]):
            told = "Rank 1 never began it: its process is stopped (SIGSTOP, a debugger)."
            verdict = await scene.until(lambda found: found.sentence.endswith(told), told)
            assert verdict.remedies[-1].magic == "%dist_restart --ranks 1"
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_stopped_agent(scene: Scene) -> None:
    """Nobody needs it to find out why ranks wait, nor to free them."""
    snapshot = scene.client.link.snapshot
    assert snapshot and snapshot.process
    os.kill(snapshot.process.pid, signal.SIGSTOP)
    try:
        told = f"{others_wait(2)}Rank 1 never began it: it has finished its cell."
        await scene.says(f"if rank != 1:\n    {STEP}", told)
    finally:
        os.kill(snapshot.process.pid, signal.SIGCONT)


async def test_c_code_that_holds_the_gil(scene: Scene, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    cell = (
        "if rank == 1:\n    import ctypes, os\n"
        f"    pipe, one = os.open({str(pipe)!r}, os.O_RDWR), ctypes.create_string_buffer(1)\n"
        f"    ctypes.PyDLL(None).read(pipe, one, 1)\n{STEP}"
    )
    sentence = (
        f"{others_wait(5)}"
        "Rank 1 has not begun it: it is in C code that holds the GIL, In[9] line 4."
    )
    async with scene.runs(cell):
        try:
            verdict = await scene.until(lambda found: without_number(found) == sentence, sentence)
            assert verdict.remedies[-1].magic == "%dist_restart --ranks 1"
        finally:
            pipe.write_bytes(b"x")

"""Whatever is killed, whenever: the notebook says the truth, nothing is left, and it goes on."""

from __future__ import annotations

import os
import queue
import random
import re
import threading
import time
from pathlib import Path

import psutil
import pytest

from ..conftest import pool_folders
from ..driver import Notebook, Result, Server, tagged, wait_for, wait_until_ready
from ..waiting import PATIENCE

KILLS = 50
"""For each of the four seeds."""
RANKS = 2
CELL = """%%distributed
import time
for _ in range(15):
    time.sleep(0.01)
t = torch.ones(1)
dist.all_reduce(t)
print("sum", int(t))
"""
VICTIMS = {"rank": 30, "agent": 12, "kernel": 5, "server": 3}
"""How often each is killed, of `KILLS`: the more a recovery takes, the less often."""


class World:
    """A server, a notebook of it, and its pool."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "root").mkdir()
        self.before = pool_folders()
        self.shared_memory = set(os.listdir("/dev/shm"))
        self.begin()

    def begin(self) -> None:
        """Start a server and a notebook."""
        grace = "--JupyterDistApp.orphan_grace=1"
        self.server = Server(self.home, self.home / "root", grace)
        self.notebook = self.server.notebook()
        self.notebook.ok("%load_ext jupyter_dist_server")

    def pids(self) -> dict[str, list[int]]:
        """Return whom one could kill."""
        ranks = [rank["pid"] for rank in self.server.pools()[0]["ranks"]]
        agent = psutil.Process(ranks[0]).ppid()
        kernel = int(self.notebook.ok("import os\nprint(os.getpid())").text)
        server = [self.server.process.pid]
        return {"rank": ranks, "agent": [agent], "kernel": [kernel], "server": server}

    def check_that_nothing_is_left(self) -> None:
        """Check that there is one pool, and nothing of the ones before."""
        most = 2 + 1 + RANKS + 1  # server and kernel; agent, ranks, and a warm zygote

        def is_tidy() -> bool:
            folders = len(pool_folders() - self.before)
            return folders == 1 and len(tagged(self.server.env)) <= most

        wait_for(is_tidy, "the end of all that belonged to what was killed")
        assert set(os.listdir("/dev/shm")) <= self.shared_memory

    def end(self) -> None:
        """Shut everything down; `Server.close` checks that no process is left."""
        self.notebook.client.stop_channels()
        self.server.close()
        wait_for(lambda: pool_folders() <= self.before, "the end of the pools' folders")


def run_until_it_ends(notebook: Notebook, kernel: psutil.Process) -> Result | None:
    """Run the cell; `None` if the kernel died, so that nobody can say how it ended."""
    message_id, result = notebook.send(CELL), Result()
    deadline = time.monotonic() + PATIENCE
    while kernel.is_running() and kernel.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"the cell does not end; so far: {result.shown}"
        try:
            message = notebook.client.get_iopub_msg(timeout=0.05)
        except queue.Empty:
            continue
        if message["parent_header"].get("msg_id") == message_id:
            result.add(message["msg_type"], message["content"])
            if message["content"].get("execution_state") == "idle":
                return result
    return None


def check_truth(result: Result, victim: str, rank: int) -> None:
    """Check that a cell went well, or says what was killed."""
    if not result.error:
        assert result.lines == [f"[0-{RANKS - 1}] sum {RANKS}"]
    elif victim == "rank":
        assert f"Rank {rank} died: killed by signal 9 (SIGKILL)." in result.error, result.shown
    else:
        assert victim == "agent", result.shown
        assert re.search(r"the pool has ended|agent was killed by signal 9", result.error)


def recover(world: World, victim: str, rank: int) -> None:
    """Do what a person would do next."""
    notebook = world.notebook
    if victim == "rank":
        notebook.ok(f"%dist_restart --ranks {rank}")
    elif victim == "agent":
        notebook.ok(f"%dist_init -n {RANKS}")
    elif victim == "kernel":
        wait_until_ready(notebook.client)
        attached = notebook.ok("%load_ext jupyter_dist_server")
        if "Attached" not in attached.text:
            notebook.ok(f"%dist_init -n {RANKS}")
    else:
        world.server.process.wait()
        notebook.client.stop_channels()
        wait_for(lambda: not tagged(world.server.env), "the end of what the server started")
        world.begin()
        world.notebook.ok(f"%dist_init -n {RANKS}")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(4))
def test_chaos(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    victims = [victim for victim, times in VICTIMS.items() for _ in range(times)]
    assert len(victims) == KILLS
    rng.shuffle(victims)
    world = World(tmp_path)
    world.notebook.ok(f"%dist_init -n {RANKS}")
    for victim in victims:
        pids = world.pids()
        number = rng.randrange(len(pids[victim]))
        killed = psutil.Process(pids[victim][number])
        moment = threading.Timer(rng.uniform(0.0, 0.3), killed.kill)
        moment.start()
        result = run_until_it_ends(world.notebook, psutil.Process(pids["kernel"][0]))
        moment.join()
        if result:
            check_truth(result, victim, number)
        else:
            assert victim in ("kernel", "server")
        psutil.wait_procs([killed], timeout=PATIENCE)
        recover(world, victim, number)
        assert world.notebook.ok(CELL).lines == [f"[0-{RANKS - 1}] sum {RANKS}"], victim
        world.check_that_nothing_is_left()
    world.end()

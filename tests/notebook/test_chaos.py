"""Whatever is killed or stopped: the notebook says the truth, nothing is left, and it goes on."""

from __future__ import annotations

import math
import os
import queue
import random
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.agent.zygote import NAME as ZYGOTE

from ..conftest import pool_folders
from ..environment import lives, named, tagged
from ..notebook_driver import Notebook, wait_until_ready
from ..result import Result
from ..server_driver import Server
from ..waiting import PATIENCE, wait_for

RANKS = 2
CELL = """%%distributed
import time
for _ in range(15):
    time.sleep(0.01)
t = torch.ones(1)
dist.all_reduce(t)
print("sum", int(t))
"""
FAULTS = {
    ("kill", "rank"): 5,
    ("stop", "rank"): 4,
    ("kill", "agent"): 1,
    ("stop", "agent"): 2,
    ("stop", "zygote"): 1,
    ("kill", "kernel"): 1,
    ("kill", "server"): 1,
    ("stop", "server"): 1,
}
"""What happens to whom, and how often for each seed: as many are stopped as are killed."""
SEEDS = -(-int(os.environ.get("JUPYTER_DIST_CHAOS", "16")) // sum(FAULTS.values()))


def shared_memory() -> set[str]:
    """Return what lies in shared memory, but for multiprocessing's semaphores: other tests' too."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("sem.mp-")}


class World:
    """A server, a notebook of it, and its pool."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "root").mkdir()
        self.before = pool_folders()
        self.shared_memory = shared_memory()
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
        victims = {"rank": ranks, "agent": [agent], "kernel": [kernel], "server": server}
        return victims | {"zygote": wait_for(self._zygotes, "a warm zygote")}

    def _zygotes(self) -> list[int]:
        return [process.pid for process in named(self.server.env, ZYGOTE)]

    def check_that_nothing_is_left(self) -> None:
        """Check that there is one pool, and nothing of the ones before."""
        most = 2 + 1 + RANKS + 1  # server and kernel; agent, ranks, and a warm zygote

        def is_tidy() -> bool:
            folders = len(pool_folders() - self.before)
            return folders == 1 and len(tagged(self.server.env)) <= most

        wait_for(is_tidy, "the end of all that belonged to what was killed")
        assert shared_memory() <= self.shared_memory

    def end(self) -> None:
        """Shut everything down; `Server.close` checks that no process is left."""
        self.notebook.client.stop_channels()
        self.server.close()
        wait_for(lambda: pool_folders() <= self.before, "the end of the pools' folders")


_PRESS, _PRESS_AGAIN = 1.0, 10.0
"""Seconds after a cell's begin, and after it was pressed in vain, until Stop is pressed."""


def run_until_it_ends(
    notebook: Notebook, kernel: psutil.Process, stuck: Callable[[], bool]
) -> Result | None:
    """Run the cell, and press Stop if it is `stuck`.

    Return `None` if the kernel died, so that nobody can say how it ended. As a person would, press
    again if nothing comes of it: a kernel that has not yet begun the cell does not hear of it.
    """
    message_id, result = notebook.send(CELL), Result()
    deadline, press_at = time.monotonic() + PATIENCE, math.inf
    while lives(kernel):
        assert time.monotonic() < deadline, f"the cell does not end; so far: {result.shown}"
        if time.monotonic() > press_at and stuck():
            press_at = time.monotonic() + _PRESS_AGAIN
            notebook.interrupt()
        try:
            message = notebook.client.get_iopub_msg(timeout=0.05)
        except queue.Empty:
            continue
        if message["parent_header"].get("msg_id") == message_id:
            if press_at == math.inf:
                press_at = time.monotonic() + _PRESS
            result.add(message["msg_type"], message["content"])
            if message["content"].get("execution_state") == "idle":
                return result
    return None


def check_truth(result: Result, what: str, victim: str, rank: int) -> None:
    """Check that a cell went well, or says what was killed or stopped."""
    if not result.error:
        assert result.lines == [f"[0-{RANKS - 1}] sum {RANKS}"]
    elif (what, victim) == ("kill", "rank"):
        assert f"Rank {rank} died:" in result.error, result.shown
    elif (what, victim) == ("stop", "rank"):
        said = rf"(?i)rank {rank} (was |does not respond: it is )?stopped \(SIGSTOP"
        assert re.search(said, result.error), result.shown
    elif (what, victim) == ("stop", "agent"):
        assert re.search(r"agent \(pid \d+\) does not respond", result.error), result.shown
    else:
        assert (what, victim) == ("kill", "agent"), result.shown
        assert re.search(r"the pool has ended|agent was killed by signal 9", result.error)


def recover_from_death(world: World, victim: str, rank: int) -> None:
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


def recover_from_stop(
    world: World, victim: str, rank: int, stopped: psutil.Process, early: bool
) -> None:
    """Let the process go on now, or do what a person would do next, and let it go on then."""
    notebook = world.notebook
    if early:
        stopped.resume()
        if victim == "rank":  # a next cell at once may have to do without the process group
            idle = lambda: notebook.ok("%dist_status").text.count(" idle for ")  # noqa: E731
            wait_for(lambda: idle() == RANKS, "the end of the cell on the rank that was stopped")
    elif victim in ("rank", "server"):
        notebook.ok(f"%dist_restart --ranks {rank}", timeout=PATIENCE)
    else:
        notebook.ok("%dist_shutdown")
        notebook.ok(f"%dist_init -n {RANKS}")
    with suppress(psutil.NoSuchProcess):
        stopped.resume()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_chaos(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    faults = [fault for fault, times in FAULTS.items() for _ in range(times)]
    rng.shuffle(faults)
    world = World(tmp_path)
    world.notebook.ok(f"%dist_init -n {RANKS}")
    for what, victim in faults:
        pids = world.pids()
        number = rng.randrange(len(pids[victim]))
        hit = psutil.Process(pids[victim][number])
        act = hit.kill if what == "kill" else hit.suspend
        moment = threading.Timer(rng.uniform(0.0, 0.3), act)
        moment.start()

        def stuck(moment: threading.Timer = moment, hit: psutil.Process = hit) -> bool:
            return moment.finished.is_set() and hit.status() == psutil.STATUS_STOPPED

        presses = (what, victim) == ("stop", "rank")
        kernel = psutil.Process(pids["kernel"][0])
        result = run_until_it_ends(world.notebook, kernel, stuck if presses else lambda: False)
        moment.join()
        if result:
            check_truth(result, what, victim, number)
        else:
            assert what == "kill" and victim in ("kernel", "server")
        if what == "kill":
            psutil.wait_procs([hit], timeout=PATIENCE)
            recover_from_death(world, victim, number)
        else:
            recover_from_stop(world, victim, number, hit, early=rng.random() < 0.5)
        again = world.notebook.ok(CELL)
        assert again.lines == [f"[0-{RANKS - 1}] sum {RANKS}"], (what, victim)
        world.check_that_nothing_is_left()
    world.end()

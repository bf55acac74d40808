"""What is measured: pools, and the floors under them. `peers` has the other packages."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import ClassVar

from tests.environment import environment, tagged
from tests.network import free_port
from tests.waiting import wait_for

from .fronts import Direct, Front, Run, Served, start_kernels

GROUP = "import torch, torch.distributed as dist\ndist.init_process_group('gloo'{})"
READY = "print(f'READY{rank}=yes.')"


class System:
    """Ranks, and the notebook that drives them; `python` is the interpreter of its environment."""

    name: ClassVar[str]
    has_group: ClassVar[bool] = True
    settle: ClassVar[float] = 0.0
    """Seconds for which output may trail a cell's end; then its end is all we go by."""
    pull_cell: ClassVar[str] = ""
    """Fetches rank 0's `big` as the notebook's `got`."""
    push_cell: ClassVar[str] = ""
    """Sets `big` on all ranks to the notebook's `got`."""
    shutdown_cell: ClassVar[str] = ""
    stops: ClassVar[bool] = False
    """Whether Stop in the notebook ends what its ranks do."""
    front: Front

    def __init__(self, size: int, home: Path, python: str = sys.executable) -> None:
        self.size = size
        self.home = home
        self.python = python
        temporary = home / "tmp"
        temporary.mkdir()
        path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
        self.environment = environment(home, PATH=path, OMP_NUM_THREADS="1", TMPDIR=str(temporary))

    def open(self) -> None:
        """Bring up what a user has before the pool: a notebook with its kernel."""
        self.front = start_kernels(self.python, [self.environment], self.home)

    def init_cells(self) -> list[str]:
        """Return the notebook's cells that bring up ranks with torch and a process group."""
        raise NotImplementedError

    def start_pool(self) -> None:
        for cell in self.init_cells():
            run = self.front.run(cell, 240)
            if run.errors:
                raise RuntimeError(f"the pool did not start: {run.errors} {run.text[-500:]}")

    def wrap(self, code: str) -> str:
        """Return the notebook's cell that runs code on the ranks."""
        return code

    def run(self, code: str, timeout: float = 60.0, linger: float = 0.0) -> Run:
        """Run a cell on the ranks; it must not fail."""
        run = self.front.run(self.wrap(code), timeout, linger)
        if run.errors:
            raise RuntimeError(f"{run.errors} {run.text[-500:]}")
        return run

    def seconds_to_first_cell(self) -> float:
        """Return the time from the first command to the end of a cell that ran on all ranks."""
        begun = time.perf_counter()
        self.start_pool()
        run = self.run(READY, 120)
        if not self.settle and len(run.ranks_that_said("READY")) != self.size:
            raise RuntimeError(f"the first cell did not run on all ranks: {run.text[-500:]}")
        return time.perf_counter() - begun

    def rank_pids(self) -> dict[int, int]:
        code = "import os\nprint(f'PID{rank}={os.getpid()}.')"
        said = self.run(code, linger=max(0.5, self.settle)).ranks_that_said("PID")
        return {rank: int(pid) for rank, pid in said.items()}

    def close(self) -> None:
        """End it, and with it every process that it started."""
        if self.shutdown_cell:
            self.front.run(self.shutdown_cell)

        def all_gone() -> bool:
            left = tagged(self.environment)
            for process in left:
                process.kill()
            return not left

        wait_for(all_gone, "the end of all processes")


class Ours(System):
    """Ranks of a kernel without a server."""

    name = "ours"
    stops = True
    pull_cell, push_cell = "%dist_pull big --rank 0 --as got", "%dist_push got --as big"
    shutdown_cell = "%dist_shutdown"

    def init_cells(self) -> list[str]:
        return ["%load_ext jupyter_dist_server", f"%dist_init -n {self.size}"]

    def wrap(self, code: str) -> str:
        return "%%distributed\n" + code


class OursServed(Ours):
    """Ranks of a kernel behind a server with our extension, which owns them."""

    name = "ours, served"
    front: Served

    def open(self) -> None:
        enabled = {"jupyter_dist_server": True, "jupyterlab": False}
        option = f"--ServerApp.jpserver_extensions={enabled}"
        command = [self.python, "-m", "jupyter_server", option]
        self.front = Served(command, self.environment, self.home)


class Kernels(System):
    """Plain kernels with torch, driven at once by as many clients: nothing in between."""

    name = "N kernels"
    stops = True
    front: Direct

    def open(self) -> None:
        pass

    def start_pool(self) -> None:
        port = free_port()
        about = {"WORLD_SIZE": str(self.size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        each = [self.environment | about | {"RANK": str(rank)} for rank in range(self.size)]
        self.front = start_kernels(self.python, each, self.home)
        self.run("import os\nrank = int(os.environ['RANK'])\n" + GROUP.format(""), 120)


class Kernel(System):
    name = "1 kernel"
    stops = True
    has_group = False

    def __init__(self, size: int, home: Path, python: str = sys.executable) -> None:
        super().__init__(1, home, python)

    def open(self) -> None:
        pass

    def start_pool(self) -> None:
        self.front = start_kernels(self.python, [self.environment], self.home)
        self.run("import torch\nrank = 0", 120)

"""Other packages with which a notebook drives several processes, each as its manual says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import ClassVar

import psutil

from tests.environment import tagged
from tests.network import free_port
from tests.waiting import wait_for

from . import actors
from .fronts import Served
from .systems import GROUP, System

TORCH = "torch==2.13.0"


class Peer(System):
    """A package in its own environment, where `requirements` are installed after torch."""

    requirements: ClassVar[list[str]]

    def group_cell(self) -> str:
        where = f"'tcp://127.0.0.1:{free_port()}'"
        options = f", init_method={where}, rank=rank, world_size={self.size}"
        return self.wrap(GROUP.format(options))


class NbDistributed(Peer):
    """Its user waits until all workers have connected: a cell sent sooner takes 30 s."""

    name = "nbdistributed"
    requirements: ClassVar = ["nbdistributed==0.1.0", "ipykernel", "numpy", "psutil", "requests"]

    def __init__(self, size: int, home: Path, python: str = sys.executable) -> None:
        super().__init__(size, home, python)
        # It ends processes with `pkill -f` and broad patterns, which would reach other people's.
        harmless = home / "bin"
        harmless.mkdir()
        (harmless / "pkill").symlink_to(str(shutil.which("false")))
        self.environment["PATH"] = f"{harmless}{os.pathsep}{self.environment['PATH']}"

    def init_cells(self) -> list[str]:
        return ["%load_ext nbdistributed", f"%dist_init --num-processes {self.size}"]

    def start_pool(self) -> None:
        super().start_pool()
        wait_for(self._all_connected, "the workers' connection", timeout=120)

    def _all_connected(self) -> bool:
        commands = [process.cmdline() for process in tagged(self.environment)]
        ports = {int(command[6]) for command in commands if "worker.py" in " ".join(command)}
        connections = [
            (connection.laddr.port, connection.raddr.port)
            for process in tagged(self.environment)
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_ESTABLISHED
        ]
        return len({remote for local, remote in connections if local in ports}) >= self.size

    def wrap(self, code: str) -> str:
        return "%%distributed\n" + code


class IPyParallel(Peer):
    name = "ipyparallel"
    stops = True
    requirements: ClassVar = ["ipyparallel==9.2.0", "ipykernel", "numpy"]
    pull_cell, push_cell = "got = rc[0]['big']", "rc[:].push({'big': got}, block=True)"
    shutdown_cell = "cluster.stop_cluster_sync()"

    def init_cells(self) -> list[str]:
        start = (
            "import ipyparallel as ipp\n"
            f"cluster = ipp.Cluster(n={self.size})\n"
            "rc = cluster.start_and_connect_sync(activate=True)\n"
            "rc[:].scatter('rank', rc.ids, flatten=True, block=True)"
        )
        return [start, self.group_cell()]

    def wrap(self, code: str) -> str:
        return "%%px\n" + code


class JupyterDistributed(Peer):
    """Behind JupyterLab with its extension, and with the comm that its front end opens."""

    name = "jupyter-distributed"
    requirements: ClassVar = ["jupyter-distributed==0.1.1", "jupyterlab==4.6.6", "numpy"]
    front: Served

    def open(self) -> None:
        command = [self.python, "-m", "jupyterlab"]
        self.front = Served(command, self.environment, self.home)

    def start_pool(self) -> None:
        self.front.channels.close()
        # As its toolbar does: prepare, restart the kernel, commit.
        path = f"jupyter-distributed/kernels/{self.front.kernel}"
        prepared = self.front.api("POST", path, {"action": "prepare", "world_size": self.size})
        self.front.api("POST", f"api/kernels/{self.front.kernel}/restart", {})
        token = prepared["restart_token"]
        self.front.api("POST", path, {"action": "commit", "restart_token": token})
        self.front.connect(comm="jupyter.distributed.rank_updates")
        self.run("import os\nrank = int(os.environ['RANK'])\n" + GROUP.format(""), 120)


class Monarch(Peer):
    """An actor mesh that executes strings."""

    name = "monarch"
    requirements: ClassVar = ["torchmonarch==0.7.0", "ipykernel", "numpy"]
    settle = 1.5
    pull_cell, push_cell = actors.MONARCH_PULL, actors.MONARCH_PUSH
    shutdown_cell = "procs.stop().get()"

    def init_cells(self) -> list[str]:
        pool = f"""
from monarch.actor import this_host
procs = this_host().spawn_procs(per_host={{'gpus': {self.size}}})
pool = procs.spawn('rank', Rank)
whose = {{'gpus': 0}}
{actors.MONARCH_WARM}
"""
        return [actors.MONARCH + pool, self.group_cell()]

    def wrap(self, code: str) -> str:
        return f"run({code!r})"


class Ray(Peer):
    """Actors that execute strings."""

    name = "ray"
    requirements: ClassVar = ["ray==2.60.0", "ipykernel", "numpy"]
    settle = 1.5
    pull_cell, push_cell = actors.RAY_PULL, actors.RAY_PUSH
    shutdown_cell = "ray.shutdown()"

    def __init__(self, size: int, home: Path, python: str = sys.executable) -> None:
        super().__init__(size, home, python)
        self.environment["RAY_TMPDIR"] = str(home)

    def init_cells(self) -> list[str]:
        pool = f"""
ray.init(num_cpus={self.size})
pool = [Rank.options(num_cpus=1).remote(rank) for rank in range({self.size})]
whose = 0
"""
        return [actors.RAY + pool, self.group_cell()]

    def wrap(self, code: str) -> str:
        return f"run({code!r})"


PEERS: tuple[type[Peer], ...] = (NbDistributed, IPyParallel, JupyterDistributed, Monarch, Ray)


def install(peer: type[Peer], folder: Path) -> str:
    """Make a peer's environment unless it is there; return its interpreter."""
    place = folder / peer.name
    python = place / "bin" / "python"
    done = place / ".installed"
    if not done.exists():
        venv.create(place, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-q"]
        # torch first and alone, so that no package chooses another one.
        for requirements in ([TORCH], [TORCH, *peer.requirements]):
            subprocess.run([*pip, *requirements], check=True, capture_output=True, text=True)
        done.write_text("\n".join(peer.requirements))
    return str(python)

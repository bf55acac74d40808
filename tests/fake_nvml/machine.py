"""A pretend machine with GPUs whose load follows the ranks: ``make lab-fake``.

``python -m tests.fake_nvml.machine [--gpus N] COMMAND …`` runs a command, JupyterLab say, for which
the machine has N GPUs. A rank that computes on the CPU makes its pretend GPU busy, warm and hungry.
One GPU is taken by a process that is no rank, and one is kept from its full speed by the heat.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from jupyter_dist_server.pools.discovery import find_pools
from tests.fake_cuda.build import FakeCuda
from tests.fake_nvml.build import State, build

INTERVAL = 0.5
"""Seconds between two looks at the ranks."""
MEMORY = 80 * 2**30
_CONTEXT = 600 * 2**20
"""Bytes that each CUDA process needs before it does anything."""
_SW_THERMAL_SLOWDOWN = 0x20
_GENTLY = 0.3
"""How much of the way to its new value a figure goes at each look, as real ones have inertia."""


class Gpu:
    """What one pretend GPU shows."""

    def __init__(self) -> None:
        self.utilization = 0.0
        self.temperature = 34.0

    def follow(self, load: float) -> None:
        """Move towards a load in percent."""
        self.utilization += (load - self.utilization) * (1 if load > self.utilization else 0.6)
        self.temperature += (34 + 0.4 * self.utilization - self.temperature) * _GENTLY

    def told(self, index: int, memory: int, processes: list[str]) -> dict[str, object]:
        """Return the lines of the state that are about this GPU."""
        load = self.utilization / 100
        return {
            f"{index}.utilization": round(self.utilization),
            f"{index}.memory_utilization": round(0.6 * self.utilization),
            f"{index}.memory_used": memory,
            f"{index}.temperature": round(self.temperature),
            f"{index}.power": round(1000 * (72 + 580 * load)),
            f"{index}.clock_sm": round(345 + 1635 * min(1.0, 2 * load)),
            f"{index}.gpm_sm": round(0.85 * self.utilization),
            f"{index}.gpm_tensor": round(0.4 * self.utilization),
            f"{index}.gpm_dram": round(0.5 * self.utilization),
            f"{index}.pcie_rx": round(load * 900_000),
            f"{index}.pcie_tx": round(load * 400_000),
            f"{index}.process": processes or "",
        }


class Machine:
    """The GPUs, and who is on them.

    Parameters
    ----------
    state : State
        Where it is written.
    count : int
        Number of GPUs.
    stranger : int
        Pid of a process that is no rank; it has the last GPU but one, if there are four or more.
    """

    def __init__(self, state: State, count: int, stranger: int) -> None:
        self._state = state
        self._gpus = [Gpu() for _ in range(count)]
        self._stranger = stranger
        self._processes: dict[int, psutil.Process] = {}

    def look(self) -> None:
        """Let the GPUs follow what the ranks do now."""
        load = [0.0] * len(self._gpus)
        memory = [0] * len(self._gpus)
        processes: list[list[str]] = [[] for _ in self._gpus]
        for index, pid, busy, resident in self._ranks():
            load[index] = min(100.0, load[index] + busy)
            # Not all of a rank's memory is what it computes with: torch itself is in there.
            used = _CONTEXT + 20 * max(0, resident - 300 * 2**20)
            memory[index] += used
            processes[index].append(f"{pid},{used},{round(min(100.0, busy))}")
        if len(self._gpus) >= 4:
            load[-2], memory[-2] = 64.0, 31 * 2**30
            processes[-2] = [f"{self._stranger},{memory[-2]},64"]
        told: dict[str, object] = {}
        for index, gpu in enumerate(self._gpus):
            gpu.follow(load[index])
            told |= gpu.told(index, memory[index], processes[index])
        if len(self._gpus) >= 4:
            told[f"{len(self._gpus) - 2}.throttle"] = _SW_THERMAL_SLOWDOWN
            told[f"{len(self._gpus) - 2}.temperature"] = 84
        self._state.update(**told)

    def _ranks(self) -> list[tuple[int, int, float, int]]:
        """Return GPU, pid, percent of a core and resident bytes of each rank on a GPU."""
        found = []
        alive: dict[int, psutil.Process] = {}
        for pool in (pool for pool in find_pools() if not pool.snapshot.parked):
            for placed, said in zip(pool.config.ranks, pool.snapshot.ranks, strict=True):
                pid = said.pid
                if not placed.gpu or pid is None or said.state == "dead":
                    continue
                try:
                    process = alive[pid] = self._processes.get(pid) or psutil.Process(pid)
                    busy, resident = process.cpu_percent(), process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
                # With fewer cores than ranks, each has a part of one: the GPUs have enough.
                full = min(1.0, (os.cpu_count() or 1) / pool.config.world_size)
                found.append((placed.gpu.index, pid, min(100.0, busy / full), resident))
        self._processes = alive
        return found


def main() -> int:
    """Run the command that the arguments say, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fake-nvml-") as folder:
        library = Path(folder, "lib")
        build(library)
        FakeCuda(library)  # ranks can be parked
        state = State(Path(folder, "state"))
        state.write(
            gpus=options.gpus,
            name="NVIDIA H100 80GB HBM3",
            memory=MEMORY,
            driver="570.86.15",
            gpm=1,
            nvlinks=18,
        )
        environment = os.environ | state.environment(library)
        environment["JUPYTER_DIST_LEASES"] = str(Path(folder, "leases"))
        # Pools that are not of this command have no part in its machine.
        environment["TMPDIR"] = tempfile.tempdir = folder
        stranger = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        machine = Machine(state, options.gpus, stranger.pid)
        machine.look()
        command = subprocess.Popen(options.command, env=environment)
        for number in (signal.SIGINT, signal.SIGTERM):
            # The command decides: on the first Ctrl-C, Jupyter only asks whether to stop.
            signal.signal(number, lambda number, _: _pass_on(command, number))
        try:
            while True:
                try:
                    return command.wait(INTERVAL)
                except subprocess.TimeoutExpired:
                    machine.look()
        finally:
            stranger.kill()
            stranger.wait()


def _pass_on(command: subprocess.Popen[bytes], number: int) -> None:
    if number != signal.SIGINT:  # a terminal sends that one to all of us
        command.send_signal(number)


if __name__ == "__main__":
    sys.exit(main())

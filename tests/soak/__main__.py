"""Random faults for as long as asked: after each one, is what was said true, and all well again?

``python -m tests.soak --minutes 60`` kills and stops processes, steps the clock, fills the disk,
has clients that do not read and another user who tries to get in, one after the other, while a
notebook runs cells and a queue runs healthy jobs. It ends with an error at the first sentence that
is not true, and the first thing that is lost or left. It prints how often each fault happened and
how long recovering took.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from ..network import own_network
from ..notebook_driver import Notebook
from .faults import Fault, OnProcess, all_faults
from .healthy_jobs import HealthyJobs
from .world import World


def steps(notebook: Notebook) -> str:
    """Return how many cells the ranks remember."""
    return notebook.ok("%%rank 0\nprint(globals().get('steps', 0))").text.split()[-1]


class Soak:
    """One run, and what it has seen."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self.times: dict[str, list[float]] = defaultdict(list)
        self.remedies: dict[str, set[str]] = defaultdict(set)
        self.failed = 0
        self.memory = 0

    def once(self, fault: Fault) -> None:
        """Let one fault happen, and see to it that all is well again."""
        world = self.world
        before = steps(world.notebook)
        begun = time.monotonic()
        fault.begin(world, self.rng)
        try:
            result = world.run_cell()
            if isinstance(fault, OnProcess):
                fault.settle()
            if result and result.error:
                self.failed += 1
                assert fault.explains(result.error), f"not true, or not enough: {result.error}"
                assert fault.costs, f"a cell was lost: {result.error}"
            if not fault.costs:
                after = steps(world.notebook)
                assert int(after) == int(before) + 1, f"lost: {before} steps, then {after}"
            if isinstance(fault, OnProcess):
                self.remedies[fault.name].add(world.recover())
        finally:
            fault.end(world)
        if not isinstance(fault, OnProcess):
            self.remedies[fault.name].add(world.recover())
        self.times[fault.name].append(time.monotonic() - begun)
        (server,) = world.processes()["server"]
        self.memory = max(self.memory, server.memory_info().rss)
        world.check_that_nothing_is_left()

    def summary(self) -> str:
        """Return a table."""
        lines = [f"{'fault':16} times  median s  longest s  what helped"]
        for name, times in sorted(self.times.items()):
            times.sort()
            helped = ", ".join(sorted(self.remedies[name]))
            median, longest = times[len(times) // 2], times[-1]
            lines.append(f"{name:16} {len(times):5}  {median:8.1f}  {longest:9.1f}  {helped}")
        total = sum(map(len, self.times.values()))
        lines.append(f"{total} faults; {self.failed} cells failed, each with the truth")
        lines.append(f"largest resident memory of a server: {self.memory / 2**20:.0f} MiB")
        return "\n".join(lines)


def main() -> int:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--without", default="nothing", help="no faults whose name contains this")
    options = parser.parse_args()
    with own_network(), tempfile.TemporaryDirectory(prefix="jt-soak-") as folder:
        Path(folder).chmod(0o755)
        world = World(Path(folder))
        soak = Soak(world, random.Random(options.seed))
        faults = [
            fault
            for fault in all_faults(world)
            if options.only in fault.name and options.without not in fault.name
        ]
        end = time.monotonic() + 60 * options.minutes
        try:
            with HealthyJobs(Path(folder) / "queue") as jobs:
                while time.monotonic() < end:
                    fault = soak.rng.choice(faults)
                    print(time.strftime("%H:%M:%S"), fault.name, flush=True)
                    soak.once(fault)
                    jobs.check()
        finally:
            print(soak.summary(), flush=True)
            world.end()
    print("nothing is left")
    return 0


if __name__ == "__main__":
    sys.exit(main())

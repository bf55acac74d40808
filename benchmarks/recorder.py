"""What torch's flight recorder, and ``--check``, cost a collective: in turn, in one run."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from .systems import Ours

WITHOUT = "without the recorder"
KINDS: Mapping[str, str] = {
    WITHOUT: "--env TORCH_FR_BUFFER_SIZE=0",
    "with it, as always": "",
    "with `--check`": "--check",
}
"""The options of the pools."""
REDUCE = (
    "import time\nt = torch.ones(1)\ntimes = []\nfor _ in range({}):\n"
    "    begun = time.perf_counter_ns()\n    dist.all_reduce(t)\n"
    "    times.append(time.perf_counter_ns() - begun)\n"
    "print(f'NS{{rank}}={{sorted(times)[len(times) // 2]}}.')"
)

Blocks = dict[str, list[float]]
"""By kind, the median time of each block in microseconds; those at a place were side by side."""


class _Pool(Ours):
    options = ""

    def init_cells(self) -> list[str]:
        load, init = super().init_cells()
        return [load, f"{init} {self.options}"]


def measure(blocks: int = 30, calls: int = 300, ranks: int = 2) -> Blocks:
    """Return the times of `dist.all_reduce` of one element, in pools that take turns.

    What else the machine does falls on all of them. Each second round goes the other way.
    """
    found: Blocks = {kind: [] for kind in KINDS}
    with ExitStack() as after:
        pools: dict[str, Ours] = {}
        for kind, options in KINDS.items():
            home = tempfile.TemporaryDirectory(prefix="jb-", ignore_cleanup_errors=True)
            pool = _Pool(ranks, Path(after.enter_context(home)), sys.executable)
            pool.options = options
            pool.open()
            after.callback(pool.close)
            pool.start_pool()
            pool.run(REDUCE.format(calls))  # connections are made at first use
            pools[kind] = pool
        for block in range(blocks):
            order: Sequence[str] = list(KINDS) if block % 2 else list(reversed(KINDS))
            for kind in order:
                said = pools[kind].run(REDUCE.format(calls)).ranks_that_said("NS")
                found[kind].append(int(said[0]) / 1e3)
    return found

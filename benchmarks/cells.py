"""What cells cost on a pool, against plain kernels driven at the same time on the same machine.

``python -m benchmarks.cells -n 4`` prints one table. The floor is N plain IPython kernels with
torch: what the same processes would cost with nothing in between, and no process group.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.driver import Notebook, environment, plain_notebook

LINES = 2000
TRIALS = 15


def started_pool(home: Path, size: int, stack: ExitStack) -> tuple[Notebook, float]:
    """Start a notebook and its pool; return the seconds to the first cell done on all ranks."""
    notebook = plain_notebook(environment(home / "pool"), home)
    stack.callback(notebook.close)
    notebook.ok("%load_ext jupyter_dist_server")
    begun = time.perf_counter()
    notebook.ok(f"%dist_init -n {size}", timeout=300)
    notebook.ok("%%distributed\npass")
    return notebook, time.perf_counter() - begun


def started_kernels(home: Path, size: int, stack: ExitStack) -> tuple[list[Notebook], float]:
    """Start plain kernels, import torch in all at once; return the seconds it took."""
    begun = time.perf_counter()
    kernels = [plain_notebook(environment(home / str(k)), home) for k in range(size)]
    for kernel in kernels:
        stack.callback(kernel.close)
    run_on_all(kernels, "import torch, torch.distributed")
    return kernels, time.perf_counter() - begun


def run_on_all(kernels: list[Notebook], code: str) -> float:
    """Send a cell to all kernels, then wait for all; return seconds."""
    begun = time.perf_counter()
    sent = [kernel.send(code) for kernel in kernels]
    for kernel, message in zip(kernels, sent, strict=True):
        assert kernel.follow(message, timeout=300).status == "ok"
    return time.perf_counter() - begun


def median(measure: Callable[[], float]) -> float:
    """Return the median of some trials, after three to warm up."""
    times = [measure() for _ in range(3 + TRIALS)]
    return statistics.median(times[3:])


def first_output(notebook: Notebook, code: str) -> float:
    """Return the seconds from sending a cell to its first printed line."""
    result = notebook.ok(code)
    return next(t for t, m in result.messages if m["msg_type"] == "stream")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--num-ranks", type=int, default=4)
    size = parser.parse_args().num_ranks
    early = "print('early')\nimport time\ntime.sleep(0.5)"
    lines = f"for i in range({LINES}):\n    print(i * 1.5)"
    with tempfile.TemporaryDirectory(prefix="jb-") as folder, ExitStack() as stack:
        home = Path(folder)
        pool, pool_start = started_pool(home, size, stack)
        kernels, kernels_start = started_kernels(home, size, stack)
        rows = [
            ("start, s", pool_start, kernels_start),
            (
                "`pass` on all, ms",
                1e3 * median(lambda: pool.ok("%%distributed\npass").seconds),
                1e3 * median(lambda: run_on_all(kernels, "pass")),
            ),
            (
                "first line, ms",
                1e3 * median(lambda: first_output(pool, "%%distributed\n" + early)),
                1e3 * median(lambda: first_output(kernels[0], early)),
            ),
            (
                f"{LINES} lines from each, s",
                pool.ok("%%distributed\n" + lines).seconds,
                run_on_all(kernels, lines),
            ),
        ]
    print(f"{size} ranks, {platform.machine()}, Python {platform.python_version()}")
    print(f"{'':28}{'pool':>10}{'kernels':>10}{'ratio':>8}")
    for what, ours, floor in rows:
        print(f"{what:28}{ours:10.2f}{floor:10.2f}{ours / floor:8.2f}")


if __name__ == "__main__":
    main()

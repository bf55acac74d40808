"""What `jdist why` costs the collectives of a script that torchrun runs: in turn, in one run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from jupyter_dist_server.common.ask_from_outside import way_in

from .recorder import Blocks

WITHOUT, WITH = "`--no-why`", "as always"
SCRIPT = """
import os, sys, time, torch, torch.distributed as dist
calls = int(sys.argv[1])
dist.init_process_group("gloo")
rank, t, block = dist.get_rank(), torch.ones(1), 0
while True:
    while not os.path.exists(f"go-{block}"):
        time.sleep(0.005)
    dist.barrier()
    times = []
    for _ in range(calls):
        begun = time.perf_counter_ns()
        dist.all_reduce(t)
        times.append(time.perf_counter_ns() - begun)
    if rank == 0:
        with open("new", "w") as file:
            file.write(str(sorted(times)[calls // 2]))
        os.rename("new", f"took-{block}")
    block += 1
"""


def measure(blocks: int = 30, calls: int = 300, ranks: int = 2) -> Blocks:
    """Return the times of `dist.all_reduce` of one element, in microseconds, by block."""
    found: Blocks = {WITHOUT: [], WITH: []}
    with ExitStack() as after:
        folders = {kind: _start(kind, calls, ranks, after) for kind in found}
        for block in range(blocks + 1):
            for kind in list(found)[:: 1 if block % 2 else -1]:
                (folders[kind] / f"go-{block}").touch()
                took = folders[kind] / f"took-{block}"
                until = time.monotonic() + 300
                while not took.exists():
                    assert time.monotonic() < until, f"{kind}: block {block} does not end"
                    time.sleep(0.01)
                if block:  # connections are made in the first one
                    found[kind].append(int(took.read_text()) / 1e3)
    return found


def _start(kind: str, calls: int, ranks: int, after: ExitStack) -> Path:
    folder = Path(after.enter_context(tempfile.TemporaryDirectory(prefix="jb-")))
    (folder / "script.py").write_text(SCRIPT)
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    environment = dict(os.environ)
    if kind == WITH:
        evidence = folder / "evidence"
        evidence.mkdir(mode=0o700)
        environment |= way_in(evidence, environment)
    process = subprocess.Popen(
        [sys.executable, *torchrun, "script.py", str(calls)],
        cwd=folder,
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    after.callback(process.wait)
    after.callback(process.terminate)
    return folder

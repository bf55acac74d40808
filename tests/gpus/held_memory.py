"""Hold memory of a real GPU in another process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from jupyter_dist_server.gpus.inventory import Gpu

HOLD = """
import sys, torch
block = torch.empty({size}, dtype=torch.uint8, device="cuda:0")
torch.cuda.synchronize()
print(*torch.cuda.mem_get_info(0), flush=True)
{then}
"""
WAIT = "sys.stdin.read()"


@contextmanager
def on_gpu(gpu: Gpu, size: int, then: str = WAIT) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Let a process hold memory of a GPU; yields it, and the bytes that CUDA says are used."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(size=size, then=then)],
        env={**psutil.Process().environ(), "CUDA_VISIBLE_DEVICES": gpu.uuid},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout
        free, total = map(int, child.stdout.readline().split())
        yield child, total - free
    finally:
        child.kill()
        child.communicate()

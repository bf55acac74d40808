"""Measures how fast the ranks of a pool reach each other; runs in a rank."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any


def measure(sizes: Sequence[int], device: Any) -> None:
    """Print how long an ``all_reduce`` takes for each size in bytes: on rank 0, as JSON."""
    import torch
    import torch.distributed as dist

    found = []
    on_gpu = device.type == "cuda"
    for size in sizes:
        tensor = torch.zeros(max(1, size // 4), device=device)
        dist.all_reduce(tensor)  # connections are made at first use
        dist.barrier()
        rounds = 5 if size >= 1 << 20 else 20
        if on_gpu:
            torch.cuda.synchronize(device)
        begun = time.perf_counter()
        for _ in range(rounds):
            dist.all_reduce(tensor)
        if on_gpu:
            torch.cuda.synchronize(device)
        seconds = torch.tensor((time.perf_counter() - begun) / rounds, device=device)
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        nbytes = tensor.numel() * tensor.element_size()
        found.append({"nbytes": nbytes, "seconds": seconds.item(), "device": str(device.type)})
    if dist.get_rank() == 0:
        print(json.dumps(found))

"""What a cell's time depends on, and its trace does not have: cores, and sizes."""

from __future__ import annotations

import math
import os

from ...common.recorded_collectives import TorchEntry

_BYTES = {"Double": 8, "Long": 8, "Half": 2, "BFloat16": 2, "Short": 2, "Char": 1, "Byte": 1}
_OF_OTHERS = 4


def size_of(entry: TorchEntry) -> int:
    """Return the bytes of the tensors that a rank gives to a collective."""
    return sum(
        math.prod(sizes) * _BYTES.get(kind, _OF_OTHERS)
        for sizes, kind in zip(entry.input_sizes, entry.input_dtypes, strict=False)
    )


def own_cores() -> int:
    """Return how many cores a rank may use, as those of its machine share them."""
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (usable or 1) // ranks)

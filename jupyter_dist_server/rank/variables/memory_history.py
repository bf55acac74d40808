"""What a rank's memory on its GPU was allocated for, kept when there is no more of it.

From the moment at which CUDA is first used, torch notes the Python stack of each allocation, which
takes it about 2 µs: https://docs.pytorch.org/docs/stable/torch_cuda_memory.html.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...common.protocol.ranks.evidence import CodePlace
from ...common.protocol.ranks.memory_messages import Allocated, Exhausted
from ...common.recorded_collectives import TorchFrame, users_place
from ..torch_memory import memory_snapshot, record_memory

_LOG = logging.getLogger(__name__)

_ENTRIES = 10_000
"""Allocations that are kept; each takes several KiB in a snapshot."""
_MOST = 10
"""Lines that are told."""
_EVERY = 10.0
"""Seconds between two snapshots: code that looks for the largest batch fails often, and goes on."""


class MemoryHistory:
    """The allocations of one rank.

    Parameters
    ----------
    file : Path
        Where the last snapshot is written, for https://pytorch.org/memory_viz.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kept_at = -_EVERY
        self.exhausted: Exhausted | None = None
        """What filled the memory in the cell that runs, or ran last."""

    def begin(self) -> None:
        """Record from the first use of CUDA on, unless the user wants none; return before that."""
        if os.environ.get("JUPYTER_DIST_MEMORY_HISTORY") == "0":
            return
        record_memory(_ENTRIES, lambda: self.keep(memory_snapshot))

    def keep(self, read: Callable[[], Mapping[str, Any]]) -> None:
        """Keep what fills the memory, as there is no more; raise nothing, as torch will."""
        if self.exhausted and time.monotonic() < self._kept_at + _EVERY:
            return
        by_line: list[Allocated] = []
        file, new, allocated = "", self._file.with_suffix(".new"), 0
        try:
            snapshot = read()
            by_line = allocated_by_line(snapshot)
            allocated = sum(block["size"] for block in _allocated_blocks(snapshot))
            new.write_bytes(pickle.dumps(snapshot))
            os.replace(new, self._file)
            file = str(self._file)
        except Exception:
            _LOG.exception("What fills the memory of the GPU could not be kept.")
            with contextlib.suppress(OSError):
                new.unlink()
        self.exhausted = Exhausted(by_line, file, allocated)
        self._kept_at = time.monotonic()

    def forget(self) -> None:
        """Forget what a cell kept, as another one begins."""
        self.exhausted = None


def allocated_by_line(snapshot: Mapping[str, Any]) -> list[Allocated]:
    """Return for which lines of the user's code memory is allocated, the largest amount first.

    Parameters
    ----------
    snapshot : mapping
        As `torch.cuda.memory._snapshot` returns it. Threads of `backward()` have no Python stack:
        what they allocate is left out.
    """
    by_line: dict[CodePlace, int] = {}
    for block in _allocated_blocks(snapshot):
        frames = [
            TorchFrame(frame["name"], frame["filename"], frame["line"])
            for frame in block.get("frames", ())
        ]
        if place := users_place(frames):
            by_line[place] = by_line.get(place, 0) + block["size"]
    largest = sorted(by_line.items(), key=lambda item: -item[1])[:_MOST]
    return [Allocated(place, nbytes) for place, nbytes in largest]


def _allocated_blocks(snapshot: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                yield block

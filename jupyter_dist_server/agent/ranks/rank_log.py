"""The log of each rank, which the agent can read even if the rank is stuck or dead.

There are two files. The rank's log in the pool's folder gets all output until the kernel runs, and
then only the kernel's own errors and the stack of a crash. From then on, stderr goes to a file in
memory, see `MemoryFile`.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...common.pool_folder import log_tail
from ...common.protocol.agents.rank_start import STDERR_KEPT, STDERR_START_BYTES

_LINES = 200
CRASH = "Fatal Python error"
"""The first words of `faulthandler` when a rank has crashed."""


class RankLogs:
    """The logs of one pool's ranks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stderr: dict[int, tuple[int, int, int]] = {}
        """Descriptors of stderr and of where its last cell began, and where its first one did."""

    def keep(self, rank: int, descriptors: list[int]) -> None:
        """Keep the descriptors of a new rank's stderr, and of where its last cell began there.

        There are none if it did not start.
        """
        for old in self._stderr.pop(rank, ())[:2]:
            os.close(old)
        if descriptors:
            written, cell = descriptors
            self._stderr[rank] = written, cell, os.fstat(written).st_size

    def stderr(self, rank: int, limit: int, of_cell: bool = False) -> str:
        """Return the last bytes that a rank, or its last cell, wrote to stderr, as text."""
        if rank not in self._stderr:
            return ""
        descriptor, cell, begin = self._stderr[rank]
        if of_cell:
            begin = max(begin, int.from_bytes(os.pread(cell, STDERR_START_BYTES, 0), "little"))
        size = os.fstat(descriptor).st_size
        if size < begin:  # it was emptied, as by ``> /dev/stderr`` in a shell
            begin = 0
        start = max(begin, size - limit)
        written = os.pread(descriptor, size - start, start)
        return written.lstrip(b"\0").decode(errors="replace")  # what was freed reads as zeros

    def of_process(self, rank: int, lines: int) -> list[str]:
        """Return the last lines of the rank's log in the folder."""
        return log_tail(self._folder / f"rank-{rank}.log", lines)

    def lines(self, rank: int) -> list[str]:
        """Return the last lines of both files, with a crash's stack at the end."""
        text = self.stderr(rank, STDERR_KEPT)
        log = self.of_process(rank, _LINES)
        crash = next((place for place, line in enumerate(log) if line.startswith(CRASH)), len(log))
        return [*log[:crash], *_as_shown(text), *log[crash:]][-_LINES:]


def _as_shown(text: str) -> list[str]:
    """Split into lines as a terminal shows them: of a progress bar, only the last state."""
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]

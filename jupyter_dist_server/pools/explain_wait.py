"""A process that explains once why the ranks of a job wait; its runner starts it."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import psutil

from .explain_processes import explain_processes


def main() -> None:
    """Print a line that says what the verdicts are about, and a line with the verdicts.

    The first argument is the process that has started the ranks. The second one says how old waits
    must be, as seconds since 1970; the others, by pid, since when a rank has been where it is.
    """
    root, older_than = int(sys.argv[1]), float(sys.argv[2])
    still = {int(pid): float(since) for pid, since in (one.split(":") for one in sys.argv[3:])}
    with contextlib.suppress(psutil.NoSuchProcess):  # the job has ended meanwhile
        # A pool's cell shows its own.
        look = explain_processes(root, older_than=older_than, still=still, with_pools=False)
        told = [one.verdict for one in asyncio.run(look)]
        found = [verdict for verdict in told if verdict and verdict.concerns_all]
        key = " ".join(f"{one.kind} {one.op} {one.ranks}" for one in found)
        text = " ".join(verdict.sentence for verdict in found)
        sys.stdout.buffer.write(f"{key}\n{text}\n".encode())

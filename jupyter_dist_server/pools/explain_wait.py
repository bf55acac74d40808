"""A process that explains once why the ranks of a job wait; its runner starts it."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import psutil

from .explain_processes import explain_processes


def main() -> None:
    """Print the verdicts on what the process of the first argument has started.

    The second one says how old waits must be, as seconds since 1970; the others, by pid, since when
    a rank has been where it is.
    """
    root, older_than = int(sys.argv[1]), float(sys.argv[2])
    still = {int(pid): float(since) for pid, since in (one.split(":") for one in sys.argv[3:])}
    with contextlib.suppress(psutil.NoSuchProcess):  # the job has ended meanwhile
        found = asyncio.run(explain_processes(root, older_than=older_than, still=still))
        told = [one.verdict for one in found if not one.pool]  # a pool's cell shows its own
        texts = [verdict.sentence for verdict in told if verdict and verdict.concerns_all]
        print(" ".join(texts))

"""What held up a server's event loop: measured in the server, read by a test.

The server's configuration calls `watch`, which times each callback of its loop, less the time for
which the system gave the processor to somebody else, and looks where a slow one is.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

SLOW = 0.05
"""Seconds."""
CONFIG = """
import sys
sys.path.insert(0, {root!r})
from tests.server.stalls import watch
watch({file!r})
"""


@dataclass
class Stall:
    """One callback that took too long."""

    seconds: float
    where: str


def configuration(file: Path) -> str:
    """Return lines of a server's configuration that let it write its stalls to a file."""
    return CONFIG.format(root=str(Path(__file__).parents[2]), file=str(file))


def stalls(file: Path) -> list[Stall]:
    """Return what a server has written, the longest first."""
    found = [Stall(**json.loads(line)) for line in file.read_text().splitlines()]
    return sorted(found, key=lambda stall: -stall.seconds)


def watch(file: str) -> None:
    """Write each stall of this process's main thread to a file."""
    main = threading.main_thread().ident
    run = asyncio.events.Handle._run
    began: float | None = None
    where = ""
    log = open(file, "a", buffering=1)  # noqa: SIM115
    scheduled = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def others() -> float:
        """Return for how long this thread has waited for a processor."""
        return int(os.pread(scheduled, 100, 0).split()[1]) / 1e9

    def timed(handle: asyncio.Handle) -> None:
        nonlocal began, where
        if threading.get_ident() != main:
            run(handle)
            return
        waited, where = others(), ""
        began = begin = time.perf_counter()
        run(handle)
        began = None
        seconds = time.perf_counter() - begin - (others() - waited)
        if seconds > SLOW:
            log.write(json.dumps({"seconds": seconds, "where": where or repr(handle)}) + "\n")

    def look() -> None:
        nonlocal where
        while True:
            time.sleep(SLOW / 4)
            begin = began
            if begin is not None and not where and time.perf_counter() - begin > SLOW / 2:
                stack = traceback.format_stack(sys._current_frames()[main or 0])[-6:]
                where = "".join(stack)

    asyncio.events.Handle._run = timed  # type: ignore[method-assign]
    threading.Thread(target=look, name="stalls", daemon=True).start()

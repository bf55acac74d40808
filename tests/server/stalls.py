"""What held up a server's event loop: measured in the server, read by a test.

The server's configuration calls `watch`, which measures the processor time of each callback of its
loop, so that a busy machine makes none look slow, and looks where a slow one is. Garbage collection
is not counted: how long it takes depends on all that a Jupyter server holds. Nor are callbacks
without any code of ours, such as the search for kernel provisioners when the first kernel starts.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

SLOW = 0.1
"""Seconds of processor time. Where others use the processor's caches, 50 ms of work take 70."""
PACKAGE = f"{os.sep}jupyter_dist_server{os.sep}"
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


def check(file: Path) -> None:
    """Check that a server has written none."""
    found = stalls(file)
    assert not found, "\n".join(f"{stall.seconds:.3f} s: {stall.where}" for stall in found)


def watch(file: str) -> None:
    """Write each stall of this process's main thread to a file."""
    main = threading.main_thread().ident
    run = asyncio.events.Handle._run
    began: float | None = None
    where, is_ours = "", True
    log = open(file, "a", buffering=1)  # noqa: SIM115
    collecting = 0.0
    """Processor time of the garbage collections in this callback."""

    def on_collection(phase: str, _: object) -> None:
        nonlocal collecting
        if threading.get_ident() == main:
            collecting += time.thread_time() * (1 if phase == "stop" else -1)

    def timed(handle: asyncio.Handle) -> None:
        nonlocal began, where, is_ours, collecting
        if threading.get_ident() != main:
            run(handle)
            return
        where, is_ours, collecting = "", True, 0.0
        begin, began = time.thread_time(), time.perf_counter()
        run(handle)
        began = None
        seconds = time.thread_time() - begin - collecting
        if seconds > SLOW and is_ours:
            task = getattr(getattr(handle, "_callback", None), "__self__", None)
            where = f"{handle!r} of {task!r}\n{where}"
            log.write(json.dumps({"seconds": seconds, "where": where}) + "\n")

    def look() -> None:
        nonlocal where, is_ours
        while True:
            time.sleep(SLOW / 4)
            begin = began
            if begin is not None and not where and time.perf_counter() - begin > SLOW / 2:
                stack = traceback.extract_stack(sys._current_frames()[main or 0])
                is_ours = any(PACKAGE in frame.filename for frame in stack)
                where = "".join(traceback.format_list(stack[-8:]))

    gc.callbacks.append(on_collection)
    asyncio.events.Handle._run = timed  # type: ignore[method-assign]
    threading.Thread(target=look, name="stalls", daemon=True).start()

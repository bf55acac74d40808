"""The process that forks runners goes on after what no dispatcher would ask for."""

from __future__ import annotations

import socket
import subprocess
import sys

import psutil

from jupyter_dist_server.jobs.runner.runner_zygote import RunnerZygote

from ..waiting import PATIENCE


def test_what_no_dispatcher_would_ask_for_is_dropped() -> None:
    before = set(psutil.Process().children())
    zygote = RunnerZygote()
    (process,) = set(psutil.Process().children()) - before
    for junk in (b"junk", b"[]", b'{"folder": 3}', b"[" * 5000):
        zygote._socket.send(junk)
    zygote._socket.shutdown(socket.SHUT_WR)
    assert process.wait(PATIENCE) == 0  # it has read them all, and the end
    zygote._socket.close()


def test_runners_carry_little() -> None:
    """Each job has one for as long as it runs."""
    heavy: tuple[str, ...] = ("asyncio", "hashlib", "logging", "psutil", "shutil")
    if sys.version_info >= (3, 11):  # before, msgspec imports them by way of uuid
        heavy += ("subprocess", "threading")
    code = "import sys, jupyter_dist_server.jobs.runner.runner_zygote; "
    code += f"print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"

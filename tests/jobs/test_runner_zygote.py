"""The process that forks runners goes on after what no dispatcher would ask for, or is replaced."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import psutil

from jupyter_dist_server.jobs.runner.runner_zygote import RunnerZygote

from ..waiting import PATIENCE, wait_for
from .queue_driver import UNTIL_GO, Queue


def test_what_no_dispatcher_would_ask_for_is_dropped() -> None:
    before = set(psutil.Process().children())
    zygote = RunnerZygote()
    (process,) = set(psutil.Process().children()) - before
    for junk in (b"junk", b"[]", b'{"folder": 3}', b"[" * 5000):
        zygote._socket.send(junk)
    zygote._socket.shutdown(socket.SHUT_WR)
    assert process.wait(PATIENCE) == 0  # it has read them all, and the end
    zygote._socket.close()


def zygote_and_dispatcher(queue: Queue, *jobs: str) -> tuple[psutil.Process, psutil.Process]:
    """Return the ones that know of waiting jobs: before, others may be about to end."""
    for job in jobs:
        wait_for(lambda job=job: queue.show(job)["reason"] == "Dependency", "the reason")

    def one_of_each() -> tuple[psutil.Process, psutil.Process] | None:
        found = queue.processes("dist-zygote"), queue.processes("dist-dispatcher")
        return (found[0][0], found[1][0]) if [len(some) for some in found] == [1, 1] else None

    both: tuple[psutil.Process, psutil.Process] = wait_for(one_of_each, "one of each")
    return both


def test_jobs_whose_zygote_is_stopped_are_started_by_another_one(queue: Queue) -> None:
    """A dispatcher that has no more to start stays until they are."""
    ends = queue.submit("-c", "0", *UNTIL_GO)
    queue.until(ends, "RUNNING")
    after = ["-c", "0", "-d", f"afterok:{ends}", "sh", "-c", "echo $JDIST_ATTEMPT"]
    waits, cancelled = queue.submit(*after), queue.submit(*after)
    zygote, _ = zygote_and_dispatcher(queue, waits, cancelled)
    zygote.send_signal(signal.SIGSTOP)
    (queue.folder / "go").touch()
    queue.until(cancelled, "CONFIGURING")
    queue.run("cancel", cancelled)
    assert queue.ended(waits)["state"] == "COMPLETED"
    assert queue.output(waits) == "1\n", "it runs once"
    assert queue.ended(cancelled)["detail"] == "Cancelled before it started."
    wait_for(lambda: not queue.processes("dist-dispatcher"), "the dispatcher's end")
    assert not zygote.is_running()


def test_jobs_whose_zygote_is_stopped_start_after_their_dispatcher_is_killed(queue: Queue) -> None:
    """Nobody kills the stopped zygote then, which has not read that it is to fork a runner."""
    stays = queue.submit("-c", "0", "sleep", "600")
    ends = queue.submit("-c", "0", *UNTIL_GO)
    queue.until(stays, "RUNNING")
    queue.until(ends, "RUNNING")
    waits = queue.submit("-c", "0", "-d", f"afterok:{ends}", "sh", "-c", "echo $JDIST_ATTEMPT")
    zygote, dispatcher = zygote_and_dispatcher(queue, waits)
    zygote.send_signal(signal.SIGSTOP)
    (queue.folder / "go").touch()
    queue.until(waits, "CONFIGURING")
    dispatcher.kill()
    assert queue.ended(waits)["state"] == "COMPLETED"
    assert queue.output(waits) == "1\n", "it runs once"
    assert queue.show(stays)["state"] == "RUNNING", "runners survive the zygote"


def test_runners_carry_little() -> None:
    """Each job has one for as long as it runs."""
    heavy: tuple[str, ...] = ("asyncio", "hashlib", "logging", "psutil", "shutil")
    if sys.version_info >= (3, 11):  # before, msgspec imports them by way of uuid
        heavy += ("subprocess", "threading")
    code = "import sys, jupyter_dist_server.jobs.runner.runner_zygote; "
    code += f"print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"

"""Slow or stuck: what the system says of processes that do not respond."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.processes import why_silent as why_silent_module
from jupyter_dist_server.common.processes.process_ref import ProcessRef
from jupyter_dist_server.common.processes.why_silent import (
    Cause,
    _Thread,
    why_each_silent,
    why_silent,
    why_silent_blocking,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems tell less")


@contextmanager
def running(*command: str) -> Iterator[ProcessRef]:
    """Run a program until the block ends; it has begun when it has written a line."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline()
            yield ProcessRef.of(process.pid)
        finally:
            process.kill()


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


SLEEPS = python("import time; print(1, flush=True); time.sleep(600)")


async def until(process: ProcessRef, *causes: Cause) -> None:
    """Wait until a process looks so, as it may have only just begun."""
    seen: list[Cause] = []
    for _ in range(100):
        seen.append(await why_silent(process))
        if seen[-1] in causes:
            return
    raise AssertionError(seen)


async def test_a_stopped_process_is_stopped() -> None:
    with running(*SLEEPS) as process:
        psutil.Process(process.pid).suspend()
        await until(process, "stopped")


async def test_code_that_computes_while_it_holds_the_gil() -> None:
    # A sum in C: no other thread of this process gets the GIL meanwhile.
    code = "print(1, flush=True); sum(range(10**13))"
    with running(*python(code)) as process:
        # On a busy machine, it has no processor for most of the time, and both are true.
        is_busy = os.getloadavg()[0] > len(os.sched_getaffinity(0))
        await until(process, "computing", *(["starved"] if is_busy else []))


async def test_code_that_waits_while_it_holds_the_gil() -> None:
    code = "import ctypes; print(1, flush=True); ctypes.PyDLL(None).sleep(600)"
    with running(*python(code)) as process:
        await until(process, "stuck")


async def test_a_process_that_gets_no_processor_is_slow_and_not_stuck() -> None:
    core = str(min(os.sched_getaffinity(0)))
    with ExitStack() as running_together:
        loop = "echo; while :; do :; done"
        for _ in range(2):
            running_together.enter_context(running("taskset", "-c", core, "bash", "-c", loop))
        starved = running_together.enter_context(
            running("taskset", "-c", core, "nice", "-n", "19", "bash", "-c", loop)
        )
        await until(starved, "starved")


async def test_threads_that_share_too_little_of_a_processor() -> None:
    core = str(min(os.sched_getaffinity(0)))
    loop = "echo; while :; do :; done"
    code = (
        "import threading\ndef work():\n    while True: pass\n"
        "for _ in range(4): threading.Thread(target=work).start()\nprint(1, flush=True)"
    )
    with ExitStack() as together:
        for _ in range(2):
            together.enter_context(running("taskset", "-c", core, "bash", "-c", loop))
        nice = ("taskset", "-c", core, "nice", "-n", "5")
        starved = together.enter_context(running(*nice, *python(code)))
        await until(starved, "starved")


@pytest.mark.parametrize(("share", "cause"), [(0.001, "stuck"), (0.02, "starved")])
async def test_threads_that_wait_often_but_hardly_run_only_look_for_the_gil(
    share: float, cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They look for it 200 times a second, and wait a little for a processor each time."""

    def threads(_: object) -> dict[str, _Thread]:
        now = time.monotonic()
        one = _Thread("S", ran=share * now, waited=0.2 * now, turns=int(200 * now))
        return dict.fromkeys("abcdef", one)

    monkeypatch.setattr(why_silent_module, "_threads_of", threads)
    assert await why_silent(ProcessRef.of(os.getpid())) == cause


async def test_a_process_that_waits_for_a_driver(tmp_path: Path) -> None:
    # A parent waits uninterruptibly for a child of vfork(2), as for a driver, until that ends.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = (
        "import ctypes, sys; print(1, flush=True); C = ctypes.CDLL(None)\n"
        "if C.vfork() == 0:\n"
        f"    C.open({os.fsencode(pipe)!r}, 0); C._exit(0)"
    )
    with running(*python(code)) as process:
        try:
            wait_for(lambda: psutil.Process(process.pid).status() == "disk-sleep", "state D")
            assert await why_silent(process) == "driver"
        finally:
            pipe.open("wb", buffering=0).close()  # lets both go


async def test_several_processes_are_looked_at_together() -> None:
    with running(*SLEEPS) as process:
        found = await why_each_silent({"child": process, "ended": ProcessRef(process.pid, 1)})
        assert found == {"child": "stuck", "ended": "ended"}
        assert await why_silent(None) == "unknown"
        assert why_silent_blocking(process) == "stuck"


async def test_nothing_is_waited_for_if_no_process_is_silent() -> None:
    begun = time.monotonic()
    assert await why_each_silent({}) == {}
    assert time.monotonic() - begun < patience.instant

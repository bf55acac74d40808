"""The process of an agent as its owner sees it, with the verbs of `subprocess.Popen`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import psutil

from ...common.patience import patience
from ...common.processes.process_ref import UNKNOWN_EXIT, ProcessRef, is_stopped, until_ended


async def answered(answer: asyncio.Future[Any], zygote: ProcessRef | None) -> bool:
    """Wait for a zygote's answer, longer if it is not stopped; tell whether it came."""
    for limit in (patience.cleanup, patience.program):
        await asyncio.wait([answer], timeout=limit)
        if answer.done() or (zygote and is_stopped(zygote)):
            break
    return answer.done()


class AgentProcess:
    """One agent's process.

    `exit` gets the exit code from the `zygote` that forked it; negative is a signal's number.
    `child` is the same process if it was a zygote before, and so is our child. `silent` is called
    if the zygote does not tell the exit code.
    """

    def __init__(
        self,
        process: ProcessRef,
        exit: asyncio.Future[int] | None = None,
        child: subprocess.Popen[bytes] | None = None,
        zygote: ProcessRef | None = None,
        silent: Callable[[], None] = lambda: None,
    ) -> None:
        self._process = process
        self._child = child
        self._exit = exit
        self._zygote = zygote
        self._silent = silent

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return self._process.age

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped it."""
        return is_stopped(self._process)

    def poll(self) -> int | None:
        """Return `None` while it runs, then its exit code; `UNKNOWN_EXIT` if nobody knows it."""
        if self._process.find():
            return None
        if self._child:
            return self._child.wait()  # it has ended
        return self._exit.result() if self._exit and self._exit.done() else UNKNOWN_EXIT

    async def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code; `UNKNOWN_EXIT` if nobody knows it.

        Raises `asyncio.TimeoutError` if it has not ended after `timeout` seconds; then, its zygote
        has some more to tell the exit code.
        """
        await asyncio.wait_for(until_ended(self._process), timeout)
        if self._exit:
            if await answered(self._exit, self._zygote):
                return self._exit.result()
            self._silent()
        return UNKNOWN_EXIT if (code := self.poll()) is None else code

    def send_signal(self, number: int) -> None:
        """Signal exactly this process, if it still exists."""
        if process := self._process.find():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

"""The process of an agent as its owner sees it, with the verbs of `subprocess.Popen`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Callable

import psutil

from ...common.processes.process_ref import UNKNOWN_EXIT, ProcessRef, is_stopped, until_ended

_STATUS_PATIENCE = (3.0, 27.0)
"""Seconds within which a zygote says how an agent of its own ended, if it is stopped, and how many
more if the machine is only busy."""


class AgentProcess:
    """One agent's process."""

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
        """Its number."""
        return self._process.pid

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return self._process.age

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped it."""
        return is_stopped(self._process)

    def poll(self) -> int | None:
        """Return `None` while it runs, then its exit code, `UNKNOWN_EXIT` if nobody knows that."""
        if self._process.find():
            return None
        if self._child:
            return self._child.wait()  # it has ended
        return self._exit.result() if self._exit and self._exit.done() else UNKNOWN_EXIT

    async def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code, `UNKNOWN_EXIT` if nobody knows that.

        A zygote has 30 s more to tell it, or 3 s if it is stopped.

        Raises
        ------
        asyncio.TimeoutError
            If it has not ended after `timeout` seconds.
        """
        await asyncio.wait_for(until_ended(self._process), timeout)
        if self._exit:
            for patience in _STATUS_PATIENCE:
                await asyncio.wait([self._exit], timeout=patience)
                if self._exit.done():
                    return self._exit.result()
                if self._zygote and is_stopped(self._zygote):
                    break
            self._silent()
        return UNKNOWN_EXIT if (code := self.poll()) is None else code

    def send_signal(self, number: int) -> None:
        """Signal exactly this process, if it is still there."""
        if process := self._process.find():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

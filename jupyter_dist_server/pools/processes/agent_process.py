"""The process of an agent as its owner sees it, with the verbs of `subprocess.Popen`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from dataclasses import dataclass

import psutil

from ...common.background_tasks import within
from ...common.patience import patience
from ...common.processes.process_ref import UNKNOWN_EXIT, ProcessRef, is_stopped, until_ended


@dataclass(eq=False)
class AgentProcess:
    """One agent's process.

    `exit` gets the exit code from the zygote that forked it; negative is a signal's number. `child`
    is the same process if it was a zygote before, and so is our child.
    """

    process: ProcessRef
    exit: asyncio.Future[int] | None = None
    child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self.process.pid

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return self.process.age

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped it."""
        return is_stopped(self.process)

    def poll(self) -> int | None:
        """Return `None` while it runs, then its exit code; `UNKNOWN_EXIT` if nobody knows it."""
        if self.process.find():
            return None
        if self.child:
            return self.child.wait()  # it has ended
        return self.exit.result() if self.exit and self.exit.done() else UNKNOWN_EXIT

    async def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code; `UNKNOWN_EXIT` if nobody knows it.

        Raises `asyncio.TimeoutError` after `timeout` seconds.
        """
        await within(until_ended(self.process), timeout)
        if self.exit:
            await asyncio.wait([self.exit], timeout=patience.busy_answer)
        return UNKNOWN_EXIT if (code := self.poll()) is None else code

    def send_signal(self, number: int) -> None:
        """Signal exactly this process, if it still exists."""
        if process := self.process.find():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

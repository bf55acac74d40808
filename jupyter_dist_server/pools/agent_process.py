"""An agent as its owner sees it: a child of the owner's, of a zygote's, or of nobody we know."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable

import psutil

from ..common.processes import ProcessRef, until_ended

_STATUS_PATIENCE = 3.0
"""Seconds within which a zygote says how an agent of its own ended."""


class AgentProcess:
    """One agent's process.

    Parameters
    ----------
    process : ProcessRef
        Which one it is.
    child : subprocess.Popen or None
        The same process, if it is a child of ours and so ours to reap.
    exit : asyncio.Future or None
        The exit code, from the zygote that forked it; negative is a signal's number.
    silent : callable
        Called if the zygote does not tell that.
    """

    def __init__(
        self,
        process: ProcessRef,
        child: subprocess.Popen[bytes] | None = None,
        exit: asyncio.Future[int | None] | None = None,
        silent: Callable[[], None] = lambda: None,
    ) -> None:
        self._process = process
        self._child = child
        self._exit = exit
        self._silent = silent

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def is_there(self) -> bool:
        """Whether it has not ended."""
        return self._process.find() is not None

    def signal(self, number: int) -> None:
        """Signal exactly this process, if it is still there."""
        if process := self._process.find():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    async def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end and return the exit code, `None` where nobody can know it.

        Raises
        ------
        asyncio.TimeoutError
            If it has not ended after `timeout` seconds.
        """
        await asyncio.wait_for(until_ended(self._process), timeout)
        if self._child:
            return self._child.wait()
        if self._exit:
            try:
                return await asyncio.wait_for(asyncio.shield(self._exit), _STATUS_PATIENCE)
            except asyncio.TimeoutError:
                self._silent()
        return None

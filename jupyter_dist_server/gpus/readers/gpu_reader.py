"""NVML read again and again, whenever it is asked for, by a process that waits in between."""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import ClassVar

from ...common.protocol.sampler_messages import (
    FIRST_ANSWER,
    STAYS_LOADED,
    Complete,
    News,
    SamplerNews,
)
from ..gpu_state import GpuState, no_answer, read_news, state_of
from .reading_process import ReadingProcess

_END = 2.0
"""Seconds within which a process that was killed has ended, unless it hangs in the driver."""


class GpuReader:
    """Reads GPUs and their processes without an event loop.

    Parameters
    ----------
    timeout : float
        Seconds after which a hanging driver is given up on; the inventory then says so.
    first : float
        The same for the first answer of a process, for which the driver may have to be loaded.
    begun : ReadingProcess or None
        Whose first reading is to be taken.
    """

    _hangs: ClassVar[ReadingProcess | None] = None
    """What hangs in the driver: no other reader of this process starts one more."""

    def __init__(
        self,
        timeout: float = 15.0,
        first: float = FIRST_ANSWER,
        begun: ReadingProcess | None = None,
    ) -> None:
        self._timeout = timeout
        self._first = first
        self._process = begun
        self._begun = begun is not None
        """Whether the process is at its first reading, for which it is not asked."""
        self._said: dict[type[SamplerNews], News] = {}
        """The newest of each kind."""

    def read(self) -> GpuState:
        """Return what NVML says now."""
        if self._hangs and not self._hangs.has_ended():
            pid = self._hangs.pid
            return no_answer(
                f"The NVIDIA driver hangs: process {pid} waits for it and cannot be killed."
            )
        is_first = self._process is None or self._begun
        timeout = self._first if is_first else self._timeout
        try:
            if self._process is None:
                self._said = {}
                self._process = ReadingProcess()
            elif not self._begun:
                os.write(self._process.requests.fileno(), b"{}\n")
            self._begun = False
            self._hear(self._process, timeout)
        except TimeoutError:
            self.close()
            why = f"The NVIDIA driver did not respond within {timeout:g} s."
            return no_answer(f"{why} {STAYS_LOADED}" if is_first else why)
        except OSError as error:
            self.close()
            return no_answer(f"Listing the GPUs failed: {error.strerror}.")
        return state_of(self._said.values()) or no_answer(
            "Listing the GPUs failed: its process wrote no output."
        )

    def _hear(self, process: ReadingProcess, timeout: float) -> None:
        """Read what the process says until it has said all, or has ended."""
        deadline, rest = time.monotonic() + timeout, b""
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.answers], [], [], left)[0]:
                raise TimeoutError
            data = os.read(process.answers.fileno(), 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if (news := read_news(line)) is None:
                    continue
                if isinstance(news, Complete):
                    return
                self._said[type(news)] = news
            if not data:  # it has ended: the next one may find another driver
                self.close()
                return

    def close(self) -> None:
        """End the process."""
        if process := self._process:
            self._process = None
            process.kill()
            if not process.has_ended(within=_END):
                GpuReader._hangs = process


def read_gpus() -> GpuState:
    """Return what NVML says now, read by a process that ends then."""
    with contextlib.closing(GpuReader()) as reader:
        return reader.read()

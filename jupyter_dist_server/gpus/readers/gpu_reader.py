"""NVML read on request, without an event loop, by a process that waits in between."""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import ClassVar

from ...common.patience import patience
from ...common.protocol.sampler_messages import Complete, News, SamplerNews
from ..gpu_state import GpuState, no_answer, read_news, state_of, why_no_news
from .reading_process import ReadingProcess


class GpuReader:
    """Reads GPUs and their processes; with `begun`, takes the first reading of that process."""

    _hangs: ClassVar[ReadingProcess | None] = None
    """A process that hangs in the driver: no reader of this process starts another one."""

    def __init__(self, begun: ReadingProcess | None = None) -> None:
        self._process = begun
        self._begun = begun is not None
        """The process is at its first reading, which needs no request."""
        self._said: dict[type[SamplerNews], News] = {}

    def read(self) -> GpuState:
        """Read NVML now."""
        if self._hangs and not self._hangs.has_ended():
            pid = self._hangs.pid
            return no_answer(
                f"The NVIDIA driver hangs: process {pid} waits for it and cannot be killed."
            )
        is_first = self._process is None or self._begun
        limit = patience.driver if is_first else 2 * patience.busy_answer
        try:
            if self._process is None:
                self._said = {}
                self._process = ReadingProcess()
            elif not self._begun:
                os.write(self._process.requests.fileno(), b"{}\n")
            self._begun = False
            self._hear(self._process, limit)
        except TimeoutError:
            why = _why_silent(self._process, limit, is_first) if self._process else ""
            self.close()
            return no_answer(why)
        except OSError as error:
            self.close()
            return no_answer(f"Listing the GPUs failed: {error.strerror}.")
        return state_of(self._said.values()) or no_answer(
            "Listing the GPUs failed: its process wrote no output."
        )

    def _hear(self, process: ReadingProcess, limit: float) -> None:
        """Read the process's messages until it has said all, or has ended."""
        deadline, rest = time.monotonic() + limit, b""
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
            if not process.has_ended(within=patience.cleanup):
                GpuReader._hangs = process


def _why_silent(process: ReadingProcess, limit: float, is_first: bool) -> str:
    import psutil  # not above: a dispatcher starts without what only errors need

    from ...common.processes.process_ref import ProcessRef
    from ...common.processes.why_silent import why_silent_blocking

    try:
        cause = why_silent_blocking(ProcessRef.of(process.pid))
    except psutil.NoSuchProcess:
        cause = "ended"
    return why_no_news(cause, process.pid, limit, is_first=is_first)


def read_gpus() -> GpuState:
    """Read NVML once."""
    with contextlib.closing(GpuReader()) as reader:
        return reader.read()

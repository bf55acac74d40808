"""NVML read again and again, whenever it is asked for, by a process that waits in between."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from typing import ClassVar

import msgspec

from ...common.processes.python_command import python_command
from ...common.protocol.sampler_messages import Complete, News, SamplerNews, SamplerSettings
from ..gpu_state import GpuState, read_news, state_of
from ..inventory import Inventory

_END = 2.0
"""Seconds within which a process that was killed has ended, unless it hangs in the driver."""
_MODULE = "jupyter_dist_server.gpus.sampler.sampler_process"


class GpuReader:
    """Reads GPUs and their processes without an event loop.

    Parameters
    ----------
    timeout : float
        Seconds after which a hanging driver is given up on; the inventory then says so.
    """

    _hangs: ClassVar[subprocess.Popen[bytes] | None] = None
    """What hangs in the driver: no other reader of this process starts one more."""

    def __init__(self, timeout: float = 15.0) -> None:
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = False
        """Whether the process is at its first reading, for which it is not asked."""
        self._said: dict[type[SamplerNews], News] = {}
        """The newest of each kind."""

    def begin(self) -> None:
        """Have the process start and read now; `read` then returns that.

        Raises
        ------
        OSError
            If it cannot be started.
        """
        self._said = {}
        settings = msgspec.json.encode(SamplerSettings(on_request=True)).decode()
        self._process = subprocess.Popen(
            [*python_command(sys.executable, _MODULE), settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._begun = True

    def read(self) -> GpuState:
        """Return what NVML says now."""
        if self._hangs and self._hangs.poll() is None:
            pid = self._hangs.pid
            return _nothing(
                f"The NVIDIA driver hangs: process {pid} waits for it and cannot be killed."
            )
        try:
            if self._process is None:
                self.begin()
            elif not self._begun:
                self._ask(self._process)
            self._begun = False
            assert self._process
            self._hear(self._process)
        except TimeoutError:
            self.close()
            return _nothing(f"The NVIDIA driver did not respond within {self._timeout:g} s.")
        except OSError as error:
            self.close()
            return _nothing(f"Listing the GPUs failed: {error.strerror}.")
        return state_of(self._said.values()) or _nothing(
            "Listing the GPUs failed: its process wrote no output."
        )

    def _ask(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        process.stdin.write(b"{}\n")
        process.stdin.flush()

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """Read what the process says until it has said all, or has ended."""
        assert process.stdout
        deadline, rest = time.monotonic() + self._timeout, b""
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise TimeoutError
            data = os.read(process.stdout.fileno(), 1 << 16)
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
            for pipe in filter(None, (process.stdin, process.stdout)):
                pipe.close()
            try:
                process.wait(_END)
            except subprocess.TimeoutExpired:
                GpuReader._hangs = process


def read_gpus() -> GpuState:
    """Return what NVML says now, read by a process that ends then."""
    with contextlib.closing(GpuReader()) as reader:
        return reader.read()


def _nothing(reason: str) -> GpuState:
    return GpuState(Inventory(reason=reason))

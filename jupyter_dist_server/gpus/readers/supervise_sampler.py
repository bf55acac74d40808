"""The server's side of the sampler process: start it, detect that it hangs or died, end it."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from ...common.processes.python_command import python_command
from ...common.protocol.sampler_messages import (
    FIRST_ANSWER,
    NO_DRIVER,
    STAYS_LOADED,
    News,
    SamplerSettings,
)
from ..gpu_state import read_news
from .one_child import DriverHangsError, check_driver, note_killed

_MODULE = "jupyter_dist_server.gpus.sampler.sampler_process"
_LOG = logging.getLogger(__name__)

_LINE_LIMIT = 2**24
"""Bytes that one message may have."""
_LAST_WORDS = 2000
"""Bytes of a process's standard error that are kept."""


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds."""

    start: float = FIRST_ANSWER
    """For the first message."""
    silence: float = 10.0
    """For a message that is overdue."""
    pause: float = 1.0
    """Before the process is started again, doubled each time that it does not last."""
    longest_pause: float = 60.0
    busy: float = 0.5
    """For a message that has come, but that this process was too busy to read."""
    end: float = 2.0
    """For the process's end when it is not needed any more."""


class Sampler:
    """Keeps one process running that samples the GPUs.

    Parameters
    ----------
    settings : SamplerSettings
        What the process is told.
    on_news : callable
        Called with all that it says.
    on_trouble : callable
        Called with one plain sentence when there will be no message for a while.
    environment : mapping or None
        The process's environment; by default this process's.
    patience : Patience
        Tests have less of it.
    """

    def __init__(
        self,
        settings: SamplerSettings,
        on_news: Callable[[News], None],
        on_trouble: Callable[[str], None],
        environment: Mapping[str, str] | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._settings = settings
        self._on_news = on_news
        self._on_trouble = on_trouble
        self._environment = environment
        self._patience = patience or Patience()
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        """That one, and those that are ending."""

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Begin to sample; if that is so already, nothing happens."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_running())
            self._tasks.add(self._task)
            self._task.add_done_callback(self._on_end)

    def tell(self, settings: SamplerSettings) -> None:
        """Change what the process does, and what those started later will do."""
        if settings == self._settings:
            return
        self._settings = settings
        self._send()

    def _send(self) -> None:
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(msgspec.json.encode(self._settings) + b"\n")

    def stop(self) -> None:
        """End the process soon; it is killed if it does not end by itself."""
        if self._task:
            self._task.cancel()
            self._task = None

    async def close(self) -> None:
        """End the process, and wait until it has."""
        self.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _LOG.error("Sampling the GPUs failed", exc_info=error)

    async def _keep_running(self) -> None:
        pause = self._patience.pause
        while True:
            begun = time.monotonic()
            try:
                await check_driver()
                await self._run_once()
            except DriverHangsError as error:
                self._on_trouble(str(error))
            except OSError as error:  # no process can be started
                self._on_trouble(f"The process that reads the GPUs cannot be started: {error}.")
            if time.monotonic() - begun > self._patience.longest_pause:
                pause = self._patience.pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._patience.longest_pause)

    async def _run_once(self) -> None:
        """Start the process and pass its messages on until it hangs, or ends."""
        settings = self._settings
        process = await start_process(settings, self._environment)
        assert process.stdout and process.stderr
        watch = _Watch(process, self._patience, self._on_trouble)
        last_words = asyncio.create_task(last_line(process.stderr))
        try:
            self._process = process
            if self._settings is not settings:
                self._send()
            while line := await process.stdout.readline():
                if news := read_news(line):
                    self._on_news(news)
                watch.expect(self._settings.interval + self._patience.silence)
            # One that hangs inside the kernel lives on; there are never two of them.
            await process.wait()
            code = process.returncode or 0
            if not watch.gave_up and code != NO_DRIVER:  # of which it has told itself
                how = f"signal {-code}" if code < 0 else await last_words or f"exit code {code}"
                self._on_trouble(
                    f"The process that reads the GPUs has died ({how}). It is being restarted."
                )
        finally:
            if self._process is process:
                self._process = None
            watch.close()
            await end_process(process, self._patience.end)
            last_words.cancel()


class _Watch:
    """Kills a process that is silent for too long."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        patience: Patience,
        on_trouble: Callable[[str], None],
    ) -> None:
        self.gave_up = False
        self._process = process
        self._patience = patience
        self._on_trouble = on_trouble
        self._loop = asyncio.get_running_loop()
        self._limit = patience.start
        self._advice = f" {STAYS_LOADED}"
        self._timer = self._loop.call_later(self._limit, self._suspect)

    def expect(self, limit: float) -> None:
        """Expect the next message within `limit` seconds."""
        self._timer.cancel()
        if not self.gave_up:
            self._limit, self._advice = limit, ""
            self._timer = self._loop.call_later(limit, self._suspect)

    def close(self) -> None:
        """Expect no message."""
        self._timer.cancel()

    def _suspect(self) -> None:
        # If this process was too busy to read the message, it does so now.
        self._timer = self._loop.call_later(self._patience.busy, self._give_up)

    def _give_up(self) -> None:
        self.gave_up = True
        self._on_trouble(
            f"The NVIDIA driver has not responded for {self._limit:g} s. A new process will read "
            f"the GPUs when the old one has ended.{self._advice}"
        )
        _kill(self._process)


async def start_process(
    settings: SamplerSettings, environment: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Start a process that samples, in a session of its own, where Ctrl-C does not reach it."""
    return await asyncio.create_subprocess_exec(
        *python_command(sys.executable, _MODULE),
        msgspec.json.encode(settings).decode(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        limit=_LINE_LIMIT,
        start_new_session=True,
    )


async def end_process(process: asyncio.subprocess.Process, limit: float = 2.0) -> None:
    """End a process, killing it if it does not end within `limit` seconds."""
    if process.stdin:
        process.stdin.close()
    if process.returncode is not None:
        return
    try:
        await asyncio.wait_for(process.wait(), limit)
    except asyncio.TimeoutError:
        _kill(process)
        try:
            await asyncio.wait_for(process.wait(), limit)
        except asyncio.TimeoutError:
            _LOG.warning("Process %d is stuck in the NVIDIA driver", process.pid)
            note_killed(process.pid)


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


async def last_line(stderr: asyncio.StreamReader) -> str:
    """Read what a process complains of, so that it is never stopped by it; return the last line."""
    last = b""
    while chunk := await stderr.read(_LAST_WORDS):
        last = (last + chunk)[-_LAST_WORDS:]
    lines = last.decode(errors="replace").strip().splitlines()
    return lines[-1].rstrip(".") if lines else ""

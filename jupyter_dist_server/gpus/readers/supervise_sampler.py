"""The server's side of the sampler process: start it, detect that it hangs or died, end it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ...common.background_tasks import Tasks, within
from ...common.patience import patience
from ...common.protocol.sampler_messages import NO_DRIVER, News, SamplerSettings
from ..gpu_state import read_news
from .read_gpu_state import (
    DriverHangsError,
    check_driver,
    end_process,
    kill,
    last_line,
    start_process,
    why_silent_since,
)


class Sampler:
    """Keeps one process running that samples the GPUs.

    `on_trouble` is called with one plain sentence when there will be no news for a while.
    """

    def __init__(
        self,
        settings: SamplerSettings,
        on_news: Callable[[News], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self.pauses = 1.0, 60.0
        """Seconds before a new process is started; doubled up to the second number."""
        self._settings = settings
        self._on_news = on_news
        self._on_trouble = on_trouble
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._tasks = Tasks()
        """The task, and those that are ending."""

    @property
    def pid(self) -> int | None:
        """The process's pid, if one runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start sampling, unless it has been started."""
        if self._task is None:
            self._task = self._tasks.add(self._keep_running())

    def tell(self, settings: SamplerSettings) -> None:
        """Change the settings of this process, and of later ones."""
        if settings != self._settings:
            self._settings = settings
            self._send()

    def _send(self) -> None:
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(msgspec.json.encode(self._settings) + b"\n")

    def stop(self) -> None:
        """End the process, without waiting for it."""
        if self._task:
            self._task.cancel()
            self._task = None

    async def close(self) -> None:
        """End the process, and wait for its end."""
        self.stop()
        await self._tasks.end(3 * patience.cleanup)  # `end_process` takes twice that, at most

    async def _keep_running(self) -> None:
        pause = self.pauses[0]
        while True:
            begun = time.monotonic()
            try:
                await check_driver()
                await self._run_once()
            except DriverHangsError as error:
                self._on_trouble(str(error))
            except OSError as error:  # no process can be started
                self._on_trouble(f"The process that reads the GPUs cannot be started: {error}.")
            first, longest = self.pauses
            if time.monotonic() - begun > longest:
                pause = first
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)

    async def _run_once(self) -> None:
        """Start the process, and pass its messages on until it hangs or ends."""
        settings = self._settings
        process = await start_process(settings)
        assert process.stdout and process.stderr
        last_words = asyncio.create_task(last_line(process.stderr))
        limit, is_first = patience.driver, True
        try:
            self._process = process
            if self._settings is not settings:
                self._send()
            while line := await _next_line(process.stdout, limit):
                if news := read_news(line):
                    self._on_news(news)
                limit, is_first = self._settings.interval + 2 * patience.busy_answer, False
            code = await process.wait()
            if code != NO_DRIVER:  # which it has reported itself
                how = f"signal {-code}" if code < 0 else await last_words or f"exit code {code}"
                self._on_trouble(
                    f"The process that reads the GPUs has died ({how}). It is being restarted."
                )
        except asyncio.TimeoutError:
            why = await why_silent_since(process, limit, is_first=is_first)
            self._on_trouble(f"{why} A new process will read the GPUs when this one has ended.")
            kill(process)
            # One that hangs inside the kernel lives on; there are never two of them.
            await process.wait()
        finally:
            if self._process is process:
                self._process = None
            await end_process(process)
            last_words.cancel()


async def _next_line(stdout: asyncio.StreamReader, limit: float) -> bytes:
    with suppress(asyncio.TimeoutError):
        return await within(stdout.readline(), limit)
    # If this process was too busy to read a line, it does so now.
    return await within(stdout.readline(), patience.instant)

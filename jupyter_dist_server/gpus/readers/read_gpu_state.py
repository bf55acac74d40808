"""Everything read from NVML once, in an event loop, by one child process at a time.

None is started while an earlier one hangs in the driver: not even SIGKILL ends it, and each further
one would be left too.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from contextlib import suppress
from weakref import WeakKeyDictionary

import msgspec
import psutil

from ...common.background_tasks import within
from ...common.patience import patience
from ...common.processes.process_ref import ProcessRef
from ...common.processes.python_command import python_command
from ...common.processes.why_silent import why_silent
from ...common.protocol.sampler_messages import SamplerSettings
from ..gpu_state import GpuState, no_answer, read_news, state_of, why_no_news

_LOG = logging.getLogger(__name__)
_MODULE = "jupyter_dist_server.gpus.sampler.sampler_process"

_LINE_LIMIT = 2**24
"""Bytes of one message."""
_LAST_WORDS = 2000
"""Bytes of a process's standard error that are kept."""

_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_killed: dict[int, psutil.Process] = {}
"""By pid, killed processes that may not have ended."""


class DriverHangsError(Exception):
    """Says in one sentence why the driver is not asked."""


async def read_gpu_state(host_pids: bool | None = None) -> GpuState:
    """Read everything once, except rates, which need two samples."""
    limit = patience.driver
    lock = _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    taking = asyncio.ensure_future(lock.acquire())
    try:
        await within(taking, limit)
    except asyncio.TimeoutError:
        return no_answer(f"The NVIDIA driver has not responded for {limit:g} s.")
    except asyncio.CancelledError:
        if not taking.cancelled():
            lock.release()
        raise
    try:
        await check_driver()
        return await _read_once(limit, host_pids)
    except DriverHangsError as error:
        return no_answer(str(error))
    finally:
        lock.release()


async def _read_once(limit: float, host_pids: bool | None) -> GpuState:
    settings = SamplerSettings(host_pids=host_pids, once=True)
    try:
        process = await start_process(settings)
    except OSError as error:
        return no_answer(f"The process that reads the GPUs cannot be started: {error.strerror}.")
    assert process.stdout and process.stderr
    try:
        out = await within(process.stdout.read(), limit)
    except asyncio.TimeoutError:
        return no_answer(await why_silent_since(process, limit, is_first=True))
    finally:
        await end_process(process)
    if state := state_of(filter(None, map(read_news, out.splitlines()))):
        return state
    why = await last_line(process.stderr) or "its process wrote no output"
    return no_answer(f"Listing the GPUs failed: {why}.")


async def why_silent_since(
    process: asyncio.subprocess.Process, limit: float, *, is_first: bool
) -> str:
    """Say why a process has told nothing for `limit` seconds."""
    try:
        cause = await why_silent(ProcessRef.of(process.pid))
    except psutil.NoSuchProcess:
        cause = "ended"
    return why_no_news(cause, process.pid, limit, is_first=is_first)


async def start_process(settings: SamplerSettings) -> asyncio.subprocess.Process:
    """Start a process that samples, in a session of its own, where Ctrl-C does not reach it."""
    return await asyncio.create_subprocess_exec(
        *python_command(sys.executable, _MODULE),
        msgspec.json.encode(settings).decode(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LINE_LIMIT,
        start_new_session=True,
    )


async def end_process(process: asyncio.subprocess.Process) -> None:
    """End a process, and kill it if it does not end in time."""
    if process.stdin:
        process.stdin.close()
    if process.returncode is not None:
        return
    with suppress(asyncio.TimeoutError):
        await within(process.wait(), patience.cleanup)
        return
    kill(process)
    try:
        await within(process.wait(), patience.cleanup)
    except asyncio.TimeoutError:
        _LOG.warning("Process %d is stuck in the NVIDIA driver", process.pid)
        with suppress(psutil.NoSuchProcess):
            _killed[process.pid] = psutil.Process(process.pid)


def kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process, unless it has ended."""
    with suppress(ProcessLookupError):
        process.kill()


async def last_line(stderr: asyncio.StreamReader) -> str:
    """Read all that a process writes to stderr, so that it never blocks; return the last line."""
    last = b""
    while chunk := await stderr.read(_LAST_WORDS):
        last = (last + chunk)[-_LAST_WORDS:]
    lines = last.decode(errors="replace").strip().splitlines()
    return lines[-1].rstrip(".") if lines else ""


async def check_driver() -> None:
    """Raise `DriverHangsError` if a process that was killed still hangs in the driver."""
    begun = time.monotonic()
    while stuck := _stuck():
        pid, limit = stuck
        if time.monotonic() - begun > limit:
            raise DriverHangsError(
                f"The NVIDIA driver hangs: process {pid} waits for it and cannot be killed."
            )
        await asyncio.sleep(0.02)


def _stuck() -> tuple[int, float] | None:
    """Return a killed process that has not ended, and how long it may take."""
    for pid, process in list(_killed.items()):
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and (status := process.status()) != psutil.STATUS_ZOMBIE:
                # In a system call, it hangs; otherwise, it gets no processor time.
                in_driver = status == psutil.STATUS_DISK_SLEEP
                return pid, patience.cleanup if in_driver else 2 * patience.busy_answer
        del _killed[pid]
    return None

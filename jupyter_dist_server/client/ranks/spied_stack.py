"""The stack of a process that is seen from outside by py-spy, where that is installed.

See https://github.com/benfred/py-spy.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath

import msgspec
from msgspec.structs import replace

from ...common.background_tasks import within
from ...common.errors import DistError
from ...common.patience import patience
from ...common.protocol.ranks.evidence import Evidence, Frame
from ...common.recorded_collectives import is_below_users_code, is_own, place_at
from .gather_evidence import module_of


class _SpiedFrame(msgspec.Struct):
    name: str
    filename: str
    line: int
    module: str | None = None
    """The library of a frame in C."""


class _Thread(msgspec.Struct):
    os_thread_id: int | None
    frames: list[_SpiedFrame]
    owns_gil: bool = False


class SpiedStack(msgspec.Struct, frozen=True):
    """The main thread's."""

    frames: list[Frame]
    native: str = ""
    """The innermost C function with a name; empty if it runs Python, or C was not looked at."""
    owns_gil: bool = False


async def spied_stack(pid: int, *, native: bool = False) -> SpiedStack:
    """Return the stack of a process's main thread, with `native` also its frames in C.

    The process is stopped for some milliseconds. Raises `DistError` if py-spy is missing, may not
    read the process, or does not know its Python.
    """
    beside = str(Path(sys.executable).parent)
    program = shutil.which("py-spy") or shutil.which("py-spy", path=beside)
    if program is None:
        raise DistError("py_spy_missing", "py-spy is not installed.", "Run: pip install py-spy")
    options = ["--native"] if native else []
    process = await asyncio.create_subprocess_exec(
        program,
        *["dump", "--json", "--full-filenames", *options, "--pid", str(pid)],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        told, error = await within(process.communicate(), patience.node)
        threads = msgspec.json.decode(told, type=list[_Thread])
        main = next(one for one in threads if one.os_thread_id in (pid, None))
    except asyncio.TimeoutError:
        raise _failed(pid, "it does not answer") from None
    except (ValueError, StopIteration):
        said = error.decode(errors="replace").strip().splitlines()
        raise _failed(pid, said[0].removeprefix("Error: ") if said else "no reason") from None
    finally:
        if process.returncode is None:
            process.kill()
    return _read(main)


def _failed(pid: int, why: str) -> DistError:
    hint = "It needs the right to trace processes (CAP_SYS_PTRACE), such as by sudo."
    return DistError("py_spy_failed", f"py-spy cannot read process {pid}: {why.rstrip('.')}.", hint)


def _read(thread: _Thread) -> SpiedStack:
    frames: list[Frame] = []
    for one in thread.frames:
        if one.name == "run_code" or is_below_users_code(one.filename):
            break
        module = PurePath(one.module).name if one.module else module_of(one.filename)
        place = place_at(one.module or one.filename, one.line)
        own = one.module is None and is_own(one.filename)
        frames.append(Frame(module, one.name, place, own=own))
    first = thread.frames[0] if thread.frames else None
    named = (f for f in thread.frames if f.module and not f.name.startswith("0x"))
    native = next(named, None) if first and first.module else None
    function = (
        f"{native.name} of {PurePath(native.module).name}" if native and native.module else ""
    )
    return SpiedStack(frames, function, thread.owns_gil)


async def native_stacks(found: Evidence, pids: Mapping[int, int]) -> tuple[Evidence, Evidence]:
    """Look at the frames in C of those ranks that have a pid.

    Returns evidence that also names the C functions, for the verdict, and the same with stacks that
    have frames in C, to be shown: what Python calls is known from the ranks' own stacks alone.
    Raises `DistError` if py-spy cannot tell.
    """
    alive = (rank for rank, one in found.items() if one.condition not in ("dead", "stopped"))
    living = [rank for rank in alive if rank in pids]
    seen = await asyncio.gather(*(spied_stack(pids[rank], native=True) for rank in living))
    stacks = dict(zip(living, seen, strict=True))
    named = found | {r: replace(found[r], native=one.native) for r, one in stacks.items()}
    shown = named | {
        r: replace(named[r], stack=one.frames) for r, one in stacks.items() if one.frames
    }
    return named, shown

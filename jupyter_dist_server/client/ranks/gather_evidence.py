"""Evidence of why ranks wait: asked of all, and gathered from outside where one is silent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from ...common.ask_from_outside import STACK_SIGNAL
from ...common.background_tasks import within
from ...common.patience import patience
from ...common.pool_folder import recorder_socket, stack_file
from ...common.processes.process_ref import ProcessRef
from ...common.processes.why_silent import why_each_silent
from ...common.protocol.agents.agent_messages import RankState
from ...common.protocol.pool_record import RankRecord
from ...common.protocol.ranks.evidence import (
    Collective,
    Evidence,
    EvidenceReply,
    EvidenceRequest,
    Frame,
    RankEvidence,
)
from ...common.protocol.ranks.rank_messages import RankStatus
from ...common.recorded_collectives import (
    collectives_of,
    is_below_users_code,
    is_own,
    place_at,
    read_json,
)
from .rank_connection import RankConnection

_ASK = (
    b"POST /handler/fr_trace_json HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


async def gather_evidence(
    connection: RankConnection, ranks: Iterable[RankState | RankRecord], *, signal: bool = False
) -> Evidence:
    """Return what is known of every rank of a pool, whatever state it is in.

    The processes of `ranks` that do not answer are inspected from outside. With `signal`, a rank
    that holds the GIL is signalled to write its stack. That ends a ``sleep`` or ``poll`` of its
    C code early, so only on a user's request.
    """
    said = await connection.request(EvidenceRequest(), EvidenceReply, timeout=patience.answer)
    since = max((reply.group_since for reply in said.values()), default=0.0)
    processes = {
        rank.rank: ProcessRef(rank.pid, rank.start_ticks)
        for rank in ranks
        if rank.pid and rank.start_ticks
    }
    silent = set(range(connection.world_size)) - set(said) - set(connection.dead)
    causes = await why_each_silent({rank: processes[rank] for rank in silent & processes.keys()})
    folder = connection.folder
    seen = await asyncio.gather(
        *(
            _of_silent_rank(folder, rank, processes.get(rank) if signal else None, since)
            for rank in silent
            if causes.get(rank) not in ("stopped", "starved")
        )
    )
    found = {rank: reply.evidence for rank, reply in said.items()}
    found |= dict(seen)
    for rank, cause in causes.items():
        if cause == "stopped" or cause == "starved":
            found[rank] = RankEvidence(condition=cause)
    found |= {
        rank: RankEvidence(condition="dead", why=why) for rank, why in connection.dead.items()
    }
    return dict(sorted(found.items()))  # so that the next look finds the same words


async def _of_silent_rank(
    folder: Path, rank: int, process: ProcessRef | None, since: float
) -> tuple[int, RankEvidence]:
    recorder, stack = recorder_socket(folder, rank), stack_file(folder, rank)
    return rank, await from_outside(recorder, stack, process, since)


async def from_outside(
    recorder: Path, stack: Path, process: ProcessRef | None, since: float = 0.0
) -> RankEvidence:
    """Return what threads in C tell of a process that does not answer.

    The process is signalled to write its stack, unless it is `None`.
    """
    recorded, frames = await asyncio.gather(
        _ask_recorder(recorder, since), signalled_stack(stack, process)
    )
    holds_gil = bool(frames) or recorded is not None
    return RankEvidence(
        condition="holds_gil" if holds_gil else "silent", stack=frames, collectives=recorded or []
    )


async def _ask_recorder(socket: Path, since: float) -> list[Collective] | None:
    """Ask the thread in C++ that serves a rank's recorder."""
    with contextlib.suppress(OSError, ValueError, asyncio.TimeoutError):
        answer = await within(exchange(socket, _ASK), patience.answer)
        _, _, body = answer.partition(b"\r\n\r\n")
        return collectives_of(read_json(body), since)
    return None


async def exchange(socket: Path, request: bytes) -> bytes:
    """Return what is answered to one request on a Unix socket."""
    reader, writer = await asyncio.open_unix_connection(str(socket))
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()


async def signalled_stack(file: Path, process: ProcessRef | None) -> list[Frame]:
    """Signal a rank to write its main thread's stack, which `faulthandler` does; return it."""
    if process is None or not file.exists() or process.find() is None:
        return []
    before = file.stat().st_size
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        if not _catches_signal(process.pid):
            return []  # it starts, and the file is that of its predecessor
        os.kill(process.pid, STACK_SIGNAL)
        return _read_stack(await within(_grown(file, before), patience.answer))
    return []


def _catches_signal(pid: int) -> bool:
    """Tell whether a process survives a `STACK_SIGNAL`; a rank that is starting does not."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = status.partition("SigCgt:")[2].split()[0]
    return bool(int(mask, 16) >> (STACK_SIGNAL - 1) & 1)


async def _grown(file: Path, before: int) -> str:
    """Return what was written to a file, once nothing more comes."""
    size = before
    while True:
        await asyncio.sleep(0.01)
        now = file.stat().st_size
        if now > before and now == size:
            return file.read_bytes()[before:].decode(errors="replace")
        size = now


def _read_stack(text: str) -> list[Frame]:
    """Read what `faulthandler` writes, down to the frame that runs the user's code."""
    frames = []
    for line in text.splitlines():
        if found := _FRAME.match(line):
            file, number, function = found.groups()
            if function == "run_code" or is_below_users_code(file):
                break
            place = place_at(file, int(number))
            frames.append(Frame(module_of(file), function, place, own=is_own(file)))
    return frames


def module_of(file: str) -> str:
    """Return the name of a package's module by its file; of others, the last part."""
    _, installed, inside = file.removesuffix(".py").rpartition("-packages/")
    return inside.replace("/", ".") if installed else Path(file).stem


class Standstill:
    """Tells whether ranks make progress, from their statuses at several times."""

    def __init__(self) -> None:
        self.since: dict[int, float] = {}
        """By rank, when it was first seen at the place where it is busy, in seconds since 1970."""
        self._places: dict[int, tuple[object, ...]] = {}

    def is_seen(self, said: dict[int, RankStatus], living: Iterable[int]) -> bool:
        """Tell whether a living rank is silent, or busy at the same place as at the last look.

        The collectives that a rank has begun are counted: in a loop, the next one is another.
        """
        before, since = self._places, self.since
        self._places = {
            rank: (one.since, one.whereabouts, one.calls)
            for rank, one in said.items()
            if one.state == "busy"
        }
        same = {rank for rank, place in self._places.items() if before.get(rank) == place}
        now = time.time()
        self.since = {rank: since[rank] if rank in same else now for rank in self._places}
        return bool(same) or any(rank not in said for rank in living)

"""The ranks of scripts that a process has started: by torchrun, or by other programs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

from ...common.ask_from_outside import EVIDENCE, FOLDER, answer_socket
from ...common.background_tasks import within
from ...common.patience import patience
from ...common.processes.process_ref import ProcessRef
from ...common.protocol.ranks.script_messages import (
    Launch,
    ScriptReply,
    decode_script_reply,
    read_launch,
)
from ..ranks.gather_evidence import exchange


@dataclass(frozen=True)
class ScriptRank:
    """One rank of a script."""

    launch: Launch
    process: ProcessRef
    folder: Path | None
    """Where its sockets are; `None` if it was started without."""

    @property
    def listens(self) -> bool:
        """Whether it can be asked."""
        return self.folder is not None and answer_socket(self.folder, self.process.pid).exists()

    async def ask(self) -> ScriptReply:
        """Return what it tells; an empty reply if nothing comes."""
        return await _ask(self.folder, self.process.pid)


async def find_script_ranks(root: int) -> list[list[ScriptRank]]:
    """Return the ranks among a process and all that it has started, by launch, in their order.

    Raises `psutil.NoSuchProcess` if there is no such process. Processes of other users are passed
    over.
    """
    processes = await asyncio.to_thread(_started_by, root)
    found = await asyncio.gather(*(_read(*one) for one in processes.items()))
    ranks = {rank.process.pid: rank for rank in found if rank}
    launches: dict[tuple[str, int], dict[int, ScriptRank]] = {}
    for pid, rank in ranks.items():
        launch, parent = rank.launch, processes[pid].parent
        if _has_above(ranks, processes, pid):
            continue
        address = launch.address or f"started by {parent}"
        others = launches.setdefault((address, launch.world_size), {})
        before = others.get(launch.rank)
        if before is None or not before.listens:  # such as a shell around it
            others[launch.rank] = rank
    return [[one[rank] for rank in sorted(one)] for one in launches.values()]


def _has_above(
    ranks: Mapping[int, ScriptRank], processes: Mapping[int, _Process], pid: int
) -> bool:
    """Tell whether a process is a worker of a rank, whose variables it has inherited."""
    rank, above = ranks[pid], processes[pid].parent
    while above in processes:
        other = ranks.get(above)
        if other and other.launch == rank.launch and (other.listens or not rank.listens):
            return True
        above = processes[above].parent
    return False


class _Process(NamedTuple):
    parent: int
    environment: dict[str, str]


def _started_by(root: int) -> dict[int, _Process]:
    top = psutil.Process(root)
    found = {}
    for process in [top, *top.children(recursive=True)]:
        with contextlib.suppress(psutil.Error, OSError):  # it has ended, or is another user's
            found[process.pid] = _Process(process.ppid(), process.environ())
    return found


async def _read(pid: int, process: _Process) -> ScriptRank | None:
    folder = Path(process.environment[FOLDER]) if FOLDER in process.environment else None
    said = await _ask(folder, pid)
    launch = said.launch or read_launch(process.environment)
    if launch:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            return ScriptRank(launch, ProcessRef.of(pid), folder)
    return None


async def _ask(folder: Path | None, pid: int) -> ScriptReply:
    if folder:
        with contextlib.suppress(OSError, ValueError, asyncio.TimeoutError):
            answer = exchange(answer_socket(folder, pid), EVIDENCE)
            return decode_script_reply(await within(answer, patience.answer))
    return ScriptReply()

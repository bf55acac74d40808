"""Evidence of why the ranks of a script wait: what they answer, and what is seen from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ...common.errors import DistError
from ...common.processes.why_silent import Cause, why_each_silent
from ...common.protocol.ranks.evidence import Condition, Evidence, RankEvidence
from ...common.script_folder import recorder_socket, stack_file
from ..ranks.gather_evidence import from_outside
from ..ranks.spied_stack import SpiedStack, spied_stack
from .script_ranks import ScriptRank

_ENDED = RankEvidence(condition="dead", why="its process has ended")
_DOES: Mapping[Cause, str] = {"computing": "computes", "driver": "waits for a driver or a disk"}
_ELSEWHERE = RankEvidence(condition="silent", why="it runs on another machine")


async def script_evidence(ranks: Sequence[ScriptRank]) -> Evidence:
    """Return what is known of every rank of a launch.

    Ranks that hold the GIL are signalled to write their stacks. That ends a ``sleep`` or ``poll``
    of their C code early, so only on a user's request, or if they have been silent for long.
    """
    said = await asyncio.gather(*(one.ask() for one in ranks))
    found = {
        one.launch.rank: reply.evidence
        for one, reply in zip(ranks, said, strict=True)
        if reply.evidence
    }
    silent = {one.launch.rank: one for one in ranks if one.launch.rank not in found}
    causes = await why_each_silent({rank: one.process for rank, one in silent.items()})
    looks = (_from_outside(one, causes[rank]) for rank, one in silent.items())
    found |= dict(zip(silent, await asyncio.gather(*looks), strict=True))
    missing = _ENDED if ranks[0].launch.is_local else _ELSEWHERE
    return {rank: found.get(rank, missing) for rank in range(ranks[0].launch.world_size)}


async def _from_outside(one: ScriptRank, cause: Cause) -> RankEvidence:
    if cause == "stopped" or cause == "starved":
        return RankEvidence(condition=cause)
    if cause == "ended":
        return _ENDED
    if one.folder:
        pid = one.process.pid
        recorder, stack = recorder_socket(one.folder, pid), stack_file(one.folder, pid)
        seen = await from_outside(recorder, stack, one.process)
        if seen.condition == "holds_gil":
            return seen
    try:
        return _of_spied(await spied_stack(one.process.pid))
    except DistError as error:
        why = f"{error.message.rstrip('.')}; its process {_DOES.get(cause, 'sleeps')}"
        return RankEvidence(condition="silent", why=why)


def _of_spied(seen: SpiedStack) -> RankEvidence:
    condition: Condition = "holds_gil" if seen.owns_gil and seen.native else "answers"
    return RankEvidence(condition=condition, stack=seen.frames, native=seen.native)

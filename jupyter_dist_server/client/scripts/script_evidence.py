"""Evidence of why the ranks of a script wait: what they answer, and what is seen from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ...common.ask_from_outside import answer_socket, recorder_socket, stack_file
from ...common.errors import DistError
from ...common.processes.why_silent import Cause, why_each_silent
from ...common.protocol.ranks.evidence import Condition, Evidence, RankEvidence
from ...common.protocol.ranks.script_messages import ScriptReply
from ..ranks.gather_evidence import from_outside
from ..ranks.spied_stack import SpiedStack, spied_stack
from .script_ranks import ScriptRank

_ENDED = RankEvidence(condition="dead", why="its process has ended")
_DOES: Mapping[Cause, str] = {"computing": "computes", "driver": "waits for a driver or a disk"}
_UNKNOWN = RankEvidence(condition="silent", why="no process here says that it is this rank")


async def script_evidence(ranks: Sequence[ScriptRank]) -> Evidence:
    """Return what is known of every rank of a launch.

    Ranks that hold the GIL are signalled to write their stacks. That ends a ``sleep`` or ``poll``
    of their C code early, so only on a user's request, or if they have been silent for long.
    """
    said = await asyncio.gather(*(one.ask() for one in ranks))
    silent = {
        one.launch.rank: one.process
        for one, reply in zip(ranks, said, strict=True)
        if not (reply.evidence or reply.failure)
    }
    causes = await why_each_silent(silent)
    looks = (
        _look(one, reply, causes.get(one.launch.rank))
        for one, reply in zip(ranks, said, strict=True)
    )
    seen = await asyncio.gather(*looks)
    found = {one.launch.rank: evidence for one, evidence in zip(ranks, seen, strict=True)}
    missing = _ENDED if ranks[0].launch.is_local else _UNKNOWN
    return {rank: found.get(rank, missing) for rank in range(ranks[0].launch.world_size)}


async def _look(one: ScriptRank, reply: ScriptReply, cause: Cause | None) -> RankEvidence:
    """Return what a rank tells, or what is seen of it; `cause` is why it does not answer."""
    if reply.evidence:
        return reply.evidence
    if cause == "stopped" or cause == "starved":
        return RankEvidence(condition=cause)
    if cause == "ended":
        return _ENDED
    if one.folder:
        pid = one.process.pid
        recorder, stack = recorder_socket(one.folder, pid), stack_file(one.folder, pid)
        seen = await from_outside(recorder, stack, one.process)
        if seen.condition == "holds_gil":
            listens = answer_socket(one.folder, pid).exists() and not reply.failure
            return seen if listens else replace(seen, condition="answers")
    try:
        return _of_spied(await spied_stack(one.process.pid))
    except DistError as error:
        why = f"{error.message.rstrip('.')}; its process {_DOES.get(cause or 'stuck', 'sleeps')}"
        return RankEvidence(condition="silent", why=why)


def _of_spied(seen: SpiedStack) -> RankEvidence:
    condition: Condition = "holds_gil" if seen.owns_gil and seen.native else "answers"
    return RankEvidence(condition=condition, stack=seen.frames, native=seen.native)

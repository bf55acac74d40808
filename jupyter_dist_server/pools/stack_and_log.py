"""The stack and the log of one rank."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

from ..client.agent_link import AgentLink
from ..client.ranks.gather_evidence import gather_evidence
from ..client.ranks.rank_connection import RankConnection
from ..common.background_tasks import within
from ..common.errors import DistError
from ..common.patience import patience
from ..common.processes.process_ref import POOL_ENDED, ProcessRef
from ..common.processes.why_silent import RANK_PHRASES, why_silent
from ..common.protocol.pool_record import PoolRecord, RankRecord
from ..common.protocol.ranks.rank_messages import StackReply, StackRequest
from ..common.rank_specs import check_ranks
from ..verdicts.explain_hang import explain
from ..verdicts.verdict import Verdict


def find_rank(record: PoolRecord, rank: int) -> RankRecord:
    """Return a rank of a pool; raise `DistError` if there is none, or none yet."""
    check_ranks([rank], record.world_size)
    if not record.ranks:
        raise DistError("pool_not_running", "The pool waits for GPUs: it has no ranks yet.")
    return record.ranks[rank]


def check_pool_runs(record: PoolRecord) -> None:
    """Raise `DistError` unless a pool runs."""
    if record.state != "RUNNING":
        raise DistError(
            "pool_not_running", f"The pool is not running: its state is {record.state.value}."
        )


def check_rank_runs(found: RankRecord) -> None:
    """Raise `DistError` if a rank is starting or dead."""
    if found.state == "starting":
        raise _starting(found)
    if found.state == "dead":
        raise DistError(
            "rank_dead",
            f"Rank {found.rank} is dead: {found.exit or POOL_ENDED}.",
            f"Replace it with %dist_restart --ranks {found.rank}.",
        )


def _starting(rank: RankRecord) -> DistError:
    return DistError(
        "pool_not_running", f"Rank {rank.rank} is still starting.", "Try again in a moment."
    )


async def stack_of(record: PoolRecord, rank: int) -> str:
    """Return the stacks of all Python threads of a rank; raise `DistError` if it cannot answer."""
    found = find_rank(record, rank)
    if record.state.ended:
        raise pool_ended()
    check_rank_runs(found)
    process = found.pid
    try:
        said = await _ask_for_stack(Path(record.folder), rank)
    except FileNotFoundError:  # this very moment; the record will say so soon
        raise pool_ended() from None
    if said is None and (record.state.ended or found.pid != process):
        return await stack_of(record, rank)  # that process has ended meanwhile
    if said is None:
        check_rank_runs(found)  # it may have died meanwhile
        raise await _silent(found)
    return said.text


async def _ask_for_stack(folder: Path, rank: int) -> StackReply | None:
    async with RankConnection(folder) as connection:
        limit = 2 * patience.answer
        replies = await connection.request(StackRequest(), StackReply, [rank], timeout=limit)
        return replies.get(rank)


def pool_ended() -> DistError:
    """Return the error for a pool that ends while it is asked."""
    return DistError(
        "pool_not_running",
        "The pool has ended, and its ranks with it.",
        "Start a pool with %dist_init.",
    )


async def _silent(rank: RankRecord) -> DistError:
    if not rank.pid or not rank.start_ticks:  # its process is not on this machine
        return DistError(
            "rank_silent",
            f"Rank {rank.rank} on node {rank.node} (pid {rank.pid} there) does not respond.",
            f"Run py-spy dump --native --pid {rank.pid} on that node, or kill the rank.",
        )
    who = f"Rank {rank.rank} (pid {rank.pid}) does not respond"
    cause = await why_silent(ProcessRef(rank.pid, rank.start_ticks))
    hint = f"Run py-spy dump --native --pid {rank.pid} to see where, or interrupt or kill the rank."
    if cause == "stopped":
        hint = f"Continue it with kill -CONT {rank.pid}, or kill the rank."
    return DistError("rank_silent", f"{who}: it is {RANK_PHRASES[cause]}.", hint)


async def verdict_of(record: PoolRecord, older_than: float | None) -> Verdict | None:
    """Return why ranks of a running pool have waited since some time; `None` if none does."""
    check_pool_runs(record)
    try:
        async with RankConnection(Path(record.folder)) as connection:
            for rank in record.ranks:
                if rank.state == "dead":
                    connection.note_death(rank.rank, rank.exit or "")
            # A rank is not signalled if it answers the second time.
            looks = itertools.count()
            verdict, _ = await explain(
                lambda: gather_evidence(connection, record.ranks, signal=next(looks) > 0),
                older_than,
            )
    except OSError:  # this very moment; the record will say so soon
        raise pool_ended() from None
    return verdict


async def log_of(record: PoolRecord, rank: int) -> list[str]:
    """Return the last lines that a rank wrote, be it alive or dead; see `RankLogs`."""
    found = find_rank(record, rank)
    link = AgentLink()
    try:
        return await within(_ask_agent(link, Path(record.folder), rank), patience.node)
    except asyncio.TimeoutError:
        if found.state == "starting":  # its agent is importing torch, or forks
            raise _starting(found) from None
        raise await link.silent_error() from None
    except OSError:  # the pool has ended: what its record keeps is all there is
        told = record.reason.stderr if record.reason and record.reason.rank == rank else []
        return found.stderr or told


async def _ask_agent(link: AgentLink, folder: Path, rank: int) -> list[str]:
    try:
        await link.connect(folder)
        lines = await link.log(rank)
    finally:
        await link.close()
    if lines is None:
        raise ConnectionError("the agent has ended")
    return lines

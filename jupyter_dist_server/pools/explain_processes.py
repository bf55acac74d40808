"""Why the ranks wait that a process has started: of scripts by torchrun, and of pools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

import msgspec
import psutil
from msgspec.structs import replace

from ..client.ranks.gather_evidence import gather_evidence
from ..client.ranks.rank_connection import RankConnection
from ..client.ranks.spied_stack import native_stacks
from ..client.scripts.script_evidence import script_evidence
from ..client.scripts.script_ranks import ScriptRank, find_script_ranks
from ..common.errors import DistError
from ..common.protocol.ranks.evidence import Evidence
from ..jobs.store.job import Job
from ..jobs.store.states import RUNNING
from ..verdicts.explain_hang import explain, explain_hang
from ..verdicts.script_text import about_script, stacks_text, verdict_text
from ..verdicts.verdict import Verdict
from .discovery import Found, find_pools


class Explained(msgspec.Struct, frozen=True):
    """What is known of the ranks of one launch, or of one pool."""

    text: str
    """The verdict as a sentence; without one, what the ranks do."""
    stacks: str
    verdict: Verdict | None
    world_size: int
    pool: str = ""
    """The pool's ID; empty for a script's ranks."""


async def explain_job(job: Job, *, native: bool = False) -> list[Explained]:
    """Return why the ranks of a job wait; raise `DistError` if it does not run, or has no ranks."""
    if job.state != RUNNING or job.runner_pid is None:
        raise DistError("job_not_running", f"Job {job.label} is not running: {job.state}.")
    found = await explain_root(f"Job {job.label}", job.runner_pid, native=native)
    return [_without_cell(one) for one in found]


def _without_cell(one: Explained) -> Explained:
    """Leave out what a notebook's user can do: nobody can stop a cell of a notebook in a job."""
    verdict = one.verdict and about_script(one.verdict)
    return replace(one, verdict=verdict, text=verdict.text) if verdict else one


async def explain_root(name: str, pid: int, *, native: bool = False) -> list[Explained]:
    """Return the same of a process, which is called `name`."""
    try:
        found = await explain_processes(pid, native=native)
    except psutil.NoSuchProcess:
        raise DistError("process_ended", f"{name} has ended.") from None
    if not found:
        hint = "Ranks are processes with the variables RANK and WORLD_SIZE, as torchrun sets them."
        raise DistError("no_ranks", f"{name} has no ranks now.", hint)
    return found


async def explain_processes(
    root: int,
    *,
    native: bool = False,
    older_than: float | None = None,
    still: Mapping[int, float] | None = None,
    with_pools: bool = True,
) -> list[Explained]:
    """Return why ranks wait among a process and all that it has started; empty if there are none.

    Parameters
    ----------
    native : bool
        Whether stacks are to have frames in C; `DistError` if py-spy cannot tell these.
    older_than : float or None
        Waits that began later, in seconds since 1970, are left out.
    still : mapping of int to float, optional
        By pid, since when a rank has been at its place: the begin of waits that nobody records.
    with_pools : bool
        Whether to ask the ranks of pools, too.

    Raises
    ------
    psutil.NoSuchProcess
        If the process has ended.
    """
    launches = await find_script_ranks(root)
    pools = await asyncio.to_thread(_pools_of, root) if with_pools else []
    looks = [_of_script(ranks, native, older_than, still or {}) for ranks in launches]
    return [*await asyncio.gather(*looks, *(_of_pool(one, native, older_than) for one in pools))]


def _pools_of(root: int) -> list[Found]:
    """Return the pools whose ranks a process, or one that it has started, has started."""
    ours = {root, *(child.pid for child in psutil.Process(root).children(recursive=True))}
    return [
        pool
        for pool in find_pools()
        if any(rank.pid in ours and not rank.node for rank in pool.snapshot.ranks)
    ]


async def _of_script(
    ranks: list[ScriptRank],
    native: bool,
    older_than: float | None,
    still: Mapping[int, float],
) -> Explained:
    pids = {one.launch.rank: one.process.pid for one in ranks}
    seen_since = {rank: still[pid] for rank, pid in pids.items() if pid in still}
    verdict, evidence = await explain(partial(script_evidence, ranks), older_than, seen_since)
    return await _explained(verdict, evidence, pids, native)


async def _of_pool(pool: Found, native: bool, older_than: float | None) -> Explained:
    ranks = pool.snapshot.ranks
    async with RankConnection(pool.folder) as connection:
        for rank in ranks:
            if rank.state == "dead":
                connection.note_death(rank.rank, rank.exit or "")
        look = partial(gather_evidence, connection, ranks, signal=True)
        verdict, evidence = await explain(look, older_than)
    pids = {rank.rank: rank.pid for rank in ranks if rank.pid and not rank.node}
    return await _explained(verdict, evidence, pids, native, pool.id)


async def _explained(
    verdict: Verdict | None,
    evidence: Evidence,
    pids: Mapping[int, int],
    native: bool,
    pool: str = "",
) -> Explained:
    shown = evidence
    if native:
        evidence, shown = await native_stacks(evidence, pids)
        verdict = explain_hang(evidence) if verdict else None
    if verdict and not pool:
        verdict = about_script(verdict)
    text, stacks = verdict_text(verdict, evidence), stacks_text(shown, pids)
    return Explained(text, stacks, verdict, len(evidence), pool)

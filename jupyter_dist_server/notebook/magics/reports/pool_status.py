"""Sentences and tables about the state of a pool."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.display import display

from ....common.errors import DistError
from ....common.protocol.pool_record import PoolRecord
from ....common.protocol.ranks.rank_messages import RankStatus
from ....common.units import count_ranks, format_bytes, gpus_of, write_limit
from ....jobs.store.slurm_formats import write_moment, write_place
from ....pools.discovery import Found

NEVER_RUN = (
    "Parking has only been tested with a simulated driver, never on a GPU: save what you cannot "
    "compute again."
)


def with_progress(shell: Any, work: Callable[[Callable[[PoolRecord], None]], PoolRecord]) -> None:
    """Start a pool, and show its progress in one line.

    `work` starts it, and calls what it is given with the record at each change.
    """
    handle: Any = None
    failed = "The ranks were not started."
    begun = time.monotonic()
    in_place = hasattr(shell, "kernel")  # a terminal would print each state anew
    why = None
    is_running = False

    def show(record: PoolRecord) -> None:
        nonlocal handle, why, is_running, failed
        if record.parking:
            failed = "The pool was not resumed." if record.parking.resume else "It was not parked."
        change = record.resizing or record.parking
        is_running = record.state.has_ranks and not change
        before, why = why, (change or record.progress).reason or None
        if not in_place and not is_running and why in (before, None):
            return
        line = {"text/plain": _describe_start(record, time.monotonic() - begun)}
        if handle is None:
            handle = display(line, raw=True, display_id=True)
        else:
            handle.update(line, raw=True)

    try:
        work(show)
    except DistError:
        if handle and not is_running:
            handle.update({"text/plain": failed}, raw=True)
        raise


def _describe_start(record: PoolRecord, seconds: float) -> str:
    """Say in a line or two how far the start is after some seconds."""
    size = record.world_size
    ranks = f"{size or 'the'} rank{'s' * (size != 1)}"
    if now := record.resizing:
        line = f" You are {write_place(now.line)}." if now.line else ""
        return f"From {size} to {count_ranks(now.num_ranks)}: {now.reason}{line}"
    if (record.parking and not record.parking.failure) or record.parked:
        return _describe_parking(record)
    if record.state != "RUNNING":
        progress = record.progress
        phase = progress.phase or "waiting"
        if reason := progress.reason:
            line = f" You are {write_place(progress.line)}." if progress.line else ""
            return f"{phase[0].upper()}{phase[1:]} for {seconds:.0f} s. {reason}{line}"
        ready = f", {progress.ready} of {size} ready" if phase == "starting ranks" else ""
        return f"Starting {ranks}: {phase}{ready}…"
    living = [rank for rank in record.ranks if rank.state != "dead"]
    nodes = list(dict.fromkeys(rank.node for rank in living))
    where = gpus_of(living)
    where = where or (f"the CPUs of {', '.join(nodes)}" if len(nodes) > 1 else "the CPU")
    if len(living) < size:
        ranks = f"{len(living)} of {ranks}"
    line = f"{ranks} ready on {where} ({record.backend}) in {seconds:.1f} s."
    return "\n".join([line, *record.notices])


def _describe_parking(record: PoolRecord) -> str:
    """Say how far a pool is that is being parked or resumed, or is parked."""
    if (change := record.parking) and not change.failure:
        line = f" You are {write_place(change.line)}." if change.line else ""
        return f"{'Resuming' if change.resume else 'Parking'} the pool: {change.reason}{line}"
    if not record.parked or record.parked.leased:
        return (
            "Another notebook parks or resumes the pool, or has ended while it did. The next cell "
            "on ranks brings it back."
        )
    return (
        f"Parked: {gpus_of(record.ranks)} can be used by others; the ranks keep "
        f"{format_bytes(record.parked.nbytes)} of the GPUs in this machine's memory. The next cell "
        "on ranks brings it back."
    )


def resized_models(names: list[str]) -> str:
    """Say which variables have modules that still have the group of the pool's earlier size."""
    named = ", ".join(f"`{name}`" for name in names)
    one = len(names) == 1
    return (
        f"{named} {'is' if one else 'are'} wrapped for the ranks that the pool had before: wrap "
        f"{'it' if one else 'them'} again, for example "
        f"{names[0]} = DistributedDataParallel({names[0]}.module)."
    )


def describe_limits(record: PoolRecord) -> str:
    """Say when a pool ends at the latest; empty if it has no limit."""
    said = []
    if record.ends_by is not None:
        limit = write_limit(record.time_limit)
        said.append(f"It ends at {write_moment(record.ends_by)} (time limit {limit}).")
    if record.idle_limit is not None:
        limit = write_limit(record.idle_limit)
        idle = f", idle since {write_moment(record.idle_since)}" if record.idle_since else ""
        said.append(f"It ends if no cell has run for {limit}{idle}.")
    return " ".join(said)


def status_table(
    record: PoolRecord,
    said: dict[int, RankStatus],
    dead: dict[int, str],
    gpus: list[tuple[str, ...]],
) -> str:
    """Return a table of ranks, with what they say of themselves, and the rows of `gpu_rows`."""
    on_gpus = any(rank.gpu for rank in record.ranks)
    nodes = len({rank.node for rank in record.ranks})
    torch = ("allocated",) if on_gpus else ()
    node = ("node",) if nodes > 1 else ()
    rows: list[tuple[str, ...]] = [
        ("rank", *node, "device", "GPU", "pid", "memory", *torch, "state")
    ]
    for rank in record.ranks:
        number = rank.rank
        gpu = f"{rank.gpu.label} {rank.gpu.name}" if rank.gpu else "-"
        answer = said.get(number)
        memory, held = "-", "-"
        if number in dead:
            pid, state = rank.pid, f"dead: {dead[number]}"
        elif answer is None:
            pid, state = rank.pid, "does not respond"
        else:
            report = answer.report
            pid, memory = report.pid, format_bytes(report.memory)
            held = format_bytes(report.gpu.allocated) if report.gpu else "-"
            state = f"{answer.state} for {time.time() - answer.since:.0f} s"
        torch = (held,) if on_gpus else ()
        node = (rank.node,) if nodes > 1 else ()
        rows.append((str(number), *node, rank.device, gpu, str(pid or "-"), memory, *torch, state))
    size = f"{count_ranks(record.world_size)}, {record.backend}"
    where = record.host
    if nodes > 1:
        job = f" job {record.engine_job}" if record.engine_job else ""
        where = f"{nodes} nodes ({record.engine.capitalize()}{job})"
    title = f"Pool {record.id}: {size}, on {where}"
    parked = _describe_parking(record) if record.parked else ""
    lines = [*filter(None, [title, describe_limits(record), parked]), *aligned(rows)]
    return "\n".join(lines + (["", *aligned(gpus)] if gpus else []))


def pools_table(pools: list[Found], of_other_versions: list[Path]) -> str:
    """Return a table of the pools that a notebook can attach to, and name the others."""
    rows: list[tuple[str, ...]] = [("pool", "ranks", "notebook", "used by")]
    for found in pools:
        users = [f"{who.name or 'kernel'} (pid {who.pid})" for who in found.kernels]
        name = found.config.record.name or "-"
        rows.append((found.id, str(found.config.world_size), name, ", ".join(users) or "nobody"))
    lines = ["Choose a pool with %dist_attach POOL:", *aligned(rows)]
    if not pools:
        lines = ["You have no other pool on this machine."]
    if where := ", ".join(map(str, of_other_versions)):
        lines.append(f"Started by another version of jupyter-dist-server: {where}")
    return "\n".join(lines)


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

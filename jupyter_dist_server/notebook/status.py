"""Words and tables for the state of a pool."""

from __future__ import annotations

import time
from typing import Any

from ..pools.adoption import Found
from .control import Record


def describe_start(record: Record, seconds: float) -> str:
    """Say in a line or two how far the start of a pool is, after some seconds."""
    size = record["world_size"]
    ranks = f"{size} rank" if size == 1 else f"{size} ranks"
    if record["state"] != "RUNNING":
        progress = record["progress"]
        phase = progress["phase"] or "waiting"
        ready = f", {progress['ready']} of {size} ready" if phase == "starting ranks" else ""
        return f"Starting {ranks}: {phase}{ready}…"
    gpus = [rank["gpu"]["index"] for rank in record["ranks"] if rank["gpu"]]
    where = "GPUs " + ", ".join(map(str, gpus)) if gpus else "the CPU"
    line = f"{ranks} ready on {where} ({record['backend']}) in {seconds:.1f} s."
    return "\n".join([line, *record["notices"]])


def status_table(record: Record, said: dict[int, dict[str, Any]], dead: dict[int, str]) -> str:
    """Return a table of ranks.

    Parameters
    ----------
    record : dict
        The pool's record.
    said : dict
        What each rank that answers says of itself, see `RankKernel`.
    dead : dict
        Why dead ranks are dead.
    """
    rows: list[tuple[str, ...]] = [("rank", "device", "GPU", "pid", "memory", "state")]
    for rank in record["ranks"]:
        number = rank["rank"]
        gpu = f"{rank['gpu']['index']} {rank['gpu']['name']}" if rank["gpu"] else "-"
        answer = said.get(number)
        if number in dead:
            pid, memory, state = rank["pid"], "-", f"dead: {dead[number]}"
        elif answer is None:
            pid, memory, state = rank["pid"], "-", "does not answer"
        else:
            pid, memory = answer["pid"], f"{answer['memory'] / 2**20:.0f} MB"
            state = f"{answer['state']} for {time.time() - answer['since']:.0f} s"
        rows.append((str(number), rank["device"], gpu, str(pid), memory, state))
    size = f"{record['world_size']} ranks, {record['backend']}"
    return "\n".join([f"Pool {record['id']}: {size}, on {record['host']}", *_aligned(rows)])


def pids(found: Found) -> set[int]:
    """Return which kernels use a pool."""
    return {who["pid"] for who in found.kernels}


def pools_table(pools: list[Found]) -> str:
    """Return a table of the pools that a notebook can attach to."""
    if not pools:
        return "No other pool of yours is running on this machine."
    rows: list[tuple[str, ...]] = [("pool", "ranks", "notebook", "used by")]
    for found in pools:
        users = [f"{who['name'] or 'kernel'} (pid {who['pid']})" for who in found.kernels]
        name = found.config["record"]["name"] or "-"
        rows.append((found.id, str(found.config["world_size"]), name, ", ".join(users) or "nobody"))
    return "\n".join(["Choose one, with %dist_attach POOL:", *_aligned(rows)])


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

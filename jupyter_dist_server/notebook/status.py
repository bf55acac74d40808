"""Words and tables for the state of a pool."""

from __future__ import annotations

import time
from typing import Any

from .control import Record


def describe_start(record: Record) -> str:
    """Say in a line or two how far the start of a pool is."""
    size = record["world_size"]
    ranks = f"{size} rank" if size == 1 else f"{size} ranks"
    if record["state"] != "RUNNING":
        progress = record["progress"]
        ready = f", {progress['ready']} of {size} ready" if progress["phase"] == "starting ranks" else ""
        return f"Starting {ranks}: {progress['phase'] or 'waiting'}{ready}…"
    gpus = [rank["gpu"]["index"] for rank in record["ranks"] if rank["gpu"]]
    where = "GPUs " + ", ".join(map(str, gpus)) if gpus else "the CPU"
    seconds = record["started"] - record["created"]
    line = f"{ranks} ready on {where} ({record['backend']}) in {seconds:.1f} s."
    return "\n".join([line, *record["notices"]])


def status_table(
    record: Record, said: dict[int, dict[str, Any]], dead: dict[int, str]
) -> str:
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
    rows = [("rank", "device", "GPU", "pid", "memory", "state")]
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
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    head = f"Pool {record['id']}: {record['world_size']} ranks, {record['backend']}, on {record['host']}"
    return "\n".join([head, *lines])

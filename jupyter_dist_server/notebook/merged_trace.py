"""One trace of all ranks: each is a process in it, and so is each GPU."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec

_PER_RANK = 1000
"""Numbers of processes that a rank has in the trace: its own, and one for each GPU."""
_METADATA = {"process_name", "process_labels", "process_sort_index"}


def merge(traces: dict[int, bytes], file: Path) -> None:
    """Write the traces of ranks to one file.

    Ranks of one machine share a clock; those of several machines are as exact as their clocks are.

    Parameters
    ----------
    traces : dict
        By rank, as torch's profiler writes them, compressed with gzip.
    file : Path
        Compressed with gzip, too.

    Raises
    ------
    ValueError
        If one is no trace.
    OSError
        If the file cannot be written.
    """
    events: list[dict[str, Any]] = []
    base: int | None = None
    for rank, trace in sorted(traces.items()):
        content: dict[str, Any] = msgspec.json.decode(gzip.decompress(trace))
        own = int(content.get("baseTimeNanoseconds", 0))
        base = own if base is None else base
        events += _of_rank(rank, content["traceEvents"], (own - base) / 1000)
    whole = {"traceEvents": events, "displayTimeUnit": "ms", "baseTimeNanoseconds": base}
    with gzip.open(file, "wb", 3) as out:
        out.write(msgspec.json.encode(whole))


def _of_rank(rank: int, events: list[dict[str, Any]], later: float) -> list[dict[str, Any]]:
    """Return the events of a rank, `later` by some microseconds, as those of its processes."""
    main = next((e["pid"] for e in events if e.get("cat") == "cpu_op"), None)
    found, used = [], set()
    for event in events:
        process = event.get("pid")
        if not isinstance(process, int) or event["name"] in _METADATA:
            continue  # the profiler's own rows, and names that are given anew
        number = rank * _PER_RANK + (0 if process == main or process >= _PER_RANK else process + 1)
        used.add(number)
        changed = event | {"pid": number}
        if "ts" in event:
            changed["ts"] = event["ts"] + later
        if "id" in event:  # of an arrow from one event to another one
            changed["id"] = f"{rank}.{event['id']}"
        found.append(changed)
    names = []
    for number in sorted(used):
        gpu = number % _PER_RANK
        name = f"rank {rank}, GPU {gpu - 1}" if gpu else f"rank {rank}"
        about = {"ph": "M", "pid": number, "tid": 0}
        names.append(about | {"name": "process_name", "args": {"name": name}})
        names.append(about | {"name": "process_sort_index", "args": {"sort_index": number}})
    return names + found

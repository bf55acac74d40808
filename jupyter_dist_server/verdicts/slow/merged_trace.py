"""One trace of all ranks: each is a process in it, and so is each GPU."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...common.protocol.ranks.profile_messages import RankProfile

TraceEvent = dict[str, Any]
"""An event in the format of Chrome's traces; its fields depend on its kind."""

_PER_RANK = 1000
"""Process numbers for each rank: its own, and one for each GPU."""
_ARROWS = 1 << 32
"""Arrow numbers for each rank."""
_LANES = 1 << 30
"""The first thread number of our lanes; those of the operating system are smaller."""
_METADATA = {"process_name", "process_labels", "process_sort_index"}


def merge(
    traces: dict[int, bytes], file: Path, profiles: Mapping[int, RankProfile] | None = None
) -> None:
    """Write the traces of ranks to one file; raise `ValueError` if one is no trace.

    Traces and file are compressed with gzip. `profiles` say by how much a rank's clock is ahead of
    the others', on another machine; they are kept in the file, for `jdist profile compare`.
    """
    known = profiles or {}
    events: list[TraceEvent] = []
    base: int | None = None
    for rank, trace in sorted(traces.items()):
        content: dict[str, Any] = msgspec.json.decode(gzip.decompress(trace))
        own = int(content.get("baseTimeNanoseconds", 0)) - round(
            known[rank].ahead * 1e9 if rank in known else 0
        )
        base = own if base is None else base
        events += _of_rank(rank, content.get("traceEvents", []), (own - base) / 1000)
    whole: dict[str, Any] = {"traceEvents": events, "displayTimeUnit": "ms"}
    good = {rank: profile for rank, profile in known.items() if profile.status == "ok"}
    whole |= {"baseTimeNanoseconds": base, "jupyterDistProfiles": good}
    with gzip.open(file, "wb", 3) as out:
        out.write(msgspec.json.encode(whole))


def _of_rank(rank: int, events: list[TraceEvent], later: float) -> list[TraceEvent]:
    """Return a rank's events with its process numbers, `later` by so many microseconds."""
    main = next((e["pid"] for e in events if e.get("cat") == "cpu_op"), None)
    found, used = [], set()
    for event in events:
        process = event.get("pid")
        if not isinstance(process, int) or event["name"] in _METADATA:
            continue  # the profiler's own rows, and names that we give anew
        number = rank * _PER_RANK + (0 if process == main or process >= _PER_RANK else process + 1)
        used.add(number)
        changed = event | {"pid": number}
        if "ts" in event:
            changed["ts"] = event["ts"] + later
        if "id" in event:  # of an arrow between two events
            changed["id"] = rank * _ARROWS + int(event["id"])
        found.append(changed)
    names = _in_lanes(found)
    for number in sorted(used):
        gpu = number % _PER_RANK
        name = f"rank {rank}, GPU {gpu - 1}" if gpu else f"rank {rank}"
        about = {"ph": "M", "pid": number, "tid": 0}
        names.append(about | {"name": "process_name", "args": {"name": name}})
        names.append(about | {"name": "process_sort_index", "args": {"sort_index": number}})
    return names + found


def _in_lanes(events: list[TraceEvent]) -> list[TraceEvent]:
    """Move events that overlap another one of their thread to lanes; return the lanes' names.

    Perfetto drops what is neither within the event before it nor after it. A message of gloo
    (``gloo:recv``) begins within an operation and ends after it.
    """
    lanes: dict[tuple[Any, Any], list[tuple[Any, list[int]]]] = {}
    names: list[TraceEvent] = []
    whole = [event for event in events if event["ph"] == "X"]
    for event in sorted(whole, key=lambda event: (event["ts"], -event["dur"])):
        thread = (event["pid"], event["tid"])
        begin = round(event["ts"] * 1000)  # in nanoseconds, as Perfetto reads it
        end = begin + round(event["dur"] * 1000)
        there = lanes.setdefault(thread, [(event["tid"], [])])
        lane = next((lane for lane in there if _fits(lane[1], begin, end)), None)
        if lane is None:
            lane = (_LANES + len(names), [])
            there.append(lane)
            about = {"ph": "M", "pid": event["pid"], "tid": lane[0], "name": "thread_name"}
            names.append(about | {"args": {"name": f"beside thread {thread[1]}"}})
        lane[1].append(end)
        event["tid"] = lane[0]
    return names


def _fits(open_ends: list[int], begin: int, end: int) -> bool:
    """Tell whether an event fits within a lane's open ones; drop those that have ended."""
    while open_ends and open_ends[-1] <= begin:
        open_ends.pop()
    return not open_ends or end <= open_ends[-1]

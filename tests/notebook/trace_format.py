"""Chrome's trace-event format, which Perfetto reads: what it demands of the events in a file."""

from __future__ import annotations

import math
from typing import Any

Event = dict[str, Any]

_AT = {"name", "ts", "pid", "tid"}
_NEEDED = {
    "X": {*_AT, "dur"},
    "M": {"name", "pid", "args"},
    "s": {*_AT, "cat", "id"},
    "f": {*_AT, "cat", "id"},
    "i": {*_AT, "s"},
}
"""By phase: complete events, metadata, the begin and the end of an arrow, moments."""
_METADATA = {"process_name": "name", "process_sort_index": "sort_index"} | {
    "process_labels": "labels",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def faults(events: list[Event]) -> list[str]:
    """Return what is wrong with events."""
    found = [f"{fault}: {event}" for event in events for fault in _faults(event)]
    begun = {_arrow(event): event["ts"] for event in events if event["ph"] == "s"}
    for event in events:
        if event["ph"] == "f" and not begun.get(_arrow(event), math.inf) <= event["ts"]:
            found.append(f"an arrow ends that has not begun: {event}")
    return found


def overlaps(events: list[Event]) -> list[str]:
    """Return events that are neither within the one before them on their thread, nor after it."""
    found: list[str] = []
    open_ends: dict[tuple[int, int], list[int]] = {}
    for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
        begin = round(event["ts"] * 1000)
        end = begin + round(event["dur"] * 1000)
        ends = open_ends.setdefault((event["pid"], event["tid"]), [])
        while ends and ends[-1] <= begin:
            ends.pop()
        if ends and end > ends[-1]:
            found.append(event["name"])
        ends.append(end)
    return found


def _faults(event: Event) -> list[str]:
    phase = event.get("ph")
    if phase not in _NEEDED:
        return [f"phase {phase} is not expected"]
    found = [f"no {name}" for name in sorted(_NEEDED[phase] - event.keys())]
    for name in {"pid", "tid"} & event.keys():
        if type(event[name]) is not int or event[name] < 0:
            found.append(f"{name} is no number")
    for name in {"ts", "dur"} & event.keys():
        if not math.isfinite(event[name]) or (name == "dur" and event[name] < 0):
            found.append(f"{name} is no time")
    if (
        phase == "M"
        and event["name"] in _METADATA
        and _METADATA[event["name"]] not in event["args"]
    ):
        found.append("metadata without its value")
    if phase == "i" and event.get("s") not in ("g", "p", "t"):
        found.append("a moment of nothing")
    return found


def _arrow(event: Event) -> tuple[str, str, Any]:
    return event["cat"], event["name"], event["id"]

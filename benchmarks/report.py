"""The results as tables in Markdown."""

from __future__ import annotations

import os
import platform
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import psutil

from .fanout import Cost, per_rank
from .goals import ROWS, Columns
from .recorder import Blocks
from .systems import Kernels, Ours, OursServed

Record = dict[str, Any]
"""Of one case: ``{"system": …, "values": {…}, "failures": {…}}``."""


def medians(records: Iterable[Record]) -> Columns:
    """Return the median of each measure over the trials, by system."""
    lists: dict[str, dict[str, list[float]]] = {}
    for record in records:
        of_system = lists.setdefault(record["system"], {})
        for key, value in record["values"].items():
            of_system.setdefault(key, []).append(value)
    return {
        name: {key: statistics.median(values) for key, values in measures.items()}
        for name, measures in lists.items()
    }


def machine(torch: str) -> str:
    """Return what ran where, without names that are this machine's alone."""
    cores = (
        len(psutil.Process().cpu_affinity()) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{date.today()}: {cores} cores of {_processor()}, {memory:.0f} GiB of memory, "
        f"{platform.system()}, Python {platform.python_version()}, torch {torch}, no GPU used"
    )


def _processor() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except FileNotFoundError:
        found = None
    return found[1] if found else platform.machine()


def results(records: Sequence[Record], peers: list[str]) -> str:
    """Return all values, and ours against the floor, the best peer, and what they must reach."""
    columns = medians(records)
    rows = [row for row in ROWS if any(row.key in values for values in columns.values())]
    values = [
        [row.label, *(figure(columns[name].get(row.key)) for name in columns)] for row in rows
    ]
    verdicts = []
    for row in rows:
        for name in (Ours.name, OursServed.name):
            value = columns.get(name, {}).get(row.key)
            if value is None:
                continue
            best = row.best(columns, peers)
            floor = columns.get(Kernels.name, {}).get(row.key)
            verdicts.append(
                [
                    row.label,
                    name,
                    figure(value),
                    _ratio(value, floor),
                    f"{_ratio(value, best[1])} ({best[0]})" if best else "–",
                    row.verdict(row.must, value, columns, peers),
                    row.verdict(row.goal, value, columns, peers),
                ]
            )
    heads = ["measure", "system", "value", "÷ N kernels", "÷ best peer", "must", "goal"]
    return "\n\n".join([table(["", *columns], values), table(heads, verdicts), *_failures(records)])


def _failures(records: Iterable[Record]) -> list[str]:
    lines: dict[str, None] = {}
    for record in records:
        for measure, why in record["failures"].items():
            words = re.sub(r"\s+", " ", why)[:300]
            lines[f"- {record['system']}, {measure}: {words}"] = None
    return ["What failed:\n\n" + "\n".join(lines)] if lines else []


def fan_out(costs: Sequence[Cost]) -> str:
    rows = [
        [str(c.ranks), f"{c.wall:.2f}", f"{c.cpu:.2f}", f"{c.cpu / c.ranks:.3f}"] for c in costs
    ]
    slope, constant = per_rank(costs)
    said = (
        f"One more rank costs the client {slope:.3f} ms of CPU time, "
        f"and each cell {constant:.2f} ms."
    )
    heads = ["echo ranks", "ms per cell", "CPU ms of the client", "CPU ms per rank"]
    return table(heads, rows) + "\n\n" + said


def why(times: Mapping[int, float]) -> str:
    rows = [[str(ranks), f"{taken:.1f}"] for ranks, taken in times.items()]
    return table(["echo ranks", "ms until it is known why they wait"], rows)


def recorder(blocks: Blocks) -> str:
    """Return what a collective takes by kind, and how much more than in the first one."""
    rows, first = [], next(iter(blocks))
    for kind, times in blocks.items():
        more = [one - other for one, other in zip(times, blocks[first], strict=True)]
        added = "–" if kind == first else _spread(more)
        rows.append([kind, _spread(times), added])
    heads = ["`dist.all_reduce` of one element", "µs", "µs more, block by block"]
    return table(heads, rows)


def _spread(values: Sequence[float]) -> str:
    """Return the median, and where the middle half of the values is."""
    first, middle, last = statistics.quantiles(values, n=4)
    return f"{middle:.1f} ({first:.1f} to {last:.1f})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


def _ratio(value: float, reference: float | None) -> str:
    return f"{value / reference:.2f}" if reference else "–"

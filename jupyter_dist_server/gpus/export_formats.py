"""The history as a file: CSV as nvidia-smi writes it, or JSON lines with all that we know.

``nvidia-smi --query-gpu=timestamp,index,… --format=csv,nounits -l 1`` is the model: titles with
units, values without, a comma and a space between them, and ``[N/A]`` for what there is not.
See https://docs.nvidia.com/deploy/nvidia-smi/.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from .history import History
from .inventory import Gpu
from .metrics import BY_NAME, Value

_STRETCH = 60.0
"""Seconds of history that are looked up at once."""
_MISSING = "[N/A]"
_MIB = 2**20


def _mib(value: Any) -> str:
    return str(round(value / _MIB))


def _words(value: Any) -> str:
    return str(value).replace(", ", " + ") or "none"  # commas separate columns


def _plain(value: Any) -> str:
    return str(value)


_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "utilization": ("utilization.gpu [%]", _plain),
    "memory_utilization": ("utilization.memory [%]", _plain),
    "memory_total": ("memory.total [MiB]", _mib),
    "memory_free": ("memory.free [MiB]", _mib),
    "memory_used": ("memory.used [MiB]", _mib),
    "temperature": ("temperature.gpu", _plain),
    "power": ("power.draw [W]", lambda watts: f"{watts:.2f}"),
    "power_limit": ("power.limit [W]", lambda watts: f"{watts:.2f}"),
    "clock_sm": ("clocks.current.sm [MHz]", _plain),
    "clock_memory": ("clocks.current.memory [MHz]", _plain),
    "fan": ("fan.speed [%]", _plain),
    "pstate": ("pstate", lambda state: f"P{state}"),
    "ecc_corrected": ("ecc.errors.corrected.volatile.total", _plain),
    "ecc_uncorrected": ("ecc.errors.uncorrected.volatile.total", _plain),
    "throttle": ("clocks_event_reasons", _words),
    "encoder": ("utilization.encoder [%]", _plain),
    "decoder": ("utilization.decoder [%]", _plain),
    "energy": ("energy [J]", _plain),
    "pcie_tx": ("pcie.tx [B/s]", _plain),
    "pcie_rx": ("pcie.rx [B/s]", _plain),
    "nvlink_tx": ("nvlink.tx [B/s]", _plain),
    "nvlink_rx": ("nvlink.rx [B/s]", _plain),
    "sm_active": ("sm.active [%]", _plain),
    "tensor_active": ("tensor.active [%]", _plain),
    "dram_active": ("dram.active [%]", _plain),
}
"""Title and form of each metric, named as nvidia-smi does where it knows it."""


def csv_title(metrics: Collection[str] | None) -> str:
    """Return the first line of a CSV file."""
    titles = [_COLUMNS[name][0] for name in metrics or _COLUMNS]
    return ", ".join(["timestamp", "index", "uuid", "name", *titles]) + "\n"


def csv_line(
    time: float, gpu: Gpu, values: Mapping[str, Value], metrics: Collection[str] | None
) -> str:
    """Return what is known of a GPU at a time, as nvidia-smi writes it."""
    stamp = datetime.fromtimestamp(time).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    cells = [
        _MISSING if values.get(name) is None else _COLUMNS[name][1](values[name])
        for name in metrics or _COLUMNS
    ]
    return ", ".join([stamp, gpu.label, gpu.uuid, gpu.name, *cells]) + "\n"


def json_line(
    time: float, gpu: Gpu, values: Mapping[str, Value], metrics: Collection[str] | None
) -> str:
    """Return the same as a JSON object, with our names and units."""
    row = {"time": time, "index": gpu.index, "uuid": gpu.uuid, "name": gpu.name}
    if gpu.mig is not None:
        row["mig"] = gpu.mig
    row |= {name: values.get(name) for name in metrics or BY_NAME}
    return json.dumps(row) + "\n"


Line = Callable[[float, Gpu, Mapping[str, Value], Collection[str] | None], str]
"""`csv_line` or `json_line`."""


def export_lines(
    line: Line,
    history: History,
    gpus: Mapping[str, Gpu],
    since: float | None = None,
    until: float = math.inf,
    uuids: Collection[str] | None = None,
    metrics: Collection[str] | None = None,
) -> Iterator[str]:
    """Yield the lines of some time at once, so that a server can breathe.

    Parameters
    ----------
    line : callable
        Makes one.
    history : History
        What to write.
    gpus : mapping
        The GPUs in it, by UUID.
    since, until : float or None
        Seconds since 1970, the end excluded; by default what is kept at full resolution.
    uuids : collection of str or None
        Which GPUs; by default all.
    metrics : collection of str or None
        Which columns, in this order; by default all.

    Yields
    ------
    str
        Some lines, ordered by time and then by GPU, each with its end; maybe none, of a time when
        nobody sampled: there may be much of that, and it takes time, too.
    """
    begin = history.fine_begin if since is None else max(since, history.begin)
    chosen = [gpu for uuid, gpu in gpus.items() if uuids is None or uuid in uuids]
    chosen.sort(key=lambda gpu: (gpu.index, gpu.mig or 0))
    wanted = [gpu.uuid for gpu in chosen]
    while begin <= history.end and begin < until and math.isfinite(begin):
        found = history.query(begin, min(begin + _STRETCH, until), None, wanted, metrics)
        lines = []
        for place, time in enumerate(found.times):
            for gpu in chosen:
                columns = found.gpus.get(gpu.uuid, {})
                values = {name: cells[place] for name, cells in columns.items()}
                if any(value is not None for value in values.values()):
                    lines.append(line(time, gpu, values, metrics))
        yield "".join(lines)
        begin += _STRETCH

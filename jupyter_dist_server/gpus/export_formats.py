"""The history as a file: JSON Lines, or CSV in the format of nvidia-smi.

The model is ``nvidia-smi --query-gpu=timestamp,index,… --format=csv,nounits -l 1``.
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

_MISSING = "[N/A]"
_MIB = 2**20


def _mib(value: Any) -> str:
    return str(round(value / _MIB))


def _words(value: Any) -> str:
    return str(value).replace(", ", " + ") or "none"  # commas separate columns


_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "utilization": ("utilization.gpu [%]", str),
    "memory_utilization": ("utilization.memory [%]", str),
    "memory_total": ("memory.total [MiB]", _mib),
    "memory_free": ("memory.free [MiB]", _mib),
    "memory_used": ("memory.used [MiB]", _mib),
    "temperature": ("temperature.gpu", str),
    "power": ("power.draw [W]", lambda watts: f"{watts:.2f}"),
    "power_limit": ("power.limit [W]", lambda watts: f"{watts:.2f}"),
    "clock_sm": ("clocks.current.sm [MHz]", str),
    "clock_memory": ("clocks.current.memory [MHz]", str),
    "fan": ("fan.speed [%]", str),
    "pstate": ("pstate", lambda state: f"P{state}"),
    "ecc_corrected": ("ecc.errors.corrected.volatile.total", str),
    "ecc_uncorrected": ("ecc.errors.uncorrected.volatile.total", str),
    "throttle": ("clocks_event_reasons", _words),
    "encoder": ("utilization.encoder [%]", str),
    "decoder": ("utilization.decoder [%]", str),
    "energy": ("energy [J]", str),
    "pcie_tx": ("pcie.tx [B/s]", str),
    "pcie_rx": ("pcie.rx [B/s]", str),
    "nvlink_tx": ("nvlink.tx [B/s]", str),
    "nvlink_rx": ("nvlink.rx [B/s]", str),
    "sm_active": ("sm.active [%]", str),
    "tensor_active": ("tensor.active [%]", str),
    "dram_active": ("dram.active [%]", str),
}
"""Title and format of each metric, as in nvidia-smi if it has the metric."""


def csv_title(metrics: Collection[str] | None) -> str:
    """Return the first line of a CSV file."""
    titles = [_COLUMNS[name][0] for name in metrics or _COLUMNS]
    return ", ".join(["timestamp", "index", "uuid", "name", *titles]) + "\n"


def csv_line(
    time: float, gpu: Gpu, values: Mapping[str, Value], metrics: Collection[str] | None
) -> str:
    """Return one sample of a GPU as nvidia-smi writes it."""
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
    """Yield the lines of one minute at a time, ordered by time and GPU; maybe none.

    `until` is excluded; by default, all that is kept at full resolution is told. `metrics` are the
    columns, in this order.
    """
    minute = 60.0  # the event loop does something else in between
    begin = history.fine_begin if since is None else max(since, history.begin)
    chosen = [gpu for uuid, gpu in gpus.items() if uuids is None or uuid in uuids]
    chosen.sort(key=lambda gpu: (gpu.index, gpu.mig or 0))
    wanted = [gpu.uuid for gpu in chosen]
    while begin <= history.end and begin < until and math.isfinite(begin):
        found = history.query(begin, min(begin + minute, until), None, wanted, metrics)
        lines = []
        for place, time in enumerate(found.times):
            for gpu in chosen:
                columns = found.gpus.get(gpu.uuid, {})
                values = {name: cells[place] for name, cells in columns.items()}
                if any(value is not None for value in values.values()):
                    lines.append(line(time, gpu, values, metrics))
        yield "".join(lines)
        begin += minute

"""The history as files."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator

from jupyter_dist_server.gpus.export_formats import (
    csv_line,
    csv_title,
    export_lines,
    json_line,
)
from jupyter_dist_server.gpus.history import History
from jupyter_dist_server.gpus.inventory import Gpu
from jupyter_dist_server.gpus.metrics import METRICS, Value

START = 1_700_000_000.25

GPUS = {
    "GPU-b": Gpu(1, "GPU-b", "NVIDIA H100", 2**30, "0:2", "9.0"),
    "GPU-a": Gpu(0, "GPU-a", "NVIDIA H100", 2**30, "0:1", "9.0"),
    "MIG-c": Gpu(1, "MIG-c", "NVIDIA H100 MIG", 2**30, "0:2", "9.0", mig=2, parent="GPU-x"),
}


def history(seconds: int = 2, *uuids: str) -> History:
    """Return a history with some metrics of these GPUs."""
    found = History()
    values: dict[str, Value] = {
        "utilization": 97,
        "memory_used": 5 * 2**20,
        "power": 312.4,
        "temperature": None,
        "pstate": 2,
        "throttle": "power cap, thermal slowdown",
    }
    for second in range(seconds):
        found.add(START + second, dict.fromkeys(uuids or ("GPU-a", "GPU-b"), values))
    return found


def csv_lines(kept: History, *span: float, metrics: list[str] | None = None) -> Iterator[str]:
    yield csv_title(metrics)
    yield from export_lines(csv_line, kept, GPUS, *span, metrics=metrics)


def rows(text: str) -> list[dict[str, str]]:
    """Read CSV as users of nvidia-smi do."""
    return list(csv.DictReader(text.splitlines(), skipinitialspace=True))


def test_csv_is_as_nvidia_smi_writes_it() -> None:
    text = "".join(csv_lines(history()))
    title, first, *others = text.splitlines()
    assert title.startswith(
        "timestamp, index, uuid, name, utilization.gpu [%], utilization.memory [%], "
        "memory.total [MiB], memory.free [MiB], memory.used [MiB], temperature.gpu, power.draw [W]"
    )
    stamp = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(START)) + ".250"
    assert first.startswith(f"{stamp}, 0, GPU-a, NVIDIA H100, 97, [N/A], [N/A], [N/A], 5, [N/A], ")
    assert len(others) == 3
    row = rows(text)[0]
    assert row["power.draw [W]"] == "312.40"
    assert row["pstate"] == "P2"
    assert row["clocks_event_reasons"] == "power cap + thermal slowdown"
    assert row["energy [J]"] == "[N/A]"
    assert [row["index"] for row in rows(text)] == ["0", "1", "0", "1"]
    assert len({line.count(",") for line in text.splitlines()}) == 1


def test_json_lines_have_our_names() -> None:
    found = [
        json.loads(line) for line in "".join(export_lines(json_line, history(), GPUS)).splitlines()
    ]
    assert [(row["time"], row["index"]) for row in found] == [
        (START, 0),
        (START, 1),
        (START + 1, 0),
        (START + 1, 1),
    ]
    assert found[0]["memory_used"] == 5 * 2**20
    assert found[0]["throttle"] == "power cap, thermal slowdown"
    assert found[0]["temperature"] is None
    assert set(found[0]) == {"time", "index", "uuid", "name"} | {m.name for m in METRICS}


def test_some_metrics_until_some_time() -> None:
    kept, chosen = history(300, "GPU-a"), ["power", "energy", "utilization"]
    text = "".join(csv_lines(kept, START + 100, START + 165, metrics=chosen))
    title, first, *_ = text.splitlines()
    assert title == (
        "timestamp, index, uuid, name, power.draw [W], energy [J], utilization.gpu [%]"
    )
    assert first.endswith(", 312.40, [N/A], 97")
    assert len(rows(text)) == 65
    found = "".join(
        export_lines(json_line, kept, GPUS, START + 100, START + 165, metrics=chosen)
    ).splitlines()
    assert len(found) == 65
    assert list(json.loads(found[0])) == ["time", "index", "uuid", "name", *chosen]


def test_some_gpus_since_some_time() -> None:
    kept = history(300)
    lines = "".join(export_lines(csv_line, kept, GPUS, START + 100, uuids=["GPU-b"])).splitlines()
    assert len(lines) == 200
    assert {line.split(", ")[2] for line in lines} == {"GPU-b"}


def test_a_mig_instance_has_its_label() -> None:
    kept = history(1, "MIG-c")
    assert rows("".join(csv_lines(kept)))[0]["index"] == "1:2"
    (row,) = [json.loads(line) for line in export_lines(json_line, kept, GPUS)]
    assert (row["index"], row["mig"]) == (1, 2)


def test_the_lines_come_in_pieces() -> None:
    pieces = list(csv_lines(history(300)))
    assert len(pieces) == 1 + 5
    assert max(piece.count("\n") for piece in pieces) == 120


def test_a_gap_is_no_end() -> None:
    kept = history(2)
    for second in range(700, 702):
        kept.add(START + second, {"GPU-a": {"utilization": 1}})
    assert len(rows("".join(csv_lines(kept)))) == 4 + 2


def test_a_long_pause_holds_nobody_up() -> None:
    kept = history(2)
    kept.add(START + 6 * 3600, {"GPU-a": {"utilization": 1}})
    pieces = list(export_lines(json_line, kept, GPUS, since=START))
    assert len(pieces) == 361  # a server can breathe at each
    assert sum(piece.count("\n") for piece in pieces) == 5


def test_nothing_yet() -> None:
    assert len(list(csv_lines(History()))) == 1
    assert list(export_lines(json_line, History(), GPUS, since=0.0)) == []

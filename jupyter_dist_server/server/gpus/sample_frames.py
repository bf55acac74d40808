"""Samples of the stream: only changed metrics, encoded once for all clients."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ...gpus.metrics import BY_NAME, Value

LEFT_OUT = frozenset({"memory_free", "memory_total", "energy"})
"""Metrics that no chart shows. REST and Prometheus have them."""

LINKS = frozenset({"pcie_tx", "pcie_rx", "nvlink_tx", "nvlink_rx"})
"""Metrics for clients that watch ``"pcie"``."""

_FORMATS = {"bytes": ".4g", "bytes/s": ".2g", "%": ".0f", "W": ".0f"}
"""By unit, as many digits as a chart can show."""


def encode(metric: str, values: Iterable[Value]) -> str:
    """Encode values of one metric as a short JSON array; large numbers look like ``3.436e10``."""
    form = _FORMATS.get(BY_NAME[metric].unit, ".6g")
    return f"[{','.join(_encode_one(value, form) for value in values)}]"


def _encode_one(value: Value, form: str) -> str:
    if value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return format(value, form).replace("e+0", "e").replace("e+", "e")


class SampleFrames:
    """The newest value of each metric, and the tick of its last change.

    So a client is told what has changed since any tick: a slow one needs no queue.
    """

    def __init__(self) -> None:
        self.tick = 0
        """Increases with each sample."""
        self._time = 0.0
        self._rows: dict[str, tuple[int, str]] = {}
        """By metric, the tick of the last change, and the encoded row."""
        self._frames: dict[tuple[int, bool], bytes] = {}

    def take(self, time: float, rows: Mapping[str, Iterable[Value]]) -> None:
        """Note a sample: for each metric, one value per GPU in the inventory's order."""
        self.tick += 1
        self._time = time
        self._frames.clear()
        for metric, values in rows.items():
            row = encode(metric, values)
            if metric not in LEFT_OUT and self._rows.get(metric, (0, ""))[1] != row:
                self._rows[metric] = self.tick, row

    def forget(self) -> None:
        """Forget all values, as the GPUs have changed."""
        self._rows.clear()
        self._frames.clear()

    def since(self, tick: int, links: bool) -> bytes:
        """Return the frame for clients that have seen all ticks up to this one, 0 for none."""
        if (frame := self._frames.get((tick, links))) is None:
            values = ",".join(
                f'"{metric}":{row}'
                for metric, (changed, row) in self._rows.items()
                if changed > tick and (links or metric not in LINKS)
            )
            frame = f'{{"type":"sample","time":{self._time:.3f},"values":{{{values}}}}}'.encode()
            self._frames[tick, links] = frame
        return frame

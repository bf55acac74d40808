"""The history as JSON, encoded in parts, so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable

from ...gpus.history import History
from ...gpus.metrics import Value
from .history_query import Question


def _encode_exactly(metric: str, values: list[Value]) -> str:
    return json.dumps(values, separators=(",", ":"))


async def history_pieces(
    history: History,
    question: Question,
    step: float | None,
    encode: Callable[[str, list[Value]], str] = _encode_exactly,
) -> AsyncIterator[str]:
    """Yield the inside of a JSON object with ``step``, ``times`` and ``gpus``, a GPU at a time.

    Parameters
    ----------
    history : History
        What is kept; it may grow meanwhile.
    question : Question
        What of it is asked for.
    step : float or None
        Seconds that one value sums up.
    encode : callable
        Makes JSON of a metric's name and its values.
    """
    kept = copy.deepcopy(history)
    rows = kept.query(question.since, question.until, step, uuids=())
    times = json.dumps(rows.times, separators=(",", ":"))
    yield f'"step":{json.dumps(rows.step)},"times":{times},"gpus":{{'
    comma = ""
    for uuid in question.uuids:
        found = kept.query(question.since, question.until, step, (uuid,), question.metrics)
        of_gpu = found.gpus.get(uuid, {})
        series = (f'"{metric}":{encode(metric, values)}' for metric, values in of_gpu.items())
        yield f'{comma}"{uuid}":{{{",".join(series)}}}'
        comma = ","
        await asyncio.sleep(0)
    yield "}"

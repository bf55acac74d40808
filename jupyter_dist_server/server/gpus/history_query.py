"""A request for GPU history: its parameters, and the response as JSON."""

from __future__ import annotations

import asyncio
import copy
import json
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from ...common.errors import DistError
from ...gpus.history import History
from ...gpus.inventory import Gpu, Inventory
from ...gpus.metrics import BY_NAME, Value
from ...placement.gpu_policies import find


@dataclass(frozen=True)
class Question:
    """What to return, in the parameters of `History.query`."""

    since: float | None
    until: float
    uuids: list[str]
    metrics: list[str] | None


def read_time(field: str, text: str | None, now: float) -> float | None:
    """Return a time in seconds since 1970; a negative text counts from now."""
    if text is None:
        return None
    moment = _number(text)
    if moment is None:
        message = f"{field} must be a number of seconds, not {text}."
        hint = "Use seconds since 1970, or -60 for one minute ago."
        raise DistError("bad_request", message, hint, field=field)
    return moment if moment >= 0 else now + moment


def check_order(since: float | None, until: float | None) -> None:
    """Raise `DistError` if an interval ends before it begins."""
    if since is not None and until is not None and until < since:
        message = f"until ({until:.15g}) is before since ({since:.15g})."
        raise DistError("bad_request", message, "Use a later time for until.", field="until")


def read_metrics(words: Sequence[str]) -> list[str] | None:
    """Return the metrics in lists with commas, each once; `None`, for all, if there is none."""
    wanted = _split(words)
    for name in wanted:
        if name not in BY_NAME:
            hint = f"Valid metrics: {', '.join(BY_NAME)}."
            raise DistError("bad_request", f"“{name}” is not a metric.", hint, field="metrics")
    return list(dict.fromkeys(wanted)) or None


def read_step(text: str | None) -> float | None:
    """Return the seconds that one value sums up."""
    step = None if text is None else _number(text)
    if text is not None and (step is None or step < 0.001):
        message = f"step must be a number of seconds, at least 0.001, not {text}."
        raise DistError("bad_request", message, field="step")
    return step


def read_gpus(words: Sequence[str], found: Inventory, elsewhere: Sequence[Gpu] = ()) -> list[str]:
    """Return the UUIDs of the GPUs in lists with commas; of all, if there is none.

    GPUs are given by their index (``0``, or ``0:1`` for a MIG instance) or the beginning of their
    UUID; those of other machines, and those that are gone (`elsewhere`), only by UUID.
    """
    wanted = _split(words)
    everywhere = replace(found, gpus=(*found.gpus, *elsewhere))
    if wanted and not everywhere.gpus:
        raise DistError("unknown_gpu", f"There is no GPU {wanted[0]}.", found.reason or "", "gpu")
    chosen = [
        find(name, everywhere if name.startswith(("GPU-", "MIG-")) else found, "gpu")
        for name in wanted
    ] or everywhere.gpus
    return list(dict.fromkeys(gpu.uuid for gpu in chosen))


def _split(words: Sequence[str]) -> list[str]:
    return [name.strip() for word in words for name in word.split(",") if name.strip()]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _encode_exactly(metric: str, values: list[Value]) -> str:
    return json.dumps(values, separators=(",", ":"))


async def history_pieces(
    history: History,
    question: Question,
    step: float | None,
    encode: Callable[[str, list[Value]], str] = _encode_exactly,
) -> AsyncIterator[str]:
    """Yield the inside of a JSON object with ``step``, ``times`` and ``gpus``, a GPU at a time.

    `encode` makes JSON of a metric's name and its values.
    """
    kept = copy.deepcopy(history)  # it may grow meanwhile
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

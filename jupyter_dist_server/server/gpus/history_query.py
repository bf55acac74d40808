"""The parameters of a history request: time span, step, GPUs and metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...common.errors import DistError
from ...gpus.inventory import Gpu, Inventory
from ...gpus.metrics import BY_NAME
from ...placement.gpu_policies import find

MIN_STEP = 0.001
"""Seconds; samples are not closer."""


@dataclass(frozen=True)
class Question:
    """What of the history is asked for, as `History.query` takes it."""

    since: float | None
    until: float
    uuids: list[str]
    metrics: list[str] | None


def read_time(field: str, text: str | None, now: float) -> float | None:
    """Return a moment in seconds since 1970; `None` if nothing was said.

    Parameters
    ----------
    field : str
        What the moment is of: ``since`` or ``until``.
    text : str or None
        Seconds since 1970, or, if negative, before now.
    now : float
        Seconds since 1970.

    Raises
    ------
    DistError
        If it is no such number.
    """
    if text is None:
        return None
    moment = _number(text)
    if moment is None:
        raise DistError(
            "bad_request",
            f"{field} must be a number of seconds, not {text}.",
            "Use seconds since 1970, or -60 for one minute ago.",
            field=field,
        )
    return moment if moment >= 0 else now + moment


def check_order(since: float | None, until: float | None) -> None:
    """Raise `DistError` if a stretch of time ends before it begins."""
    if since is not None and until is not None and until < since:
        message = f"until ({until:.15g}) is before since ({since:.15g})."
        raise DistError("bad_request", message, "Use a later time for until.", field="until")


def read_metrics(words: Sequence[str]) -> list[str] | None:
    """Return the metrics that were asked for, each once; `None`, for all, if nothing was said.

    Parameters
    ----------
    words : sequence of str
        Names; each word may be a list with commas.

    Raises
    ------
    DistError
        If there is no such metric; the hint names those that exist.
    """
    wanted = _split(words)
    for name in wanted:
        if name not in BY_NAME:
            hint = f"Valid metrics: {', '.join(BY_NAME)}."
            raise DistError("bad_request", f"“{name}” is not a metric.", hint, field="metrics")
    return list(dict.fromkeys(wanted)) or None


def read_step(text: str | None) -> float | None:
    """Return the length in seconds of what one value sums up; `None` if nothing was said.

    Raises
    ------
    DistError
        If it is no such number, or too short.
    """
    step = None if text is None else _number(text)
    if text is not None and (step is None or step < MIN_STEP):
        message = f"step must be a number of seconds, at least {MIN_STEP:g}, not {text}."
        raise DistError("bad_request", message, field="step")
    return step


def read_gpus(words: Sequence[str], found: Inventory, elsewhere: Sequence[Gpu] = ()) -> list[str]:
    """Return the UUIDs of the GPUs that were asked for; of all, if nothing was said.

    Parameters
    ----------
    words : sequence of str
        Indices (``0``, or ``0:1`` for a MIG instance), UUIDs or beginnings of UUIDs; each word
        may be a list with commas.
    found : Inventory
        What there is.
    elsewhere : sequence of Gpu
        Those of other machines, and those that are gone, which only their UUIDs name.

    Raises
    ------
    DistError
        If there is no such GPU, or more than one; the hint names those that exist.
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

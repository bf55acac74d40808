"""What is asked of the GPUs' history: which stretch of time, how fine, and which GPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import DistError
from ..gpus.inventory import Inventory
from ..pools.policies import find


def read_since(text: str | None, now: float) -> float | None:
    """Return since when, in seconds since 1970; `None` if nothing was said.

    Parameters
    ----------
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
    since = _number(text)
    if since is None:
        raise DistError(
            "bad_request",
            f"since={text} is not a number of seconds.",
            "Give seconds since 1970, or -60 for the last minute.",
            field="since",
        )
    return since if since >= 0 else now + since


def read_step(text: str | None) -> float | None:
    """Return the length in seconds of what one value sums up; `None` if nothing was said.

    Raises
    ------
    DistError
        If it is not a positive number.
    """
    step = None if text is None else _number(text)
    if text is not None and (step is None or step <= 0):
        raise DistError("bad_request", f"step={text} is not a time in seconds.", field="step")
    return step


def read_gpus(words: Sequence[str], found: Inventory) -> list[str]:
    """Return the UUIDs of the GPUs that were asked for; of all, if nothing was said.

    Parameters
    ----------
    words : sequence of str
        Indices (``0``, or ``0:1`` for a MIG instance), UUIDs or beginnings of UUIDs; each word
        may be a list with commas.
    found : Inventory
        What there is.

    Raises
    ------
    DistError
        If there is no such GPU, or more than one; the hint names those that exist.
    """
    wanted = [name.strip() for word in words for name in word.split(",") if name.strip()]
    if wanted and not found.gpus:
        raise DistError("unknown_gpu", f"There is no GPU {wanted[0]}.", found.reason or "", "gpu")
    chosen = [find(name, found, "gpu") for name in wanted] or found.gpus
    return list(dict.fromkeys(gpu.uuid for gpu in chosen))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None

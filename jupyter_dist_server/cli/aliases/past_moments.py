"""Reads moments that are over, as ``sacct --starttime`` and ``gqueue --since`` have them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ...jobs.store.slurm_formats import read_moment

_DAY = 86400.0
_AGO = re.compile(r"(?:now\s*-\s*)?(\d{1,9})\s*(s|m|h|d|w)[a-z]*", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def read_past(text: str, now: float) -> float:
    """Return the seconds since the epoch of ``2d``, ``now-2days``, ``yesterday``, ``08:00``."""
    if match := _AGO.fullmatch(text.strip().lower()):
        return now - float(int(match[1]) * _SECONDS[match[2]])
    if text.lower() in ("today", "yesterday"):
        midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
        return (midnight - timedelta(days=text.lower() == "yesterday")).timestamp()
    moment = read_moment(text, now)
    return moment - _DAY if now < moment <= now + _DAY else moment  # a time of today

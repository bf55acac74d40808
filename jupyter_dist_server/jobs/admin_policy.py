"""What the administrator allows: ``/etc/jupyter-dist/policy.toml``.

It has lines such as ``max_time = "2-00:00:00"`` and ``default_time = "1:00:00"``.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..common.errors import DistError
from ..common.units import write_limit
from .store.slurm_formats import read_limit

POLICY = Path("/etc/jupyter-dist/policy.toml")
_LINE = re.compile(r"""\s*(max_time|default_time)\s*=\s*(?:["']([^"']+)["']\s*(?:#.*)?$)?""")


def allowed_limit(limit: float | None, is_given: bool) -> float | None:
    """Return a job's time limit in seconds, `None` for none; refuse one that is too long."""
    policy, _ = read_policy()
    most = policy.get("max_time")
    if not is_given:
        return policy.get("default_time") or most
    if most is not None and (limit is None or limit > most):
        asked, allowed = write_limit(limit), write_limit(most)
        message = f"A time limit of {asked} was asked for; this machine allows {allowed} at most."
        raise DistError("too_large", message, f"Use --time {allowed} or less.")
    return limit


def read_policy() -> tuple[dict[str, float | None], str]:
    """Return the limits, and a sentence on what is invalid: an invalid line limits nothing."""
    limits: dict[str, float | None] = {}
    wrong = ""
    try:
        lines = POLICY.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return limits, wrong
    except OSError as error:
        return limits, f"{POLICY} cannot be read, and so limits nothing: {error.strerror}."
    for line in lines:
        if match := _LINE.match(line):
            try:
                limits[match[1]] = read_limit(match[2] or "")
            except DistError:
                wrong = f"A line of {POLICY} is wrong, and limits nothing: {line.strip()}"
    return limits, wrong

"""What became slower or faster from one profile to the next, beyond the noise of the steps."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import NamedTuple

from ...common.units import format_percent, format_seconds
from .lateness import Profiles, waiting
from .time_account import Account, accounts, average

_SURE = 2.0
"""Standard errors beyond which a difference is no accident: 95 % of accidents are smaller."""
_LEAST_STEPS = 3
_PARTS = ("compute", "input", "communication", "waiting", "other")
_NAMED = 0.2
"""The part of the whole difference from which a part of the step is named."""


class Comparison(NamedTuple):
    """How much longer a step takes than before, and what is said of it."""

    slower: float
    """By which part of the earlier step; negative if it is faster."""
    noise: float | None
    """By which part of it steps differ by accident; `None` if there are too few to tell."""
    text: str

    def fails(self, limit: float) -> bool:
        """Tell whether it is slower by more than a part, which is not by accident."""
        return self.slower > max(limit, self.noise or 0.0)


def compare(before: Profiles, after: Profiles) -> Comparison:
    """Compare the steps of two profiles, averaged over their ranks."""
    was, now = _average(before), _average(after)
    slower = (now.step - was.step) / was.step if was.step > 0 else 0.0
    noise = _noise(before, after, was.step)
    step = "A step" if any(profile.steps for profile in after.values()) else "The cell"
    took = f"{step} takes {format_seconds(now.step)}"
    varies = "" if noise is None else f"; steps vary by {format_percent(noise)}"
    if noise is not None and abs(slower) <= noise:
        text = f"{took}, as before ({format_seconds(was.step)}{varies})."
        return Comparison(slower, noise, text)
    more = "more" if slower > 0 else "less"
    if noise is None:
        varies = "; with so few steps, it is not known how much they vary"
    text = (
        f"{took}, {format_percent(abs(slower))} {more} than before "
        f"({format_seconds(was.step)}{varies}){_parts(was, now)}."
    )
    return Comparison(slower, noise, text)


def _average(profiles: Profiles) -> Account:
    return average(accounts(profiles, waiting(profiles)))


def _noise(before: Profiles, after: Profiles, step: float) -> float | None:
    """Return what a difference must exceed, as a part of a step."""
    errors = [_error(before), _error(after)]
    if step <= 0 or None in errors:
        return None
    return _SURE * math.hypot(*(error or 0.0 for error in errors)) / step


def _error(profiles: Profiles) -> float | None:
    """Return the standard error of the mean step, in seconds.

    Ranks wait for each other, so that their steps are no independent samples.
    """
    found = [profile.durations for profile in profiles.values()]
    if any(len(one) < _LEAST_STEPS for one in found):
        return None
    return fmean(stdev(one) / math.sqrt(len(one)) for one in found)


def _parts(was: Account, now: Account) -> str:
    whole = now.step - was.step
    changes = {name: getattr(now, name) - getattr(was, name) for name in _PARTS}
    named = [name for name, change in changes.items() if change / whole >= _NAMED]
    if not named:
        return ""
    named.sort(key=lambda name: abs(changes[name]), reverse=True)
    told = (f"{name} {format_seconds(abs(changes[name]))}" for name in named)
    return f": {', '.join(told)} {'more' if whole > 0 else 'less'}"

"""What checks are made of."""

from __future__ import annotations

from collections.abc import Callable

from .machine import Machine

Figures = dict[str, str]
Check = Callable[[Machine], Figures]
"""Does something that a user does, and raises if it goes wrong."""

CELL = 120.0
"""Seconds that a cell may take."""


class NotRun(Exception):
    """What a check needs is not here; says what."""


def need(condition: object, reason: str) -> None:
    """Do not run a check without something."""
    if not condition:
        raise NotRun(reason)


def need_cuda(machine: Machine) -> None:
    """Do not run a check where torch has no GPU."""
    need(machine.has_cuda, "torch finds no GPU.")


def holds(condition: object, otherwise: str) -> None:
    """Fail a check; asserts would be left out by `python -O`."""
    if not condition:
        raise AssertionError(otherwise)

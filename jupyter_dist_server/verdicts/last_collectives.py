"""What ranks had begun when gloo ended one: it tells how many bytes that got, not from whom."""

from __future__ import annotations

from ..common.protocol.ranks.evidence import Collective, Evidence
from .match_waits import describe, differences
from .verdict import name

_Group = tuple[str, str]
"""Key and backend: each backend of a group counts on its own."""


def last_collectives(evidence: Evidence) -> str:
    """Return a sentence on the last collective that ranks differ in, or all have begun.

    Parameters
    ----------
    evidence : dict
        What is known of every rank of a pool; of one that is dead, nothing.

    Returns
    -------
    str
        Empty if nothing is recorded.
    """
    begun: dict[_Group, dict[int, dict[int, Collective]]] = {}
    for rank, found in evidence.items():
        for one in found.collectives:
            if not one.is_message:
                of_group = begun.setdefault((one.group, one.backend), {})
                of_group.setdefault(one.number, {})[rank] = one
    if not begun:
        return ""
    last = max(begun, key=lambda group: max(one.begun for one in _all(begun[group])))
    by_number = begun[last]
    ranks = {rank for there in by_number.values() for rank in there}
    told = [n for n, there in by_number.items() if there.keys() == ranks or differences(there)]
    number = max(told or by_number)
    said = [
        f"{name(whose, capital=not place)} had begun {what}"
        for place, (what, whose) in enumerate(_by_kind(by_number[number]).items())
    ]
    return f"{', '.join(said)} as collective #{number}."


def _all(by_number: dict[int, dict[int, Collective]]) -> list[Collective]:
    return [one for there in by_number.values() for one in there.values()]


def _by_kind(there: dict[int, Collective]) -> dict[str, list[int]]:
    kinds: dict[str, list[int]] = {}
    for rank, one in sorted(there.items()):
        kinds.setdefault(describe(one), []).append(rank)
    return kinds

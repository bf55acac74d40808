"""What ranks tell about a group that cannot all be true, so that there is no verdict."""

from __future__ import annotations

from ..common.protocol.ranks.evidence import Collective, Evidence
from ..common.rank_specs import name_ranks

_NEEDS_ALL = frozenset(
    [
        "all_reduce",
        "all_gather",
        "_all_gather_base",
        "reduce_scatter",
        "_reduce_scatter_base",
        "barrier",
    ]
)
"""Collectives that end on no rank before each member has begun them."""
_FEW = 100
"""Recorded collectives up to which none was forgotten: the oldest of all groups are."""


def contradiction(group: str, evidence: Evidence) -> str:
    """Return what contradicts itself about a group, as a part of a sentence.

    Ranks do not answer at the same moment, so healthy ranks may seem to contradict each other in
    one look, but not in the same way in the next; see `explain`.
    """
    return _order(group, evidence) or _ends(group, evidence)


def disagreement(group: str, evidence: Evidence) -> tuple[str, list[int]]:
    """Return what two ranks say about a group's members if they disagree, and these ranks.

    torch names the groups of `new_group` by a counter, so ranks that pass different lists have
    different groups of one name: https://docs.pytorch.org/docs/stable/distributed.html#groups.
    Lists without a common rank have one name after `split_group` too, and are no mistake there.
    """
    groups = {r: own for r, found in evidence.items() if (own := found.groups.get(group))}
    by_new_group = any(found.making == group for found in evidence.values())
    for rank, own in groups.items():
        for other in groups if by_new_group else own.ranks:
            theirs = groups.get(other)
            if theirs and theirs.ranks and own.ranks and theirs.ranks != own.ranks:
                what = f"{own.name or group}: rank {rank} has made it of {name_ranks(own.ranks)}"
                return f"{what}, rank {other} of {name_ranks(theirs.ranks)}", [rank, other]
    return "", []


def _order(group: str, evidence: Evidence) -> str:
    """Find a rank that counts backwards; two threads of it may swap neighbours."""
    for rank in evidence:
        highest: dict[str, Collective] = {}
        for one in _begun(rank, group, evidence):
            before = highest.setdefault(one.backend, one)
            if one.number + 1 < before.number:
                return (
                    f"rank {rank} began {one.op} #{one.number} after {before.op} #{before.number} "
                    "of the same group"
                )
            highest[one.backend] = max(before, one, key=lambda other: other.number)
    return ""


def _ends(group: str, evidence: Evidence) -> str:
    """Find a collective that is complete on one rank although another one has not begun it."""
    last: dict[tuple[int, str], int] = {}
    for rank in evidence:
        for one in _begun(rank, group, evidence):
            last[rank, one.backend] = max(one.number, last.get((rank, one.backend), 0))
    for rank, found in evidence.items():
        own = found.groups.get(group)
        members = [
            other
            for other in (own and own.ranks) or evidence
            if other in evidence and evidence[other].condition == "answers"
        ]
        for one in _begun(rank, group, evidence):
            if not one.completed or one.op not in _NEEDS_ALL or _is_empty(one):
                continue
            missing = [
                r
                for r in members
                if (r, one.backend) in last or 0 < len(evidence[r].collectives) <= _FEW
                if last.get((r, one.backend), 0) < one.number
            ]
            if missing:
                says, has = ("says", "it has") if len(missing) == 1 else ("say", "they have")
                return (
                    f"rank {rank} says that {one.op} #{one.number} is complete, "
                    f"{name_ranks(missing)} {says} that {has} not begun it"
                )
    return ""


def _begun(rank: int, group: str, evidence: Evidence) -> list[Collective]:
    begun = evidence[rank].collectives
    return [one for one in begun if one.group == group and not one.is_message]


def _is_empty(one: Collective) -> bool:
    return any("0" in tensor.split(" × ") for tensor in one.tensors)

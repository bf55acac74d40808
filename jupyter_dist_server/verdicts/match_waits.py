"""Which collectives and messages ranks wait in, and for which ranks.

torch's own matcher fails on gloo's records, whose entries stay ``scheduled``. Ranks are in the same
collective if its number in their group is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..common.protocol.ranks.evidence import CodePlace, Collective, Evidence, Group, RankEvidence
from ..common.rank_specs import format_ranks, name_ranks
from .what_ranks_do import innermost_line, waits_in

_SAME_TENSORS = frozenset(
    [
        "all_reduce",
        "broadcast",
        "reduce",
        "all_gather",
        "_all_gather_base",
        "reduce_scatter",
        "_reduce_scatter_base",
    ]
)
"""Collectives to which all ranks pass tensors of one shape and type."""
_MESSAGE = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+)")
"""NCCL's name for a message, with places in the group."""
_LONGEST_TENSORS = 3
_NOT_A_WAIT = frozenset(["backward", "wait", "isend", "irecv", "batch_isend_irecv"])


@dataclass(frozen=True)
class Wait:
    """One collective or message that ranks wait in."""

    op: str
    """Such as ``all_reduce #7``, or ``recv from rank 1``."""
    about: str
    """Its tensors, and its group."""
    joined: dict[int, CodePlace | None]
    """Ranks that wait in it, and where they have begun it."""
    absent: list[int]
    begun: float | None
    """Since when a rank waits in it; not known without a recorder."""
    begun_there: bool = True
    """Whether the lines in `joined` began it; otherwise, the ranks wait there."""
    others: dict[str, list[int]] = field(default_factory=dict)
    """If ranks differ: which began what, such as ``broadcast (20 × float32)``."""
    is_message: bool = False
    group: str = ""
    """Key of its group, if its ranks have counted it there."""


def find_waits(evidence: Evidence) -> list[Wait]:
    """Return all waits, the longest first."""
    groups = _groups(evidence)
    of_backends: dict[tuple[str, str, tuple[int, ...]], Group] = {}
    for found in evidence.values():
        for one in found.collectives:
            own = found.groups.get(one.group)  # groups of other ranks may have the same name
            group = own if own and own.ranks else groups[one.group]
            of_backends[one.group, one.backend, tuple(group.ranks)] = group
    waits = [w for key, of in of_backends.items() for w in _waits_in(key[:2], of, evidence)]
    waits += _messages(evidence, groups)
    blocked = {rank for wait in waits for rank in wait.joined}
    blocked |= {rank for rank, found in evidence.items() if found.message}
    waits += _without_record(evidence, blocked)
    return sorted(waits, key=lambda wait: wait.begun or 0.0)


def _groups(evidence: Evidence) -> dict[str, Group]:
    everyone = Group(sorted(evidence))
    groups = {key: group for found in evidence.values() for key, group in found.groups.items()}
    for found in evidence.values():  # of a rank that holds the GIL, nobody tells its groups
        for one in found.collectives:
            groups.setdefault(one.group, everyone)
    return {key: group if group.ranks else everyone for key, group in groups.items()}


def _waits_in(key: tuple[str, str], group: Group, evidence: Evidence) -> Iterator[Wait]:
    """Yield the collectives that hold up a group and one of its backends, in their order.

    This is the first one that is not done: later ones wait for it. If a rank's GPU fails, other
    ranks may have finished that one and wait in a later one. The later one is reported too, unless
    every rank that has not begun it waits in the first one, and would begin it next.
    """
    of_rank = {
        rank: [
            one
            for one in evidence[rank].collectives
            if (one.group, one.backend) == key and not one.is_message
        ]
        for rank in group.ranks
        if rank in evidence
    }
    undone = {
        rank: min(numbers)
        for rank, begun in of_rank.items()
        if (numbers := [one.number for one in begun if not one.done])
    }
    last = {rank: max((one.number for one in all_), default=0) for rank, all_ in of_rank.items()}
    for place, number in enumerate(sorted(set(undone.values()))):
        absent = [rank for rank in of_rank if last[rank] < number]
        held = [rank for rank in absent if rank in undone and waits_in(evidence[rank])]
        if place and len(held) == len(absent):
            continue
        here = {rank: one for rank, all_ in of_rank.items() for one in all_ if one.number == number}
        waiting = {rank: one for rank, one in here.items() if not one.done}
        first = next(iter(waiting.values()))
        yield Wait(
            op=f"{first.op} #{number}",
            about=_about(first.tensors, _name(group, evidence)),
            joined={rank: _place(one, evidence[rank]) for rank, one in waiting.items()},
            absent=absent,
            begun=min(one.begun for one in waiting.values()),
            begun_there=all(
                one.place or waits_in(evidence[rank]) != "wait" for rank, one in waiting.items()
            ),
            others=differences(here),
            group=key[0],
        )


def _place(one: Collective, found: RankEvidence) -> CodePlace | None:
    """Return where a collective was begun; for the last one, the stack may tell it, too."""
    if one.place:
        return one.place
    last = max(found.collectives, key=lambda other: other.begun)
    return innermost_line(found.stack) if last is one and waits_in(found) else None


def differences(here: dict[int, Collective]) -> dict[str, list[int]]:
    """Return which ranks began what, if that does not fit together."""
    ops = {one.op for one in here.values()}
    if len(ops) == 1 and not ops <= _SAME_TENSORS:
        return {}
    by_kind = _by_kind(here)
    return by_kind if len(by_kind) > 1 else {}


def describe(one: Collective) -> str:
    """Return ``broadcast (20 × float32)``."""
    return f"{one.op}{_about(one.tensors, '')}"


def _about(tensors: list[str], group: str) -> str:
    shown = tensors[:_LONGEST_TENSORS]
    if len(tensors) > len(shown):
        shown.append(f"{len(tensors) - len(shown)} more tensors")
    parts = [*shown, group] if group else shown
    return f" ({', '.join(parts)})" if parts else ""


def _name(group: Group, evidence: Evidence) -> str:
    """Return a group's name; the one of all ranks needs none."""
    if group.name:
        return f"group {group.name}"
    return (
        "" if len(group.ranks) == len(evidence) else f"group of ranks {format_ranks(group.ranks)}"
    )


# -- messages ---------------------------------------------------------------------------------


def _messages(evidence: Evidence, groups: dict[str, Group]) -> list[Wait]:
    pending = {rank: _pending(found, groups) for rank, found in evidence.items()}
    waits = []
    for rank, messages in pending.items():
        for op, peer, tensors, begun, place in messages:
            other = ("recv" if op == "send" else "send", rank)
            if peer is not None and any(m[:2] == other for m in pending.get(peer, [])):
                continue  # both are there
            whom = "any rank" if peer is None else f"rank {peer}"
            absent = sorted(set(evidence) - {rank}) if peer is None else [peer]
            what = f"{op} {'to' if op == 'send' else 'from'} {whom}"
            about = _about(tensors, "")
            waits.append(Wait(what, about, {rank: place}, absent, begun, is_message=True))
    return waits


_Pending = tuple[str, int | None, list[str], float | None, CodePlace | None]


def _pending(found: RankEvidence, groups: dict[str, Group]) -> list[_Pending]:
    pending: list[_Pending] = []
    if found.message:
        place = innermost_line(found.stack)
        pending.append((found.message.op, found.message.peer, [], None, place))
    for one in found.collectives:
        if one.is_message and not one.done and (said := _MESSAGE.match(one.op)):
            ranks = groups[one.group].ranks
            pending.append((said[1], ranks[int(said[3])], one.tensors, one.begun, one.place))
    return pending


# -- what no recorder tells -------------------------------------------------------------------


def _without_record(evidence: Evidence, blocked: set[int]) -> list[Wait]:
    """Return waits that only the stacks show: `new_group`, and all in an older torch."""
    by_call: dict[str, dict[int, CodePlace | None]] = {}
    for rank, found in evidence.items():
        call = waits_in(found)
        if rank not in blocked and call and call not in _NOT_A_WAIT:
            by_call.setdefault(call, {})[rank] = innermost_line(found.stack)
    return [
        Wait(call, "", joined, sorted(set(evidence) - joined.keys()), None)
        for call, joined in by_call.items()
    ]


# -- what was begun last ----------------------------------------------------------------------

_Group = tuple[str, str]
"""Key and backend, as each backend of a group counts separately."""


def last_collectives(evidence: Evidence) -> str:
    """Return a sentence on the last collective that ranks differ in, or all have begun.

    It is for gloo's error that an operation got a wrong number of bytes, and does not say from
    which rank. It is empty if nothing is recorded.
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
    said = ", ".join(
        f"{name_ranks(whose)} had begun {what}"
        for what, whose in _by_kind(by_number[number]).items()
    )
    return f"{said[0].upper()}{said[1:]} as collective #{number}."


def _all(by_number: dict[int, dict[int, Collective]]) -> list[Collective]:
    return [one for there in by_number.values() for one in there.values()]


def _by_kind(there: dict[int, Collective]) -> dict[str, list[int]]:
    kinds: dict[str, list[int]] = {}
    for rank, one in sorted(there.items()):
        kinds.setdefault(describe(one), []).append(rank)
    return kinds

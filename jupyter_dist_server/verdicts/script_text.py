"""The verdict on the ranks of a script or a pool as text, with their stacks."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ..common.protocol.ranks.evidence import Evidence, Frame, RankEvidence
from ..common.rank_specs import name_ranks
from .verdict import STOP, Verdict
from .what_ranks_do import busy_sentence, what_it_does


def about_script(verdict: Verdict) -> Verdict:
    """Return a verdict without what only a pool's user can do about it."""
    hint = verdict.hint.removesuffix(STOP).strip() if verdict.hint.endswith(STOP) else ""
    return replace(verdict, remedies=[], hint=hint)


def verdict_text(verdict: Verdict | None, evidence: Evidence) -> str:
    """Return what is wrong, and what to do; without a verdict, what the ranks do."""
    if verdict:
        return verdict.text
    busy = [busy_sentence(rank, found) for rank, found in evidence.items()]
    return " ".join(["No rank waits for another.", *filter(None, busy)])


def stacks_text(evidence: Evidence, pids: Mapping[int, int]) -> str:
    """Return the stacks of all ranks, those of one stack together, as Python writes them."""
    by_stack: dict[str, list[int]] = {}
    for rank, found in evidence.items():
        by_stack.setdefault(_stack(found), []).append(rank)
    told = []
    for stack, ranks in by_stack.items():
        numbers = ", ".join(str(pids[rank]) for rank in ranks if rank in pids)
        who = name_ranks(ranks).capitalize()
        told.append(f"{who} (pid {numbers}):\n{stack}" if numbers else f"{who}:\n{stack}")
    return "\n".join(told)


def _stack(found: RankEvidence) -> str:
    if not found.stack:
        return f"  {what_it_does(found, True)}\n"
    shown = found.stack
    while shown and not shown[-1].own and any(frame.own for frame in shown):
        shown = shown[:-1]  # what started the script
    return "".join(map(_frame, reversed(shown)))


def _frame(frame: Frame) -> str:
    place = frame.place
    where = f"{place.file}, line {place.line}" if place.line else place.file
    source = f"    {place.source}\n" if place.source else ""
    return f"  {where}, in {frame.function}\n{source}"

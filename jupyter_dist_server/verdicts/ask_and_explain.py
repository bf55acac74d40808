"""Asks the ranks, again if the verdict is doubtful, and explains why they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from ..common.protocol.ranks.evidence import Evidence
from .explain_hang import explain_hang
from .verdict import Verdict

_LOOKS = 3
_PAUSE = 0.1
"""Seconds between two looks."""


async def explain(
    look: Callable[[], Awaitable[Evidence]],
    older_than: float | None = None,
    seen_since: Mapping[int, float] = MappingProxyType({}),
) -> tuple[Verdict | None, Evidence]:
    """Return why ranks wait, and the evidence for it.

    A doubtful one is told if a second look finds the same: ranks that went on between the first
    answer and the last seem to contradict each other, too, and a busy machine may be silent.

    Parameters
    ----------
    look : callable
        Asks the ranks.
    older_than, seen_since
        See `explain_hang`.
    """
    before = ""
    for _ in range(_LOOKS):
        evidence = await look()
        verdict = explain_hang(evidence, older_than, seen_since)
        if verdict is None or not (verdict.is_doubtful or _is_of_silent(verdict, evidence)):
            return verdict, evidence
        # A rank that holds the GIL may do so at another line.
        said = f"{verdict.ranks}" if verdict.kind == "holds_gil" else verdict.sentence
        if said == before:
            return verdict, evidence
        before = said
        await asyncio.sleep(_PAUSE)
    return None, evidence


def _is_of_silent(verdict: Verdict, evidence: Evidence) -> bool:
    return any(evidence[rank].condition == "silent" for rank in verdict.ranks)

"""Asks the ranks, again if the verdict is doubtful, and explains why they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from ..common.protocol.ranks.evidence import Evidence
from .explain_hang import explain_hang
from .verdict import Verdict

_LOOKS = 3


async def explain(
    look: Callable[[], Awaitable[Evidence]],
    older_than: float | None = None,
    seen_since: Mapping[int, float] = MappingProxyType({}),
) -> tuple[Verdict | None, Evidence]:
    """Return why ranks wait, and the evidence for it, which `look` gathers.

    A verdict that is doubtful, or about a rank that does not respond, is returned only if a second
    look finds the same: ranks may have made progress between the first answer and the last.
    """
    before = ""
    for _ in range(_LOOKS):
        evidence = await look()
        verdict = explain_hang(evidence, older_than, seen_since)
        if verdict is None:
            return None, evidence
        unsure = ("silent", "starved")
        silent = [rank for rank in verdict.ranks if evidence[rank].condition in unsure]
        if not (verdict.is_doubtful or silent):
            return verdict, evidence
        said = verdict.sentence
        if silent or verdict.kind == "holds_gil":  # ranks that go on are at other lines meanwhile
            said = f"{verdict.op} {silent or verdict.ranks}"
        if said == before:
            return verdict, evidence
        before = said
        await asyncio.sleep(0.1)
    return None, evidence

"""Why ranks wait for each other: one verdict from what each of them tells, asked once or again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..common.protocol.ranks.evidence import CodePlace, Evidence
from ..common.rank_specs import name_ranks
from .contradiction import contradiction, disagreement
from .match_waits import Wait, find_waits
from .verdict import INTERRUPT, STOP, Kind, Remedy, Verdict, restart
from .what_ranks_do import is_debugged, is_unseen, may_come, waits_in, what_it_does, where_it_is

_SAVE = (
    "Before you stop the cell, write the evidence to a file for a bug report, in another notebook "
    "that is attached to the pool: %dist_why --save why.json"
)
_SILENT = (
    "The machine may be overloaded, or C code holds the GIL. If it lasts, stop the cell; "
    "%dist_restart replaces ranks that do not stop."
)
_STARVED = "Other programs use the processors. The cell goes on when they leave some."
_DEBUGGED = "Continue in the debugger."
_MOST = 4
_MEMBERS = "Call new_group with the same ranks on all ranks. " + STOP
_ORDER = "Call them in the same order on all ranks. " + STOP


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
    for _ in range(3):
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


def explain_hang(
    evidence: Evidence,
    older_than: float | None = None,
    seen_since: Mapping[int, float] = MappingProxyType({}),
) -> Verdict | None:
    """Return why ranks wait, or `None` if none waits for another.

    Waits that began later than `older_than`, in seconds since 1970, are left out. Some waits are
    not recorded: for these, `seen_since` says since when each rank was seen at its place.
    """
    waits = []
    for wait in find_waits(evidence):
        if wait.begun is None and all(rank in seen_since for rank in wait.joined):
            wait = replace(wait, begun=min(seen_since[rank] for rank in wait.joined))
        if older_than is None or (wait.begun is not None and wait.begun <= older_than):
            waits.append(wait)
    if not waits:
        return _without_wait(evidence)
    for wait in waits:
        if wait.others:
            return _mismatch(wait)
    for wait in waits:
        names = [wait.group, *(evidence[rank].making for rank in wait.joined)]
        said, ranks = next(filter(any, (disagreement(n, evidence) for n in names if n)), ("", []))
        if said:
            sentence = f"The ranks disagree on who is in group {said}."
            return _verdict("mismatch", sentence, ranks, True, wait, [INTERRUPT], _MEMBERS)
    for wait in waits:
        if wait.group and (said := contradiction(wait.group, evidence)):
            sentence = f"No verdict: {said}."
            return _verdict("contradiction", sentence, [], False, wait, [INTERRUPT], _SAVE)
    incomplete = [wait for wait in waits if wait.absent]
    if not incomplete:
        return _slow(waits[0], evidence)
    joined = {rank for wait in incomplete for rank in wait.joined}
    # One whose stack is not known, as from a dump, is taken to wait in what it has not done.
    blocked = {r for r in joined if is_unseen(evidence[r]) or waits_in(evidence[r]) is not None}
    missing = [(wait, [rank for rank in wait.absent if rank not in blocked]) for wait in incomplete]
    missing = [(wait, causes) for wait, causes in missing if causes]
    if not missing:
        return _circle(incomplete)
    first = set(missing[0][1])  # another wait may show that these are not the only ones
    widest = max((one for one in missing if first <= {*one[1]}), key=lambda one: len(one[1]))
    return _absent(*widest, evidence)


# -- what is wrong ----------------------------------------------------------------------------


def _absent(wait: Wait, causes: list[int], evidence: Evidence) -> Verdict:
    clauses: dict[tuple[str, str], list[int]] = {}
    cells = {evidence[rank].cell for rank in wait.joined}
    for rank in causes:
        found = evidence[rank]
        ran = found.cell in cells
        key = what_it_does(found, True, ran), what_it_does(found, False, ran)
        clauses.setdefault(key, []).append(rank)
    stuck = [rank for rank in causes if not may_come(evidence[rank])]
    parts = [_begin(wait, evidence)]
    told = list(clauses.items())
    told.sort(key=lambda clause: clause[1][0] not in stuck)
    for (one, many), ranks in told[:_MOST]:
        does, who = one if len(ranks) == 1 else many, name_ranks(ranks).capitalize()
        if is_debugged(evidence[ranks[0]]):
            parts.append(f"{who} {does.partition(' ')[2]}.")
        else:
            parts.append(f"{who} {_verb(wait, ranks, stuck)}: {does}.")
    if others := sorted(rank for _, ranks in told[_MOST:] for rank in ranks):
        parts.append(f"{name_ranks(others).capitalize()} {_verb(wait, others, stuck)} either.")
    away = [rank for rank in causes if evidence[rank].condition not in ("answers", "starved")]
    kind: Kind = "never_joined" if stuck else "not_joined_yet"
    return _verdict(
        "message" if wait.is_message else kind,
        " ".join(parts),
        causes,
        bool(stuck),
        wait,
        [INTERRUPT, restart(away)] if away else [INTERRUPT],
        _DEBUGGED if all(is_debugged(evidence[rank]) for rank in causes) else STOP,
    )


def _verb(wait: Wait, ranks: list[int], stuck: list[int]) -> str:
    one = len(ranks) == 1
    if wait.is_message:
        return f"{'is' if one else 'are'} not {'sending' if 'recv' in wait.op else 'receiving'}"
    if all(rank in stuck for rank in ranks):
        return "never began it"
    return f"{'has' if one else 'have'} not begun it"


def _mismatch(wait: Wait) -> Verdict:
    number = wait.op.partition(" ")[2]
    places = wait.joined if wait.begun_there else {}
    said = [
        f"{name_ranks(ranks)} began {what}{_at(_places(places, ranks))}"
        for what, ranks in list(wait.others.items())[:_MOST]
    ]
    if others := [rank for ranks in list(wait.others.values())[_MOST:] for rank in ranks]:
        said.append(f"{name_ranks(sorted(others))} began something else")
    sentence = f"The ranks disagree on collective {number}: {_and(said)}."
    least = min(wait.others.values(), key=len)
    return _verdict("mismatch", sentence, least, True, wait, [INTERRUPT])


def _circle(waits: list[Wait]) -> Verdict:
    said = []
    waits = sorted(waits, key=lambda wait: min(wait.joined))
    for wait in waits[:_MOST]:
        ranks = list(wait.joined)
        verb = "waits" if len(ranks) == 1 else "wait"
        whom = "" if wait.is_message else f" for {name_ranks(wait.absent)}"
        at = _at(wait.joined.values())
        said.append(f"{name_ranks(ranks)} {verb} in {wait.op}{wait.about}{whom}{at}")
    if others := sorted({rank for wait in waits[_MOST:] for rank in wait.joined}):
        said.append(f"{name_ranks(others)} {'waits' if len(others) == 1 else 'wait'}, too")
    sentence = f"The ranks wait for each other: {_and(said)}."
    ranks = sorted({rank for wait in waits for rank in wait.joined})
    return _verdict("order", sentence, ranks, True, waits[0], [INTERRUPT], _ORDER)


def _slow(wait: Wait, evidence: Evidence) -> Verdict:
    sentence = f"{_begin(wait, evidence)} All of its ranks have begun it: it is slow, not stuck."
    return _verdict("slow", sentence, [], False, wait, [], "")


def _without_wait(evidence: Evidence) -> Verdict | None:
    """Return the verdict on ranks that do not answer, if no rank waits for them."""
    for condition in ("stopped", "starved", "holds_gil"):
        ranks = [rank for rank, found in evidence.items() if found.condition == condition]
        if ranks:
            what = what_it_does(evidence[ranks[0]], len(ranks) == 1)
            if len(ranks) > 1 and len({where_it_is(evidence[r].stack) for r in ranks}) > 1:
                what = what.partition(",")[0]
            do = "does" if len(ranks) == 1 else "do"
            sentence = f"{name_ranks(ranks).capitalize()} {do} not respond: {what}."
            if condition == "starved":
                return Verdict("silent", sentence, ranks, False, [INTERRUPT], _STARVED)
            kind: Kind = "stopped" if condition == "stopped" else "holds_gil"
            return Verdict(kind, sentence, ranks, condition == "stopped", [restart(ranks)])
    if ranks := [rank for rank, found in evidence.items() if found.condition == "silent"]:
        do = "does" if len(ranks) == 1 else "do"
        sentence = f"No verdict: {name_ranks(ranks)} {do} not respond."
        if why := evidence[ranks[0]].why:
            sentence = f"No verdict: what {name_ranks(ranks)} {do} cannot be seen ({why})."
        return Verdict("silent", sentence, ranks, False, [INTERRUPT, restart(ranks)], _SILENT)
    return None


# -- words ------------------------------------------------------------------------------------


def _begin(wait: Wait, evidence: Evidence) -> str:
    """Return the sentence on the ranks that wait."""
    ranks = list(wait.joined)
    one = len(ranks) == 1
    by = _by(wait)
    if all(waits_in(evidence[rank]) for rank in ranks):
        verb = "waits in" if one else "wait in"
        by = by and (f", begun{by}" if wait.begun_there else by)
    else:
        verb = "has begun" if one else "have begun"
    return f"{name_ranks(ranks).capitalize()} {verb} {wait.op}{wait.about}{by}."


def _by(wait: Wait) -> str:
    known = list(dict.fromkeys(place for place in wait.joined.values() if place))
    if len(known) == 1 and known[0].source:
        source, line = known[0].source, _line(known[0])
        return f" by `{source}` at {line}" if wait.begun_there else f" at `{source}`, {line}"
    return _at(known)


def _at(places: Iterable[CodePlace | None]) -> str:
    known = list(dict.fromkeys(_line(place) for place in places if place))
    return f" at {_and(known)}" if known else ""


def _places(places: dict[int, CodePlace | None], ranks: list[int]) -> list[CodePlace | None]:
    return [places.get(rank) for rank in ranks]


def _line(place: CodePlace) -> str:
    return f"{place.file} line {place.line}"


def _and(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _verdict(
    kind: Kind,
    sentence: str,
    ranks: list[int],
    stuck: bool,
    wait: Wait,
    remedies: list[Remedy],
    hint: str = STOP,
) -> Verdict:
    place = next((place for place in wait.joined.values() if place), None)
    return Verdict(
        kind,
        sentence,
        ranks,
        stuck,
        remedies,
        hint,
        wait.op,
        place.file if place else None,
        place.line if place else None,
        wait.begun,
    )

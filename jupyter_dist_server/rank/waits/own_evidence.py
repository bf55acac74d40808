"""What the main thread of this process waits in: its stack, groups, messages and collectives."""

from __future__ import annotations

import ast
import dis
import linecache
import logging
import sys
from collections.abc import Callable
from itertools import islice
from types import CodeType, FrameType
from typing import Any, TypeVar

from ...common.protocol.ranks.collectives import WAITING_MODULES
from ...common.protocol.ranks.evidence import Frame, Group, Message, RankEvidence
from ...common.recorded_collectives import collectives_of, is_own, place_at
from ..torch_internals import groups_by_name
from .flight_recorder import recorded
from .stacks import Place

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

_DEEPEST = 60  # the number of innermost frames that are reported
_UNNAMED = ("undefined", "default_pg", "")
_MAKER = "_new_process_group_helper"
_PEERS = {"send": ("dst", "group_dst"), "recv": ("src", "group_src")}
"""torch's functions that wait for one other rank, and the arguments with its number."""


def own_evidence(
    stack: list[Place], *, since: float = 0.0, idle: bool = False, learn_lines: bool = True
) -> RankEvidence:
    """Return what is known in this process, given the main thread's stack.

    Collectives begun before `since`, in seconds since 1970, are left out; `learn_lines`: see
    `recorded`.
    """
    told = [_tell(frame, line) for frame, line in stack[:_DEEPEST]]
    if not has_groups():
        return RankEvidence(idle=idle, stack=told)
    dump = _try("The flight recorder", lambda: recorded(learn_lines), None)
    groups: dict[str, tuple[list[int], str]] = _try("The process groups", groups_by_name, {})
    in_the_making = _try("A new group", lambda: _group_in_the_making(stack), None)
    making, members = in_the_making or ("", [])
    if making:
        groups[making] = members, ""
    return RankEvidence(
        idle=idle,
        stack=told,
        message=_try("A message", lambda: _message(stack), None),
        groups={
            name: Group(ranks, "" if description in _UNNAMED else description)
            for name, (ranks, description) in groups.items()
        },
        making=making,
        collectives=collectives_of(dump, since) if dump else [],
    )


def has_groups() -> bool:
    """Tell whether `torch.distributed` is imported here; to import it now would take seconds."""
    return hasattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world")


def _try(what: str, read: Callable[[], T], otherwise: T) -> T:
    """Read a part of the evidence; if that fails, the others are still reported."""
    try:
        return read()
    except Exception:  # of torch's internals
        _LOG.exception("%s cannot be read.", what)
        return otherwise


def _tell(frame: FrameType, line: int) -> Frame:
    code = frame.f_code
    return Frame(
        module=str(frame.f_globals.get("__name__")),
        function=code.co_name,
        place=place_at(code.co_filename, line),
        call=called_at(code, frame.f_lasti),
        own=is_own(code.co_filename),
    )


def called_at(code: CodeType, at: int) -> str | None:
    """Return what is called at an instruction, as written in the code."""
    while at > 0 and dis.opname[code.co_code[at]] == "CACHE":  # behind a call of Python code
        at -= 2
    if at < 0 or "CALL" not in dis.opname[code.co_code[at]]:
        return None
    if not hasattr(code, "co_positions"):
        return _only_call(code, at)
    first, last, begin, end = next(islice(code.co_positions(), at // 2, None))
    if first is None or first != last:
        return None
    line = linecache.getline(code.co_filename, first).encode()
    called = line[begin:end].decode(errors="replace")
    return called.partition("(")[0].strip() or None


def _only_call(code: CodeType, at: int) -> str | None:
    """Do so if the line has only one call: Python 3.10 does not record its place in the line."""
    number = next(line for begin, end, line in code.co_lines() if begin <= at < end)
    line = linecache.getline(code.co_filename, number or 0).strip()
    try:
        parsed = ast.walk(ast.parse(f"{line} pass" if line.endswith(":") else line))
    except SyntaxError:  # it continues in the next line
        return None
    calls = [ast.unparse(node.func) for node in parsed if isinstance(node, ast.Call)]
    return calls[0] if len(calls) == 1 else None


def _group_in_the_making(stack: list[Place]) -> tuple[str, list[int]] | None:
    """Return the name and the ranks of a group that `new_group` has not made yet."""
    for frame, _ in stack:
        if frame.f_code.co_name == _MAKER and frame.f_globals.get("__name__") in WAITING_MODULES:
            values: dict[str, Any] = frame.f_locals
            members: list[int] = list(values["global_ranks_in_group"])
            return (str(values["group_name"]), members) if members else None
    return None


def _message(stack: list[Place]) -> Message | None:
    """Return the message that the main thread waits for; gloo's recorder has none."""
    for frame, _ in stack:
        names = _PEERS.get(frame.f_code.co_name)
        if names and frame.f_globals.get("__name__") in WAITING_MODULES:
            return Message(frame.f_code.co_name, _peer(frame, *names))
    return None


def _peer(frame: FrameType, in_pool: str, in_group: str) -> int | None:
    import torch.distributed as dist

    values: dict[str, Any] = frame.f_locals
    group, peer = values.get("group"), values.get(in_pool)
    if peer is None and values.get(in_group) is not None:
        chosen: Any = group or dist.group.WORLD
        peer = dist.get_global_rank(chosen, values[in_group])
    return peer

"""What a process of a script answers; a thread runs it, whatever the main thread does."""

from __future__ import annotations

import os
from itertools import islice

import msgspec

from ...common.ask_from_outside import PLACE
from ...common.protocol.ranks.script_messages import Launch, ScriptReply, read_launch
from ..torch_internals import begun_in, default_group, groups
from ..waits.own_evidence import has_groups, own_evidence
from ..waits.stacks import main_thread

_PLACE_DEPTH = 30
"""Innermost frames by which two places are told apart."""


def answer(asked: bytes, is_rank: bool) -> bytes:
    """Return the answer to one question; `is_rank`: torchrun has started this process."""
    if asked == PLACE:
        return _place(is_rank).encode(errors="replace")
    evidence = own_evidence(list(main_thread()))
    return msgspec.json.encode(ScriptReply(launch(), evidence))


def _place(is_rank: bool) -> str:
    """Return where the main thread is, and how many collectives it has begun; empty for no rank.

    In a loop, the next one is another: as for a rank's status, see `Standstill`.
    """
    known = groups() if has_groups() else []
    if not (known or is_rank):
        return ""
    frames = islice(main_thread(), _PLACE_DEPTH)
    lines = [(frame.f_code.co_filename, line) for frame, line in frames]
    return f"{sum(map(begun_in, known))} {lines}"


def launch() -> Launch | None:
    """Return which rank this process is; `None` if it is none."""
    found = read_launch(dict(os.environ))
    if found is None and has_groups() and (default := default_group()):
        return Launch(default.rank(), default.size())
    return found

"""What a process of a script answers; a thread runs it, whatever the main thread does."""

from __future__ import annotations

import contextlib
import os
from itertools import islice

import msgspec

from ...common.protocol.ranks.script_messages import Launch, ScriptReply, read_launch
from ...common.way_in import PLACE
from ..torch_internals import begun_in, groups
from ..waits.own_evidence import has_groups, own_evidence
from ..waits.stacks import main_thread

_PLACE_DEPTH = 30
"""Innermost frames by which two places are told apart."""


def answer(asked: bytes) -> bytes:
    """Return the answer to one question, as bytes."""
    if asked == PLACE:
        return _place().encode()
    evidence = own_evidence(list(main_thread()))
    return msgspec.json.encode(ScriptReply(_launch(), evidence))


def _place() -> str:
    """Return where the main thread is, and how many collectives it has begun.

    In a loop, the next one is another: as for a rank's status, see `Standstill`.
    """
    begun = sum(map(begun_in, groups())) if has_groups() else 0
    frames = islice(main_thread(), _PLACE_DEPTH)
    return f"{begun} {[(frame.f_code.co_filename, line) for frame, line in frames]}"


def _launch() -> Launch | None:
    found = read_launch(dict(os.environ))
    if found is None and has_groups():
        import torch.distributed as dist

        with contextlib.suppress(RuntimeError, ValueError):  # no group yet, or none any more
            return Launch(dist.get_rank(), dist.get_world_size())
    return found

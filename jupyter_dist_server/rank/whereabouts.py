"""The current line of a rank's cell, and the collective that it waits in."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

from ..common.protocol.collectives import DDP

_WAITS = (
    "torch.distributed.distributed_c10d",
    "torch.distributed._functional_collectives",
    "torch.distributed.rendezvous",
    "torch.distributed.rpc",
    "torch.distributed.rpc.api",
)
"""Modules whose functions wait for other ranks. More of torch does, but by these."""
_WRAPPER = "wrapper"
"""What torch calls the functions around its own."""
_OF_DDP = "torch.nn.parallel.distributed"
_INNER = ("torch.distributed.utils", _OF_DDP)
"""Modules out of which `DistributedDataParallel` calls the C code that waits."""
_ENGINE = "_engine_run_backward"
"""torch's function in which gradients are computed, and exchanged if a model is wrapped."""

NOWHERE: dict[str, Any] = {"line": None, "call": None, "backward": False}
"""Where a rank is that runs no cell."""


def whereabouts() -> dict[str, Any]:
    """Tell where the main thread is in the cell that it runs.

    Returns
    -------
    dict
        ``{"line": 3, "call": "all_reduce", "backward": False}``: the line of the cell, what was
        called there that waits for other ranks, be it by a library, and whether gradients are
        computed, which may wait too; `None` where it is in neither.
    """
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    innermost = frame and _module(frame)
    call, backward = None, False
    while frame is not None:
        caller, name = frame.f_back, frame.f_code.co_name
        backward |= name == _ENGINE
        if _module(frame) in _WAITS and name != _WRAPPER:
            call = name
        if _module(frame) == _OF_DDP and innermost in _INNER:
            call = DDP
        if caller is not None and caller.f_code.co_name == "run_code":  # IPython runs a cell there
            return {"line": frame.f_lineno, "call": call, "backward": backward}
        frame = caller
    return NOWHERE


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))

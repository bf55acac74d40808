"""The current line of a rank's cell, and the collective that it waits in."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from ..common.protocol.collectives import DDP
from ..common.protocol.rank_messages import Whereabouts

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


def whereabouts() -> Whereabouts:
    """Tell where the main thread is in the cell that it runs."""
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
            return Whereabouts(frame.f_lineno, call, backward)
        frame = caller
    return Whereabouts()


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))

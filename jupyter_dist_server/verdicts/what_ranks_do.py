"""What a rank does instead of joining the others, in words."""

from __future__ import annotations

from ..common.processes.why_silent import PHRASES
from ..common.protocol.ranks.collectives import (
    BACKWARD,
    DDP,
    HALTS,
    NO_CALLS,
    WAITING_MODULES,
)
from ..common.protocol.ranks.evidence import CodePlace, Frame, RankEvidence

_WRAPPED_MODELS = "torch.nn.parallel.distributed"
_CELL = "In["
_TOP = 8
"""The innermost frames, among which the debugger's are while it stops a thread."""
_LOCKS = ("threading", "queue", "concurrent.futures", "multiprocessing.synchronize")
_NETWORK = ("socket", "ssl", "http.client", "urllib", "urllib3", "requests")


def waits_in(evidence: RankEvidence) -> str | None:
    """Return the function of torch in which the main thread waits for other ranks."""
    if not evidence.stack or _imports_torch(evidence.stack) or is_debugged(evidence):
        return None
    if any(frame.function == BACKWARD for frame in evidence.stack):
        return "backward"
    for frame in reversed(evidence.stack):  # what the cell calls, not what that is made of
        if frame.module in WAITING_MODULES and frame.function not in NO_CALLS:
            return frame.function
    innermost = evidence.stack[0]
    if any(frame.module == _WRAPPED_MODELS for frame in evidence.stack[:2]):
        return DDP
    if innermost.module.startswith("torch.distributed"):
        return "wait"
    call = innermost.call or ""
    return "wait" if call.rpartition(".")[2] in ("wait", "wait_tensor", "synchronize") else None


def _imports_torch(stack: list[Frame]) -> bool:
    """Tell whether a module of torch is being imported, which takes seconds, and is no call."""
    return any(f.function == "<module>" and f.module.startswith("torch.") for f in stack)


def is_debugged(evidence: RankEvidence) -> bool:
    """Tell whether JupyterLab's debugger has stopped the main thread."""
    return any(frame.function == HALTS for frame in evidence.stack[:_TOP])


def may_come(evidence: RankEvidence) -> bool:
    """Tell whether a rank may still join by itself: it computes, loads or sleeps."""
    if evidence.condition in ("holds_gil", "starved") or is_unseen(evidence):
        return True
    if evidence.condition != "answers" or evidence.idle:
        return False
    return not is_debugged(evidence) and _waits_for_user(evidence.stack) is None


def is_unseen(evidence: RankEvidence) -> bool:
    """Tell whether there is no way to see what a rank does, though it may be well."""
    return evidence.condition == "silent" and bool(evidence.why)


def what_it_does(evidence: RankEvidence, one: bool, ran: bool = True) -> str:
    """Return ``it is in `time.sleep`, In[9] line 7``, or the same of several ranks.

    `ran` says whether the rank's last cell is the one in which others wait.
    """
    it, its = ("it", "its") if one else ("they", "their")
    are, have, wait = ("is", "has", "waits") if one else ("are", "have", "wait")
    where = where_it_is(evidence.stack)
    if evidence.condition == "dead":
        return f"{it} {are} dead ({evidence.why.replace('its node', f'{its} node')})"
    if evidence.condition == "stopped":
        processes = "process is" if one else "processes are"
        return f"{its} {processes} stopped (SIGSTOP, a debugger)"
    if evidence.condition == "starved":
        return f"{it} {are} {PHRASES['starved']}"
    if evidence.condition == "silent":
        if evidence.why:
            return f"what {it} {'does' if one else 'do'} cannot be seen ({evidence.why})"
        return f"{it} {'does' if one else 'do'} not respond"
    if evidence.condition == "holds_gil":
        function = f" (`{evidence.native}`)" if evidence.native else ""
        return f"{it} {are} in C code that holds the GIL{function}{where}"
    if evidence.idle and not ran:
        return f"{it} {are} idle"
    if evidence.idle:
        cell = "cell" if one else "cells"
        if evidence.ended:
            return f"{it} ended {its} {cell} with {evidence.ended.rstrip('.')}"
        return f"{it} {have} finished {its} {cell}"
    if is_debugged(evidence):
        return f"{it} {are} stopped at a breakpoint{where}"
    if what := _waits_for_user(evidence.stack) or _waits_outside(evidence.stack):
        return f"{it} {wait} for {what}{where}"
    call = _call(evidence.stack)
    return f"{it} {are} in {f'`{call}`' if call else 'Python code'}{where}"


def busy_sentence(rank: int, evidence: RankEvidence) -> str:
    """Return what a rank does, as a sentence; empty if it is idle."""
    if evidence.condition == "answers" and evidence.idle:
        return ""
    what = what_it_does(evidence, True).removeprefix("it ").removeprefix("its ")
    return f"Rank {rank} {what}."


def where_it_is(stack: list[Frame]) -> str:
    """Return ``, In[9] line 7``: the innermost line of a cell or script."""
    place = innermost_line(stack)
    return f", {place.file} line {place.line}" if place else ""


def innermost_line(stack: list[Frame]) -> CodePlace | None:
    """Return the innermost line of a cell; without one, that of the user's script and modules."""
    frame = _users_frame(stack)
    return frame.place if frame else None


def _call(stack: list[Frame]) -> str | None:
    frame = _users_frame(stack)
    return frame.call if frame else None


def _users_frame(stack: list[Frame]) -> Frame | None:
    cells = (frame for frame in stack if frame.place.file.startswith(_CELL))
    own = (frame for frame in stack if frame.own)
    return next(cells, None) or next(own, None)


def _waits_for_user(stack: list[Frame]) -> str | None:
    modules = {frame.module for frame in stack}
    if modules & {"pdb", "bdb", "IPython.core.debugger", "debugpy"}:
        return "you in the debugger"
    functions = {frame.function for frame in stack[:6]}
    return "an answer to `input()`" if functions & {"ask_user", "_input_request"} else None


def _waits_outside(stack: list[Frame]) -> str | None:
    if not stack:
        return None
    innermost = stack[0].module
    if any(frame.module.startswith("torch.utils.data.dataloader") for frame in stack):
        inside = (*_LOCKS, "multiprocessing.connection", "multiprocessing.queues", "selectors")
        if innermost in inside:
            return "a worker of its DataLoader"
    if any(frame.module == "subprocess" for frame in stack):
        return "a subprocess"
    if innermost in _LOCKS:
        return "another thread"
    if any(frame.module.partition(".")[0] in _NETWORK for frame in stack[:3]):
        return "the network"
    return None

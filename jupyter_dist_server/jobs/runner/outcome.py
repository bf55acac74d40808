"""What became of a job: from its process's end, its output and its GPUs to a sentence."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any

from ..command import log_paths
from ..log import LogReader
from ..store.job import Job
from ..store.states import CANCELLED, COMPLETED, FAILED, NODE_FAIL, OUT_OF_MEMORY, TIMEOUT

_TAIL = 32768
"""Bytes at the end of the output in which an error is looked for."""
_GPU_MEMORY = re.compile(r"^.*(?:CUDA out of memory|CUDA error: out of memory).*$", re.MULTILINE)
_MEMORY = re.compile(r"^(?:MemoryError|numpy\S*MemoryError)\b.*$", re.MULTILINE)
_LONGEST = 300
_ENOUGH = 3
"""Readings of a GPU after which it is said that it was not used."""
_UNUSED = 64 * 2**20
"""Bytes by which the memory of a GPU that nobody uses may vary."""
_ASKED = {
    TIMEOUT: ("TimeLimit", "The time limit was reached."),
    CANCELLED: ("None", "Cancelled."),
    NODE_FAIL: ("None", "Its runner was asked to end, as at a shutdown of the machine."),
}


def outcome(job: Job, code: int, ended_by: str | None, killed_for_memory: str) -> dict[str, Any]:
    """Return the fields that the end of a job changes.

    Parameters
    ----------
    job : Job
        As it ran.
    code : int
        The exit code of its process, negative for a signal.
    ended_by : str or None
        The state that ending it ourselves leads to.
    killed_for_memory : str
        What the kernel says of that.
    """
    ended: dict[str, Any] = {"exit_code": code} if code >= 0 else {"exit_signal": -code}
    if ended_by:
        reason, told = _ASKED[ended_by]
        return ended | {"state": ended_by, "reason": reason, "detail": told}
    if code == 0:
        return ended | {"state": COMPLETED, "reason": "None", "detail": ""}
    if told := killed_for_memory or _out_of_memory(job):
        return ended | {"state": OUT_OF_MEMORY, "reason": "OutOfMemory", "detail": told}
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        told = f"Ended by signal {-code} ({name})."
        return ended | {"state": FAILED, "reason": f"RaisedSignal:{-code}", "detail": told}
    told = f"It ended with exit code {code}."
    return ended | {"state": FAILED, "reason": "NonZeroExitCode", "detail": told}


def _out_of_memory(job: Job) -> str:
    """Return a sentence if the last lines of the output say that memory ran out."""
    for path in dict.fromkeys(log_paths(job)[::-1]):
        piece = LogReader(path, -_TAIL).read()
        text = piece.data.decode(errors="replace") if piece else ""
        if found := _GPU_MEMORY.search(text):
            return f"GPU memory ran out: {found[0].strip()[:_LONGEST]}"
        if job.memory and (found := _MEMORY.search(text)):
            return f"Memory ran out (--mem): {found[0].strip()[:_LONGEST]}"
    return ""


def unused_gpus(job: Job, usage: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a sentence if a job did not use its GPUs, from what was seen of them."""
    unused = [
        uuid
        for uuid, seen in usage.items()
        if seen["samples"] >= _ENOUGH
        and not seen["load_peak"]
        and seen["memory_peak"] - seen["memory_first"] < _UNUSED
    ]
    if not unused:
        return ""
    if len(unused) == len(job.gpu_uuids):
        what = "a GPU and did not use it" if len(unused) == 1 else "GPUs and did not use them"
        return f"It asked for {what if len(unused) == 1 else f'{len(unused)} {what}'}."
    return f"It did not use {len(unused)} of its {len(job.gpu_uuids)} GPUs: {', '.join(unused)}."

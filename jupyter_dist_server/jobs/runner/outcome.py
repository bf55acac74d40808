"""What became of a job: a sentence, from the exit of its process, its output and its GPUs."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from typing import Any

from ...common.units import name_gpus
from ..log_reader import LogReader
from ..store.attempt import GpuUsage
from ..store.job import Job
from ..store.states import CANCELLED, COMPLETED, FAILED, NODE_FAIL, OUT_OF_MEMORY, TIMEOUT

_GPU_MEMORY = re.compile(r"^.*(?:CUDA out of memory|CUDA error: out of memory).*$", re.MULTILINE)
_OF_CACHES = re.compile(r"(?<=\.) GPU \d+ has a total .*")
_MEMORY = re.compile(r"^(?:MemoryError|numpy\S*MemoryError)\b.*$", re.MULTILINE)
_KILLED_RANK = re.compile(r"failed \(exitcode: -(\d+)\) local_rank: (\d+) \(pid: (\d+)\)")
"""As torch.distributed.elastic logs it."""
_LONGEST = 300
_UNUSED = 64 * 2**20
"""Bytes by which the memory of an unused GPU may vary."""
_ASKED = {
    TIMEOUT: ("TimeLimit", "The time limit was reached."),
    CANCELLED: ("None", "Cancelled."),
    NODE_FAIL: ("None", "Its runner was asked to end, as at a shutdown of the machine."),
}


def outcome(
    job: Job, code: int, ended_by: str | None, killed_for_memory: str, begins: Mapping[str, int]
) -> dict[str, Any]:
    """Return the fields of a job that its end changes.

    `code` is the exit code of its process, negative for a signal; `ended_by` the state that ending
    it ourselves leads to; `killed_for_memory` what the kernel says of that. `begins` has the files
    of its output, and how many bytes of each are older than this attempt.
    """
    if ended_by:
        state, (reason, told) = ended_by, _ASKED[ended_by]
    elif code == 0:
        state, reason, told = COMPLETED, "None", _killed_rank(job, begins)
    elif told := killed_for_memory or _out_of_memory(job, begins):
        state, reason = OUT_OF_MEMORY, "OutOfMemory"
    elif code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        state, reason, told = FAILED, f"RaisedSignal:{-code}", f"Ended by signal {-code} ({name})."
    elif code == 128 + signal.SIGKILL:
        told = f"It ended with exit code {code}: signal 9 (SIGKILL) ended one of its processes."
        state, reason = FAILED, "RaisedSignal:9"
    else:
        state, reason, told = FAILED, "NonZeroExitCode", f"It ended with exit code {code}."
    how = {"exit_code": code} if code >= 0 else {"exit_signal": -code}
    return {"state": state, "reason": reason, "detail": told} | how


def _killed_rank(job: Job, begins: Mapping[str, int]) -> str:
    """Return a sentence if torchrun reports a rank that a signal has ended, and went on."""
    if job.spec.torchrun:
        for text in _last_lines(begins):
            if found := _KILLED_RANK.search(text):
                return f"Rank {found[2]} (pid {found[3]}) was ended by signal {found[1]} meanwhile."
    return ""


def _last_lines(begins: Mapping[str, int]) -> Iterator[str]:
    for path, begin in [*begins.items()][::-1]:  # errors first
        if piece := LogReader(path, -32768).read():
            begin = begin if begin <= piece.size else 0  # emptied meanwhile
            yield piece.data[max(0, begin - piece.start) :].decode(errors="replace")


def _out_of_memory(job: Job, begins: Mapping[str, int]) -> str:
    """Return a sentence if the last lines of the output say that memory ran out."""
    for text in _last_lines(begins):
        if found := _GPU_MEMORY.search(text):
            # What torch says of its caches would fill a table; the output has it.
            said = _OF_CACHES.sub("", found[0]).strip()
            return f"GPU memory ran out: {said[:_LONGEST]}"
        if job.memory and (found := _MEMORY.search(text)):
            return f"Memory ran out (--mem): {found[0].strip()[:_LONGEST]}"
    return ""


def other_gpus(usage: Mapping[str, GpuUsage]) -> str:
    """Name the GPUs that a job used but did not have; empty if there are none."""
    labels = sorted({label for seen in usage.values() for label in seen.elsewhere})
    return f"It used {name_gpus(labels)}, which it did not have." if labels else ""


def unused_gpus(job: Job, usage: Mapping[str, GpuUsage]) -> str:
    """Return a sentence if a job did not use its GPUs."""
    unused = [
        uuid
        for uuid, seen in usage.items()
        if seen.samples >= 3  # or it is too early to tell
        and not seen.load_peak
        and seen.memory_peak - seen.memory_first < _UNUSED
    ]
    if not unused:
        return ""
    if len(unused) == len(job.gpu_uuids):
        what = "a GPU and did not use it" if len(unused) == 1 else "GPUs and did not use them"
        return f"It asked for {what if len(unused) == 1 else f'{len(unused)} {what}'}."
    return f"It did not use {len(unused)} of its {len(job.gpu_uuids)} GPUs: {', '.join(unused)}."

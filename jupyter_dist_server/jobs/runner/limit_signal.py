"""The signal that warns a job before its time limit: which of its processes get it.

As for Slurm, programs are warned and not the shell of a script, or with ``B:`` that shell alone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from .descendants import Descendant

_SHELLS = {"ash", "bash", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "sh", "tcsh", "zsh"}
_END_OTHERS = {signal.SIGUSR1, signal.SIGUSR2}
"""Signals that end every process that does not handle them, such as ``tee`` behind a program."""


def to_warn(
    processes: Sequence[Descendant], number: int, first: int | None = None
) -> list[Descendant]:
    """Return the processes that get the signal; with `first`, a pid, that process alone."""
    if first is not None:
        return [process for process in processes if process.pid == first]
    found = [process for process in processes if not _is_shell(process.pid)]
    if number in _END_OTHERS:
        found = [process for process in found if _expects(process.pid, number)]
    return found


def _is_shell(pid: int) -> bool:
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:  # gone, or another user's (sudo)
        return False
    return os.path.basename(program).removesuffix(" (deleted)") in _SHELLS


def _expects(pid: int, number: int) -> bool:
    """Tell whether a process handles a signal, or has blocked it to wait for it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:  # gone
        return False
    fields = dict(line.split(":", 1) for line in lines)
    return bool((int(fields["SigCgt"], 16) | int(fields["SigBlk"], 16)) >> (number - 1) & 1)

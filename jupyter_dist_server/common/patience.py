"""How long we wait for other processes, nodes and drivers; one factor scales all limits.

A limit is not for healthy processes, which take a small part of it. It only says when we stop
waiting, and look why nothing comes: `common/processes/why_silent.py` tells slow from stuck.
"""

from __future__ import annotations

import os
import warnings

VARIABLE = "JUPYTER_DIST_PATIENCE"
"""The environment variable with the factor; processes that we start inherit it."""


class _Limit:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __get__(self, patience: Patience, _: type) -> float:
        return self._seconds * patience.factor


class Patience:
    """Limits in seconds, times a factor.

    Parameters
    ----------
    factor : float
        Greater than 0; 1 is right unless the machine is always overloaded.
    """

    instant = _Limit(0.3)
    """For an answer of a thread that has nothing else to do, or that is on its way already."""
    answer = _Limit(1.0)
    """For an answer that a healthy process gives within milliseconds."""
    cleanup = _Limit(2.0)
    """For code that was interrupted to clean up, and for a killed process to end."""
    busy_answer = _Limit(5.0)
    """For an answer of a process that shares its processor with many others."""
    node = _Limit(10.0)
    """For an agent, be it on another node: the network may lose packets, and the node be busy."""
    end = _Limit(15.0)
    """For an agent, a runner or a cell to end, with all that it has started."""
    program = _Limit(30.0)
    """For other programs, such as Slurm's or systemctl, and for slow disks."""
    driver = _Limit(60.0)
    """For NVML: loading the driver of 16 GPUs takes 30 s, unless something keeps it loaded."""
    start = _Limit(120.0)
    """For a process to start: importing torch from a cold or shared disk takes most of it."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def set(self, factor: float) -> None:
        """Change the factor here, and in all processes that we start from now on."""
        self.factor = factor
        os.environ[VARIABLE] = f"{factor:g}"


def _read_factor() -> float:
    text = os.environ.get(VARIABLE) or "1"
    try:
        if 0.01 <= (factor := float(text)) <= 100:
            return factor
    except ValueError:
        pass
    wrong = f"{VARIABLE} is {text!r}, not a number from 0.01 to 100: 1 is used."
    warnings.warn(wrong, stacklevel=1)
    return 1.0


patience = Patience(_read_factor())

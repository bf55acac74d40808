"""How ranks and scripts can be asked from outside why they wait.

Each `jdist` imports this: it imports little.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

STACK_SIGNAL = getattr(signal, "SIGRTMIN", 0) + 7
"""Makes a rank on Linux write its stack; glibc and debuggers use no signal that high."""
RECORDED = 2000
"""Collectives that torch's flight recorder remembers."""
FOLDER = "JUPYTER_DIST_EVIDENCE"
"""The environment variable that names the folder."""
_SIGNAL = "JUPYTER_DIST_STACK_SIGNAL"
_ON_PATH = str(Path(__file__).parents[1] / "rank" / "scripts" / "on_path")
"""The folder of a module that each Python imports at its start."""
_SIZES = "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"
"""Variables with which users choose how many collectives are recorded."""
PROFILE_STEPS = "JUPYTER_DIST_PROFILE_STEPS"
"""The environment variable with the number of steps that are profiled."""
PLACE, EVIDENCE = b"place", b"evidence"
"""What a process can be asked: for its place, as text, and for a `ScriptReply`."""


def way_in(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which the Python processes of a job can be asked."""
    path = environment.get("PYTHONPATH")
    added = {
        FOLDER: str(folder),
        _SIGNAL: str(STACK_SIGNAL),
        "PYTHONPATH": f"{_ON_PATH}{os.pathsep}{path}" if path else _ON_PATH,
    }
    if not any(environment.get(name) for name in _SIZES):
        added[_SIZES[0]] = str(RECORDED)
    return added


def without_way_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a job hands on to jobs that it submits."""
    kept = {name: value for name, value in environment.items() if name not in (FOLDER, _SIGNAL)}
    if path := kept.get("PYTHONPATH", ""):
        others = [one for one in path.split(os.pathsep) if one != _ON_PATH]
        kept["PYTHONPATH"] = os.pathsep.join(others)
    return kept


def answer_socket(folder: Path, pid: int) -> Path:
    """Return where a process answers."""
    return folder / str(pid)


def recorder_socket(folder: Path, pid: int) -> Path:
    """Return where its flight recorder can be asked, also while it holds the GIL."""
    return folder / f"{pid}-fr"


def stack_file(folder: Path, pid: int) -> Path:
    """Return where it writes its main thread's stack at a `STACK_SIGNAL`."""
    return folder / f"{pid}.stack"


def profile_file(folder: Path, rank: int, world_size: int) -> Path:
    """Return where a rank writes the profile of its first steps."""
    return folder / f"{rank}.{world_size}.profile"

"""What scripts for ``sbatch`` take for granted: ``srun``, and variables of Slurm."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ...common.errors import DistError
from ..job_command import find_program
from ..slurm_variables import missing_variables

PROGRAMS = Path(__file__).parent.parent / "programs"
"""Programs that stand for Slurm's where there are none."""
_SRUN = re.compile(r"^[^#\n]*?\bsrun[ \t]+(.*)$", re.MULTILINE)
_TASKS = re.compile(r"(?:-n[ =]?|--ntasks(?:-per-node)?[ =])(\d+)")
_DIRECTIVE = re.compile(r"^#SBATCH\s+(.*)$", re.MULTILINE)


def check_script(name: str, text: str, environment: dict[str, str], notices: list[str]) -> None:
    """Let a script use ``srun``; refuse several tasks, and name variables that nobody sets."""
    if missing := missing_variables(text, environment):
        notices.append(f"Nothing sets {', '.join(missing)}, which {name} reads.")
    calls = _SRUN.findall(text)
    if not calls or _has_srun(environment):
        return
    counts = [
        int(count) for line in [*_DIRECTIVE.findall(text), *calls] for count in _TASKS.findall(line)
    ]
    if (tasks := max(counts, default=1)) > 1:
        program = next((word for word in calls[0].split() if word.endswith(".py")), "train.py")
        message = f"{name} starts {tasks} tasks by srun. There is no Slurm here."
        hint = f"Let torchrun start them: jdist submit --torchrun -G {tasks} {program}"
        raise DistError("bad_script", message, hint, "command")
    environment["PATH"] = os.pathsep.join([environment.get("PATH", os.defpath), str(PROGRAMS)])


def _has_srun(environment: Mapping[str, str]) -> bool:
    return find_program("srun", environment, "/") is not None

"""Which engine a pool on several nodes uses."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.errors import DistError
from .engine import Engine
from .slurm import Slurm

_ENGINES: tuple[Engine, ...] = (Slurm(),)


def engine_for(environment: Mapping[str, str]) -> Engine:
    """Return the engine of the cluster in which an environment is.

    Raises
    ------
    DistError
        If it is in none.
    """
    if "SLURM_JOB_ID" in environment and environment.get("SLURM_JOB_NODELIST"):
        return named("slurm")
    raise DistError(
        "no_nodes",
        "A pool on several nodes needs a Slurm allocation, and this notebook is in none.",
        "Start JupyterLab inside one: salloc -N2, then srun --overlap -N1 --pty jupyter lab.",
        field="nodes",
    )


def named(name: str) -> Engine:
    """Return an engine."""
    return next(engine for engine in _ENGINES if engine.name == name)

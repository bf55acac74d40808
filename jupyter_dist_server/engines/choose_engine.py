"""Which engine a pool on several nodes uses."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.errors import DistError
from .ray import Ray
from .slurm import Slurm

LOCAL = "local"
"""The name of no engine: pools use only this machine."""
Engine = Slurm | Ray
_ENGINES: tuple[Engine, ...] = (Slurm(), Ray())
ENGINES = (LOCAL, *(engine.name for engine in _ENGINES))


def engine_for(environment: Mapping[str, str], name: str = "") -> Engine:
    """Return the named engine, or that around us; raise `DistError` if there is none."""
    for engine in _ENGINES:
        if engine.name == name or (not name and engine.is_around(environment)):
            return engine
    if name == LOCAL:
        raise DistError(
            "no_nodes",
            "The engine local has only the node of the notebook.",
            f"Choose another one with --engine: {', '.join(ENGINES[1:])}.",
            field="engine",
        )
    raise DistError(
        "no_nodes",
        "A pool on several nodes needs a Slurm allocation or a Ray cluster, and this notebook is "
        "in none.",
        "Start JupyterLab in an allocation: salloc -N2, then srun --overlap -N1 --pty jupyter lab. "
        "Or choose Ray with --engine ray.",
        field="nodes",
    )

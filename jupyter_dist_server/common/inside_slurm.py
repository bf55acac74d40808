"""Whether an environment is that of a Slurm job."""

from __future__ import annotations

from collections.abc import Mapping

OURS = "jupyter-dist-queue"
"""``SLURM_CLUSTER_NAME`` in jobs of our queue, whose scripts may read Slurm's variables."""


def is_inside(environment: Mapping[str, str]) -> bool:
    """Tell whether an environment is that of a Slurm job, and not of one of our queue."""
    return "SLURM_JOB_ID" in environment and environment.get("SLURM_CLUSTER_NAME") != OURS

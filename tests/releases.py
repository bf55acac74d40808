"""What older releases of Jupyter's packages lack."""

from __future__ import annotations

import ipykernel
import pytest

HAS_SUBSHELLS = ipykernel.version_info >= (7,)
"""Whether kernels answer in a thread of their own while a cell runs."""

needs_subshells = pytest.mark.skipif(
    not HAS_SUBSHELLS, reason="before ipykernel 7, kernels have no subshells"
)

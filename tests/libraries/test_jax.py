"""JAX makes a job of its own of the ranks."""

from __future__ import annotations

import pytest

from ..notebook_driver import Notebook
from .program import run

PLAIN_ONLY = True
pytestmark = pytest.mark.libraries


def test_jax(notebook: Notebook) -> None:
    notebook.ok("%dist_init -n 2 --backend none")
    assert run(notebook, "jax_arrays") == "sum 18.0, of ranks [0, 1]"

"""Fixtures: pools on which programs run that know nothing of them."""

from __future__ import annotations

import pytest

from ..notebook_driver import Notebook


@pytest.fixture(scope="module")
def two(notebook: Notebook) -> Notebook:
    """Return a notebook with two ranks that ask no model hub for anything."""
    notebook.ok("%dist_init -n 2 --env HF_HUB_OFFLINE=1")
    return notebook


@pytest.fixture(scope="module")
def four(notebook: Notebook) -> Notebook:
    """Return a notebook with four ranks."""
    notebook.ok("%dist_init -n 4")
    return notebook

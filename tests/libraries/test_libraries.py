"""Libraries that train on several processes do so on ranks."""

from __future__ import annotations

import pytest

from ..notebook_driver import Notebook
from .program import run

PLAIN_ONLY = True
pytestmark = pytest.mark.libraries


def test_accelerate(two: Notebook) -> None:
    assert "of 2 processes" in run(two, "accelerate_loop")


def test_transformers_trainer(two: Notebook) -> None:
    assert "at last" in run(two, "transformers_trainer")


def test_transformers_tensor_parallel(two: Notebook) -> None:
    assert run(two, "transformers_tp").startswith("goes on with [")


def test_lightning_trainer(two: Notebook) -> None:
    assert run(two, "lightning_trainer").startswith("accuracy ")


def test_lightning_fabric(two: Notebook) -> None:
    assert "in 2 processes" in run(two, "lightning_fabric")


def test_torchmetrics(two: Notebook) -> None:
    assert run(two, "metrics").startswith("accuracy ")

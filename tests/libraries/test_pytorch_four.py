"""PyTorch's programs that need more than two processes to be what they are."""

from __future__ import annotations

from ..notebook_driver import Notebook
from .program import FSDP2, run

PLAIN_ONLY = True


def test_writing_distributed_applications(four: Notebook) -> None:
    assert run(four, "applications").startswith("trained to a loss of ")


@FSDP2
def test_device_mesh(four: Notebook) -> None:
    assert "on [[0, 1], [2, 3]]" in run(four, "mesh")

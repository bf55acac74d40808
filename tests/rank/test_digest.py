"""Digests of values, by which ranks are compared."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from jupyter_dist_server.rank.variables.digest import digest

WITHOUT_NUMPY = """
import sys

sys.modules["numpy"] = None  # importing it fails, as where it is not installed
import torch

from jupyter_dist_server.rank.variables.digest import digest, random_states

print(digest(torch.arange(6.0)), digest(torch.zeros(6)), random_states()["torch"])
"""


def test_tensors_are_compared_where_numpy_is_not_installed() -> None:
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_NUMPY]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    tensor, other, random = printed.stdout.split()
    assert tensor == digest(torch.arange(6.0))
    assert tensor != other
    assert random


def test_tensors_without_memory_are_not_compared() -> None:
    assert digest(torch.ones(3, device="meta")) == ""
    with FakeTensorMode():
        fake = torch.ones(3)
    assert digest(fake) == ""
    assert digest(torch.ones(0)) == digest(torch.zeros(0)) != ""

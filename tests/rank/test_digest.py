"""Digests of values, by which ranks are compared."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from jupyter_dist_server.rank.variables.leaves import digest

WITHOUT_NUMPY = """
import sys

sys.modules["numpy"] = None  # importing it fails, as where it is not installed
import torch

from jupyter_dist_server.rank.variables.leaves import digest, random_states

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


def test_scales_of_quantized_tensors_count() -> None:
    def of_tensor(scale: float, zero: int) -> str:
        return digest(torch._make_per_tensor_quantized_tensor(whole, scale, zero))

    def of_channels(scale: float, zero: int, axis: int = 0) -> str:
        scales, zeros = torch.tensor([scale, 1.0]), torch.tensor([zero, 0])
        return digest(torch._make_per_channel_quantized_tensor(whole, scales, zeros, axis))

    whole = torch.ones(2, 2, dtype=torch.uint8)
    assert of_tensor(0.5, 0) == of_tensor(0.5, 0) != ""
    assert len({of_tensor(0.5, 0), of_tensor(0.25, 0), of_tensor(0.5, 1)}) == 3
    assert of_channels(0.5, 0) == of_channels(0.5, 0) != ""
    different = of_channels(0.5, 0), of_channels(0.25, 0), of_channels(0.5, 1)
    assert len({*different, of_channels(0.5, 0, axis=1)}) == 4


def test_masks_of_arrays_count() -> None:
    def masked(mask: list[bool]) -> str:
        return digest(np.ma.array([1, 2, 3], mask=mask))

    none = [False, False, False]
    assert masked(none) == digest(np.ma.array([1, 2, 3])) != ""
    assert masked(none) != masked([True, False, False]) != masked([False, True, False])


def test_long_dictionaries_are_compared_in_any_order() -> None:
    numbers = {f"word {number}": number for number in range(101)}
    assert digest(numbers) == digest(dict(reversed(numbers.items()))) != ""
    assert digest(numbers) != digest(numbers | {"word 7": 8})
    assert digest(numbers) != digest({str(number): number for number in range(101)})

"""Splitting a value for the ranks, and concatenating the values of ranks."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

from ...common.errors import DistError


def split(name: str, value: Any, count: int) -> list[Any]:
    """Cut a value into parts along its first dimension, as evenly as possible."""
    try:
        size, rest = divmod(len(value), count)
        ends = [size * n + min(n, rest) for n in range(count + 1)]
        by_position = getattr(value, "iloc", value)  # pandas takes numbers for labels otherwise
        return [by_position[begin:end] for begin, end in itertools.pairwise(ends)]
    except (TypeError, KeyError, IndexError, RuntimeError) as error:
        why = str(error).partition(". ")[0]  # torch goes on with all backends that it has
        raise DistError(
            "value_not_a_sequence",
            f"`{name}` cannot be split: {why}.",
            "Scatter a dense tensor, an array or a sequence.",
        ) from error


def concatenate(name: str, values: Sequence[Any]) -> Any:
    """Join the values of several ranks along their first dimension."""
    module = type(values[0]).__module__.partition(".")[0]
    try:
        if module == "torch":
            import torch

            return torch.cat(list(values))
        if module == "numpy":
            import numpy

            are_masked = any(isinstance(value, numpy.ma.MaskedArray) for value in values)
            join: Any = numpy.ma.concatenate if are_masked else numpy.concatenate
            return join(values)
        if module == "pandas":
            return sys.modules[module].concat(list(values))
        if not isinstance(values[0], (list, tuple, str, bytes)):
            raise TypeError(f"{type(values[0]).__name__} has no first dimension")
        joined: Any = values[0]
        for value in values[1:]:
            joined = joined + value
        return joined
    except (TypeError, ValueError, RuntimeError) as error:
        raise DistError(
            "value_not_a_sequence",
            f"`{name}` of the ranks cannot be concatenated: {error}.",
            "Gather the values as a list, without --concat.",
        ) from error

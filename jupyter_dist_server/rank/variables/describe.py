"""What variables are: their leaves, with digests of what these hold."""

from __future__ import annotations

import itertools
import logging
import sys
from typing import Any

import msgspec

from ...common.protocol.ranks.variable_messages import Leaf, Variable, VariablesRequest
from ..torch_internals import shard_of
from .digest import digest, local_part
from .leaves import Found, is_simple, leaves_of

_LOG = logging.getLogger(__name__)

_LONGEST_TEXT = 40
"""Characters of a simple value that is shown."""
_MOST_LEAVES = 10_000
"""Of a variable that nobody named; one that has more is told as a whole."""


def describe_variable(name: str, value: Any, asked: VariablesRequest) -> Variable:
    """Return what a variable is; a part of it that cannot be read is a leaf without a digest."""
    found = _leaves(name, value, asked)
    leaves = [(one, _leaf(one, asked.values)) for one in found]
    nbytes = sum(leaf.nbytes for _, leaf in leaves)
    checked = asked.largest is None or nbytes <= asked.largest
    return Variable(
        name=name,
        type=type(value).__name__,
        leaves=[
            msgspec.structs.replace(leaf, digest=digest(one.value)) if checked else leaf
            for one, leaf in leaves
        ],
        checked=checked,
    )


def _leaves(name: str, value: Any, asked: VariablesRequest) -> list[Found]:
    if asked.names:
        return list(leaves_of(name, value))
    whole = [Found(name, name, value)]
    most = sys.maxsize if asked.only_trained else _MOST_LEAVES
    if isinstance(value, (list, tuple, dict)) and len(value) > most:
        return whole
    try:
        # Code of the user's is not called unasked: it may take part in a collective.
        leaves = leaves_of(name, value, only_torch=asked.largest is not None)
        found = list(itertools.islice(leaves, most))
    except Exception:  # of a class of the user's
        _LOG.info("`%s` cannot be looked at.", name, exc_info=True)
        return whole
    return found if len(found) < most else whole


def _leaf(found: Found, show_value: bool) -> Leaf:
    try:
        return _read(found, show_value)
    except Exception:  # of a tensor without a shape, or of a class of the user's
        return Leaf(path=found.path, expression=found.expression, type=type(found.value).__name__)


def _read(found: Found, show_value: bool) -> Leaf:
    torch, value = sys.modules["torch"], found.value
    shape = getattr(value, "shape", None)
    # That of a jagged tensor has sizes that are no numbers.
    is_shape = isinstance(shape, tuple) and all(type(size) is int for size in shape)
    is_tensor = isinstance(value, torch.Tensor)
    held = local_part(value) if is_tensor else value
    size = held.numel() * held.element_size() if is_tensor else getattr(held, "nbytes", None)
    return Leaf(
        path=found.path,
        expression=found.expression,
        type=type(value).__name__,
        shape=shape if is_shape else None,
        dtype=str(getattr(value, "dtype", "")).removeprefix("torch."),
        device=str(value.device) if is_tensor else "",
        nbytes=size if isinstance(size, int) else _size_of(value),
        shard=shard_of(value) if is_tensor else "",
        text=_text(value) if show_value else "",
    )


def _size_of(value: Any) -> int:
    """Return the bytes of a plain value with those of its items, as a digest reads all of them.

    If there are very many, the others are taken to be as large as the first ones.
    """
    if type(value) not in (list, tuple, dict):
        return sys.getsizeof(value)
    items = value.items() if type(value) is dict else zip(value)
    sizes = [sum(map(sys.getsizeof, item)) for item in itertools.islice(items, _MOST_LEAVES)]
    return sys.getsizeof(value) + len(value) * sum(sizes) // (len(sizes) or 1)


def _text(value: Any) -> str:
    """Return a short simple value as code, and nothing for another one."""
    is_long = isinstance(value, (str, bytes, list, tuple, dict)) and len(value) > _LONGEST_TEXT
    text = repr(value) if not is_long and is_simple(value) else ""
    return text if len(text) <= _LONGEST_TEXT else ""

"""The tensors, arrays and simple values that a variable consists of."""

from __future__ import annotations

import itertools
import sys
from collections import UserDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SIMPLE = (type(None), bool, int, float, complex, str, bytes)
_DEEPEST = 20
"""How deep containers in containers are looked into."""


_LONG = 100
"""Entries of a dictionary."""


@dataclass(frozen=True)
class Found:
    """A leaf of a variable."""

    path: str
    expression: str
    value: Any


def leaves_of(name: str, value: Any, depth: int = 0, only_torch: bool = False) -> Iterator[Found]:
    """Yield what a value consists of; what it shares with others, each time.

    Parameters
    ----------
    name : str
        An expression for the value on the rank, by which it is shown too.
    value : object
        A tensor, an array, a simple value; a module or an optimizer; a container of these, or
        an object that has a `state_dict`. Anything else is a leaf that cannot be compared.
    depth : int
        In how many containers it is.
    only_torch : bool
        Whether only `state_dict` of torch's own classes is called.
    """
    torch = sys.modules["torch"]
    if isinstance(value, torch.nn.Module):
        yield from _of_module(name, value)
    elif isinstance(value, torch.optim.Optimizer):
        yield from _of_optimizer(name, value, only_torch)
    elif depth < _DEEPEST and isinstance(value, (dict, UserDict)) and not _is_long(value):
        for key, item in value.items():
            yield from leaves_of(f"{name}[{key!r}]", item, depth + 1, only_torch)
    elif depth < _DEEPEST and type(value) in (list, tuple) and not is_simple(value):
        for number, item in enumerate(value):
            yield from leaves_of(f"{name}[{number}]", item, depth + 1, only_torch)
    elif (held := _state_of(value, only_torch)) is not None:
        yield from leaves_of(f"{name}.state_dict()", held, depth + 1, only_torch)
    else:
        yield Found(name, name, value)


def is_simple(value: Any) -> bool:
    """Whether `repr` tells all of a value, which may be a list of numbers."""
    if type(value) in (list, tuple):
        return all(type(item) in _SIMPLE for item in value)
    return type(value) in _SIMPLE or (isinstance(value, dict) and _is_long(value))


def _is_long(value: Any) -> bool:
    """Whether a dictionary has so many simple values that it is told as one."""
    return len(value) > _LONG and all(type(item) in _SIMPLE for item in value.values())


def _state_of(value: Any, only_torch: bool) -> Any:
    """Return the `state_dict` of an object, if it has one."""
    if only_torch and not type(value).__module__.startswith("torch."):
        return None
    if isinstance(value, type) or not callable(getattr(value, "state_dict", None)):
        return None
    try:
        return value.state_dict()
    except Exception:  # of the user's code, which may want to be in another state
        return None


def _of_module(name: str, module: Any) -> Iterator[Found]:
    for path, parameter in module.named_parameters():
        yield Found(f"{name}.{path}", f"{name}.get_parameter({path!r})", parameter)
    for path, buffer in module.named_buffers():
        yield Found(f"{name}.{path}", f"{name}.get_buffer({path!r})", buffer)


def _of_optimizer(name: str, optimizer: Any, only_torch: bool) -> Iterator[Found]:
    held = _state_of(optimizer, only_torch)
    if held is None:  # one that must first gather its state from other ranks
        yield Found(name, name, optimizer)
        return
    inside = itertools.chain(
        leaves_of("['state']", held["state"]),
        *(
            leaves_of(f"['param_groups'][{number}]", _without_numbers(group))
            for number, group in enumerate(held["param_groups"])
        ),
    )
    for leaf in inside:
        path = leaf.path.replace("['state']", ".state", 1)
        path = path.replace("['param_groups']", ".param_groups", 1)
        yield Found(f"{name}{path}", f"{name}.state_dict(){leaf.expression}", leaf.value)


def _without_numbers(group: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a group: which parameters are in it, their values say."""
    return {key: value for key, value in group.items() if key != "params"}

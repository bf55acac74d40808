"""The tensors, arrays and simple values of a variable, and digests of them.

Digests are equal on two ranks if the values are, bit by bit. `torch.hash_tensor` would be faster,
but it is zero for any even number of equal elements, and blind to their order.
"""

from __future__ import annotations

import ctypes
import hashlib
import random
import sys
from collections import UserDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SIMPLE = (type(None), bool, int, float, complex, str, bytes)
_DEEPEST = 20  # the maximum depth of containers in containers
_LONG = 100  # a dictionary with more simple values is one leaf
_CHUNK = 1 << 26  # bytes that are copied from a GPU at a time


@dataclass(frozen=True)
class Found:
    """A leaf of a variable."""

    path: str
    expression: str
    value: Any


def leaves_of(name: str, value: Any, depth: int = 0, only_torch: bool = False) -> Iterator[Found]:
    """Yield the leaves of a value; `name` is an expression for it on the rank.

    Modules, optimizers, containers and objects with a `state_dict` are divided, but only torch's
    own `state_dict` is called if `only_torch`. Shared parts come each time.
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
    """Tell whether `repr` shows all of a value, which may be a list of numbers."""
    if type(value) in (list, tuple):
        return all(type(item) in _SIMPLE for item in value)
    return type(value) in _SIMPLE or (isinstance(value, dict) and _is_long(value))


def _is_long(value: Any) -> bool:
    """Tell whether a dictionary has so many simple values that it is one leaf."""
    return len(value) > _LONG and all(type(item) in _SIMPLE for item in value.values())


def _state_of(value: Any, only_torch: bool) -> Any:
    """Return the `state_dict` of an object, if it has one."""
    if only_torch and not type(value).__module__.startswith("torch."):
        return None
    if isinstance(value, type) or not callable(getattr(value, "state_dict", None)):
        return None
    try:
        return value.state_dict()
    except Exception:  # of the user's code
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
    groups = [
        {key: value for key, value in group.items() if key != "params"}
        for group in held["param_groups"]
    ]
    for part, content in (("state", held["state"]), ("param_groups", groups)):
        for leaf in leaves_of("", content):
            expression = f"{name}.state_dict()[{part!r}]{leaf.expression}"
            yield Found(f"{name}.{part}{leaf.path}", expression, leaf.value)


def digest(value: Any) -> str:
    """Return a digest of a value, or an empty string if it cannot be compared between processes."""
    try:
        return _digest(value)
    except Exception:  # a tensor without storage, or of an unusual kind
        return ""


def _digest(value: Any) -> str:
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    state = hashlib.blake2b(digest_size=16)
    if isinstance(value, torch.Tensor):
        value = local_part(value)
        if value.is_meta:
            return ""
        _add_tensor(state, value.detach())
    elif numpy and isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
        state.update(f"{value.dtype}{value.shape}".encode())
        state.update(_bytes_of(value))
        if isinstance(value, numpy.ma.MaskedArray):
            state.update(_bytes_of(numpy.ma.getmaskarray(value)))
    elif isinstance(value, dict) and is_simple(value):
        state.update("".join(sorted(map(repr, value.items()))).encode())
    elif is_simple(value):
        state.update(repr(value).encode())
    elif numpy and isinstance(value, numpy.generic):
        state.update(f"{value.dtype}{value!r}".encode())
    else:
        return ""
    return state.hexdigest()


def _bytes_of(array: Any) -> Any:
    numpy = sys.modules["numpy"]
    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)


def _scales_of(tensor: Any) -> tuple[Any, ...]:
    """Return the meaning of the integers of a quantized tensor."""
    torch, scheme = sys.modules["torch"], tensor.qscheme()
    if scheme in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return scheme, tensor.q_scale(), tensor.q_zero_point()
    scales, zeros = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return scheme, scales.tolist(), zeros.tolist(), tensor.q_per_channel_axis()


def local_part(tensor: Any) -> Any:
    """Return this rank's part of a DTensor, or any other tensor itself."""
    distributed = sys.modules.get("torch.distributed.tensor")
    if distributed and isinstance(tensor, distributed.DTensor):
        return tensor.to_local()
    return tensor


def random_states() -> dict[str, str]:
    """Return digests of the states of the random number generators, by library."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    states = {"torch": digest(torch.get_rng_state())}
    if torch.cuda.is_initialized():
        states["torch.cuda"] = digest(torch.cuda.get_rng_state())
    if numpy:
        _, keys, *rest = numpy.random.get_state()
        states["numpy"] = digest(keys) + digest(rest)
    states["random"] = digest(repr(random.getstate()))
    return states


def _add_tensor(state: Any, tensor: Any) -> None:
    torch = sys.modules["torch"]
    state.update(f"{tensor.dtype}{tuple(tensor.shape)}{tensor.layout}".encode())
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        _add_tensor(state, tensor.indices())
        tensor = tensor.values()
    elif tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        state.update(repr(_scales_of(tensor)).encode())
        tensor = tensor.int_repr()
    flat = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    if type(flat) is not torch.Tensor:  # it may have no memory of its own, such as a fake tensor
        raise TypeError(f"{type(flat)} has no bytes that could be compared")
    for start in range(0, flat.numel(), _CHUNK):
        chunk = flat[start : start + _CHUNK].cpu()
        # Not by NumPy, which torch can do without.
        state.update((ctypes.c_char * chunk.numel()).from_address(chunk.data_ptr()))

"""Digests of values: the same on two ranks if the values are, bit by bit.

`torch.hash_tensor` would be faster, but it combines the elements by XOR: it is zero for any even
number of equal ones, and blind to their order.
"""

from __future__ import annotations

import ctypes
import hashlib
import random
import sys
from typing import Any

from .leaves import is_simple

_CHUNK = 1 << 26
"""Bytes that are copied from a GPU at a time."""


def digest(value: Any) -> str:
    """Return a digest of a value; empty if it cannot be compared with that of another process."""
    try:
        return _digest(value)
    except Exception:  # a tensor without storage, or of a kind that torch can only do little with
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
    """Return what the integers of a quantized tensor stand for."""
    torch, scheme = sys.modules["torch"], tensor.qscheme()
    if scheme in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return scheme, tensor.q_scale(), tensor.q_zero_point()
    scales, zeros = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return scheme, scales.tolist(), zeros.tolist(), tensor.q_per_channel_axis()


def local_part(tensor: Any) -> Any:
    """Return what this rank holds of a DTensor, or any other tensor itself."""
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

"""Pickling of values for the notebook and its ranks, with large buffers in shared memory."""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import pickle
import sys
import types
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from .protocol.ranks.rank_messages import SharedAddress

Buffer = memoryview | bytearray

SHARED_FROM = 64 << 10
"""Bytes from which a value goes through shared memory."""
PARCEL_FROM = 1 << 20
"""Bytes from which a value goes to another node, or comes from there, in pieces."""
_APART_FROM = 4 << 10
"""Bytes from which an array is sent beside the pickle."""
_MAPPED_FROM = 16 << 20
"""Bytes from which received memory is mapped, not copied: each mapping holds a descriptor."""
_CHUNK = 64 << 20
"""Bytes written by one system call, between which Python handles an interrupt."""
_ALIGNMENT = 64


@dataclass
class Packed:
    """A pickled value."""

    buffers: list[memoryview]
    """The pickle, then the buffers that it refers to; these share the value's own memory."""
    devices: list[str]
    """Devices other than the CPU from which tensors were fetched."""
    _owners: list[Any] = field(default_factory=list)

    @property
    def sizes(self) -> list[int]:
        """In bytes."""
        return [buffer.nbytes for buffer in self.buffers]


def pack(
    value: Any,
    whole: Iterable[Any] = (),
    name_code: Callable[[str], str] | None = None,
    namespaces: list[dict[str, Any]] | None = None,
) -> Packed:
    """Pickle a value; tensors leave their devices and arrive on the CPU.

    Tensors in `whole` share memory with nothing else in the value: of a view, only the part
    that it shows is sent. `name_code` returns the file name that the code of functions has on
    the other side. `namespaces` receives the globals that functions of the notebook have there;
    if the value ends with it, they can be added to there. Raises whatever pickle raises.
    """
    buffers: list[memoryview] = []

    def keep_in_band(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _APART_FROM:
            return True
        buffers.append(raw)
        return False

    file = io.BytesIO()
    pickler = _Pickler(file, keep_in_band, whole, name_code, namespaces)
    pickler.dump(value)
    return Packed([file.getbuffer(), *buffers], sorted(pickler.devices), [value, pickler.owners])


def unpack(buffers: Sequence[Buffer]) -> Any:
    """Return the value, whose arrays use the given memory; raises whatever goes wrong."""
    return pickle.loads(buffers[0], buffers=buffers[1:])


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Takes functions and classes of a notebook by value, and tensors without a copy."""

    def __init__(
        self,
        file: io.BytesIO,
        keep_in_band: Any,
        whole: Iterable[Any],
        name_code: Callable[[str], str] | None,
        namespaces: list[dict[str, Any]] | None,
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=keep_in_band)
        self.devices: set[str] = set()
        self.owners: list[Any] = []
        self._name_code = name_code
        self._namespaces = namespaces
        self._whole = {id(value) for value in whole}
        self._storages: dict[int, _Held] = {}

    def reducer_override(self, obj: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None:
            if isinstance(obj, torch.storage.TypedStorage):
                return _typed_storage, (self._hold(obj._untyped_storage), obj.dtype)
            if isinstance(obj, torch.UntypedStorage):  # torch too makes it a typed one
                return _typed_storage, (self._hold(obj), torch.uint8)
            if type(obj) is torch.Tensor and id(obj) in self._whole and _is_a_part(obj):
                return self._reduce_part(obj)
        if self._name_code is not None and isinstance(obj, types.CodeType):
            named = obj.replace(co_filename=self._name_code(obj.co_filename))
            return self.dispatch_table[types.CodeType](named)
        if self._namespaces is not None and isinstance(obj, types.FunctionType):
            self._note_namespace(obj.__globals__, self._namespaces)
        if isinstance(obj, _Held):
            return self._reduce_storage(obj.storage)
        ipython = sys.modules.get("IPython")
        if ipython is not None and isinstance(obj, ipython.InteractiveShell):
            return ipython.get_ipython, ()  # a function that uses it means the one where it runs
        return super().reducer_override(obj)

    def _note_namespace(self, names: dict[str, Any], namespaces: list[dict[str, Any]]) -> None:
        """Note the dictionary that cloudpickle sends for the globals of the notebook."""
        if names.get("__name__") == "__main__":
            sent = self.globals_ref.setdefault(id(names), {})
            if all(sent is not one for one in namespaces):
                namespaces.append(sent)

    def _hold(self, storage: Any) -> _Held:
        """Return one object for one storage, by which pickle recognizes it."""
        return self._storages.setdefault(storage._cdata, _Held(storage))

    def _reduce_storage(self, storage: Any) -> Any:
        if storage.device.type != "cpu":
            self.devices.add(str(storage.device))
            storage = storage.cpu()
        size = storage.nbytes()
        if size == 0:
            return _storage, (b"",)
        self.owners.append(storage)
        memory = (ctypes.c_char * size).from_address(storage.data_ptr())
        return _storage, (pickle.PickleBuffer(memory),)

    def _reduce_part(self, tensor: Any) -> Any:
        if tensor.device.type != "cpu":
            self.devices.add(str(tensor.device))
        part = tensor.detach().contiguous().cpu()
        part = part.clone() if _is_a_part(part) else part
        self.owners.append(part)
        return part.requires_grad_(tensor.requires_grad).__reduce_ex__(5)


@dataclass
class _Held:
    storage: Any


def _is_a_part(tensor: Any) -> bool:
    import torch

    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        return False
    shown: int = tensor.numel() * tensor.element_size()
    return shown < int(tensor.untyped_storage().nbytes())


def _storage(buffer: Any) -> Any:
    import torch

    if not len(buffer):
        return torch.UntypedStorage(0)
    return torch.frombuffer(buffer, dtype=torch.uint8).untyped_storage()


def _typed_storage(storage: Any, dtype: Any) -> Any:
    import torch

    return torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


# -- shared memory --------------------------------------------------------------------------


class SharedMemory:
    """A file in memory, without a path, which other processes of the user can open meanwhile.

    It is freed when the last process that has it open or mapped ends.
    """

    possible = hasattr(os, "memfd_create") and sys.platform == "linux"

    def __init__(self) -> None:
        self._name = f"jupyter-dist-{uuid.uuid4().hex}"
        self.descriptor = os.memfd_create(self._name)

    def __enter__(self) -> SharedMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it here."""
        os.close(self.descriptor)

    @property
    def address(self) -> SharedAddress:
        """What another process needs to open it, see `open_shared`."""
        return SharedAddress(os.getpid(), self.descriptor, self._name)


def open_shared(address: SharedAddress) -> int | None:
    """Open another process's memory; `None` if that is not possible from here."""
    path = f"/proc/{address.pid}/fd/{address.descriptor}"
    try:
        # In another container the number may belong to a stranger.
        if os.readlink(path) != f"/memfd:{address.name} (deleted)":
            return None
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None


def write_shared(descriptor: int, buffers: Iterable[memoryview]) -> None:
    """Write buffers one after another, as `read_shared` reads them."""
    buffers = list(buffers)
    os.ftruncate(descriptor, shared_size(buffer.nbytes for buffer in buffers))
    for offset, piece in pieces(buffers, _CHUNK):
        write_piece(descriptor, piece, offset)


def write_piece(descriptor: int, piece: memoryview, offset: int) -> None:
    """Write a piece of them, see `pieces`."""
    # Reserving the pages at once is quicker than page by page during the write.
    os.posix_fallocate(descriptor, offset, piece.nbytes)
    while piece:
        written = os.pwrite(descriptor, piece, offset)
        offset, piece = offset + written, piece[written:]


def pieces(buffers: Sequence[memoryview], most: int) -> Iterator[tuple[int, memoryview]]:
    """Cut buffers into pieces of some bytes at most, each with its place in shared memory."""
    for buffer, offset in zip(buffers, _offsets(b.nbytes for b in buffers), strict=True):
        for start in range(0, buffer.nbytes, most):
            yield offset + start, buffer[start : start + most]


def shared_size(sizes: Iterable[int]) -> int:
    """Return how much shared memory buffers of some sizes need."""
    return sum(map(_padded, sizes))


def read_shared(descriptor: int, sizes: Sequence[int]) -> list[Buffer]:
    """Return writable buffers that are ours alone; large ones are copied only where written to."""
    total = shared_size(sizes)
    if total < _MAPPED_FROM:
        memory = bytearray(total)
        os.preadv(descriptor, [memory], 0)
        return cut(memoryview(memory), sizes)
    return cut(memoryview(mmap.mmap(descriptor, total, flags=mmap.MAP_PRIVATE)), sizes)


def cut(view: memoryview, sizes: Sequence[int]) -> list[Buffer]:
    """Return the buffers in memory that `write_shared` has written."""
    return [
        view[offset : offset + size] for size, offset in zip(sizes, _offsets(sizes), strict=True)
    ]


def own(buffers: Iterable[Any]) -> list[Buffer]:
    """Return writable copies of buffers that came within a message."""
    return [bytearray(buffer) for buffer in buffers]


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _offsets(sizes: Iterable[int]) -> Iterator[int]:
    offset = 0
    for size in sizes:
        yield offset
        offset += _padded(size)

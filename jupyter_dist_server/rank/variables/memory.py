"""The memory of variables, and their cells; of a training step; and what exhausted a GPU's.

From the first use of CUDA on, torch records the Python stack of each allocation, which takes
about 2 µs: https://docs.pytorch.org/docs/stable/torch_cuda_memory.html.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import pickle
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...common.protocol.ranks.evidence import CodePlace
from ...common.protocol.ranks.memory_messages import (
    Allocated,
    EstimateReply,
    Exhausted,
    Held,
)
from ...common.recorded_collectives import TorchFrame, users_place
from ..torch_memory import (
    fake_mode,
    map_tensors,
    memory_snapshot,
    peak_of_step,
    record_memory,
    tensors_in,
)
from .leaves import leaves_of, local_part

_LOG = logging.getLogger(__name__)

_MOST = 50  # variables that are reported
_ENTRIES = 10_000  # allocations that are kept; each takes several KiB in a snapshot
_MOST_LINES = 10  # lines that are reported

Storage = tuple[str, int]
"""A block of memory: its device and address."""


def held_by(
    variables: Iterable[tuple[str, Any]],
    hidden: Iterable[tuple[str, Any]],
    cell_of: Callable[[str, Any], int | None],
) -> tuple[list[Held], int]:
    """Return the variables with tensors and arrays, and the bytes of all of them together.

    A variable that cannot be read counts as far as possible. A hidden one is left out if others
    hold all that it holds.
    """
    every: dict[Storage, int] = {}
    held = []
    shown = [(name, value, False) for name, value in variables]
    for name, value, is_hidden in [*shown, *((*each, True) for each in hidden)]:
        blocks: dict[Storage, int] = {}
        gradients: dict[Storage, int] = {}
        try:
            for leaf in leaves_of(name, value):
                blocks.update(_blocks(leaf.value))
                if getattr(leaf.value, "is_leaf", False):  # torch warns of any other's
                    gradients.update(_blocks(getattr(leaf.value, "grad", None)))
        except Exception:  # of the user's class
            _LOG.info("`%s` cannot be looked at.", name, exc_info=True)
        is_listed = blocks and not (is_hidden and blocks.keys() <= every.keys())
        every |= blocks | gradients
        if is_listed:
            nbytes = sum((blocks | gradients).values())
            held.append(Held(name, nbytes, sum(gradients.values()), cell_of(name, value)))
    held.sort(key=lambda one: -one.nbytes)
    return held[:_MOST], sum(every.values())


def estimate(model: Any, optimizer: Any, batch: Any) -> EstimateReply:
    """Return the peak memory of a training step, computed with tensors that have no content.

    The step is ``model(batch)``, the sum of what it returns, `backward`, and the optimizer's
    `step`. The user's objects are not changed.
    """
    torch = sys.modules["torch"]
    wrapped = torch.nn.parallel.DistributedDataParallel
    if isinstance(model, wrapped):
        model = model.module  # the wrapper would begin collectives, on this rank alone
    if any(isinstance(part, wrapped) for part in model.modules()):
        raise ValueError("a part of the model is wrapped in DistributedDataParallel")
    fsdp = sys.modules.get("torch.distributed.fsdp")
    if fsdp and any(
        isinstance(part, (fsdp.FSDPModule, fsdp.FullyShardedDataParallel))
        for part in model.modules()
    ):
        raise ValueError("FSDP has sharded the model; estimate it before that")
    mode = fake_mode()
    known: dict[int, Any] = {}
    for tensor in [*model.parameters(), *model.buffers()]:
        fake = mode.from_tensor(tensor.detach())
        if isinstance(tensor, torch.nn.Parameter):
            fake = torch.nn.Parameter(fake, tensor.requires_grad)
        known[id(tensor)] = fake
    trained = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if any(id(parameter) not in known for parameter in trained):
        raise ValueError(
            "the optimizer has parameters that the model does not; make it anew for this model"
        )
    model = copy.deepcopy(model, known)
    optimizer = type(optimizer)(_groups(optimizer, known))
    batch = map_tensors(mode.from_tensor, batch)

    def step() -> None:
        if isinstance(batch, dict):
            result = model(**batch)
        else:
            result = model(*batch) if isinstance(batch, (tuple, list)) else model(batch)
        _sum(result).backward()
        optimizer.step()

    with mode:
        return msgspec.convert(peak_of_step(step, model, optimizer, batch), EstimateReply)


def _groups(optimizer: Any, known: dict[int, Any]) -> list[dict[str, Any]]:
    return [
        group | {"params": [known[id(parameter)] for parameter in group["params"]]}
        for group in optimizer.param_groups
    ]


def _sum(result: Any) -> Any:
    """Return one number from the result of a model: its loss, or the sum of its tensors."""
    torch = sys.modules["torch"]
    loss = getattr(result, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss.sum()
    return sum(tensor.sum() for tensor in tensors_in(result) if tensor.requires_grad)


def _blocks(value: Any) -> Iterator[tuple[Storage, int]]:
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    if isinstance(value, torch.Tensor):
        value = local_part(value)
        parts = [value.indices(), value.values()] if value.is_sparse else [value]
        for part in parts if not value.is_meta else []:
            storage = part.untyped_storage()
            yield (str(part.device), storage.data_ptr()), storage.nbytes()
    elif numpy and isinstance(value, numpy.ndarray):
        while isinstance(value.base, numpy.ndarray):
            value = value.base
        yield ("cpu", value.ctypes.data), value.nbytes


class Makers:
    """Notes the variables that are new, or other objects than before, when a cell ends.

    Objects are not kept alive. Those without weak references, such as numbers and lists, are
    identified by their address, which may be used again.
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, int | None]] = {}
        """By name: a reference to the object, and the cell's number in the notebook."""

    def note(self, variables: Mapping[Any, Any], cell: int | None) -> None:
        """Note what has changed since the last time; `None` is a change outside of cells."""
        known = self._known
        self._known = {
            name: known[name]
            if name in known and _is(known[name][0], value)
            else (_reference(value), cell)
            for name, value in list(variables.items())
            # IPython's copies of cells are left out; `globals()` takes any key.
            if not (type(value) is str and isinstance(name, str) and name.startswith("_i"))
        }

    def cell_of(self, name: str, value: Any) -> int | None:
        """Return the cell that made a variable, if it still is the same object."""
        reference, cell = self._known.get(name, (None, None))
        return cell if _is(reference, value) else None


def _reference(value: Any) -> Any:
    try:
        return weakref.ref(value)
    except TypeError:
        return id(value)


def _is(reference: Any, value: Any) -> bool:
    if isinstance(reference, weakref.ref):
        return reference() is value
    return bool(reference == id(value))


class MemoryHistory:
    """The allocations of one rank; the last snapshot is in a file, for https://pytorch.org/memory_viz."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kept_at = 0.0
        self.exhausted: Exhausted | None = None
        """What filled the memory in the last cell."""

    def begin(self) -> None:
        """Record from the first use of CUDA on, unless the user has turned it off."""
        if os.environ.get("JUPYTER_DIST_MEMORY_HISTORY") == "0":
            return
        record_memory(_ENTRIES, lambda: self.keep(memory_snapshot))

    def keep(self, read: Callable[[], Mapping[str, Any]]) -> None:
        """Note what fills the memory, which is exhausted; raise nothing, as torch will."""
        # Code that searches for the largest batch fails often.
        if self.exhausted and time.monotonic() < self._kept_at + 10:
            return
        by_line: list[Allocated] = []
        file, new, allocated = "", self._file.with_suffix(".new"), 0
        try:
            snapshot = read()
            by_line = allocated_by_line(snapshot)
            allocated = sum(block["size"] for block in _allocated_blocks(snapshot))
            new.write_bytes(pickle.dumps(snapshot))
            os.replace(new, self._file)
            file = str(self._file)
        except Exception:
            _LOG.exception("What fills the memory of the GPU could not be kept.")
            with contextlib.suppress(OSError):
                new.unlink()
        self.exhausted = Exhausted(by_line, file, allocated)
        self._kept_at = time.monotonic()

    def forget(self) -> None:
        """Forget the last cell's, as another one begins."""
        self.exhausted = None


def allocated_by_line(snapshot: Mapping[str, Any]) -> list[Allocated]:
    """Return the memory of each line of the user's code in a snapshot, the largest first.

    Threads of `backward()` have no Python stack: their memory is left out.
    """
    by_line: dict[CodePlace, int] = {}
    for block in _allocated_blocks(snapshot):
        frames = [
            TorchFrame(frame["name"], frame["filename"], frame["line"])
            for frame in block.get("frames", ())
        ]
        if place := users_place(frames):
            by_line[place] = by_line.get(place, 0) + block["size"]
    largest = sorted(by_line.items(), key=lambda item: -item[1])[:_MOST_LINES]
    return [Allocated(place, nbytes) for place, nbytes in largest]


def _allocated_blocks(snapshot: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                yield block

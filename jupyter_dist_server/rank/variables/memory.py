"""The memory that variables hold, and that a training step would take."""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from ...common.protocol.ranks.memory_messages import EstimateReply, Held, TorchUse
from ..torch_memory import fake_mode, map_tensors, peak_of_step, tensors_in
from .digest import local_part
from .leaves import leaves_of

_LOG = logging.getLogger(__name__)

_MOST = 50
"""Variables that are told."""

Storage = tuple[str, int]
"""A block of memory: its device and address."""


def held_by(
    variables: Iterable[tuple[str, Any]],
    hidden: Iterable[tuple[str, Any]],
    cell_of: Callable[[str, Any], int | None],
) -> tuple[list[Held], int]:
    """Return which variables hold memory in tensors and arrays, and how much all of them do.

    A variable that cannot be looked at counts as far as it can be. A hidden one is left out if
    others hold all that it holds.
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
        except Exception:  # of a class of the user's
            _LOG.info("`%s` cannot be looked at.", name, exc_info=True)
        is_listed = blocks and not (is_hidden and blocks.keys() <= every.keys())
        every |= blocks | gradients
        if is_listed:
            nbytes = sum((blocks | gradients).values())
            held.append(Held(name, nbytes, sum(gradients.values()), cell_of(name, value)))
    held.sort(key=lambda one: -one.nbytes)
    return held[:_MOST], sum(every.values())


def torch_use(device: str) -> TorchUse | None:
    """Return what torch uses of a rank's GPU."""
    torch = sys.modules["torch"]
    if device == "cpu" or not torch.cuda.is_initialized():
        return None
    return TorchUse(
        allocated=torch.cuda.memory_allocated(device),
        reserved=torch.cuda.memory_reserved(device),
        peak=torch.cuda.max_memory_allocated(device),
        total=torch.cuda.get_device_properties(device).total_memory,
    )


def estimate(model: Any, optimizer: Any, batch: Any) -> EstimateReply:
    """Return the most memory that a step takes, from tensors that have a shape and no content.

    The step is ``model(batch)``, the sum of what it returns, `backward`, and the optimizer's
    `step`. Nothing of the user's is changed.
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
    """Return the groups of an optimizer, with other parameters."""
    return [
        group | {"params": [known[id(parameter)] for parameter in group["params"]]}
        for group in optimizer.param_groups
    ]


def _sum(result: Any) -> Any:
    """Return one number of whatever a model returns: its loss, or the sum of its tensors."""
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

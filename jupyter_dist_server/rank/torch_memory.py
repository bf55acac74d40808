"""torch's private API for memory that ranks use, under public names of ours.

`tests/rank/test_internals.py` says what needs each name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

_LOG = logging.getLogger(__name__)

# -- allocations on a GPU ---------------------------------------------------------------------


def record_memory(entries: int, exhausted: Callable[[], None]) -> None:
    """Record allocations from the first use of CUDA on; call `exhausted` before one fails."""
    import torch

    torch_c: Any = torch._C

    def begin() -> None:
        try:
            torch.cuda.memory._record_memory_history(
                "all", context="alloc", stacks="python", max_entries=entries
            )
            torch_c._cuda_attach_out_of_memory_observer(lambda *_: exhausted())
        except Exception:  # the first user of CUDA would get it
            _LOG.exception("Allocations on the GPU are not recorded.")

    torch.cuda._lazy_call(begin)


def memory_snapshot() -> dict[str, Any]:
    """Return current and past allocations, with Python stacks."""
    import torch

    snapshot: dict[str, Any] = torch.cuda.memory._snapshot()
    return snapshot


# -- tensors without content ------------------------------------------------------------------


def fake_mode() -> Any:
    """Return a mode in which tensors have a shape and no content."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode()


def map_tensors(change: Callable[[Any], Any], values: Any) -> Any:
    """Return containers with other tensors."""
    import torch
    from torch.utils import _pytree

    return _pytree.tree_map_only(torch.Tensor, change, values)


def tensors_in(values: Any) -> list[Any]:
    """Return the tensors in containers, also in those that libraries have registered."""
    import torch
    from torch.utils import _pytree

    return [value for value in _pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]


def peak_of_step(step: Callable[[], None], *external: Any) -> dict[str, int]:
    """Return the peak memory of a step in bytes, by purpose; `external` exists before it."""
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker: Any = MemTracker()
    tracker.track_external(*external)
    with tracker:
        step()
    used: dict[str, int] = {}
    for of_device in tracker.get_tracker_snapshot("peak").values():
        for kind, nbytes in of_device.items():
            name = _KINDS.get(getattr(kind, "name", kind), "other")
            used[name] = used.get(name, 0) + nbytes
    return used


_KINDS = {
    "PARAM": "parameters",
    "GRAD": "gradients",
    "OPT": "optimizer",
    "ACT": "activations",
    "Total": "peak",
}
"""The purposes by the names of torch's memory tracker."""

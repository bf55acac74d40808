"""torch's private API that ranks use, under public names of ours.

Functions import torch when they are called: an agent imports this module before torch.
`tests/rank/test_internals.py` says what needs each name.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

Make = Callable[..., Any]
"""A function that makes a process group."""
TimeLimits = list[tuple[Any, datetime.timedelta]]
"""The backends of a group, and the time limit of each."""

DDP_MODULE = "torch.nn.parallel.distributed"
DDP_INNER_MODULES = ("torch.distributed.utils", DDP_MODULE)
"""Modules out of which `DistributedDataParallel` calls the C code that waits."""

# -- all groups of this process ---------------------------------------------------------------


def _c10d() -> Any:
    from torch.distributed import distributed_c10d

    return distributed_c10d


def groups() -> list[ProcessGroup]:
    """Return all groups."""
    return list(_c10d()._world.pg_map)


def groups_on_nccl() -> list[ProcessGroup]:
    """Return those of them that use NCCL."""
    used = _c10d()._world.pg_backend_config
    return [group for group in groups() if "nccl" in used.get(group, "")]


def group_count() -> int:
    """Return the number of groups that were made; it names the next one."""
    count: int = _c10d()._world.group_count
    return count


def set_group_count(count: int) -> None:
    """Set the number that names the next group."""
    _c10d()._world.group_count = count


def default_group() -> ProcessGroup | None:
    """Return the default group of collectives."""
    group: ProcessGroup | None = _c10d().GroupMember.WORLD
    return group


def set_default_group(group: ProcessGroup | None) -> None:
    """Set the default group; `None` is as after `destroy_process_group`."""
    _c10d()._update_default_pg(group)


def set_backend_name(group: ProcessGroup, name: str) -> None:
    """Set what `torch.distributed.get_backend` returns for a group."""
    known = _c10d()._world.pg_map
    known[group] = (_c10d().Backend(name), *known[group][1:])


def forget_groups() -> list[ProcessGroup]:
    """Have no group any more, but end none; return them, to keep them alive."""
    world, kept = _c10d()._world, groups()
    set_default_group(None)
    for known in (
        world.pg_map,
        world.pg_names,
        world.pg_group_ranks,
        world.pg_backend_config,
        world.pg_to_tag,
        world.tags_to_pg,
    ):
        known.clear()
    world.group_count = 0
    _c10d()._unregister_all_process_groups()
    return kept


def wrap_maker(wrap: Callable[[Make], Make]) -> None:
    """Wrap the function that makes any group."""
    _c10d()._new_process_group_helper = wrap(_c10d()._new_process_group_helper)


def wrap_gloo(wrap: Callable[..., Make]) -> None:
    """Wrap all functions that make a gloo group; those that split or join get ``opened``."""
    gloo, group = _c10d().ProcessGroupGloo, _c10d().ProcessGroup
    gloo.__init__ = wrap(gloo.__init__)
    for name in ("split_group", "merge_remote_group"):
        if hasattr(group, name):  # not in every torch
            setattr(group, name, wrap(getattr(group, name), opened=True))


def groups_by_name() -> dict[str, tuple[list[int], str]]:
    """Return the ranks and the description of each group of this rank."""
    ranks = _c10d()._world.pg_group_ranks
    return {
        group.group_name: (sorted(ranks.get(group, {})), group.group_desc) for group in groups()
    }


# -- one group --------------------------------------------------------------------------------


def _backends(group: Any) -> set[Any]:
    return {group._get_backend(device) for device in group._device_types}


def begun_in(group: ProcessGroup) -> int:
    """Count the collectives that this rank has begun in a group, on any device."""
    count = 0
    for backend in _backends(group):
        with contextlib.suppress(RuntimeError):  # not every backend counts
            count += backend._get_sequence_number_for_group()
    return count


def _with_options(group: ProcessGroup) -> list[Any]:
    """Return the backends of a group that have options; not every backend has."""
    # With TORCH_DISTRIBUTED_DEBUG=DETAIL each is in a wrapper, which has none.
    backends = {getattr(backend, "wrapped_pg", backend) for backend in _backends(group)}
    return [backend for backend in backends if hasattr(backend, "options")]


def name_ranks(group: ProcessGroup) -> None:
    """Tell the backends of a group of all ranks which ranks those are.

    torch takes an empty list for all ranks only in the first group of a process. When it splits a
    later one, as `DeviceMesh` does with NCCL, it reads beyond the list's end, and the rank dies;
    see ``groupRanks`` in torch's ``ProcessGroupGloo.cpp`` and ``ProcessGroupNCCL.cpp``.
    """
    for backend in _with_options(group):
        backend.options.global_ranks_in_group = list(range(group.size()))


def time_limits(group: ProcessGroup) -> TimeLimits:
    """Return the time limits of a group's collectives."""
    return [(backend, backend.options._timeout) for backend in _with_options(group)]


def restore_time_limits(limits: TimeLimits) -> None:
    """Set what `time_limits` has returned."""
    for backend, limit in limits:
        backend._set_default_timeout(limit)


def set_time_limit(group: ProcessGroup, limit: datetime.timedelta) -> None:
    """Set the time limit of all collectives of a group."""
    _c10d()._set_pg_timeout(limit, group)


# -- tensors of several ranks -----------------------------------------------------------------


def shard_of(tensor: Any) -> str:
    """Return which part of a DTensor this rank holds, as an index; empty for other tensors."""
    distributed: Any = sys.modules.get("torch.distributed.tensor")
    if not (distributed and isinstance(tensor, distributed.DTensor)):
        return ""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    sizes, starts = compute_local_shape_and_global_offset(
        tensor.shape, tensor.device_mesh, tensor.placements
    )
    part = ", ".join(f"{at}:{at + size}" for at, size in zip(starts, sizes, strict=True))
    partial = any(place.is_partial() for place in tensor.placements)
    return f"[{part}]" + (" (partial sum)" if partial else "")


# -- torch.distributed.rpc --------------------------------------------------------------------


def end_rpc() -> None:
    """Shut this rank's agent down, if the user has started one; `init_rpc` then starts another.

    Waits in `torch.distributed.rpc` ignore interrupts and have no group to break, but fail when the
    agent is shut down. That waits for the calls that this rank serves, so it has a thread.
    """
    api: Any = sys.modules.get("torch.distributed.rpc.api")
    if api and api._is_current_rpc_agent_set():
        threading.Thread(target=_end_rpc, args=(api,), name="rpc's end", daemon=True).start()


def _end_rpc(api: Any) -> None:
    # As `rpc.shutdown(graceful=False)` does.
    api._get_current_rpc_agent().shutdown()
    with contextlib.suppress(RuntimeError):  # other ranks still have references
        api._destroy_rref_context(True)
    api._cleanup_python_rpc_handler()
    api._reset_current_rpc_agent()


# -- CUDA -------------------------------------------------------------------------------------


def has_lost_cuda(error: str) -> bool:
    """Tell whether CUDA fails until the process ends, after an error with this text.

    See ``cudaErrorAssert`` and others in
    https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html.
    """
    import torch

    if not (re.search("cuda|cudnn|cublas", error, re.IGNORECASE) and torch.cuda.is_initialized()):
        return False
    try:
        if not torch.cuda.is_current_stream_capturing():  # a query would end that
            torch.cuda.current_stream().query()
    except RuntimeError:
        return True
    return False


# -- the flight recorder ----------------------------------------------------------------------


def serve_recorded(path: str) -> Any:
    """Serve the flight recorder over HTTP on a Unix socket; `None` if this torch cannot."""
    from torch._C import _distributed_c10d

    server = getattr(_distributed_c10d, "_WorkerServer", None)
    return server and server(path)


def dump_recorded(lines: bool) -> list[bytes]:
    """Return the dumps of gloo and of NCCL, if this torch records; `lines` adds lines of code.

    torch (2.13) reads the states of groups without its lock: the first collective of a new group in
    that microsecond can end the process. Later collectives of a group are safe.
    """
    from torch._C import _distributed_c10d

    names = ("_dump_fr_trace", "_dump_nccl_trace")
    dumps = (getattr(_distributed_c10d, name, None) for name in names)
    return [dump(True, lines, False) for dump in dumps if dump]


def profiler_runs() -> bool:
    """Tell whether a profiler of torch runs in this thread."""
    import torch

    runs: bool = torch.autograd._profiler_enabled()
    return runs

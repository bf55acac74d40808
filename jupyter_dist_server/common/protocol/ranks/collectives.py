"""Names under which a rank tells what it waits for in `torch.distributed`."""

from __future__ import annotations

WAITING_MODULES = (
    "torch.distributed.distributed_c10d",
    "torch.distributed._functional_collectives",
    "torch.distributed.rendezvous",
    "torch.distributed.rpc",
    "torch.distributed.rpc.api",
)
"""Modules whose functions wait for other ranks. More of torch does, but by these."""
NO_CALLS = frozenset(["wrapper", "<module>"])
"""What torch calls the functions around its own, and Python the code of a module."""
BACKWARD = "_engine_run_backward"
"""torch's function in which gradients are computed, and exchanged if a model is wrapped."""

DDP = "DistributedDataParallel"
_GROUPS = ("new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group")
_MESSAGES = ("send", "recv", "isend", "irecv", "batch_isend_irecv")
_CALLS = ("init_rpc", "rpc_sync", "remote", "shutdown")
UNCOUNTED = frozenset(
    ["init_process_group", "destroy_process_group", *_GROUPS, *_MESSAGES, *_CALLS, DDP]
)
"""Those of them that make or end groups, or that not all ranks call, have no number."""

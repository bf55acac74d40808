"""Names under which a rank tells what it waits for in `torch.distributed`."""

from __future__ import annotations

DDP = "DistributedDataParallel"
_GROUPS = ("new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group")
_MESSAGES = ("send", "recv", "isend", "irecv", "batch_isend_irecv")
_CALLS = ("init_rpc", "rpc_sync", "remote", "shutdown")
UNCOUNTED = frozenset(
    ["init_process_group", "destroy_process_group", *_GROUPS, *_MESSAGES, *_CALLS, DDP]
)
"""Those of them that make or end groups, or that not all ranks call, have no number."""

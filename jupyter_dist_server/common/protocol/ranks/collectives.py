"""Names of functions in `torch.distributed` that wait for other ranks."""

from __future__ import annotations

WAITING_MODULES = (
    "torch.distributed.distributed_c10d",
    "torch.distributed._functional_collectives",
    "torch.distributed.rendezvous",
    "torch.distributed.rpc",
    "torch.distributed.rpc.api",
)
"""Modules whose functions wait for other ranks; the rest of torch waits by these."""
NO_CALLS = frozenset(["wrapper", "<module>"])
"""Names that torch gives to functions around its own, and Python to a module's code."""
BACKWARD = "_engine_run_backward"
"""torch's function that computes gradients, and exchanges them if a model is wrapped."""

DDP = "DistributedDataParallel"
_GROUPS = ("new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group")
_MESSAGES = ("send", "recv", "isend", "irecv", "batch_isend_irecv")
_CALLS = ("init_rpc", "rpc_sync", "remote", "shutdown")
UNCOUNTED = frozenset(
    ["init_process_group", "destroy_process_group", *_GROUPS, *_MESSAGES, *_CALLS, DDP]
)
"""Those that make or end groups, or that not all ranks call, have no number."""
PYDEVD = ("pydevd", "_pydevd_bundle", "_pydevd_sys_monitoring", "_pydevd_frame_eval")
"""Packages and modules of the debugger."""
HALTS = "do_wait_suspend"
"""pydevd's function in which a thread is that it has stopped."""

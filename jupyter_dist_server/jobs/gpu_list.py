"""The GPUs that this machine had when they were last read, so that not every submission asks NVML.

That takes a process of its own, and seconds if the driver is not kept loaded. A job whose GPUs are
gone waits, as the dispatcher sees which there are.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from ..common.inside_slurm import is_inside
from ..common.processes.process_ref import boot_id
from ..common.protocol.sampler_messages import Inventory
from .store.store_folder import KEPT_GPUS


class _Kept(msgspec.Struct):
    boot: str
    """GPUs may change their numbers when the machine starts."""
    inventory: Inventory


def keep_gpus(folder: Path, inventory: Inventory) -> None:
    """Keep an inventory, unless it is known.

    MIG instances come and go, and a Slurm allocation has a part of the machine: neither is kept.
    """
    if is_inside(os.environ) or kept_gpus(folder) == inventory:
        return
    file, fresh = folder / KEPT_GPUS, folder / f"{KEPT_GPUS}.{os.getpid()}"
    try:
        if inventory.gpus and all(gpu.mig is None for gpu in inventory.gpus):
            fresh.write_bytes(msgspec.json.encode(_Kept(boot_id(), inventory)))
            fresh.replace(file)
        else:
            file.unlink(missing_ok=True)
    except OSError:  # the disk is full: the driver is asked again
        fresh.unlink(missing_ok=True)


def kept_gpus(folder: Path) -> Inventory | None:
    """Return the inventory that was kept since the machine was started, if any."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        kept = msgspec.json.decode((folder / KEPT_GPUS).read_bytes(), type=_Kept)
        return kept.inventory if kept.boot == boot_id() else None
    return None

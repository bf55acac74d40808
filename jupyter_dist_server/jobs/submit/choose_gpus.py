"""Which GPUs a job asks for; refused if there are none such."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ...common.errors import DistError, reading
from ...common.inside_slurm import is_inside
from ..store.slurm_formats import read_gpu_memory
from ..store.store import Store
from ..variables import JOB
from .job_request import JobRequest

if TYPE_CHECKING:
    from ...common.protocol.sampler_messages import Inventory


def choose_gpus(request: JobRequest, store: Store) -> tuple[int, tuple[str, ...]]:
    """Return how many GPUs are asked for, and the UUIDs of suitable ones unless all are.

    It asks NVML only if the GPUs that were read last would not do.
    """
    if not request.gpus and not request.gpu_ids:
        for name in ("share", "gpu_memory", "min_gpu_memory", "force"):
            if getattr(request, name):
                option = f"--{name.replace('_', '-')}"
                raise DistError("bad_option", f"{option} needs --gpus or --gpu-ids.", field=name)
        return request.gpus or 0, ()
    # Not above: jobs on the CPU do without.
    from ..gpu_list import keep_gpus, kept_gpus

    # Where Slurm hides the other GPUs, it also counts from the first that it leaves.
    kept = None if is_inside(os.environ) else kept_gpus(store.folder)
    if kept:
        with contextlib.suppress(DistError):
            return _choose(request, kept)
    from ...gpus.readers.gpu_reader import read_gpus  # not above: most submissions do without

    there = read_gpus().inventory
    keep_gpus(store.folder, there)
    return _choose(request, there)


def _allowed(there: Inventory) -> Inventory:
    """Keep the GPUs of a Slurm allocation, if we are in one; a job's mask is its own."""
    from ...gpus import slurm_job
    from ...gpus.cuda_visible_devices import MASK, narrow

    if not is_inside(os.environ):
        return there
    environment = dict(os.environ)
    if JOB in environment:
        environment.pop(MASK, None)
    return slurm_job.narrow(narrow(there, environment), environment)


def _choose(request: JobRequest, machine: Inventory) -> tuple[int, tuple[str, ...]]:
    there = _allowed(machine)
    gpus = list(there.gpus)
    if request.gpu_ids:
        named = [text.strip() for text in request.gpu_ids.split(",")]
        gpus = []
        for name in named:
            called = [g for g in there.gpus if name in (g.uuid, g.label, str(g.index))]
            if not called:
                existing = ", ".join(gpu.label for gpu in there.gpus)
                hint = f"There are: {existing}." if existing else there.fault
                raise DistError("unknown_gpu", f"There is no GPU {name}.", hint, "gpu_ids")
            if twice := [gpu for gpu in called if gpu in gpus]:
                message = f"--gpu-ids names GPU {twice[0].label} twice."
                raise DistError("bad_option", message, field="gpu_ids")
            gpus += called
        gpus = [gpu for gpu in there.gpus if gpu in gpus]
    with reading("min_gpu_memory"):
        least = read_gpu_memory(request.min_gpu_memory or "0G")
    with reading("gpu_memory"):
        least = max(least, read_gpu_memory(request.gpu_memory or "0G"))
    gpus = [gpu for gpu in gpus if gpu.memory_total >= least]
    count = request.gpus if request.gpus is not None else len(gpus)
    if count > len(gpus):
        are = "is" if len(gpus) == 1 else "are"
        why = there.fault or f"{len(gpus)} {are} suitable."
        raise DistError("too_large", f"The number of GPUs is too large, {count}: {why}")
    narrowed = len(gpus) < len(machine.gpus) or bool(request.min_gpu_memory)
    return count, tuple(gpu.uuid for gpu in gpus) if narrowed else ()

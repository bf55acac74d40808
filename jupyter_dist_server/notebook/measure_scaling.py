"""Runs the same work on pools of several sizes, one after the other."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..client.profiles import profiles_of
from ..common.errors import DistError
from ..common.protocol.ranks.rank_messages import ProfileOptions
from ..placement.requests.request import PoolRequest
from ..verdicts.slow.lateness import waiting
from ..verdicts.slow.scaling import Run, Scaling
from ..verdicts.slow.time_account import accounts, average
from .cells.cell_options import Options
from .function_calls import call_code
from .python_api import send_function
from .session.current_pool import CurrentPool
from .transfer_progress import mover

_WAIT = "import torch.cuda as _cuda\nif _cuda.is_initialized():\n    _cuda.synchronize()\ndel _cuda"
Work = str | Callable[..., Any]
"""Code of a cell, or a function of the notebook."""


def measured(pool: CurrentPool, work: Work, sizes: Sequence[int]) -> Iterator[Run]:
    """Run work on pools of some sizes, and yield how long each took, and why.

    It runs twice on each pool: profiled, which also warms it up, then timed.
    """
    requests = [PoolRequest.from_json({"num_ranks": size}) for size in sizes]
    if pool.attach():
        raise DistError(
            "pool_exists",
            "%dist_scaling starts its own pools, and this notebook already has a pool.",
            "Stop it with %dist_shutdown first. Its variables are lost then.",
        )
    for size, request in zip(sizes, requests, strict=True):
        record = pool.start(request, lambda _: None)
        try:
            on_gpus = record.ranks[0].gpu is not None
            yield _run(pool, work, size, tuple(record.notices), on_gpus)
        finally:
            pool.stop()


def _run(pool: CurrentPool, work: Work, size: int, notices: tuple[str, ...], on_gpus: bool) -> Run:
    _run_once(pool, work, Options(quiet=True, profile=ProfileOptions()))
    _, client = pool.require()
    said, _ = pool.loop.run(profiles_of(client, range(size)))
    good = len(said) == size and all(profile.status == "ok" for profile in said.values())
    account = average(accounts(said, waiting(said))) if good else None
    begun = time.perf_counter()
    _run_once(pool, work, Options(quiet=True))
    if on_gpus:  # what the ranks have launched may still run
        pool.run(_WAIT, "", None, False, Options(quiet=True))
    return Run(size, time.perf_counter() - begun, account, notices)


def _run_once(pool: CurrentPool, work: Work, options: Options) -> None:
    if isinstance(work, str):
        pool.run(work, "", None, False, options)
        return
    _, client = pool.require()
    moving, ranks = mover(client, pool.loop), pool.choose("")
    name = send_function(moving, work, ranks)
    try:
        pool.run(call_code(name), "", None, False, options)
    finally:
        moving.forget(name, ranks)


def figure(scaling: Scaling) -> bytes | None:
    """Return a PNG of the speed-up by ranks; `None` if there is no matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    sizes = [run.ranks for run in scaling.runs]
    drawn = Figure(figsize=(4.5, 3), layout="constrained")
    axes = drawn.add_subplot()
    axes.plot(sizes, [size / sizes[0] for size in sizes], "--", color="gray", label="ideal")
    axes.plot(sizes, [scaling.speed_up(run) for run in scaling.runs], "o-", label="measured")
    axes.set(xlabel="ranks", ylabel="speed-up", xticks=sizes)
    axes.legend()
    png = io.BytesIO()
    drawn.savefig(png, format="png", dpi=100)
    return png.getvalue()

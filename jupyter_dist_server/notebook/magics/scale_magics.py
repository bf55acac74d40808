"""The magics that measure how work scales with the number of ranks, and how fast links are."""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import Image, display

from ...client.long_requests import profiles_of
from ...common.errors import DistError
from ...common.protocol.ranks.rank_messages import ProfileOptions
from ...placement.requests.request import PoolRequest
from ...verdicts.slow.lateness import waiting
from ...verdicts.slow.scaling import (
    LinkTime,
    Run,
    Scaling,
    link_rows,
    link_sentence,
    scaling_notices,
    scaling_rows,
    scaling_sentence,
)
from ...verdicts.slow.time_account import accounts, average
from ..cells.cell import Options
from ..function_calls import call_code
from ..output.results import CellResults
from ..python_api import send_function
from ..scripts.script_code import script_code
from ..session.current_pool import CurrentPool
from ..transfer_progress import mover
from .base import DistMagics
from .option_parser import no_options, parse, plain_usage
from .reports.pool_status import aligned

_SIZES = [1 << power for power in range(10, 27, 2)]
"""Of tensors, in bytes: 1 KiB to 64 MiB."""
_MEASURE = "__import__('jupyter_dist_server.rank.measure_links', fromlist=['']).measure"
_WAIT = "import torch.cuda as _cuda\nif _cuda.is_initialized():\n    _cuda.synchronize()\ndel _cuda"
Work = str | Callable[..., Any]
"""Code of a cell, or a function of the notebook."""


@magics_class
class ScaleMagics(DistMagics):
    """How fast ranks are together."""

    @plain_usage
    @magic_arguments()
    @argument("-r", "--ranks", default="1,2,4", help="the numbers of ranks; default: 1,2,4")
    @argument("--weak", action="store_true", help="each rank does the same, however many there are")
    @argument("work", help="a function of the notebook without arguments, or a script")
    @argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    @line_magic
    def dist_scaling(self, line: str) -> None:
        """Run the same work on 1, 2 and 4 ranks; show the speed-up and where the rest went.

        It starts a pool for each number of ranks, so the notebook must have none. The work runs
        twice on each: profiled, and timed.

        Examples::

            %dist_scaling train
            %dist_scaling --ranks 1,2,8 train.py --epochs 1
        """
        options = parse(self.dist_scaling, line)
        sizes = _read_sizes(options.ranks)
        work = self._work(options.work, options.arguments)
        runs: list[Run] = []
        try:
            for run in _measured(self.pool, work, sizes):
                runs.append(run)
        finally:
            if runs:
                self._show(Scaling(runs, options.weak))

    def _work(self, name: str, arguments: list[str]) -> Work:
        function = self.shell.user_ns.get(name)
        if callable(function):
            if arguments:
                raise UsageError(f"`{name}` is a function, which is called without arguments")
            return function  # type: ignore[no-any-return]
        if name.isidentifier():
            raise UsageError(f"The notebook has no function `{name}`, and it is no script")
        return script_code(name, arguments)

    def _show(self, scaling: Scaling) -> None:
        if len(scaling.runs) > 1:
            print(scaling_sentence(scaling))
        print("\n".join([*aligned(scaling_rows(scaling)), *scaling_notices(scaling)]))
        if len(scaling.runs) > 1 and (png := _figure(scaling)):
            display(Image(png, format="png"))

    @plain_usage
    @line_magic
    def dist_links(self, line: str) -> None:
        """Measure the bandwidth of all_reduce on all ranks, by the size of the tensor.

        Examples::

            %dist_links
        """
        no_options("dist_links", line)
        record, _ = self.pool.require()
        size = record.world_size
        if size < 2:
            raise DistError("bad_ranks", "There are no links to measure: the pool has one rank.")
        results = CellResults(range(size))
        on_gpu = record.backend != "gloo" and record.ranks[0].device != "cpu"
        device = f"__import__('torch').device({'device' if on_gpu else repr('cpu')})"
        code = f"{_MEASURE}({_SIZES}, {device})"
        self.pool.run(code, "", None, False, Options(quiet=True, takers=(results.add,)))
        # NCCL may have written its log there too, without a newline before ours.
        said = results[0].stdout
        line, _, _ = said[said.rindex("[{") :].partition("\n")
        times = msgspec.json.decode(line, type=list[LinkTime])
        print(link_sentence(times, size, record.backend))
        print("\n".join(aligned(link_rows(times, size))))


def _measured(pool: CurrentPool, work: Work, sizes: Sequence[int]) -> Iterator[Run]:
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
    _, client = pool.ready()
    moving, ranks = mover(client, pool.loop), pool.choose("")
    name = send_function(moving, work, ranks)
    try:
        pool.run(call_code(name), "", None, False, options)
    finally:
        moving.forget(name, ranks)


def _figure(scaling: Scaling) -> bytes | None:
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


def _read_sizes(text: str) -> list[int]:
    """Read ``1,2,4``."""
    parts = [part.strip() for part in text.split(",")]
    sizes = [int(part) for part in parts if part.isdecimal()]
    if len(sizes) < len(parts) or 0 in sizes or sizes != sorted(set(sizes)):
        raise UsageError(f"--ranks must be growing numbers of ranks, such as 1,2,4, not “{text}”")
    return sizes

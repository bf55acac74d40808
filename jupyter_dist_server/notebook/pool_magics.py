"""The magics for a pool's life: start, look, interrupt, restart, stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from ..errors import DistError
from .control import Record
from .current import CurrentPool
from .options import no_options, plain_usage, read_gpu_ids, read_variable
from .status import describe_start, status_table


@magics_class
class PoolMagics(Magics):  # type: ignore[misc]
    """Ranks for this notebook."""

    def __init__(self, shell: InteractiveShell, pool: CurrentPool) -> None:
        super().__init__(shell)
        self.pool = pool

    @plain_usage
    @magic_arguments()
    @argument(
        "-n",
        "--num-ranks",
        "--num-processes",
        type=int,
        help="number of ranks; default: one per GPU, or 2 on a machine without",
    )
    @argument("-g", "--gpu-ids", help="physical GPUs for the ranks, such as 0,3, or UUIDs")
    @argument("--backend", help="gloo or nccl; default: nccl with a GPU per rank, else gloo")
    @argument("--env", action="append", default=[], help="an environment variable, K=V; repeatable")
    @argument("--timeout", type=float, help="seconds that the start may take; default: 120")
    @argument("--start-method", help="fork (default) or spawn")
    @line_magic
    def dist_init(self, line: str) -> None:
        """Start a pool of ranks for this notebook.

        Examples::

            %dist_init
            %dist_init -n 4
            %dist_init --num-ranks 2 --gpu-ids 0,3
            %dist_init -n 2 --backend gloo --env NCCL_DEBUG=INFO --timeout 60
        """
        options = parse_argstring(self.dist_init, line)
        request = {
            "num_ranks": options.num_ranks,
            "gpu_ids": read_gpu_ids(options.gpu_ids),
            "backend": options.backend,
            "env": dict(read_variable(text) for text in options.env),
            "timeout": options.timeout,
            "start_method": options.start_method,
        }
        self._with_progress(lambda progress: self.pool.start(request, progress))

    def _with_progress(self, work: Callable[[Callable[[Record], None]], Record]) -> None:
        """Show one line that follows the start of a pool."""
        handle: Any = None
        begun = time.monotonic()

        def show(record: Record) -> None:
            nonlocal handle
            line = {"text/plain": describe_start(record, time.monotonic() - begun)}
            if handle is None:
                handle = display(line, raw=True, display_id=True)
            else:
                handle.update(line, raw=True)

        try:
            work(show)
        except DistError:
            if handle:
                handle.update({"text/plain": "The ranks were not started."}, raw=True)
            raise

    @plain_usage
    @line_magic
    def dist_status(self, line: str) -> None:
        """Show where every rank sits and what it does.

        Examples::

            %dist_status
        """
        no_options("dist_status", line)
        print(status_table(*self.pool.status()))

    @plain_usage
    @line_magic
    def dist_interrupt(self, line: str) -> None:
        """Interrupt whatever the ranks run; their variables are kept.

        Examples::

            %dist_interrupt
        """
        no_options("dist_interrupt", line)
        self.pool.interrupt()
        print("Interrupted all ranks.")

    @plain_usage
    @line_magic
    def dist_restart(self, line: str) -> None:
        """Replace every rank by a new one; their variables are lost.

        Examples::

            %dist_restart
        """
        no_options("dist_restart", line)
        self._with_progress(self.pool.restart)

    @plain_usage
    @line_magic
    def dist_shutdown(self, line: str) -> None:
        """Stop the pool; no process of it is left.

        Examples::

            %dist_shutdown
        """
        no_options("dist_shutdown", line)
        record = self.pool.stop()
        self.pool.all_cells = False
        print(f"Stopped {record['world_size']} ranks.")

    @plain_usage
    @line_magic
    def dist_reset(self, line: str) -> None:
        """Stop the pool, if there is one, and clear everything of this extension's.

        Examples::

            %dist_reset
        """
        no_options("dist_reset", line)
        self.pool.all_cells = False
        self.pool.reset()
        print("Everything is reset; start again with %dist_init.")

"""The magics that change a running pool."""

from __future__ import annotations

import math

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from ...common.protocol.pool_record import PoolRecord
from ...common.rank_specs import name_ranks
from ...common.units import read_limit
from ..output.remedies import replace_ranks
from ..session.current_pool import Progress
from .base import DistMagics
from .option_parser import no_options, parse, plain_usage, read_wait
from .reports.pool_status import NEVER_RUN, describe_limits, resized_models, with_progress


@magics_class
class RunningPoolMagics(DistMagics):
    """Interrupt, extend, replace, resize, park and resume."""

    @plain_usage
    @line_magic
    def dist_interrupt(self, line: str) -> None:
        """Interrupt what the ranks run; their variables are kept.

        Examples::

            %dist_interrupt
        """
        no_options("dist_interrupt", line)
        late = self.pool.interrupt()
        if not late:
            print("Interrupted all ranks; their variables are kept.")
            return
        if len(late) < self.pool.require()[0].world_size:
            print("Interrupted the other ranks; their variables are kept.")
        print(f"{name_ranks(late).capitalize()} did not stop. {replace_ranks(late).capitalize()}")

    @plain_usage
    @magic_arguments()
    @argument(
        "time",
        nargs="?",
        type=read_limit,
        help="how much longer it may run: 1:00:00, 30m, or minutes",
    )
    @line_magic
    def dist_extend(self, line: str) -> None:
        """Let the pool run longer than its time limit; its idle time starts again, too.

        Examples::

            %dist_extend 1:00:00
            %dist_extend
        """
        record = self.pool.extend(parse(self.dist_extend, line).time)
        print(describe_limits(record) or "The pool has no time limit and no idle limit.")

    @plain_usage
    @magic_arguments()
    @argument("--ranks", default="", help="some ranks, such as 1 or 0,2; default: all")
    @argument(
        "--without-lost-nodes",
        action="store_true",
        help="go on without the nodes that are lost: all other ranks restart, with new numbers",
    )
    @line_magic
    def dist_restart(self, line: str) -> None:
        """Replace ranks by new ones; their variables are lost, those of the others are kept.

        Examples::

            %dist_restart
            %dist_restart --ranks 1
            %dist_restart --without-lost-nodes
        """
        options = parse(self.dist_restart, line)
        if options.without_lost_nodes and options.ranks:
            raise UsageError("--without-lost-nodes restarts all ranks, so omit --ranks")
        ranks = None if options.without_lost_nodes else options.ranks
        with_progress(self.shell, lambda progress: self.pool.restart(ranks, progress))
        if not self.pool.repair_group():
            print("The process group will be re-created when all ranks are running and idle.")

    @plain_usage
    @magic_arguments()
    @argument("num_ranks", type=int, help="number of ranks that the pool is to have")
    @argument(
        "--wait",
        nargs="?",
        const=math.inf,
        type=read_wait,
        metavar="S",
        help="wait for GPUs in use, at most this many seconds",
    )
    @line_magic
    def dist_resize(self, line: str) -> None:
        """Add ranks to the pool, or end its last ones; the variables of the others are kept.

        Examples::

            %dist_resize 4
            %dist_resize 4 --wait 600
        """
        options = parse(self.dist_resize, line)

        def resize(progress: Progress) -> PoolRecord:
            return self.pool.resize(options.num_ranks, options.wait, progress)

        with_progress(self.shell, resize)
        if not self.pool.repair_group():
            print("The process group will be re-created when all ranks are running and idle.")
        if wrapped := sorted(self.pool.require()[1].group.wrapped):
            print(resized_models(wrapped))

    @plain_usage
    @line_magic
    def dist_park(self, line: str) -> None:
        """Give the GPUs of the pool to others; its variables stay in the host's memory.

        The next cell on ranks, or %dist_resume, waits for the same GPUs and brings all back.

        Examples::

            %dist_park
        """
        no_options("dist_park", line)
        if not self.pool.require()[0].parked:
            print(NEVER_RUN)
        with_progress(self.shell, self.pool.park)

    @plain_usage
    @line_magic
    def dist_resume(self, line: str) -> None:
        """Bring a parked pool back to its GPUs; wait in line if others have them.

        Examples::

            %dist_resume
        """
        no_options("dist_resume", line)
        with_progress(self.shell, self.pool.resume)

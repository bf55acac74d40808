"""The magics that look at the variables of all ranks."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ...client.values.ask_variables import estimate_of, memory_of
from ...common.protocol.ranks.memory_messages import EstimateRequest
from ...verdicts.memory_sentences import (
    estimate_sentence,
    memory_rows,
    memory_sentences,
    silent_sentences,
)
from ...verdicts.variable_list import variable_rows
from ..gather_and_compare import Comparison, EachCell
from ..session.current_pool import CurrentPool
from .base import DistMagics
from .option_parser import expressions, plain_usage, unquoted
from .reports.pool_status import aligned

_EACH_CELL = {
    "on": "After each cell on ranks, models and optimizers are compared. %dist_check --each-cell "
    "off ends this.",
    "off": "Models and optimizers are not compared after cells.",
}


@magics_class
class CheckMagics(DistMagics):
    """What the variables of ranks are, and whether they are the same."""

    def __init__(self, shell: InteractiveShell, pool: CurrentPool) -> None:
        super().__init__(shell, pool)
        self.comparison = Comparison(pool)
        self._each_cell = EachCell(shell, pool, self.comparison)

    @plain_usage
    @magic_arguments()
    @argument("names", nargs="*", metavar="NAME", help="a variable, or an expression")
    @argument("--ranks", type=unquoted, default="", help="some ranks, such as 0,2; default: all")
    @argument(
        "--each-cell",
        choices=("on", "off"),
        help="compare models and optimizers after each cell on ranks, and tell what differs",
    )
    @line_magic
    def dist_check(self, line: str) -> None:
        """Check whether variables are the same on all ranks, bit by bit.

        Without a name, all modules and optimizers are compared. It runs no collective, so it
        cannot hang. It waits for no cell: while one runs, it fails.

        Examples::

            %dist_check
            %dist_check model optimizer
            %dist_check model.layer4 --ranks 0,1
            %dist_check --each-cell on
        """
        options = parse_argstring(self.dist_check, line)
        if options.each_cell:
            self._each_cell.switch(on=options.each_cell == "on")
            print(_EACH_CELL[options.each_cell])
            return
        names, ranks = expressions(options.names), self.pool.choose(options.ranks)
        print("\n".join(self.comparison.check(names, ranks)))

    @plain_usage
    @magic_arguments()
    @argument("names", nargs="*", metavar="NAME", help="a variable, or an expression")
    @argument("--ranks", type=unquoted, default="", help="some ranks, such as 0,2; default: all")
    @line_magic
    def dist_vars(self, line: str) -> None:
        """List the variables of the ranks, and say whether they are the same.

        Examples::

            %dist_vars
            %dist_vars model batch --ranks 0,1
        """
        options = parse_argstring(self.dist_vars, line)
        said = self.comparison.ask(expressions(options.names), self.pool.choose(options.ranks))
        rows = variable_rows(said)
        print("\n".join(aligned(rows)) if len(rows) > 1 else "The ranks have no variables.")

    @plain_usage
    @magic_arguments()
    @argument("--ranks", type=unquoted, default="", help="some ranks, such as 0,2; default: all")
    @argument(
        "--estimate",
        nargs=3,
        metavar=("MODEL", "OPTIMIZER", "BATCH"),
        help="tell how much memory a training step takes, without running it",
    )
    @line_magic
    def dist_memory(self, line: str) -> None:
        """Show the memory of each rank, and the variables that hold most of it.

        Examples::

            %dist_memory
            %dist_memory --estimate model optimizer batch
        """
        options = parse_argstring(self.dist_memory, line)
        ranks = self.pool.choose(options.ranks)
        _, client = self.pool.ready()
        told = self.pool.loop.run(memory_of(client, ranks))
        if options.estimate:
            request = EstimateRequest(*options.estimate)
            said = self.pool.loop.run(estimate_of(client, request, ranks[0]))
            print("\n".join(estimate_sentence(request.model, said, told)))
            return
        said_first = [*silent_sentences(ranks, told, client.dead), *memory_sentences(told)]
        print("\n".join([*said_first, *aligned(memory_rows(told))]))

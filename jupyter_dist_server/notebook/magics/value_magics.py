"""The magics that move values between the notebook and the ranks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ...client.values.push_and_pull import Moved
from ...client.values.splitting import concatenate
from ...common.errors import DistError
from ...common.rank_specs import name_ranks
from ...common.units import format_bytes
from ..python_api import NotebookPool
from ..session.current_pool import CurrentPool
from .base import DistMagics
from .option_parser import is_expression, plain_usage, unquoted


@magics_class
class ValueMagics(DistMagics):
    """Values between the notebook and ranks."""

    def __init__(self, shell: InteractiveShell, pool: CurrentPool) -> None:
        super().__init__(shell, pool)
        self.values = NotebookPool(pool)

    @plain_usage
    @magic_arguments()
    @argument("names", nargs="+", metavar="NAME", help="a variable; with --as, an expression")
    @argument("--as", dest="target", type=unquoted, help="name on the ranks; default: the same")
    @argument("--ranks", type=unquoted, help="some ranks, such as 0,2 or 0-2; default: all")
    @line_magic
    def dist_push(self, line: str) -> None:
        """Set variables of the notebook on the ranks, at once, also while a cell runs there.

        Large arrays and tensors go through shared memory; a rank copies what it writes to.

        Examples::

            %dist_push w
            %dist_push w b --ranks 0,2
            %dist_push model.weight * 2 --as w
        """
        options = parse_argstring(self.dist_push, line)
        names = sources = options.names
        if options.target:
            names, sources = [options.target], [" ".join(options.names)]
            if not is_expression(sources[0]):
                raise UsageError("--as requires a single name or expression")
        values = {name: self._evaluate(source) for name, source in zip(names, sources, strict=True)}
        ranks = self.values.choose(options.ranks)
        begun = time.monotonic()
        moved = self.values.mover().push(values, ranks)
        self.values.note_values("push", names)
        _say("Pushed", names, moved, f"to {name_ranks(ranks)}", begun)

    @plain_usage
    @magic_arguments()
    @argument("name", nargs="+", metavar="NAME", help="a variable or an expression on the ranks")
    @argument("--rank", type=unquoted, help="rank to pull from; default: 0")
    @argument(
        "--ranks", type=unquoted, help="pull a list from these ranks: all, or a choice such as 0,2"
    )
    @argument("--as", dest="target", type=unquoted, help="name in the notebook; default: the same")
    @line_magic
    def dist_pull(self, line: str) -> None:
        """Fetch a value of one rank, or a list with those of several, also while a cell runs there.

        Tensors on a GPU arrive on the CPU.

        Examples::

            %dist_pull loss
            %dist_pull model.weight --rank 1 --as w
            %dist_pull loss --ranks all --as losses
        """
        options = parse_argstring(self.dist_pull, line)
        if options.rank is not None and options.ranks is not None:
            raise UsageError("Choose --rank or --ranks, not both")
        ranks = self.values.choose(options.ranks or options.rank or 0)
        if not options.ranks and len(ranks) > 1:
            raise UsageError("--rank must be one rank; use --ranks for several")
        self._fetch("Pulled", options, ranks, lambda all: all if options.ranks else all[0])

    @plain_usage
    @magic_arguments()
    @argument(
        "name",
        nargs="+",
        metavar="NAME",
        help="a tensor, array or sequence; with --as, an expression",
    )
    @argument("--as", dest="target", type=unquoted, help="name on the ranks; default: the same")
    @argument("--ranks", type=unquoted, help="some ranks, such as 0,2 or 0-2; default: all")
    @line_magic
    def dist_scatter(self, line: str) -> None:
        """Split a value along its first dimension, as evenly as possible: one part for each rank.

        Examples::

            %dist_scatter batch
            %dist_scatter files --as mine
        """
        options = parse_argstring(self.dist_scatter, line)
        expression = " ".join(options.name)
        name = options.target or expression
        value = self._evaluate(expression)
        ranks = self.values.choose(options.ranks)
        begun = time.monotonic()
        moved = self.values.mover().scatter(name, value, ranks)
        self.values.note_values("scatter", [name])
        _say("Scattered", [name], moved, f"to {name_ranks(ranks)}", begun)

    @plain_usage
    @magic_arguments()
    @argument("name", nargs="+", metavar="NAME", help="a variable or an expression on the ranks")
    @argument("--as", dest="target", type=unquoted, help="name in the notebook; default: the same")
    @argument("--ranks", type=unquoted, help="some ranks, such as 0,2 or 0-2; default: all")
    @argument(
        "--concat", action="store_true", help="concatenate the values along their first dimension"
    )
    @line_magic
    def dist_gather(self, line: str) -> None:
        """Fetch the values of all ranks as a list, or joined to one.

        Examples::

            %dist_gather loss
            %dist_gather mine --concat --as batch
        """
        options = parse_argstring(self.dist_gather, line)

        def read(values: list[Any]) -> Any:
            return concatenate(" ".join(options.name), values) if options.concat else values

        self._fetch("Gathered", options, self.values.choose(options.ranks), read)

    def _evaluate(self, expression: str) -> Any:
        try:
            return eval(expression, self.shell.user_ns)
        except NameError as error:
            raise DistError(
                "value_missing", f"The notebook has no `{error.name or expression}`."
            ) from error
        except Exception as error:
            raise DistError(
                "value_failed",
                f"`{expression}` failed in the notebook: {type(error).__name__}: {error}.",
            ) from error

    def _fetch(
        self, verb: str, options: Any, ranks: list[int], read: Callable[[list[Any]], Any]
    ) -> None:
        """Set a variable of the notebook to what `read` makes of the values of an expression."""
        expression = " ".join(options.name)
        target = options.target or expression
        if not target.isidentifier():
            raise DistError(
                "bad_name",
                f"“{target}” is not a valid variable name.",
                "Choose a name with --as NAME.",
            )
        begun = time.monotonic()
        values, moved = self.values.mover().pull(expression, ranks)
        self.shell.push({target: read(list(values.values()))})
        _say(verb, [target], moved, f"from {name_ranks(ranks)}", begun)


def _say(verb: str, names: list[str], moved: Moved, where: str, begun: float) -> None:
    listed = ", ".join(f"`{name}`" for name in names)
    seconds = time.monotonic() - begun
    print(f"{verb} {listed} ({format_bytes(moved.nbytes)}) {where} in {seconds:.1f} s.")
    for notice in moved.notices:
        print(notice)

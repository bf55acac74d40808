"""Magics for users of other tools: ipyparallel and nbdistributed."""

from __future__ import annotations

import shlex

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from .base import DistMagics
from .option_parser import no_options, parse, plain_usage


@magics_class
class CompatibilityMagics(DistMagics):
    """Other names for what our magics do."""

    @plain_usage
    @magic_arguments()
    @argument("-t", "--targets", default="", help="the ranks, such as 0,2 or ::2; default: all")
    @argument("-o", "--out", metavar="NAME", help="store the results of each rank in a variable")
    @argument("--block", action="store_true", help="no effect: a cell always waits for its ranks")
    @argument("-a", "--noblock", action="store_true", help="not supported")
    @line_cell_magic
    def px(self, line: str, cell: str | None = None) -> None:
        """Run a cell, or the rest of the line, on the ranks: ipyparallel's ``%%distributed``.

        Examples::

            %%px
            %%px --targets 0,2
            %px import numpy
        """
        if cell is None:
            self.shell.run_cell_magic("distributed", "", line)
            return
        options = parse(self.px, line)
        if options.noblock:
            raise UsageError("--noblock is not supported: a cell always waits for its ranks")
        chosen = []
        if options.targets not in ("", "all"):
            chosen.append(f"--ranks={options.targets}")
        if options.out:
            chosen.append(f"--out={options.out}")
        self.shell.run_cell_magic("distributed", shlex.join(chosen), cell)

    @plain_usage
    @line_magic
    def autopx(self, line: str) -> None:
        """Send all cells to the ranks, or no longer: ipyparallel's ``%dist_mode``.

        Examples::

            %autopx
        """
        no_options("autopx", line)
        self.shell.run_line_magic("dist_mode", "-d" if self.pool.all_cells else "-e")

    @plain_usage
    @line_magic
    def dist_debug(self, line: str) -> None:
        """Show the state of the ranks, and where cells run: nbdistributed's ``%dist_status``.

        Examples::

            %dist_debug
        """
        no_options("dist_debug", line)
        if self.pool.attach() is None:
            print("No pool is running.")
        else:
            self.shell.run_line_magic("dist_status", "")
        self.shell.run_line_magic("dist_mode", "")

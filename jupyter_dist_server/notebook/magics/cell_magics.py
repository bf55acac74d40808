"""The magics that run cells on ranks."""

from __future__ import annotations

import argparse
import re
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from traitlets import Float, Int

from ...client.pool_client import OUTPUT_LIMIT
from ...common.errors import DistError
from ...common.rank_specs import format_ranks
from ..cells.cell import Options
from ..output.results import CellResults
from ..scripts.ran_cells import RanCell
from ..scripts.script_code import script_code
from ..transfer_progress import mover
from .base import DistMagics
from .option_parser import no_options, parse, plain_usage, unquoted
from .reports.profile_report import can_profile, profile_options, reported

OUR_MAGICS = re.compile(
    r"\s*(%%(distributed|rank|px)\b|%(dist_\w+|sync|px|autopx)\b"
    r"|%(re|un)?load_ext\s+jupyter_dist_server\b)"
)
_CELL_MAGIC = re.compile(r"\s*%%(distributed|rank|px)\b")
_RANK_WITHOUT_SPACE = re.compile(r"^\s*%%rank\[")
_NO_CODE = re.compile(r"\s*(#.*)?\s*")
_LAST_VALUE = "get_ipython().displayhook._"
"""The last value of a cell, even if the user has a variable `_`."""


@magics_class
class CellMagics(DistMagics):
    """Cells on ranks."""

    output_limit = Int(
        OUTPUT_LIMIT,
        min=1000,
        config=True,
        help="""Output limit in characters for a cell, divided among its ranks. The middle of longer
        output is cut; a file for each rank has the complete output.""",
    )

    sync_timeout = Float(
        60.0,
        min=0.1,
        config=True,
        help="""Time limit in seconds for ``%sync``.""",
    )

    @plain_usage
    @magic_arguments()
    @argument("-r", "--ranks", default="", help="some ranks, such as 0,2 or ::2; default: all")
    @argument("--per-rank", action="store_true", help="show the output of each rank separately")
    @argument("-q", "--quiet", action="store_true", help="show errors only")
    @argument("-o", "--out", metavar="NAME", help="store the results of each rank in a variable")
    @argument("--timeout", type=float, metavar="S", help="stop the cell after this many seconds")
    @can_profile
    @cell_magic
    def distributed(self, line: str, cell: str) -> None:
        """Run the cell on all ranks.

        Each rank has ``torch``, ``dist``, ``rank``, ``local_rank``, ``world_size``, ``gpu_id`` and
        ``device``. Output that is the same on several ranks appears once. Stopping the notebook's
        kernel interrupts the ranks. With ``-o NAME``, NAME maps each rank to an object with
        ``value`` (the cell's last expression), ``stdout``, ``stderr``, ``displays`` and ``status``.
        With ``--profile``, the output ends with a sentence on why the cell is slow, a table by
        rank, and the name of a file with the trace of all ranks.

        Examples::

            %%distributed
            t = torch.ones(1, device=device) * rank
            dist.all_reduce(t)
            t

            %%distributed --ranks 0,2 --quiet -o losses --timeout 60
            loss.item()

            %%distributed --profile --steps 20
            train(model, loader)
        """
        options = parse(self.distributed, line)
        if options.timeout is not None and not options.timeout > 0:
            raise UsageError(
                f"--timeout must be a positive number of seconds, not “{options.timeout:g}”"
            )
        if options.out is not None and not options.out.isidentifier():
            raise UsageError(f"-o must be a variable name, not “{options.out}”")
        results = None if options.out is None else CellResults(self.pool.choose(options.ranks))
        how = Options(
            options.per_rank,
            options.quiet,
            timeout=options.timeout,
            limit=self.output_limit,
            profile=profile_options(options),
            compared=options.compare,
        )
        if results is not None:
            how = replace(how, takers=(results.add,))
        try:
            self._run(cell, options.ranks, how, above=self._lines_above(cell))
        finally:
            if results is not None:
                self._keep_results(options.out, results)

    def _keep_results(self, name: str, results: CellResults) -> None:
        """Set a variable, and fetch the last value of each rank that has one."""
        self.shell.user_ns[name] = results
        moving = mover(self.pool.require()[1], self.pool.loop)
        for rank, result in results.items():
            if result.has_value and result.status == "ok":
                try:
                    result.value = moving.pull(_LAST_VALUE, [rank])[0][rank]
                except DistError as error:  # it was shown as text
                    why = error.message.replace(_LAST_VALUE, "_")
                    print(f"The value of rank {rank} could not be copied: {why}", file=sys.stderr)

    @plain_usage
    @cell_magic
    def rank(self, line: str, cell: str) -> None:
        """Run the cell on some ranks.

        Examples::

            %%rank 0
            %%rank [0,2]
            %%rank[0,2]
            %%rank 0-2
            %%rank ::2
        """
        ranks = unquoted(line)
        if not ranks:
            raise UsageError("Choose ranks, such as %%rank [0,2] or %%rank 0-2")
        if options := re.search(r"\s(--?[a-z].*)", f" {ranks}"):
            raise UsageError(f"%%rank has no option “{options[1]}”; use %%distributed --ranks")
        self._run(cell, ranks, above=self._lines_above(cell))

    @plain_usage
    @magic_arguments()
    @argument(
        "-i", "--interactive", action="store_true", help="use and set the variables of the ranks"
    )
    @argument("-m", "--module", action="store_true", help="run a module, as python -m does")
    @argument("-r", "--ranks", default="", help="some ranks, such as 0,2 or ::2; default: all")
    @can_profile
    @argument("script", help="the path of the script, or with -m the name of the module")
    @argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    @line_magic
    def dist_run(self, line: str) -> None:
        """Run a script on the ranks as ``torchrun`` does, without starting processes.

        The script runs as ``__main__``, with its arguments in ``sys.argv``. It does not see the
        ranks' variables. With ``-i`` it does, and the ranks keep the variables that it sets.
        ``--profile`` shows why it is slow, as for a cell.

        Examples::

            %dist_run train.py --lr 0.1
            %dist_run -m package.train --lr 0.1
            %dist_run -i --ranks 0,1 train.py
            %dist_run --profile --steps 20 train.py --lr 0.1
        """
        options = parse(self.dist_run, line)
        profile = profile_options(options)
        how = Options(limit=self.output_limit, profile=profile, compared=options.compare)
        self.pool.require()
        code = script_code(
            options.script,
            options.arguments,
            is_module=options.module,
            keep=options.interactive,
        )
        script = RanCell("", [], why=f"%dist_run {line}: run this script with torchrun.")
        self._run(code, options.ranks, how, noted=script)

    def _lines_above(self, body: str) -> int:
        """Return how many lines of the notebook's cell are above the body of its magic."""
        history: Any = self.shell.history_manager
        raw, own = history.input_hist_raw[-1].rstrip(), body.rstrip()
        # Code run by other code is in no cell: its magic counts as the line above it.
        return raw[: len(raw) - len(own)].count("\n") if raw.endswith(own) else 1

    def _count(self) -> int:
        """Return the number of the running cell."""
        # In some versions of IPython, the shell's counter is one ahead.
        history: Any = self.shell.history_manager
        return len(history.input_hist_raw) - 1

    def _run(
        self,
        code: str,
        ranks: str,
        options: Options | None = None,
        noted: RanCell | None = None,
        above: int = 0,
    ) -> None:
        kernel = getattr(self.shell, "kernel", None)
        count = self._count()
        allow_stdin = bool(getattr(kernel, "_allow_stdin", True))
        how = options or Options(limit=self.output_limit)
        record, _ = self.pool.require()
        chosen = self.pool.choose(ranks)
        ran = noted or RanCell(code, chosen, count)
        self.pool.ran.add(record, ran)
        profiled = reported(self.pool, chosen, count, compared=how.compared)
        with profiled if how.profile else nullcontext():
            try:
                sent = "\n" * above + code  # so that ranks count lines as the editor does
                how = replace(how, takers=(*how.takers, ran.note_output))
                if debugger := self.pool.debugger:
                    how = replace(how, source=debugger.source())
                self.pool.run(sent, ranks, count, allow_stdin, how)
            except DistError:  # it did not begin
                self.pool.ran.remove(ran)
                raise
            except BaseException as error:
                interrupted = isinstance(error, KeyboardInterrupt)
                ran.why = ran.why or f"The cell {'was interrupted' if interrupted else 'failed'}."
                raise

    @plain_usage
    @magic_arguments()
    @argument("-e", "--enable", action="store_true", help="run all cells on the ranks")
    @argument("-d", "--disable", action="store_true", help="run cells in the notebook again")
    @line_magic
    def dist_mode(self, line: str) -> None:
        """Send all cells to the ranks, or stop doing so. Without options, say which it is.

        Magics and ``!commands`` in a cell run on the ranks too; a cell that begins with one of
        this extension's magics runs in the notebook.

        Examples::

            %dist_mode -e
            %dist_mode -d
        """
        options = parse(self.dist_mode, line)
        if options.enable and options.disable:
            raise UsageError("Use either --enable or --disable")
        if options.enable:
            self.pool.require()
        if options.enable or options.disable:
            self.pool.all_cells = options.enable
        on = self.pool.all_cells and self.pool.attach()
        print("Cells run on all ranks." if on else "Cells run in the notebook.")

    @plain_usage
    @line_magic
    def sync(self, line: str) -> None:
        """Wait until all ranks have reached this point (a barrier), for up to 60 seconds.

        ``%config CellMagics.sync_timeout = 300`` sets a longer limit.

        Examples::

            %sync
        """
        no_options("sync", line)
        begun, limit = time.perf_counter(), Options(timeout=self.sync_timeout)
        self.pool.run("get_ipython().kernel.group.meet()", "", None, False, limit)
        seconds = time.perf_counter() - begun
        record, _ = self.pool.require()
        self.pool.ran.add(record, RanCell("dist.barrier()", self.pool.choose("")))
        print(
            f"Ranks {format_ranks(range(record.world_size))} synchronized in "
            f"{seconds * 1000.0:.1f} ms."
        )

    # -- input transformers -----------------------------------------------------------------

    def find_magic(self, lines: list[str]) -> list[str]:
        """Let IPython see a cell magic of ours below comments, and one without a space."""
        above = 0
        while above < len(lines) and _NO_CODE.fullmatch(lines[above]):
            above += 1
        if above == len(lines) or not _CELL_MAGIC.match(lines[above]):
            return lines
        first, *rest = lines[above:]
        return [_RANK_WITHOUT_SPACE.sub("%%rank [", first), *rest]

    def send_all(self, lines: list[str]) -> list[str]:
        """Put ``%%distributed`` before a cell when all cells go to the ranks."""
        code = [line for line in lines if not _NO_CODE.fullmatch(line)]
        if not code or OUR_MAGICS.match(code[0]) or not self.pool.all_cells:
            return lines
        return ["%%distributed\n", *lines]

    # IPython ignores transformers with this mark when it judges whether a cell is complete.
    send_all.has_side_effects = True  # type: ignore[attr-defined]

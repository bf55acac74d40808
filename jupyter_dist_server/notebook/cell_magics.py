"""The magics that run cells on ranks."""

from __future__ import annotations

import re

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ..pools.ranks import format_ranks
from .current import CurrentPool
from .options import no_options, plain_usage

OUR_MAGICS = re.compile(
    r"\s*(%%(distributed|rank)\b|%(dist_\w+|sync)\b|%(re|un)?load_ext\s+jupyter_dist_server\b)"
)
_RANK_WITHOUT_SPACE = re.compile(r"^\s*%%rank\[(?P<ranks>[^\]]*)\]")


@magics_class
class CellMagics(Magics):  # type: ignore[misc]
    """Cells on ranks."""

    def __init__(self, shell: InteractiveShell, pool: CurrentPool) -> None:
        super().__init__(shell)
        self.pool = pool

    @plain_usage
    @cell_magic
    def distributed(self, line: str, cell: str) -> None:
        """Run the cell on all ranks.

        Each rank has ``torch``, ``dist``, ``rank``, ``local_rank``, ``world_size``, ``gpu_id`` and
        ``device``. Output that is the same on several ranks appears once. Stopping the notebook's
        kernel interrupts the ranks.

        Examples::

            %%distributed
            t = torch.ones(1, device=device) * rank
            dist.all_reduce(t)
            t
        """
        if line.strip():
            raise UsageError(f"%%distributed takes no options, not “{line.strip()}”")
        self._run(cell, "")

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
        if not line.strip():
            raise UsageError("%%rank needs ranks, such as %%rank [0,2] or %%rank 0-2")
        self._run(cell, line)

    def _run(self, code: str, ranks: str) -> None:
        kernel = getattr(self.shell, "kernel", None)
        allow_stdin = bool(getattr(kernel, "_allow_stdin", True))
        # The shell's counter is one ahead of the running cell in some versions of IPython.
        count = len(self.shell.history_manager.input_hist_raw) - 1
        self.pool.run(code, ranks, count, allow_stdin)

    @plain_usage
    @magic_arguments()
    @argument("-e", "--enable", action="store_true", help="all cells go to the ranks")
    @argument("-d", "--disable", action="store_true", help="cells run in the notebook again")
    @line_magic
    def dist_mode(self, line: str) -> None:
        """Send all cells to the ranks, or stop doing so. Without options, say which it is.

        Magics and ``!commands`` in a cell run on the ranks too; a cell that begins with one of
        this extension's magics runs in the notebook.

        Examples::

            %dist_mode -e
            %dist_mode -d
        """
        options = parse_argstring(self.dist_mode, line)
        if options.enable and options.disable:
            raise UsageError("choose one of --enable and --disable")
        if options.enable:
            self.pool.require()
        if options.enable or options.disable:
            self.pool.all_cells = options.enable
        print("Cells run on all ranks." if self.pool.all_cells else "Cells run in the notebook.")

    @plain_usage
    @line_magic
    def sync(self, line: str) -> None:
        """Wait until all ranks have reached this point (a barrier).

        Examples::

            %sync
        """
        no_options("sync", line)
        seconds = self.pool.barrier()
        record, _ = self.pool.require()
        print(f"Ranks {format_ranks(range(record['world_size']))} met in {seconds * 1e3:.1f} ms.")

    # -- input transformers -----------------------------------------------------------------

    def separate_rank(self, lines: list[str]) -> list[str]:
        """Rewrite ``%%rank[0,1]`` as ``%%rank [0,1]``, which IPython can parse."""
        if lines and (match := _RANK_WITHOUT_SPACE.match(lines[0])):
            return [f"%%rank [{match['ranks']}]{lines[0][match.end() :]}", *lines[1:]]
        return lines

    def send_all(self, lines: list[str]) -> list[str]:
        """Put ``%%distributed`` before a cell when all cells go to the ranks."""
        code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not self.pool.all_cells or not code or OUR_MAGICS.match(code[0]):
            return lines
        return ["%%distributed\n", *lines]

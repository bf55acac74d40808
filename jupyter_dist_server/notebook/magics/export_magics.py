"""The magic that writes the cells that ran on ranks to a script."""

from __future__ import annotations

from pathlib import Path

from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from ...common.errors import DistError
from ..scripts.torchrun_script import as_script
from .base import DistMagics
from .option_parser import parse, plain_usage


@magics_class
class ExportMagics(DistMagics):
    """From cells to a script."""

    @plain_usage
    @magic_arguments()
    @argument("--force", action="store_true", help="overwrite an existing file")
    @argument("path", help="the path of the script")
    @line_magic
    def dist_export(self, line: str) -> None:
        """Write the cells that ran on this pool's ranks to a script for ``torchrun``.

        The cells are in the order in which they ran. Code that cannot be translated becomes a
        comment: ``!`` lines, cells that failed, and values pushed from the notebook, for example.

        Examples::

            %dist_export train.py
            %dist_export --force train.py
        """
        options = parse(self.dist_export, line)
        ran = self.pool.ran
        if ran.pool is None:
            raise DistError(
                "no_cells",
                "No cell of this notebook has run on ranks yet.",
                "Run a cell with %%distributed first.",
            )
        script = as_script(ran, options.path)
        try:
            path = Path(options.path).expanduser()
            with path.open("w" if options.force else "x", encoding="utf-8") as file:
                file.write(script.text)
        except FileExistsError:
            raise DistError(
                "file_exists",
                f"{options.path} already exists.",
                "Choose another name, or overwrite it with --force.",
            ) from None
        except OSError as error:
            raise DistError(
                "file_unwritable",
                f"{options.path} cannot be written: {error.strerror}.",
                "Choose an existing folder with write permission.",
            ) from error
        cells = f"{script.cells} cell{'s' * (script.cells != 1)}"
        print(f"Wrote {cells} to {options.path}. Run it: {script.command}")
        for why in script.missing:
            print(f"Not translated: {why}")

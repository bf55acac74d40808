"""The magics: options in, one call, plain words out."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from ..errors import DistError
from ..pools.ranks import format_ranks
from .control import Record
from .current import CurrentPool
from .status import describe_start, status_table

F = TypeVar("F", bound=Callable[..., Any])

OUR_MAGICS = re.compile(
    r"\s*(%%(distributed|rank)\b|%(dist_\w+|sync)\b|%(re|un)?load_ext\s+jupyter_dist_server\b)"
)
_RANK_WITHOUT_SPACE = re.compile(r"^\s*%%rank\[(?P<ranks>[^\]]*)\]")


def _plain_usage(method: F) -> F:
    """Turn a usage error into one of ours: an error output, of one or two lines."""

    @wraps(method)
    def wrapper(*arguments: Any) -> Any:
        try:
            return method(*arguments)
        except UsageError as error:
            raise DistError("bad_option", f"{error}.", f"See %{method.__name__}?") from None

    return cast("F", wrapper)


@magics_class
class DistMagics(Magics):  # type: ignore[misc]
    """Ranks for this notebook."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.pool = CurrentPool()
        self.all_cells = False

    @_plain_usage
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
            "gpu_ids": _read_gpu_ids(options.gpu_ids),
            "backend": options.backend,
            "env": dict(_read_variable(text) for text in options.env),
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

    @_plain_usage
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

    @_plain_usage
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

    @_plain_usage
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
            self.all_cells = options.enable
        print("Cells run on all ranks." if self.all_cells else "Cells run in the notebook.")

    @_plain_usage
    @line_magic
    def dist_status(self, line: str) -> None:
        """Show where every rank sits and what it does.

        Examples::

            %dist_status
        """
        _no_options("dist_status", line)
        print(status_table(*self.pool.status()))

    @_plain_usage
    @line_magic
    def sync(self, line: str) -> None:
        """Wait until all ranks have reached this point (a barrier).

        Examples::

            %sync
        """
        _no_options("sync", line)
        seconds = self.pool.barrier()
        record, _ = self.pool.require()
        print(f"Ranks {format_ranks(range(record['world_size']))} met in {seconds * 1e3:.1f} ms.")

    @_plain_usage
    @line_magic
    def dist_interrupt(self, line: str) -> None:
        """Interrupt whatever the ranks run; their variables are kept.

        Examples::

            %dist_interrupt
        """
        _no_options("dist_interrupt", line)
        self.pool.interrupt()
        print("Interrupted all ranks.")

    @_plain_usage
    @line_magic
    def dist_restart(self, line: str) -> None:
        """Replace every rank by a new one; their variables are lost.

        Examples::

            %dist_restart
        """
        _no_options("dist_restart", line)
        self._with_progress(self.pool.restart)

    @_plain_usage
    @line_magic
    def dist_shutdown(self, line: str) -> None:
        """Stop the pool; no process of it is left.

        Examples::

            %dist_shutdown
        """
        _no_options("dist_shutdown", line)
        record = self.pool.stop()
        self.all_cells = False
        print(f"Stopped {record['world_size']} ranks.")

    @_plain_usage
    @line_magic
    def dist_reset(self, line: str) -> None:
        """Stop the pool, if there is one, and clear everything of this extension's.

        Examples::

            %dist_reset
        """
        _no_options("dist_reset", line)
        self.all_cells = False
        self.pool.reset()
        print("Everything is reset; start again with %dist_init.")

    # -- input transformers -----------------------------------------------------------------

    def separate_rank(self, lines: list[str]) -> list[str]:
        """Rewrite ``%%rank[0,1]`` as ``%%rank [0,1]``, which IPython can parse."""
        if lines and (match := _RANK_WITHOUT_SPACE.match(lines[0])):
            return [f"%%rank [{match['ranks']}]{lines[0][match.end() :]}", *lines[1:]]
        return lines

    def send_all(self, lines: list[str]) -> list[str]:
        """Put ``%%distributed`` before a cell when all cells go to the ranks."""
        code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not self.all_cells or not code or OUR_MAGICS.match(code[0]):
            return lines
        return ["%%distributed\n", *lines]


def _no_options(name: str, line: str) -> None:
    if line.strip():
        raise UsageError(f"%{name} takes no options, not “{line.strip()}”")


def _read_gpu_ids(text: str | None) -> list[int | str] | None:
    if text is None:
        return None
    ids: list[int | str] = []
    for part in text.strip("[]").split(","):
        item = part.strip()
        if item.isdecimal():
            ids.append(int(item))
        elif item.startswith(("GPU-", "MIG-")):
            ids.append(item)
        else:
            raise UsageError(f"--gpu-ids takes integers such as 0,3, or UUIDs, not “{item}”")
    return ids


def _read_variable(text: str) -> tuple[str, str]:
    try:
        name, equals, value = " ".join(shlex.split(text)).partition("=")
    except ValueError as error:
        raise UsageError(f"--env {text}: {error}") from error
    if not equals or not name:
        raise UsageError(f"--env takes K=V, not “{text}”")
    return name, value


_loaded: DistMagics | None = None


def load(shell: InteractiveShell) -> None:
    """Register the magics in a shell, and attach to the notebook's pool if one is running."""
    global _loaded
    if _loaded is None:
        _loaded = DistMagics(shell)
    magics = _loaded
    shell.register_magics(magics)
    transforms = shell.input_transformers_cleanup
    for transform in (magics.send_all, magics.separate_rank):
        if transform not in transforms:
            transforms.insert(0, transform)
    if record := magics.pool.attach():
        print(f"Attached to this notebook's pool of {record['world_size']} ranks.")


def unload(shell: InteractiveShell) -> None:
    """Remove the input transformers and magics."""
    if _loaded is None:
        return
    for transform in (_loaded.send_all, _loaded.separate_rank):
        if transform in shell.input_transformers_cleanup:
            shell.input_transformers_cleanup.remove(transform)
    for kind, magics in _loaded.magics.items():
        for name in magics:
            shell.magics_manager.magics[kind].pop(name, None)

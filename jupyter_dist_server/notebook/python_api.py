"""The pool as a Python object: ``pool = jupyter_dist_server.current_pool()``."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

import msgspec
from IPython import get_ipython

from ..client.values.push_and_pull import Moved, Mover
from ..client.values.splitting import concatenate
from ..common.errors import DistError
from ..common.protocol.pool_record import PoolRecord
from ..common.rank_specs import check_ranks, parse_ranks
from ..common.units import count_ranks
from .function_calls import Call
from .session.current_pool import CurrentPool
from .transfer_progress import mover

Ranks = int | str | Iterable[int] | None
"""A choice of ranks: one, several as `parse_ranks` reads them, a list; ``"all"`` or `None`."""


class NotebookPool:
    """The running pool of this notebook.

    Parameters
    ----------
    current : CurrentPool
        The notebook's pool; it is looked up anew by every method.
    """

    def __init__(self, current: CurrentPool) -> None:
        self._current = current

    def __repr__(self) -> str:
        return f"<pool {self.id}: {count_ranks(self.world_size)}, {self.backend}>"

    # -- what it is -------------------------------------------------------------------------

    @property
    def _record(self) -> PoolRecord:
        return self._current.require()[0]

    @property
    def id(self) -> str:
        """Its name, as in ``%dist_status``."""
        return self._record.id

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self._record.world_size

    @property
    def ranks(self) -> list[int]:
        """The ranks, from 0."""
        return list(range(self.world_size))

    @property
    def devices(self) -> list[str]:
        """Each rank's device, such as ``cuda:0`` or ``cpu``."""
        return [rank.device for rank in self._record.ranks]

    @property
    def backend(self) -> str:
        """What its process group uses."""
        return self._record.backend

    def status(self) -> dict[int, dict[str, Any]]:
        """Ask every rank how it is; dead ones are left out.

        Returns
        -------
        dict
            ``{rank, pid, state, since, memory}`` by rank, and more where a rank says more.
        """
        told = {}
        for rank, said in self._current.status()[1].items():
            fields: dict[str, Any] = msgspec.to_builtins(said)
            told[rank] = fields | fields.pop("whereabouts") | fields.pop("report")
        return told

    # -- values -----------------------------------------------------------------------------

    def push(
        self, values: dict[str, Any] | None = None, /, *, ranks: Ranks = None, **named: Any
    ) -> None:
        """Set variables on ranks, at once, also while a cell runs there.

        Parameters
        ----------
        values : dict or None
            Values by name, for names that are no keyword arguments.
        ranks : int, str, iterable of int or None
            Where; `None` is all.
        **named
            Values by name.

        Raises
        ------
        DistError
            If a name is not allowed, or a value cannot be sent.
        """
        every = (values or {}) | named
        _warn(self.mover().push(every, self.choose(ranks)))
        self.note_values("push", every)

    def pull(self, expression: str, ranks: Ranks = 0) -> Any:
        """Return the value of an expression on ranks, also while a cell runs there.

        Parameters
        ----------
        expression : str
            A name, or an expression such as ``model.weight``.
        ranks : int, str, iterable of int or None
            One rank, for its value; anything else, for a list in the order of the ranks.

        Raises
        ------
        DistError
            If a rank does not have it, or it cannot be sent.
        """
        values, moved = self.mover().pull(expression, self.choose(ranks))
        _warn(moved)
        return values[min(values)] if isinstance(ranks, int) else list(values.values())

    def scatter(self, name: str, value: Any, ranks: Ranks = None) -> None:
        """Split a tensor, array or sequence along its first dimension, one part for each rank."""
        _warn(self.mover().scatter(name, value, self.choose(ranks)))
        self.note_values("scatter", [name])

    def gather(self, expression: str, ranks: Ranks = None, *, concat: bool = False) -> Any:
        """Return the values of an expression as a list by rank; with `concat`, joined to one."""
        values, moved = self.mover().pull(expression, self.choose(ranks))
        _warn(moved)
        return concatenate(expression, [*values.values()]) if concat else list(values.values())

    def run(
        self, function: Callable[..., Any], /, *args: Any, ranks: Ranks = None, **kwargs: Any
    ) -> Call:
        """Call a function on ranks, in order with cells, without waiting for it.

        The function brings the notebook's variables that it uses; other names are looked up among
        the rank's, so that ``rank``, ``dist`` and what cells have made there can be used.

        Parameters
        ----------
        function : callable
            What to call; a function of the notebook is sent with its code.
        *args, **kwargs
            Its arguments.
        ranks : int, str, iterable of int or None
            Where; `None` is all.

        Returns
        -------
        Call
            A future; its result is the list of what was returned, in the order of the ranks.
        """
        chosen = self.choose(ranks)
        _, client = self._current.ready()
        moving = self.mover()
        name = send_function(moving, function, chosen, *args, **kwargs)
        call = Call(client, self._current.loop, moving, name, chosen)
        self._current.connection.keep_for(call)
        called = getattr(function, "__name__", function)
        self._current.ran.note(self._record, f"The notebook called {called}.")
        return call

    # -- for the magics ---------------------------------------------------------------------

    def mover(self) -> Mover:
        """Return what moves values to the pool and back."""
        _, client = self._current.ready()
        return mover(client, self._current.loop)

    def note_values(self, verb: str, names: Iterable[str]) -> None:
        """Remember for ``%dist_export`` that values came from the notebook."""
        listed = ", ".join(names)
        self._current.ran.note(self._record, f"%dist_{verb} {listed}: values from the notebook.")

    def choose(self, ranks: Ranks) -> list[int]:
        """Read a choice of ranks."""
        size = self.world_size
        if ranks is None or ranks == "all":
            return list(range(size))
        if isinstance(ranks, str):
            return parse_ranks(ranks, size)
        chosen = sorted({ranks} if isinstance(ranks, int) else set(ranks))
        check_ranks(chosen, size)
        if not chosen:
            raise DistError("bad_ranks", "No rank is chosen.", field="ranks")
        return chosen


def send_function(
    moving: Mover, function: Callable[..., Any], ranks: list[int], /, *args: Any, **kwargs: Any
) -> str:
    """Send a function and its arguments to ranks; return its name there, see `call_code`."""
    source: dict[str, list[str]] = {}  # the cells that made its code, for tracebacks on the ranks

    def name_code(file: str) -> str:
        name = _name_on_ranks(file)
        if name != file:
            source[name] = linecache.getlines(file)
        return name

    return moving.send_call((function, args, kwargs, source), ranks, name_code)


def _name_on_ranks(file: str) -> str:
    """Return a file name as ranks show it: that of a cell's code differs."""
    shell = get_ipython()
    if not shell:
        return file
    format_name = getattr(shell.compile, "format_code_name", None)
    shown = format_name(file) if format_name else _shown_before_ipython_8(shell, file)
    return f"<{' '.join(shown)} {PurePath(file).stem.strip('<>')}>" if shown else file


def _shown_before_ipython_8(shell: Any, file: str) -> tuple[str, str] | None:
    """Return what to call a cell's file, whose name contains a digest of the code."""
    history = shell.history_manager
    cells = zip(history.input_hist_raw, history.input_hist_parsed, strict=False)
    for number, (raw, code) in reversed(list(enumerate(cells))):
        # The history has cells without the newline at their end.
        if file in (shell.compile.get_code_name(raw + end, code, number) for end in ("", "\n")):
            return "Cell", f"In[{number}]"
    return None


def _warn(moved: Moved) -> None:
    for notice in moved.notices:
        warnings.warn(notice, stacklevel=3)

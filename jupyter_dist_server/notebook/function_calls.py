"""A function call on ranks: a future that shows the output of the ranks."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from ..client.pool_client import PoolClient
from ..client.values.push_and_pull import Mover
from .cells.cell import Cell, Options
from .loop_thread import LoopThread
from .output.cell_outcome import CellInterrupted


def call_code(name: str) -> str:
    """Return the code of a cell that calls a function that was sent to the ranks."""
    return f"get_ipython().kernel.dist_call({name!r})"


class Call(Future[list[Any]]):
    """A future with what the function returns on each rank, in their order.

    `result` raises `CellFailed` if the function failed on a rank. `cancel` interrupts the ranks, as
    does an interrupt of the notebook while it waits in `result`. `name` is the function's name on
    the ranks, to which it has been sent already.
    """

    def __init__(
        self, client: PoolClient, loop: LoopThread, mover: Mover, name: str, ranks: list[int]
    ) -> None:
        super().__init__()
        self._mover, self._name, self._ranks = mover, name, ranks
        self._cell = Cell(client, loop, ranks, name, Options(tabs=False))
        # It begins before we return, so the notebook's next cell comes after it.
        self._cell.start(call_code(name))
        # The ranks' output belongs to the calling cell: its context says which that is.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._follow,), daemon=True).start()

    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self.done()

    def cancel(self) -> bool:
        """Interrupt the ranks; `False` if it was too late."""
        if self.done() or not super().cancel():
            return self.cancelled()
        self.set_running_or_notify_cancel()
        self._cell.interrupt()
        return True

    def result(self, timeout: float | None = None) -> list[Any]:
        """Wait for what the ranks return; an interrupt interrupts them."""
        try:
            return super().result(timeout)
        except KeyboardInterrupt:
            self.cancel()
            raise

    def _follow(self) -> None:
        try:
            self._cell.show()
            self._cell.raise_failures()
            values = self._mover.fetch_result(self._name, self._ranks)
            self._end(self.set_result, [values[rank] for rank in self._ranks])
        except CellInterrupted as error:
            self._end(self.set_exception, error.for_future())
        except BaseException as error:
            self._end(self.set_exception, error)
        finally:
            self._mover.forget(self._name, self._ranks)

    def _end(self, how: Callable[[Any], None], what: Any) -> None:
        with contextlib.suppress(InvalidStateError):  # it was cancelled meanwhile
            how(what)

"""The kernel inside a rank: IPython's, with what a rank needs and a notebook kernel does not."""

from __future__ import annotations

import os
import time
from typing import Any

import psutil
import zmq
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from traitlets.config import Config

from .capture import flush_everything
from .client import METADATA


class RankKernel(IPythonKernel):  # type: ignore[misc]
    """A conforming kernel that also tells its status while the main thread is stuck.

    ``dist_status_request`` on the control channel is answered by ``dist_status_reply`` with
    ``{rank, pid, state, since, memory}``: `state` is ``idle`` or ``busy``, `since` in Unix seconds,
    `memory` the resident set in bytes. ``dist_cancel_request`` with ``{msg_id}`` makes the rank
    skip an execute request that it has not begun, which is then answered as aborted.
    """

    control_msg_types = [  # noqa: RUF012
        *IPythonKernel.control_msg_types,
        "dist_status_request",
        "dist_cancel_request",
    ]
    _execute_sleep = 0.0  # ipykernel's half millisecond covers a race that our client has not

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"ident": f"rank-{os.environ['RANK']}"})
        self._state, self._since = "idle", time.time()
        self._cancelled: set[str] = set()

    async def execute_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Run a request, unless it was cancelled while it waited."""
        if parent["header"]["msg_id"] in self._cancelled:
            self._cancelled.discard(parent["header"]["msg_id"])
            self._send_abort_reply(stream, parent, ident)
        else:
            await super().execute_request(stream, ident, parent)

    async def dist_cancel_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Note, on the control thread, that a request is not wanted any more."""
        self._cancelled.add(parent["content"]["msg_id"])

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: dict[str, Any] | None = None,
        allow_stdin: bool = False,
        *,
        cell_meta: dict[str, Any] | None = None,
        cell_id: str | None = None,
    ) -> Any:
        """Run a cell; all it printed is handed over before the cell counts as done."""
        count = (cell_meta or {}).get(METADATA, {}).get("execution_count")
        if count is not None:
            self.shell.execution_count = count  # tracebacks then name the notebook's cell
        self._state, self._since = "busy", time.time()
        try:
            return await super().do_execute(
                code,
                silent,
                store_history,
                user_expressions,
                allow_stdin,
                cell_meta=cell_meta,
                cell_id=cell_id,
            )
        finally:
            flush_everything()
            self._state, self._since = "idle", time.time()

    async def dist_status_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Answer on the control thread, whatever the main thread does."""
        content = {
            "rank": int(os.environ["RANK"]),
            "pid": os.getpid(),
            "state": self._state,
            "since": self._since,
            "memory": psutil.Process().memory_info().rss,
        }
        self.session.send(stream, "dist_status_reply", content, parent, ident)


class RankApp(IPKernelApp):  # type: ignore[misc]
    """The application around a `RankKernel`."""

    kernel_class = RankKernel
    outstream_class = f"{__package__}.capture.RankStream"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # N ranks writing one history database would wait for each other's locks.
        self.update_config(Config({"HistoryManager": {"enabled": False}}))

    def init_iopub(self, context: zmq.Context[Any]) -> None:
        """Greet every client that subscribes, not only the first: it then misses nothing."""
        context.setsockopt(zmq.XPUB_VERBOSE, 1)
        super().init_iopub(context)

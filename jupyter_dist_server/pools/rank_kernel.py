"""The kernel inside a rank: IPython's, with what a rank needs and a notebook kernel does not."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import psutil
import zmq
from ipykernel.ipkernel import IPythonKernel
from ipykernel.jsonutil import json_clean
from ipykernel.kernelapp import IPKernelApp
from traitlets.config import Config

from .capture import take_in_everything
from .cell_channel import CellChannel
from .client import METADATA, cell_topic
from .folder import CHANNELS
from .outbox import Budget
from .publishing import PubThread
from .value_handlers import VALUE_REQUESTS, ValueHandlers


class RankKernel(ValueHandlers, IPythonKernel):  # type: ignore[misc]
    """A conforming kernel that also tells its status while the main thread is stuck.

    ``dist_status_request`` on the control channel is answered by ``dist_status_reply`` with
    ``{rank, pid, state, since, memory}``: `state` is ``idle`` or ``busy``, `since` in Unix seconds,
    `memory` the resident set in bytes. ``dist_cancel_request`` with ``{msg_id}`` interrupts a cell
    that runs, or makes the rank skip one that it has not begun; ``dist_cancel_reply`` tells which
    by ``{running}``. ``dist_cell_request`` comes by the `CellChannel` and is answered by an
    ``execute_reply``.
    """

    control_msg_types = [  # noqa: RUF012
        *IPythonKernel.control_msg_types,
        "dist_status_request",
        "dist_cancel_request",
        *VALUE_REQUESTS,
    ]
    _execute_sleep = 0.0  # ipykernel's half millisecond covers a race that our client has not

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"ident": f"rank-{os.environ['RANK']}"})
        self._state, self._since = "idle", time.time()
        self._cancelled: set[str] = set()
        self._running = ""

    def start(self) -> None:
        """Begin to serve."""
        super().start()
        self.cells = CellChannel(self.parent.cell_socket, self)
        self.cells.start()

    def _publish_status(self, status: str, channel: str, parent: Any = None) -> None:
        if self.iopub_thread.wanted(self._topic("status")):
            super()._publish_status(status, channel, parent)

    # -- cells ------------------------------------------------------------------------------

    async def run_cell_request(self, socket: Any, frames: list[bytes]) -> None:
        """Run one cell that came over the `CellChannel`, and reply."""
        idents, parts = self.session.feed_identities(frames)
        try:
            request = self.session.deserialize(parts)
        except ValueError as error:  # not signed with the pool's key
            self.log.error("A cell was refused: %s", error)
            return
        cell = request["header"]["msg_id"]
        if cell in self._cancelled:
            self._cancelled.discard(cell)
            self.session.send(socket, "execute_reply", {"status": "aborted"}, request, idents)
            return
        content = request["content"]
        self.set_parent(idents, request, channel="shell")
        self._publish_status("busy", "shell")
        outbox, sent = self.iopub_thread.outbox, self.iopub_thread.sent
        outbox.begin(
            cell, Budget(content["limit"], f"{content['file']}-rank-{os.environ['RANK']}.txt")
        )
        self._running = cell
        self.pre_handler_hook()
        try:
            reply = await self.do_execute(
                content["code"],
                silent=False,
                allow_stdin=content["allow_stdin"],
                cell_meta=request["metadata"],
            )
        except KeyboardInterrupt:  # it came between the cell's end and here
            reply = {"status": "error", "ename": "KeyboardInterrupt", "evalue": "", "traceback": []}
        finally:
            self.post_handler_hook()
            self._running = ""
        outbox.end(cell, request["header"])
        if self.iopub_thread.sent == sent:
            self.session.send(socket, "execute_reply", json_clean(reply), request, idents)
        else:  # behind the outputs, on the way that they go
            topic = cell_topic(request["header"]["session"])
            self.session.send(self.iopub_socket, "execute_reply", json_clean(reply), request, topic)
        self._publish_status("idle", "shell")

    async def dist_cancel_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Interrupt a cell, on the control thread, or note that it is not wanted any more."""
        cell = parent["content"]["msg_id"]
        running = cell == self._running
        if running:
            os.killpg(os.getpid(), signal.SIGINT)  # a rank leads its group: `!command` too
        else:
            self._cancelled.add(cell)
        self.session.send(stream, "dist_cancel_reply", {"running": running}, parent, ident)

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
            take_in_everything()
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

    def init_sockets(self) -> None:
        """Open the kernel's sockets, and the one for cells."""
        super().init_sockets()
        self.cell_socket = self.context.socket(zmq.ROUTER)
        self.cell_socket.linger = 1000
        self.cell_socket.set_hwm(0)
        self.cell_socket.router_handover = True
        self.cell_socket.bind(f"ipc://{self.ip}-{CHANNELS['cells']}")

    def init_iopub(self, context: zmq.Context[Any]) -> None:
        """Greet every client that subscribes, not only the first: it then misses nothing."""
        self.iopub_socket = context.socket(zmq.XPUB)
        self.iopub_socket.linger = 1000
        self.iopub_socket.setsockopt(zmq.XPUB_VERBOSER, 1)
        self.iopub_socket.set_hwm(0)  # the cells' budgets bound what can pile up
        self.iopub_port: int = self._bind_socket(self.iopub_socket, self.iopub_port)
        self.configure_tornado_logger()
        self.iopub_thread = PubThread(self.iopub_socket, self.session)
        self.iopub_thread.start()
        self.iopub_socket = self.iopub_thread.background_socket

    def close(self) -> None:
        """Close the sockets in an orderly fashion."""
        self.cell_socket.close()
        super().close()

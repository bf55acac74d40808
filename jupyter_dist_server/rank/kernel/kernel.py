"""The kernel inside a rank: IPython's, with what a rank needs and a notebook kernel does not."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import zmq

from ...common.protocol.jupyter_messages import Content
from ...common.protocol.ranks.cell_messages import (
    COMM_REQUESTS,
    COMM_STATUS,
    ENDS_CELL,
    GROUP,
    INTERRUPTED_AT,
    LOST_CUDA,
    cell_topic,
)
from ...common.protocol.ranks.park_messages import UnloadRequest
from ...common.protocol.ranks.rank_messages import (
    Activity,
    BreakRequest,
    CellRequest,
    RankRequest,
    RankStatus,
    RegroupReply,
    RegroupRequest,
    StatusRequest,
    Whereabouts,
    read_content,
)
from .. import clock
from ..cells.cell_runner import CellChannel, run_cell
from ..cells.shell import RankShell, error_content, in_one_line
from ..cells.sigint import InterruptHandlers, ignore_sigint, on_sigint
from ..cells.tracebacks import render_one
from ..debugging.debug_handlers import DebugHandlers
from ..group.pool_size import take_size
from ..group.process_group import ProcessGroup
from ..ipykernel_internals import BaseKernel
from ..output.budget import Budget
from ..output.capture import let_threads_inherit_context, take_in_everything
from ..park.park_handlers import ParkHandlers
from ..profile.profile_handlers import ProfileHandlers
from ..rank_report import Reporter
from ..request_handlers import Asked, hears, refusal
from ..torch_internals import has_lost_cuda
from ..variables.value_handlers import ValueHandlers
from ..variables.variable_handlers import VariableHandlers
from ..waits.evidence_handlers import EvidenceHandlers
from ..waits.stacks import StackHandlers, whereabouts


class RankKernel(
    DebugHandlers,
    InterruptHandlers,
    ValueHandlers,
    VariableHandlers,
    StackHandlers,
    EvidenceHandlers,
    ProfileHandlers,
    ParkHandlers,
    BaseKernel,
):
    """A conforming kernel that also tells its status while the main thread is stuck.

    `common.protocol.ranks.rank_messages` lists its requests. Cells come by the `CellChannel`.
    """

    control_msg_types = [  # noqa: RUF012
        *BaseKernel.control_msg_types,
        *(form.kind for form in RankRequest.__subclasses__() if form.channel == "control"),
    ]
    msg_types = [*BaseKernel.msg_types, RegroupRequest.kind, UnloadRequest.kind]  # noqa: RUF012
    shell_class = RankShell
    report: Reporter
    group: ProcessGroup

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"ident": f"rank-{os.environ['RANK']}"})
        self._state: Activity = "idle"
        self._since = clock.now()
        self._cell: int | None = None
        self._cell_id: str | None = None
        self._request: str | None = None
        self._ended = ""
        for kind in COMM_REQUESTS:
            self.shell_handlers[kind] = partial(self._handle_comm, self.shell_handlers[kind])

    def start(self) -> None:
        """Begin to serve."""
        super().start()
        let_threads_inherit_context()
        app: Any = self.parent
        self.cells = CellChannel(app.cell_socket, self._run_cell)
        self.cells.start()
        asyncio.get_event_loop().call_later(1.0, render_one)  # while it is idle

    def has_followers(self) -> bool:
        """Tell whether a client has subscribed to this rank's status."""
        wanted: bool = self.iopub_thread.wanted(self.status_topic)
        return wanted

    def _publish_cell_status(self, status: Activity, asked: CellRequest) -> None:
        """Publish whether a cell of the `CellChannel` runs, and which one."""
        if self.has_followers():
            content = {"execution_state": status}
            about = {"cell": asked.execution_count, "cell_id": asked.cell_id}
            message = self.session.msg("status", content, self.get_parent("shell"), metadata=about)
            self.iopub_thread.send_soon(self.session.serialize(message, self.status_topic))

    # -- cells ------------------------------------------------------------------------------

    async def _run_cell(self, socket: zmq.Socket[bytes], frames: list[bytes]) -> None:
        async with self.between_cells:  # the shell channel's cells wait meanwhile
            await self._run_cell_now(socket, frames)

    async def _run_cell_now(self, socket: zmq.Socket[bytes], frames: list[bytes]) -> None:
        try:
            idents, parts = self.session.feed_identities(frames)
            request = self.session.deserialize(parts)
        except ValueError as error:  # no message, or not signed with the pool's key
            self.log.error("A cell was refused: %s", error)
            return
        try:
            asked = read_content(request["content"], CellRequest)
        except ValueError as error:
            self.log.error("A %s is malformed: %s", CellRequest.kind, error)
            self.session.send(socket, "execute_reply", refusal(error), request, idents)
            return
        cell = request["header"]["msg_id"]
        if cell in self._cancelled:
            self._cancelled.discard(cell)
            self.session.send(socket, "execute_reply", {"status": "aborted"}, request, idents)
            return
        self.set_parent(idents, request, channel="shell")
        for stream in self.iopub_thread.captured:  # the user may have others in their place
            stream.set_parent(request)
        outbox, sent = self.iopub_thread.outbox, self.iopub_thread.sent
        file = f"{asked.file}-rank-{os.environ['RANK']}.txt"
        outbox.begin(cell, Budget(asked.limit, file, asked.largest_display))
        handler = ignore_sigint()
        try:
            self._begin(asked.execution_count, asked.cell_id)
            self._publish_cell_status("busy", asked)
            with self.profiled(asked.profile) as recording:
                try:
                    self._allow_interrupts(cell)
                    reply = await run_cell(self, self.shell, asked)
                    if recording:  # here a stop can end what the GPU waits for
                        recording.wait_for_gpu()
                finally:
                    self._end_interrupts()
        except KeyboardInterrupt:  # at the cell's edge
            reply = {"status": "error", "ename": "KeyboardInterrupt", "evalue": "", "traceback": []}
        except Exception as error:  # ours, or IPython's: the client needs a reply
            trace = traceback.format_exception(error)
            reply = {"status": "error"} | error_content(type(error).__name__, error, trace)
            self.send_response(self.iopub_socket, "error", reply | {ENDS_CELL: True})
        finally:
            self._end_interrupts()
            on_sigint(handler)
            self._end()
        if self.debugger:
            self.cell_has_ended()
        self._ended = in_one_line(reply)
        if reply["status"] != "ok":
            reply = reply | {GROUP: self.group.fingerprint()}
        if has_lost_cuda(str(reply.get("evalue"))):
            reply = reply | {LOST_CUDA: True}
        if self._interrupted_at:
            reply = reply | {INTERRUPTED_AT: msgspec.to_builtins(self._interrupted_at)}
        outbox.end(cell, request["header"])
        if self.iopub_thread.sent == sent:
            self.session.send(socket, "execute_reply", reply, request, idents)
        else:  # behind the outputs, on the way that they go
            topic = cell_topic(request["header"]["session"])
            self.session.send(self.iopub_socket, "execute_reply", reply, request, topic)
        self._publish_cell_status("idle", asked)

    def ask_user(self, prompt: str, parent: Content, password: bool) -> str:
        """Ask on the iopub socket, so that the prompt arrives after the output before it."""
        sys.stdout.flush()  # it may be the user's own
        take_in_everything(self.iopub_thread.captured)
        while self.stdin_socket.poll(0):  # answers that came too late
            self.stdin_socket.recv_multipart()
        question = {"prompt": prompt, "password": password}
        topic = cell_topic(parent["header"]["session"])
        self.session.send(self.iopub_socket, "input_request", question, parent, topic)
        self.stdin_socket.poll()
        _, reply = self.session.recv(self.stdin_socket)
        answer: str = reply["content"]["value"]
        if answer == "\x04":
            raise EOFError
        return answer

    async def do_execute(self, *arguments: Any, **options: Any) -> Any:
        """Run a cell of another client; all that it printed is sent before it counts as done."""
        self._begin(None, None)
        try:
            return await super().do_execute(*arguments, **options)
        finally:
            self._end()

    def _begin(self, count: int | None, cell_id: str | None) -> None:
        if count is not None:
            self.shell.execution_count = count  # tracebacks then name the notebook's cell
        for stream in self.iopub_thread.captured:
            stream.begin_cell()
        self.makers.note(self.shell.user_ns, None)
        self._cell, self._cell_id = count, cell_id
        self.recent_cells.append(count or 0)
        self.ran += 1
        if self.memory_history:
            self.memory_history.forget()
        self._request = self.get_parent("shell")["header"]["msg_id"]
        self._state, self._since, self._ended = "busy", clock.now(), ""
        self._interrupted_at = None

    def _end(self) -> None:
        self._state, self._since = "idle", clock.now()
        take_in_everything(self.iopub_thread.captured)
        self.shell.forget_old_input()
        self.makers.note(self.shell.user_ns, self._cell)

    # -- the process group ------------------------------------------------------------------

    @hears(BreakRequest)
    def dist_break_request(self, asked: Asked[BreakRequest]) -> None:
        """Break the group, on the control thread."""
        order = asked.content
        self.group.free(order.generation, order.group, order.sent)

    @hears(RegroupRequest)
    def dist_regroup_request(self, asked: Asked[RegroupRequest]) -> None:
        """Make the group again, on the main thread, between cells: it blocks until all are in."""
        order, failure = asked.content, "The request came too late."
        wrapped: list[str] = []
        seconds = order.until - clock.now()
        if seconds > 0:  # or the client does not wait any more
            handler = ignore_sigint()  # it is meant for a cell, and the others are on their way
            try:
                if order.world_size != self.group.world_size:
                    wrapped = take_size(self.group, self.shell, order.world_size)
                self.group.join(order.name, order.generation, seconds, order.sent)
                failure = ""
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"
            finally:
                on_sigint(handler)
        asked.reply(RegroupReply(failure, wrapped))

    # -- other requests ---------------------------------------------------------------------

    def _handle_comm(
        self, handle: Callable[..., Any], stream: Any, ident: Any, parent: Content
    ) -> None:
        """Deal with a widget's message, and publish that on the comm's own topic."""
        topic = f"comm-{parent['content']['comm_id']}".encode()
        tell = partial(self.session.send, self.iopub_socket, COMM_STATUS)
        tell({"execution_state": "busy"}, parent, topic)
        try:
            handle(stream, ident, parent)
        finally:
            tell({"execution_state": "idle"}, parent, topic)

    @hears(StatusRequest)
    def dist_status_request(self, asked: Asked[StatusRequest]) -> None:
        """Answer on the control thread, whatever the main thread does."""
        asked.reply(
            RankStatus(
                rank=int(os.environ["RANK"]),
                state=self._state,
                since=self._since,
                cell=self._cell,
                cell_id=self._cell_id,
                msg_id=self._request,
                whereabouts=whereabouts() if self._state == "busy" else Whereabouts(),
                calls=self.group.calls(),
                group=self.group.fingerprint(),
                world_size=self.group.world_size,
                report=self.report.take(idle=self._state == "idle"),
            )
        )

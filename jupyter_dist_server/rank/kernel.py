"""The kernel inside a rank: IPython's, with what a rank needs and a notebook kernel does not."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from typing import Any

import msgspec
import zmq

from ..common.protocol.jupyter_messages import Content
from ..common.protocol.ranks.cell_messages import (
    ENDS_CELL,
    GROUP,
    INTERRUPTED_AT,
    LOST_CUDA,
    cell_topic,
)
from ..common.protocol.ranks.evidence import EvidenceRequest
from ..common.protocol.ranks.memory_messages import EstimateRequest, MemoryRequest
from ..common.protocol.ranks.parcel_messages import PARCEL_REQUESTS
from ..common.protocol.ranks.profile_messages import ProfileRequest
from ..common.protocol.ranks.rank_messages import (
    CONTROL_REQUESTS,
    Activity,
    CellRequest,
    RankStatus,
    RegroupRequest,
    StatusRequest,
    Whereabouts,
    read_content,
)
from ..common.protocol.ranks.variable_messages import VariablesRequest
from . import clock
from .cells.cell_channel import CellChannel
from .cells.cell_runner import run_cell
from .cells.error_content import error_content, in_one_line
from .cells.shell import RankShell
from .cells.sigint import InterruptHandlers
from .cells.tracebacks import IDLE, render_one
from .comm_handlers import CommHandlers
from .group.group_handlers import GroupHandlers
from .ignore_sigint import ignore_sigint, on_sigint
from .ipykernel_internals import BaseKernel
from .output.capture import take_in_everything
from .output.text_limit import Budget
from .output.threads_of_cells import let_threads_inherit_context
from .profile.profile_handlers import ProfileHandlers
from .rank_report import Reporter
from .request_handlers import Asked, hears, refusal
from .torch_internals import has_lost_cuda
from .variables.value_handlers import ValueHandlers
from .variables.variable_handlers import VariableHandlers
from .waits.evidence_handlers import EvidenceHandlers
from .waits.stacks import StackHandlers
from .waits.whereabouts import whereabouts


class RankKernel(
    InterruptHandlers,
    ValueHandlers,
    VariableHandlers,
    CommHandlers,
    GroupHandlers,
    StackHandlers,
    EvidenceHandlers,
    ProfileHandlers,
    BaseKernel,
):
    """A conforming kernel that also tells its status while the main thread is stuck.

    What clients ask, and what it answers, is in `common.protocol.ranks.rank_messages`. Cells come
    by the `CellChannel`.
    """

    control_msg_types = [  # noqa: RUF012
        *BaseKernel.control_msg_types,
        *(form.kind for form in (*CONTROL_REQUESTS, *PARCEL_REQUESTS)),
        *(form.kind for form in (VariablesRequest, MemoryRequest, EstimateRequest)),
        *(form.kind for form in (EvidenceRequest, ProfileRequest)),
    ]
    msg_types = [*BaseKernel.msg_types, RegroupRequest.kind]  # noqa: RUF012
    shell_class = RankShell
    report: Reporter

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"ident": f"rank-{os.environ['RANK']}"})
        self._state: Activity = "idle"
        self._since = clock.now()
        self._cell: int | None = None
        self._cell_id: str | None = None
        self._request: str | None = None
        self._ended = ""

    def start(self) -> None:
        """Begin to serve."""
        super().start()
        let_threads_inherit_context()
        app: Any = self.parent
        self.cells = CellChannel(app.cell_socket, self._run_cell_request)
        self.cells.start()
        asyncio.get_event_loop().call_later(IDLE, render_one)

    def has_followers(self) -> bool:
        """Whether anybody has subscribed to whether this rank is busy."""
        wanted: bool = self.iopub_thread.wanted(self.status_topic)
        return wanted

    def _publish_cell_status(self, status: Activity, asked: CellRequest) -> None:
        """Say whether a cell of the `CellChannel` runs; whoever shows it learns which one."""
        if self.has_followers():
            message = self.session.msg(
                "status",
                {"execution_state": status},
                self.get_parent("shell"),
                # Where the protocol lets anything be said.
                metadata={"cell": asked.execution_count, "cell_id": asked.cell_id},
            )
            self.iopub_thread.send_soon(self.session.serialize(message, self.status_topic))

    # -- cells ------------------------------------------------------------------------------

    async def _run_cell_request(self, socket: zmq.Socket[bytes], frames: list[bytes]) -> None:
        async with self.between_cells:  # shell cells wait meanwhile
            await self._run_cell(socket, frames)

    async def _run_cell(self, socket: zmq.Socket[bytes], frames: list[bytes]) -> None:
        """Run one cell that came over the `CellChannel`, and reply."""
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
            self._publish_cell_status("busy", asked)  # now that we would say so, if asked
            with self.profiled(asked.profile) as recording:
                try:
                    self._allow_interrupts(cell)
                    reply = await run_cell(self, self.shell, asked.code, asked.allow_stdin)
                    if recording:  # here a stop can end what the GPU waits for
                        recording.wait_for_gpu()
                finally:
                    self._end_interrupts()
        except KeyboardInterrupt:  # not in the cell any more, nor quite out of it
            reply = {"status": "error", "ename": "KeyboardInterrupt", "evalue": "", "traceback": []}
        except Exception as error:  # ours, or IPython's: whoever waits must hear of it
            trace = traceback.format_exception(error)
            reply = {"status": "error"} | error_content(type(error).__name__, error, trace)
            self.send_response(self.iopub_socket, "error", reply | {ENDS_CELL: True})
        finally:
            self._end_interrupts()
            on_sigint(handler)
            self._end()
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
        """Ask behind the outputs, on the way that they go: what was printed is shown by then."""
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

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: dict[str, Any] | None = None,
        allow_stdin: bool = False,
        **options: Any,
    ) -> Any:
        """Run a cell; all it printed is handed over before the cell counts as done.

        Which options there are depends on ipykernel's release.
        """
        self._begin(None, None)
        try:
            return await super().do_execute(
                code, silent, store_history, user_expressions, allow_stdin, **options
            )
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
                report=self.report.take(idle=self._state == "idle"),
            )
        )

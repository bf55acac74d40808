"""What a rank answers to a debugger's client, on the control channel, also while a cell runs."""

from __future__ import annotations

import ast
import itertools
import json
import re
import sysconfig
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import DistError
from ...common.protocol.jupyter_messages import Content
from ...common.protocol.ranks.debug_messages import (
    DebugAttachReply,
    DebugAttachRequest,
    DebugDetachReply,
    DebugDetachRequest,
    DebugReply,
    DebugRequest,
)
from ...common.protocol.ranks.rank_messages import Activity, RankReply, Whereabouts
from ..request_handlers import Asked, hears
from .tensor_preview import is_preview

if TYPE_CHECKING:
    from .pydevd_link import PydevdLink

_OURS = Path(__file__).parents[2]
_PREVIEW = f"{__package__}.tensor_preview"
_BELOW_CELLS = ("IPython", "ipykernel", "tornado", "zmq", "traitlets", "debugpy", "msgspec")
"""Packages that the debugger does not stop in, and whose frames it does not show."""
_NOT_SHOWN = re.compile(r"_(i|ii|iii|oh|dh|exit_code|_|__)?$|_i?\d+$|__\w+__$")
_ALSO_NOT_SHOWN = frozenset(["In", "Out", "exit", "quit", "get_ipython", "open"])


class DebugHandlers:
    """How `RankKernel` is debugged."""

    _state: Activity
    _interrupted_at: Whereabouts | None
    control_stream: Any
    log: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.debugger: PydevdLink | None = None
        """While it is on."""
        self._debug_client: Asked[DebugAttachRequest] | None = None
        self._debug_lock = threading.Lock()

    @hears(DebugAttachRequest)
    def dist_debug_attach_request(self, asked: Asked[DebugAttachRequest]) -> None:
        """Attach in a thread: the control thread must go on, or Stop would wait."""
        self._beside(asked, partial(self._attach, asked))

    @hears(DebugDetachRequest)
    def dist_debug_detach_request(self, asked: Asked[DebugDetachRequest]) -> None:
        """Detach in a thread."""
        self._beside(asked, self._detach)

    @hears(DebugRequest)
    def dist_debug_request(self, asked: Asked[DebugRequest]) -> None:
        """Pass a request on; its response comes when it comes."""
        request, debugger = asked.content.message, self.debugger
        command, arguments = request["command"], request.get("arguments") or {}

        def answer(response: Content) -> None:
            told = response | {"request_seq": request["seq"], "command": command}
            self._in_control_thread(partial(asked.reply, DebugReply(told)))

        if debugger is None:
            why = "The debugger of this rank is off."
            answer({"type": "response", "success": False, "message": why})
        elif command == "pause" and self._state == "idle":  # it would stop its event loop
            answer({"type": "response", "success": False, "message": "The rank is idle."})
        elif command == "continue" and not self._is_halted:  # pydevd answers once it was
            debugger.send(command, arguments, lambda _: None)
            answer({"type": "response", "success": True})
        elif command == "richInspectVariables":
            inspect(debugger, arguments, answer)
        elif command == "copyToGlobals":
            copy_to_globals(debugger, arguments, answer)
        elif command == "stackTrace":
            debugger.send(command, arguments, lambda response: answer(_trimmed(response)))
        elif command == "variables":
            debugger.send(command, arguments, lambda response: answer(_prepared(response)))
        else:
            debugger.send(command, arguments, answer)

    def map_cell(self, path: str, names: list[tuple[int, str]], lines: int) -> None:
        """Let breakpoints in the editor's file stop in the code of a cell; in the main thread.

        `names` has the first line in the file, and the name, of each part of the code.
        """
        if debugger := self.debugger:
            ends = [first - 1 for first, _ in names[1:]] + [max(lines, 1)]
            maps = [
                {"line": first, "endLine": end, "runtimeLine": 1, "runtimeSource": {"path": name}}
                for (first, name), end in zip(names, ends, strict=True)
                if end >= first
            ]
            if len(names) == 1:
                debugger.begin_cell()
            debugger.ask("setPydevdSourceMap", source={"path": path}, pydevdSourceMaps=maps)

    def cell_has_ended(self) -> None:
        """Tell that nothing is stopped, as Stop leaves the debugger without a word."""
        if self._is_halted:
            self._on_debug_event({"type": "event", "event": "continued", "seq": 0, "body": {}})

    def _leave_debugger(self) -> None:
        """Let an interrupted cell end: the error alone leaves its thread marked as stopped."""
        if debugger := self.debugger:
            debugger.send("continue", {"threadId": 1}, lambda _: None)

    _is_halted = False
    """Whether the debugger has stopped this rank."""

    def _attach(self, asked: Asked[DebugAttachRequest]) -> RankReply:
        from .pydevd_link import PydevdLink

        with self._debug_lock:
            before, self._debug_client = self._debug_client, asked
            if self.debugger:  # another client's
                if before:
                    gone = DebugAttachReply(
                        event={"type": "event", "event": "terminated", "seq": 0}
                    )
                    self._in_control_thread(partial(before.reply, gone))
                self._end_debugger(self.debugger)
            try:
                self.debugger = PydevdLink(_rules(), self._on_debug_event)
            except DistError as error:
                return DebugAttachReply(f"{error.message} {error.hint or ''}".rstrip())
        return DebugAttachReply()

    def _detach(self) -> RankReply:
        with self._debug_lock:
            if self.debugger:
                self._end_debugger(self.debugger)
        return DebugDetachReply()

    def _end_debugger(self, debugger: PydevdLink) -> None:
        self.debugger, self._is_halted = None, False
        debugger.close()

    def _on_debug_event(self, event: Content) -> None:
        if event["event"] == "stopped" and self._interrupted_at:
            self._leave_debugger()  # an interrupted cell stops no more
            return
        if event["event"] in ("stopped", "continued"):
            self._is_halted = event["event"] == "stopped"
        if client := self._debug_client:
            self._in_control_thread(partial(client.reply, DebugAttachReply(event=event)))

    def _beside(self, asked: Asked[Any], work: Callable[[], RankReply]) -> None:
        from .pydevd_link import let_run

        def do() -> None:
            reply = work()
            self._in_control_thread(partial(asked.reply, reply))

        thread = threading.Thread(target=do, name="debugger-switch", daemon=True)
        let_run(thread)
        thread.start()

    def _in_control_thread(self, reply: Callable[[], None]) -> None:
        self.control_stream.io_loop.add_callback(reply)  # a socket belongs to one thread


def _rules() -> list[Content]:
    """Return what pydevd leaves out: Python's library, and the code below the user's.

    The first rule that fits a file decides.
    """
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    left_out = [f"{folder}/{name}" for folder in installed for name in _BELOW_CELLS]
    left_out.append(f"{_OURS}/rank")
    rules = [{"path": f"{folder}/**", "include": False} for folder in left_out]
    rules += [{"path": f"{folder}/**", "include": True} for folder in installed]
    return [*rules, {"path": f"{sysconfig.get_path('stdlib')}/**", "include": False}]


def inspect(debugger: PydevdLink, arguments: Content, answer: Callable[[Content], None]) -> None:
    """Answer how Jupyter displays a variable of a frame."""
    name = arguments.get("variableName", "")
    nothing = {"type": "response", "success": True, "body": {"data": {}, "metadata": {}}}
    if not name.isidentifier():  # a group of variables
        answer(nothing)
        return

    def convert(response: Content) -> None:
        if response["success"]:
            shown = json.loads(ast.literal_eval(response["body"]["result"]))
            response["body"] = dict(zip(("data", "metadata"), shown, strict=True))
        answer(response)

    expression = f"__import__({_PREVIEW!r}, fromlist=['']).rich({name})"
    wanted = {"expression": expression, "context": "clipboard", "frameId": arguments.get("frameId")}
    debugger.send("evaluate", wanted, convert)


def copy_to_globals(
    debugger: PydevdLink, arguments: Content, answer: Callable[[Content], None]
) -> None:
    """Set a global variable to a local one."""
    source, target = arguments["srcVariableName"], arguments["dstVariableName"]
    if not (source.isidentifier() and target.isidentifier()):
        why = "The names of both variables must be identifiers."
        answer({"type": "response", "success": False, "message": why})
        return
    setting = {"expression": f"globals()[{target!r}]", "value": source}
    debugger.send("setExpression", setting | {"frameId": arguments["srcFrameId"]}, answer)


def _trimmed(response: Content) -> Content:
    """Leave out the frames below the cell: they are the same in every rank."""
    if response["success"]:
        frames = response["body"]["stackFrames"]
        kept = list(itertools.takewhile(lambda frame: not _is_below(frame), frames))
        response["body"] = {"stackFrames": kept, "totalFrames": len(kept)}
    return response


def _is_below(frame: Content) -> bool:
    path = str((frame.get("source") or {}).get("path", ""))
    return path.startswith(f"{_OURS}/")


def _prepared(response: Content) -> Content:
    """Leave out IPython's own variables; show tensors where JupyterLab shows only a type."""
    if response["success"]:
        shown = []
        for one in response["body"]["variables"]:
            if _NOT_SHOWN.match(one["name"]) or one["name"] in _ALSO_NOT_SHOWN:
                continue
            shown.append(one | {"type": one["value"]} if is_preview(one["value"]) else one)
        response["body"] = {"variables": shown}
    return response

"""A rank's side of moving values: it answers while a cell runs, and never delays its status."""

from __future__ import annotations

import linecache
import os
import threading
import types
from collections.abc import Callable
from typing import Any

from ..common.pickling import (
    SHARED_FROM,
    Buffer,
    open_shared,
    own,
    pack,
    read_shared,
    unpack,
    write_shared,
)

VALUE_REQUESTS = ["dist_push_request", "dist_pull_request", "dist_forget_request"]

_Answer = tuple[dict[str, Any], list[memoryview]]


class _Refusal(Exception):
    """Why a rank cannot do what it was asked for: a status and a reason."""


class ValueHandlers:
    """What `RankKernel` answers on its control channel, to move values.

    ``dist_push_request`` with ``{sizes, memory}`` sets variables. Their pickle (a dict) lies in
    `memory`, which is another process's, or in the message's buffers if that is ``null``. With
    ``{call}`` the pickle is a function with its arguments, kept for `dist_call`.

    ``dist_pull_request`` with ``{expression, memory}`` or ``{call, memory}`` is answered with
    ``{sizes, shared, devices}``: the value's pickle is in the `memory` given for this rank, or in
    the message's buffers. ``dist_forget_request`` with ``{call}`` has no reply.

    Replies have a `status`: ``ok``, ``missing``, ``failed``, ``unsendable``, ``unreadable`` (these
    with the reason in `why`), or ``no_memory``, which asks for the buffers in a message.
    """

    session: Any
    shell: Any
    control_stream: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._calls: dict[str, Any] = {}
        self._own_gpu = _current_device()

    def dist_push_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Set variables."""
        self._begin_to_move("dist_push_reply", self._push_values, stream, ident, parent)

    def dist_pull_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Send a value."""
        self._begin_to_move("dist_pull_reply", self._pull_value, stream, ident, parent)

    def dist_forget_request(self, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Drop a call and its result."""
        self._calls.pop(parent["content"]["call"], None)

    def dist_call(self, call: str) -> None:
        """Run a function that was sent, in the running cell, and keep what it returns."""
        __tracebackhide__ = True
        function, arguments, named, source = self._calls[call]
        for name, lines in source.items():  # for tracebacks; no time means: no file to compare with
            linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
        if isinstance(function, types.FunctionType) and function.__module__ == "__main__":
            # It brought those of the notebook's variables that it uses; the rest are ours.
            for name, value in self.shell.user_ns.items():
                function.__globals__.setdefault(name, value)
        self._calls[call] = function(*arguments, **named)

    def _begin_to_move(self, *request: Any) -> None:
        # A thread of its own: it may have to wait for a GPU, in a collective that never ends.
        threading.Thread(target=self._answer_mover, args=request, daemon=True).start()

    def _answer_mover(
        self,
        kind: str,
        work: Callable[[dict[str, Any]], _Answer],
        stream: Any,
        ident: Any,
        parent: dict[str, Any],
    ) -> None:
        buffers: list[memoryview] = []
        try:
            _use_device(self._own_gpu)
            content, buffers = work(parent)
        except _Refusal as refusal:
            status, why = refusal.args
            content = {"status": status, "why": why}
        except BaseException as error:  # whoever asked is told, and shows it
            content = {"status": "failed", "why": describe(error)}
        # A socket belongs to one thread.
        self.control_stream.io_loop.add_callback(
            self.session.send, stream, kind, content, parent, ident, buffers
        )

    def _push_values(self, message: dict[str, Any]) -> _Answer:
        content = message["content"]
        buffers: list[Buffer]
        if content["memory"] is None:
            buffers = own(message["buffers"])
        else:
            descriptor = open_shared(content["memory"])
            if descriptor is None:
                return {"status": "no_memory"}, []
            try:
                buffers = read_shared(descriptor, content["sizes"])
            finally:
                os.close(descriptor)
        try:
            value = unpack(buffers)
        except Exception as error:
            raise _Refusal("unreadable", describe(error)) from error
        if content["call"]:
            self._calls[content["call"]] = value
        else:
            self.shell.push(value)
        return {"status": "ok"}, []

    def _pull_value(self, message: dict[str, Any]) -> _Answer:
        content = message["content"]
        if content["call"]:
            value = self._calls[content["call"]]
        else:
            value = evaluate(content["expression"], self.shell.user_ns)
        try:
            packed = pack(value, [value])
        except Exception as error:
            raise _Refusal("unsendable", str(error) or describe(error)) from error
        reply = {"status": "ok", "sizes": packed.sizes, "devices": packed.devices, "shared": False}
        address = content["memory"].get(os.environ["RANK"])
        if address and sum(packed.sizes) >= SHARED_FROM:
            descriptor = open_shared(address)
            if descriptor is not None:
                try:
                    write_shared(descriptor, packed.buffers)
                finally:
                    os.close(descriptor)
                return reply | {"shared": True}, []
        return reply, packed.buffers


def evaluate(expression: str, namespace: dict[str, Any]) -> Any:
    """Return the value of an expression in a rank's variables."""
    try:
        return eval(expression, namespace)
    except NameError as error:
        if error.name is None:
            raise
        raise _Refusal("missing", error.name) from error


def describe(error: BaseException) -> str:
    """Return an error's type and message in one line."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _current_device() -> int | None:
    import torch

    device: int | None = torch.cuda.current_device() if torch.cuda.is_initialized() else None
    return device


def _use_device(device: int | None) -> None:
    """Use the rank's GPU in this thread, which would begin with the first that it can see."""
    if device is not None:
        import torch

        torch.cuda.set_device(device)

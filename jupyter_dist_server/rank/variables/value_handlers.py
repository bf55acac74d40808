"""A rank's side of moving values: it answers while a cell runs, and never delays its status."""

from __future__ import annotations

import contextlib
import linecache
import os
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from ...common.pickling import (
    PARCEL_FROM,
    SHARED_FROM,
    Buffer,
    open_shared,
    own,
    pack,
    read_shared,
    unpack,
    write_shared,
)
from ...common.protocol.ranks.rank_messages import (
    ForgetRequest,
    PullRequest,
    PushRequest,
    Request,
    ValueReply,
    ValueStatus,
)
from .. import users_code
from ..request_handlers import Asked, hears
from .parcels import ParcelHandlers

_Answer = tuple[ValueReply, list[memoryview]]


class Refusal(Exception):
    """Why a rank cannot do what it was asked for."""

    def __init__(self, status: ValueStatus, why: str) -> None:
        super().__init__(why)
        self.reply = ValueReply(status, why)


class ValueHandlers(ParcelHandlers):
    """What `RankKernel` answers on its control channel, to move values."""

    shell: Any
    control_stream: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._calls: dict[str, Any] = {}
        self._own_gpu = current_device()

    @hears(PushRequest)
    def dist_push_request(self, asked: Asked[PushRequest]) -> None:
        """Set variables."""
        self._begin_to_move(self._push_values, asked)

    @hears(PullRequest)
    def dist_pull_request(self, asked: Asked[PullRequest]) -> None:
        """Send a value."""
        self._begin_to_move(self._pull_value, asked)

    @hears(ForgetRequest)
    def dist_forget_request(self, asked: Asked[ForgetRequest]) -> None:
        """Drop a call and its result."""
        self._calls.pop(asked.content.call, None)

    def dist_call(self, call: str) -> None:
        """Run a function that was sent, in the running cell, and keep what it returns."""
        function, arguments, named, source, namespaces = self._calls[call]
        for name, lines in source.items():  # for tracebacks; no time means: no file to compare with
            linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
        for globals_there in namespaces:
            # Functions brought those of the notebook's variables that they use; the rest are ours.
            for name, value in self.shell.user_ns.items():
                globals_there.setdefault(name, value)
        with users_code.without_frames_of_ours(self.shell):
            self._calls[call] = users_code.call(function, arguments, named)

    def _begin_to_move(
        self, work: Callable[[Asked[Request]], _Answer], asked: Asked[Request]
    ) -> None:
        # A thread of its own: it may have to wait for a GPU, in a collective that never ends.
        threading.Thread(target=self._answer_mover, args=(work, asked), daemon=True).start()

    def _answer_mover(
        self, work: Callable[[Asked[Request]], _Answer], asked: Asked[Request]
    ) -> None:
        buffers: list[memoryview] = []
        try:
            use_device(self._own_gpu)
            reply, buffers = work(asked)
        except Refusal as refusal:
            reply = refusal.reply
        except BaseException as error:  # whoever asked is told, and shows it
            reply = ValueReply("failed", describe(error))
        # A socket belongs to one thread.
        self.control_stream.io_loop.add_callback(asked.reply, reply, buffers)

    def _push_values(self, asked: Asked[PushRequest]) -> _Answer:
        request = asked.content
        buffers: list[Buffer]
        if request.memory is None:
            buffers = own(asked.buffers)
        else:
            descriptor = open_shared(request.memory)
            if descriptor is None:
                return ValueReply("no_memory"), []
            try:
                buffers = read_shared(descriptor, request.sizes)
            finally:
                os.close(descriptor)
        try:
            value = unpack(buffers)
        except Exception as error:
            raise Refusal("unreadable", describe(error)) from error
        if request.call:
            self._calls[request.call] = value
        else:
            self.shell.push(value)
        return ValueReply("ok"), []

    def _pull_value(self, asked: Asked[PullRequest]) -> _Answer:
        request = asked.content
        if request.call:
            value = self._calls[request.call]
        else:
            value = evaluate(request.expression, self.shell.user_ns)
        try:
            packed = pack(value, [value])
        except Exception as error:
            raise Refusal("unsendable", str(error) or describe(error)) from error
        reply = ValueReply("ok", sizes=packed.sizes, devices=packed.devices)
        size = sum(packed.sizes)
        address = request.memory.get(int(os.environ["RANK"]))
        if address and size >= SHARED_FROM:
            descriptor = open_shared(address)
            if descriptor is not None:
                try:
                    write_shared(descriptor, packed.buffers)
                finally:
                    os.close(descriptor)
                return msgspec.structs.replace(reply, shared=True), []
        if request.parcel and size >= PARCEL_FROM:
            with contextlib.suppress(OSError):  # no memory can be shared: then it is sent as one
                if not self._keep(request.parcel, packed):
                    raise Refusal("failed", "nobody waits for it any more")
                return msgspec.structs.replace(reply, kept=True), []
        return reply, packed.buffers


def evaluate(expression: str, namespace: dict[str, Any]) -> Any:
    """Return the value of an expression in a rank's variables."""
    try:
        return eval(expression, namespace)
    except NameError as error:
        if error.name is None:
            raise
        raise Refusal("missing", error.name) from error


def describe(error: BaseException) -> str:
    """Return an error's type and message in one line."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


def current_device() -> int | None:
    """Return the GPU of this thread, if CUDA is in use."""
    import torch

    device: int | None = torch.cuda.current_device() if torch.cuda.is_initialized() else None
    return device


def use_device(device: int | None) -> None:
    """Use the rank's GPU in this thread, which would begin with the first that it can see."""
    if device is not None:
        import torch

        torch.cuda.set_device(device)

"""Values of a rank, sent and received: also while a cell runs."""

from __future__ import annotations

import contextlib
import linecache
import os
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
from ..request_handlers import Asked, answer_from_thread, describe, hears
from .parcels import ParcelHandlers

_Answer = tuple[ValueReply, list[memoryview]]


class Refusal(Exception):
    """Why a rank cannot do what it was asked to do."""

    def __init__(self, status: ValueStatus, why: str) -> None:
        super().__init__(why)
        self.reply = ValueReply(status, why)


class ValueHandlers(ParcelHandlers):
    """What `RankKernel` answers on its control channel, to move values."""

    shell: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._calls: dict[str, Any] = {}

    @hears(PushRequest)
    def dist_push_request(self, asked: Asked[PushRequest]) -> None:
        """Set variables."""
        self._move(self._push_values, asked)

    @hears(PullRequest)
    def dist_pull_request(self, asked: Asked[PullRequest]) -> None:
        """Send a value."""
        self._move(self._pull_value, asked)

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

    def _move(self, work: Callable[[Asked[Request]], _Answer], asked: Asked[Request]) -> None:
        def answer() -> _Answer:
            try:
                return work(asked)
            except Refusal as refusal:
                return refusal.reply, []
            except BaseException as error:  # the client shows it
                return ValueReply("failed", describe(error)), []

        answer_from_thread(self, asked, answer)

    def _push_values(self, asked: Asked[PushRequest]) -> _Answer:
        request = asked.content
        buffers: list[Buffer]
        if request.memory is None:
            buffers = own(asked.message["buffers"])
        elif (descriptor := open_shared(request.memory)) is None:
            return ValueReply("no_memory"), []
        else:
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
        descriptor = open_shared(address) if address and size >= SHARED_FROM else None
        if descriptor is not None:
            try:
                write_shared(descriptor, packed.buffers)
            finally:
                os.close(descriptor)
            return msgspec.structs.replace(reply, shared=True), []
        if request.parcel and size >= PARCEL_FROM:
            with contextlib.suppress(OSError):  # no shared memory: then it is sent as one message
                if not self._keep(request.parcel, packed):
                    raise Refusal("failed", "the client does not wait for it any more")
                return msgspec.structs.replace(reply, kept=True), []
        return reply, packed.buffers


def evaluate(expression: str, namespace: dict[str, Any]) -> Any:
    """Return the value of an expression of the rank's variables."""
    try:
        return eval(expression, namespace)
    except NameError as error:
        if error.name is None:
            raise
        raise Refusal("missing", error.name) from error

"""How `RankKernel` handles our own requests: contents are checked before anything is done."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Generic

import msgspec

from ..common.protocol.jupyter_messages import Content, Message
from ..common.protocol.ranks.rank_messages import RankReply, Request, read_content


@dataclass(frozen=True)
class Asked(Generic[Request]):
    """A request, and the way back to its sender."""

    content: Request
    message: Message
    """The whole Jupyter message."""
    send: Callable[[Content, Sequence[memoryview]], None]
    """Sends the content of a reply."""

    def reply(self, reply: RankReply, buffers: Sequence[memoryview] = ()) -> None:
        """Answer, in the thread of the channel."""
        self.send(msgspec.to_builtins(reply), buffers)


Handler = Callable[[Any, Asked[Request]], Awaitable[None] | None]


def hears(form: type[Request]) -> Callable[[Handler[Request]], Callable[..., Any]]:
    """Let a method of `RankKernel` handle requests of a form; ipykernel finds it by its name.

    A request of another form is logged, and answered by an error.
    """
    reply = form.kind.replace("_request", "_reply")

    def checked(handler: Handler[Request]) -> Callable[..., Any]:
        @wraps(handler)
        def handle(
            kernel: Any, stream: Any, ident: Any, message: Message
        ) -> Awaitable[None] | None:
            def send(content: Content, buffers: Sequence[memoryview] = ()) -> None:
                kernel.session.send(stream, reply, content, message, ident, buffers)

            try:
                content = read_content(message["content"], form)
            except ValueError as error:
                kernel.log.error("A %s is malformed: %s", form.kind, error)
                send(refusal(error))
                return None
            return handler(kernel, Asked(content, message, send))

        return handle

    return checked


def refusal(error: Exception) -> Content:
    """Return the content of a reply to a malformed request."""
    return {
        "status": "error",
        "ename": type(error).__name__,
        "evalue": f"The request is malformed: {error}",
        "traceback": [],
    }


def answer_from_thread(
    kernel: Any,
    asked: Asked[Request],
    work: Callable[[], tuple[RankReply, Sequence[memoryview]]],
) -> None:
    """Send a reply and its buffers, without keeping the control channel busy meanwhile.

    Large values take a while, and so may a GPU.
    """

    def answer() -> None:
        try:
            if kernel.report.is_parked:
                raise RuntimeError("The rank is parked: %dist_resume brings it back.")
            if kernel.report.device != "cpu":  # a new thread uses the first GPU
                sys.modules["torch"].cuda.set_device(kernel.report.device)
            send = partial(asked.reply, *work())
        except BaseException as error:  # the client reports it
            why = {"status": "error", "ename": type(error).__name__, "evalue": describe(error)}
            send = partial(asked.send, why, ())
        kernel.control_stream.io_loop.add_callback(send)  # a socket belongs to one thread

    threading.Thread(target=answer, daemon=True).start()


def describe(error: BaseException) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}".rstrip(": ")
